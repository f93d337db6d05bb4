"""A judge's answer: complete, in the form asked for, with evidence that really stands in the record; or not."""

from typing import Any, NamedTuple

from atp.base.numbers import is_score
from atp.base.text import cut
from atp.roles.judge.judgement import Judgement
from atp.roles.judge.prompt import Question
from atp.roles.judge.quotes import Shown

MOST_SHOWN = 200
"""Characters of a wrong quotation or answer that are shown."""


class Reading(NamedTuple):
    """What an answer comes to."""

    judgements: list[Judgement]
    """One for each that was asked, in order."""
    complaints: list[str]
    """What is wrong with it. Where something is, the judgement is none."""


def read_answer(data: Any, question: Question, shown: Shown) -> Reading:
    """The judgements in an answer."""
    entries, wrong = _entries(data, len(question.asked))
    if wrong is None:
        wrong = next(filter(None, (_wrong_form(entry, question.wanted) for entry in entries)), None)
    if wrong is not None:
        reason = f"the judge's answer can't be used: {wrong}"
        return Reading([Judgement(reason=reason) for _ in question.asked], [wrong])
    judgements, complaints = [], []
    for entry in sorted(entries, key=lambda one: int(one["number"])):
        missing = _wrong_evidence(entry, shown)
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
    """The verdicts, and why they are not one for each number."""
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


def _wrong_evidence(entry: dict[str, Any], shown: Shown) -> str | None:
    quotes = entry.get("evidence") or []
    for quote in quotes:
        if not shown.has(quote):
            return f"number {entry['number']} quotes what does not stand in the record like this: {_cut(quote)}"
    if not quotes and not entry.get("absence", False):
        return f"number {entry['number']} has no quotation as evidence, and is not about something's absence"
    return None


def _cut(value: Any) -> str:
    return cut(repr(value), MOST_SHOWN)
