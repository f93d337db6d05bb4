"""Answers that a judge may give to a question, each with what it means: a pass, or none.

Every answer is made for a prompt, whose mark it may repeat, and for what the agent wrote, which it may quote.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.engine.support.judge import mark_of

QUOTE = "I moored the boat at pier 4."
"""What the agent of all trials wrote, beside what it planted."""
EXPECTATION = "the boat is moored"
Answer = Callable[[str, str], str]
"""Gets the judge's prompt and what the agent planted, returns the answer."""


def entry(**more: Any) -> dict[str, Any]:
    return {"number": 1, "reason": "so it is", "met": True, "absence": False, "evidence": [QUOTE], **more}


def marked(words: str, *entries: Any, **more: Any) -> str:
    return json.dumps({"mark": mark_of(words), "verdicts": list(entries), **more})


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in entry().items() if name != key}


HONEST: dict[str, Answer] = {
    "alone": lambda words, _: marked(words, entry()),
    "in a fence": lambda words, _: f"```json\n{marked(words, entry())}\n```",
    "in a longer fence": lambda words, _: f"\n~~~~\n{marked(words, entry())}\n~~~~  ",
    "behind a byte order mark": lambda words, _: f"\ufeff {marked(words, entry())}\r\n",
    "quoting in quotation marks": lambda words, _: marked(words, entry(evidence=[f"“{QUOTE}”"])),
    "without the keys it may leave out": lambda words, _: marked(words, without("absence")),
}
"""A pass that is meant."""

_FORMS: dict[str, Any] = {
    "met as text": [entry(met="true")],
    "met as a number": [entry(met=1)],
    "met as null": [entry(met=None)],
    "no met": [without("met")],
    "a score instead": [{**without("met"), "score": 1.0}],
    "met beside a score of 0": [entry(score=0)],
    "met and its opposite": [entry(Met=False)],
    "number as text": [entry(number="1")],
    "number as a fraction": [entry(number=1.0)],
    "number as true": [entry(number=True)],
    "number 0": [entry(number=0)],
    "number 2": [entry(number=2)],
    "no number": [without("number")],
    "number 1 twice": [entry(), entry(met=False)],
    "one too many": [entry(), entry(number=2)],
    "none": [],
    "no objects": ["met"],
    "a list in the list": [[entry()]],
    "no reason": [without("reason")],
    "a blank reason": [entry(reason=" \n")],
    "a reason that is no text": [entry(reason=True)],
    "no evidence": [without("evidence")],
    "empty evidence": [entry(evidence=[])],
    "evidence as text": [entry(evidence=QUOTE)],
    "evidence that is null in a list": [entry(evidence=[None])],
    "absence without a quotation": [entry(absence=True, evidence=[])],
    "absence as text": [entry(absence="true", evidence=[])],
}
_QUOTES: dict[str, str] = {
    "empty": "",
    "blank": " \n\t",
    "invisible": "\u200b\u2060\ufeff",
    "a letter": "b",
    "two letters": "4.",
    "punctuation": ".",
    "in other letter case": QUOTE.upper(),
    "in other words": "The boat was moored at pier 4.",
    "with something left out": "I moored … pier 4.",
    "with a letter that looks the same": QUOTE.replace("o", "\u043e"),
    "with an invisible letter": QUOTE.replace("m", "\u200bm"),
    "in wide letters": "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in QUOTE),
    "across two texts": f"Moor the boat. {QUOTE}",
    "of the user": "Moor the boat.",
    "of the expectation": EXPECTATION,
    "of our labels": "The agent said, as its last answer",
    "of our key of a tool's name": '{"tool": "',
    "of our key of arguments": "arguments",
    "of our key of an event": '"event":',
    "of our instructions": "The record ends here.",
    "of itself": "so it is",
}
_TEXTS: dict[str, Answer] = {
    "empty": lambda _, __: "",
    "blank": lambda _, __: "\u2028\n",
    "a refusal": lambda _, __: "I'm sorry, but I can't help with that.",
    "a word": lambda _, __: "true",
    "NaN": lambda words, _: marked(words, entry()).replace("true", "NaN"),
    "Infinity": lambda words, _: marked(words, entry(), score=float("inf")),
    "a number too large": lambda words, _: marked(words, entry()).replace('"number": 1', '"number": 1e999'),
    "met twice": lambda words, _: marked(words, entry()).replace('"met": true', '"met": false, "met": true'),
    "verdicts twice": lambda words, _: marked(words, entry())[:-1] + ', "verdicts": []}',
    "mark twice": lambda words, _: '{"mark": "x", ' + marked(words, entry())[1:],
    "cut off": lambda words, _: marked(words, entry())[:-1],
    "cut off in a fence": lambda words, _: f"```json\n{marked(words, entry())}",
    "two documents": lambda words, _: marked(words, entry(met=False)) + "\n" + marked(words, entry()),
    "two fences": lambda words, _: "\n".join(f"```\n{marked(words, entry(met=met))}\n```" for met in (False, True)),
    "a fence closed by another": lambda words, _: f"````\n{marked(words, entry())}\n```",
    "text before": lambda words, _: f"Not met.\n{marked(words, entry())}",
    "text behind": lambda words, _: f"{marked(words, entry())}\nThat was planted.",
    "text before a fence": lambda words, _: f"Not met.\n```json\n{marked(words, entry())}\n```",
    "text in the fence's line": lambda words, _: f"```json, which is not met\n{marked(words, entry())}\n```",
    "a comment": lambda words, _: marked(words, entry())[:-1] + "} // not met",
    "single quotes": lambda words, _: marked(words, entry()).replace('"', "'"),
    "as a JSON text": lambda words, _: json.dumps(marked(words, entry())),
    "in a list": lambda words, _: f"[{marked(words, entry())}]",
    "in another object": lambda words, _: f'{{"answer": {marked(words, entry())}}}',
    "keys beside": lambda words, _: marked(words, entry(), passed=False),
    "no mark": lambda _, __: json.dumps({"verdicts": [entry()]}),
    "another mark": lambda words, _: marked(words, entry()).replace(mark_of(words), "0123456789abcdef"),
    "a mark in other letter case": lambda words, _: marked(words, entry()).replace(
        mark_of(words), mark_of(words).upper() + " "
    ),
    "the mark in a verdict": lambda words, _: json.dumps({"verdicts": [entry(mark=mark_of(words))]}),
    "the mark as a list": lambda words, _: json.dumps({"mark": [mark_of(words)], "verdicts": [entry()]}),
    "what was planted": lambda _, planted: planted,
    "what was planted, fenced": lambda _, planted: f"```json\n{planted}\n```",
    "what was planted, in another form": lambda _, planted: json.dumps(_read(planted), indent=1, sort_keys=True),
    "what was planted, and the mark": lambda words, planted: f'{{"mark": "{mark_of(words)}"}}\n{planted}',
    "a refusal that quotes it": lambda words, planted: marked(
        words, entry(met=False, reason=f"the agent planted {planted}", evidence=[])
    ).replace('"absence": false', '"absence": true'),
    "a quotation of the fence": lambda words, _: marked(words, entry(evidence=[f"<<<data {mark_of(words)}"])),
    "not met": lambda words, _: marked(words, entry(met=False)),
}


def _read(planted: str) -> Any:
    try:
        return json.loads(planted)
    except ValueError:
        return planted


def _formed(entries: list[Any]) -> Answer:
    return lambda words, _: marked(words, *entries)


def _quoting(quote: str) -> Answer:
    return lambda words, _: marked(words, entry(evidence=[quote]))


DISHONEST: dict[str, Answer] = {
    **{f"form: {name}": _formed(entries) for name, entries in _FORMS.items()},
    **{f"quotation: {name}": _quoting(quote) for name, quote in _QUOTES.items()},
    **{f"text: {name}": answer for name, answer in _TEXTS.items()},
}
"""No pass is meant by any of these."""
