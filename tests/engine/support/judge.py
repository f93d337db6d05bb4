"""A judge for tests, behind a real model server: it keeps to the assessor's form, and decides by a rule."""

import re
from collections.abc import Callable
from typing import Any

from tests.models.mock_server import Heard

Rule = Callable[[str, str], bool | float]
"""Gets an expectation (or a criterion) and the record that the judge was shown; says whether it is met, or a score."""
_LISTED = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)
_FENCED = re.compile(r"<<<data (\w+)\n(.*?)\n\1 data>>>", re.DOTALL)


def judge(rule: Rule) -> Callable[[Heard], Any]:
    """What the mock server answers as a judge."""

    def answer(heard: Heard) -> Any:
        words = heard.prompt
        texts = [match[2] for match in _FENCED.finditer(words)]
        outside = _FENCED.sub("", words)
        wanted = "score" if "criterion" in outside else "met"
        quote = next((text for text in reversed(texts) if text.strip()), "")[:60].split("\n")[0]
        verdicts = [
            {
                "number": int(number),
                "reason": f"the rule says so of: {asked[:40]}",
                "evidence": [quote] if quote else [],
                "absence": not quote,
                wanted: rule(asked, "\n".join(texts)),
            }
            for number, asked in _LISTED.findall(outside)
        ]
        return {"verdicts": verdicts}

    return answer
