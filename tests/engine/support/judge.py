"""A judge for tests, behind a real model server: it keeps to the assessor's form, and decides by a rule."""

import re
from collections.abc import Callable
from typing import Any

from tests.models.mock_server import Heard

Rule = Callable[[str, str], bool | float]
"""Gets an expectation (or a criterion) and the record that the judge was shown; says whether it is met, or a score."""
_MARK = re.compile(r'^\{"mark": "(\w+)"', re.MULTILINE)
_ASKED = re.compile(r"^(?:Expectation|Criterion) (\d+):\n<<<data (\w+)\n(.*?)\n\2 data>>>", re.DOTALL | re.MULTILINE)
_SHOWN = re.compile(r"^(Text \d+\. [^\n]+):\n<<<data (\w+)\n(.*?)\n\2 data>>>", re.DOTALL | re.MULTILINE)


def mark_of(words: str) -> str:
    """The mark that an answer to this prompt must have: the last form in it is ours."""
    return str(_MARK.findall(words)[-1])


def marked(heard: Heard, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer of a role that ATP told how to answer."""
    return {"mark": mark_of(heard.prompt), **answer}


def judge(rule: Rule) -> Callable[[Heard], Any]:
    """What the mock server answers as a judge."""

    def answer(heard: Heard) -> Any:
        words = heard.prompt
        shown = [(match[1], match[3]) for match in _SHOWN.finditer(words)]
        asked = [(match[1], match[3]) for match in _ASKED.finditer(words.partition("\nThe record:\n")[0])]
        wanted = "score" if "Criterion 1:" in words else "met"
        quotes = [text for label, text in reversed(shown) if text.strip() and "user said" not in label]
        quote = (quotes or [text for _, text in shown] or [""])[0].split("\n")[0][:60]
        verdicts = [
            {
                "number": int(number),
                "reason": f"the rule says so of: {one[:40]}",
                "evidence": [quote] if quote else [],
                "absence": not quote,
                wanted: rule(one, "\n".join(text for _, text in shown)),
            }
            for number, one in asked
        ]
        return marked(heard, {"verdicts": verdicts})

    return answer
