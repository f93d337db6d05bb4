"""Reads a judge's answer: it must be complete, in the form asked for, and quote what the record contains.

A decision in the agent's favour needs a quotation of what the agent said or did. Only an expectation that something is
not there can be met without one.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from atp.base.numbers import is_score
from atp.base.text import comparable, value_text
from atp.roles.fence import harmless
from atp.roles.judge.absence import expects_absence
from atp.roles.judge.judges import Judgement
from atp.roles.judge.prompt import Question
from atp.roles.record import Record

_SHOWN = 200
"""Characters of a wrong quotation or answer that a message shows."""
SHORTEST_QUOTE = 4
"""Letters and digits that a quotation has at least, unless it is a whole line. A Chinese one counts twice."""
_IN_FAVOUR = 0.5
"""A score above this is a decision in the agent's favour, and so is one that passes, unless the check is negated."""
_KEYS = ("number", "reason", "evidence", "absence")
"""The keys of a verdict beside its decision."""
_CUT = "something's absence can't be judged, because not all that the agent wrote could be shown to the judge"
_MARKS = (('"', '"'), ("“", "”"), ("'", "'"), ("`", "`"), ("«", "»"), ("„", "“"))


class Reading(NamedTuple):
    """The judgements in an answer, and what is wrong with it."""

    judgements: list[Judgement]
    """One for each expectation or criterion, in order; without a decision where something is wrong."""
    complaints: list[str]
    """What is wrong with the answer."""


class Quotable:
    """Texts that a judge was shown and may quote as evidence."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: list[str] = []
        self._lines: set[str] = set()
        for text in texts:
            plain = comparable(text)
            self._texts.append(plain)
            self._lines.update(_core(comparable(line)) for line in text.splitlines())
            if (as_fenced := comparable(harmless(text))) != plain:
                self._texts.append(as_fenced)

    def has(self, quote: str) -> bool:
        """True if one of the texts contains the quotation letter for letter, except for blanks and line breaks."""
        return any(form in text for form in _forms(quote) for text in self._texts)

    def has_line(self, quote: str) -> bool:
        """True if the quotation is a whole line of one of the texts, except for punctuation around it."""
        return any(_core(form) in self._lines for form in _forms(quote))


class Shown:
    """What a judge was shown: all of it, and what of it the agent said or did."""

    def __init__(self, record: Record) -> None:
        by_agent = [one for one in record.pieces if one.by_agent]
        self.all = Quotable(text for one in record.pieces for text in one.quotable)
        self.is_whole = record.is_whole
        self._by_agent = Quotable(text for one in by_agent for text in one.quotable)
        self._agents_words = Quotable(text for one in by_agent for text in one.agents_words())
        self._frames = {comparable(frame) for one in by_agent for frame in one.frame}

    def shows_agent(self, quote: str) -> bool:
        """True if a quotation shows something that the agent said or did, not only the words of ATP's around it."""
        if not self._by_agent.has(quote) or not _is_telling(quote, self._by_agent):
            return False
        return self._agents_words.has(quote) or not any(
            _core(form) in frame for form in _forms(quote) for frame in self._frames
        )


def read_answer(data: Any, question: Question, shown: Shown) -> Reading:
    """Read the judgements in an answer."""
    entries, wrong = _entries(data, len(question.asked))
    if wrong is None:
        wrong = next(filter(None, (_wrong_form(entry, question.wanted) for entry in entries)), None)
    if wrong is not None:
        reason = f"the judge's answer can't be used: {wrong}"
        return Reading([Judgement(reason=reason) for _ in question.asked], [wrong])
    judgements, complaints = [], []
    for entry, asked in zip(sorted(entries, key=lambda one: int(one["number"])), question.asked, strict=True):
        decision = entry[question.wanted]
        in_favour = _is_in_favour(decision, question)
        may_be_absent = not in_favour or expects_absence(asked) is not question.negated
        missing = _wrong_evidence(entry, shown, in_favour=in_favour, may_be_absent=may_be_absent)
        if missing is not None:
            complaints.append(missing)
            judgements.append(Judgement(reason=f"the judge's evidence can't be used: {missing}"))
            continue
        if not shown.is_whole and _rests_on_absence(entry, in_favour):
            judgements.append(Judgement(reason=f"{_CUT}: {entry['reason'].strip()}"))
            continue
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
        return [], f"it is not a JSON object but {value_text(data, _SHOWN)}"
    if data.keys() - {"verdicts"}:
        return [], "it has keys beside `verdicts`"
    entries = data.get("verdicts")
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        return [], "it has no list of objects in `verdicts`"
    numbers = [one.get("number") for one in entries]
    if not all(type(number) is int for number in numbers):
        return [], "an entry of `verdicts` has no whole number in `number`"
    if sorted(numbers) != list(range(1, count + 1)):
        found = value_text(numbers, _SHOWN)
        return [], f"`verdicts` must have each number from 1 to {count} exactly once; it has {found}"
    return entries, None


def _wrong_form(entry: dict[str, Any], wanted: str) -> str | None:
    number, decision = entry["number"], entry.get(wanted)
    if unknown := entry.keys() - {*_KEYS, wanted}:  # it may say the opposite
        others = value_text(sorted(map(str, unknown)))
        return f"number {number} has other keys than {', '.join((*_KEYS, wanted))}: {others}"
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


def _is_in_favour(decision: float, question: Question) -> bool:
    """True if a decision is in the agent's favour."""
    if question.negated:
        return decision < question.threshold
    return decision > _IN_FAVOUR or decision >= question.threshold > 0


def _wrong_evidence(entry: dict[str, Any], shown: Shown, *, in_favour: bool, may_be_absent: bool) -> str | None:
    """What is wrong with the evidence of a verdict; none if it may be used."""
    number, quotes = entry["number"], entry.get("evidence") or []
    for quote in quotes:
        quoted = value_text(quote, _SHOWN)
        if not shown.all.has(quote):
            return f"number {number} quotes text that the record does not contain: {quoted}"
        if not _is_telling(quote, shown.all):
            return f"number {number} quotes too little to show anything: {quoted}; quote several words"
    absent = entry.get("absence", False)
    if absent and may_be_absent:
        return None
    if not quotes:
        why = "something must be there, so `absence` is no reason" if absent else "`absence` is not true"
        return f"number {number} has no quotation as evidence, and {why}"
    if in_favour and not any(map(shown.shows_agent, quotes)):
        return f"number {number} quotes nothing that the agent said or did, and decides in the agent's favour"
    return None


def _rests_on_absence(entry: dict[str, Any], in_favour: bool) -> bool:
    """True if nothing but something's absence decides, of which a record that is cut says nothing."""
    return entry.get("absence", False) and (in_favour or not entry.get("evidence"))


def _is_telling(quote: str, shown: Quotable) -> bool:
    """True if a quotation is long enough to show something, or a whole line."""
    size = sum(2 if char > "\u2e80" else 1 for char in quote if char.isalnum())
    return size >= SHORTEST_QUOTE or (size > 0 and shown.has_line(quote))


def _forms(quote: str) -> Iterable[str]:
    """A quotation, also without marks around it, and as JSON writes it, because some of the texts are JSON."""
    plain = comparable(quote)
    unmarked = [
        plain[1:-1].strip() for begin, end in _MARKS if len(plain) > 2 and plain[0] == begin and plain[-1] == end
    ]
    for form in (plain, *unmarked):
        if form:
            yield form
            yield json.dumps(form, ensure_ascii=False)[1:-1]
    if stripped := quote.strip():
        yield comparable(json.dumps(stripped, ensure_ascii=False)[1:-1])


def _core(text: str) -> str:
    """The text from its first letter or digit to its last."""
    places = [place for place, char in enumerate(text) if char.isalnum()]
    return text[places[0] : places[-1] + 1] if places else ""
