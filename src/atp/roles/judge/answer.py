"""Reads a judge's answer: it must be complete, in the form asked for, and quote only what the record contains."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from atp.base.numbers import is_score
from atp.base.text import cut
from atp.roles.fence import harmless
from atp.roles.judge.judges import Judgement
from atp.roles.judge.prompt import Question

MOST_SHOWN = 200
"""Characters of a wrong quotation or answer that a message shows."""
_MARKS = (('"', '"'), ("“", "”"), ("'", "'"), ("`", "`"), ("«", "»"), ("„", "“"))


class Reading(NamedTuple):
    """The judgements in an answer, and what is wrong with it."""

    judgements: list[Judgement]
    """One for each expectation or criterion, in order; without a decision where something is wrong."""
    complaints: list[str]
    """What is wrong with the answer."""


class Quotable:
    """The texts that a judge was shown and may quote as evidence."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: list[str] = []
        for text in texts:
            plain = _normal(text)
            self._texts.append(plain)
            if (as_fenced := _normal(harmless(text))) != plain:
                self._texts.append(as_fenced)

    def has(self, quote: str) -> bool:
        """True if one of the texts contains the quotation letter for letter, except for blanks and line breaks."""
        return any(form in text for form in _forms(quote) for text in self._texts)


def read_answer(data: Any, question: Question, quotable: Quotable) -> Reading:
    """Read the judgements in an answer."""
    entries, wrong = _entries(data, len(question.asked))
    if wrong is None:
        wrong = next(filter(None, (_wrong_form(entry, question.wanted) for entry in entries)), None)
    if wrong is not None:
        reason = f"the judge's answer can't be used: {wrong}"
        return Reading([Judgement(reason=reason) for _ in question.asked], [wrong])
    judgements, complaints = [], []
    for entry in sorted(entries, key=lambda one: int(one["number"])):
        missing = _wrong_evidence(entry, quotable)
        if missing is not None:
            complaints.append(missing)
            judgements.append(Judgement(reason=f"the judge's evidence can't be used: {missing}"))
            continue
        decision = entry[question.wanted]
        judgements.append(
            Judgement(
                met=decision if question.wanted == "met" else None,
                score=None if question.wanted == "met" else float(decision),
                reason=entry["reason"].strip(),
                evidence=list(entry.get("evidence") or []),
            )
        )
    return Reading(judgements, complaints)


def _entries(data: Any, count: int) -> tuple[list[dict[str, Any]], str | None]:
    """The verdicts, and why there is not one for each number."""
    if not isinstance(data, dict):
        return [], f"it is not a JSON object but {_cut(data)}"
    entries = data.get("verdicts")
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        return [], "it has no list of objects in `verdicts`"
    numbers = [one.get("number") for one in entries]
    if not all(type(number) is int for number in numbers):
        return [], "an entry of `verdicts` has no whole number in `number`"
    if sorted(numbers) != list(range(1, count + 1)):
        return [], f"`verdicts` must have each number from 1 to {count} exactly once; it has {_cut(numbers)}"
    return entries, None


def _wrong_form(entry: dict[str, Any], wanted: str) -> str | None:
    number, decision = entry["number"], entry.get(wanted)
    if wanted == "met" and not isinstance(decision, bool):
        return f"`met` of number {number} is not true or false"
    if wanted == "score" and not is_score(decision):
        return f"`score` of number {number} is not a number from 0 to 1"
    if not isinstance(entry.get("reason"), str) or not entry["reason"].strip():
        return f"number {number} has no `reason`"
    evidence = entry.get("evidence")
    if evidence is not None and not (isinstance(evidence, list) and all(isinstance(one, str) for one in evidence)):
        return f"`evidence` of number {number} is not a list of texts"
    if not isinstance(entry.get("absence", False), bool):
        return f"`absence` of number {number} is not true or false"
    return None


def _wrong_evidence(entry: dict[str, Any], quotable: Quotable) -> str | None:
    quotes = entry.get("evidence") or []
    for quote in quotes:
        if not quotable.has(quote):
            return f"number {entry['number']} quotes text that the record does not contain: {_cut(quote)}"
    if not quotes and not entry.get("absence", False):
        return f"number {entry['number']} has no quotation as evidence, and is not about something's absence"
    return None


def _cut(value: Any) -> str:
    return cut(repr(value), MOST_SHOWN)


def _forms(quote: str) -> Iterable[str]:
    """A quotation, also without marks around it, and as JSON writes it, because some of the texts are JSON."""
    plain = _normal(quote)
    unmarked = [
        plain[1:-1].strip() for begin, end in _MARKS if len(plain) > 2 and plain[0] == begin and plain[-1] == end
    ]
    for form in (plain, *unmarked):
        if form:
            yield form
            yield json.dumps(form, ensure_ascii=False)[1:-1]
    if stripped := quote.strip():
        yield _normal(json.dumps(stripped, ensure_ascii=False)[1:-1])


def _normal(text: str) -> str:
    return " ".join(text.split())
