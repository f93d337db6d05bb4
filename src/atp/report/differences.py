"""What was expected against what was found, line by line, for reports that are plain text.

Only values that are hard to compare by eye get a difference: texts of several lines, long texts, objects and lists.
"""

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Literal

from atp.base.numbers import counted
from atp.base.text import one_line, value_text
from atp.suite.result import CaseResult, TrialResult, Verdict

Sign = Literal["-", "+", " "]
Difference = list[tuple[Sign, str]]
"""The lines: `-` expected and not found, `+` found and not expected, a blank for both."""
SHORT = 60
"""A text that is no longer, and has one line, is compared by eye."""
ALIKE = 0.4
"""Texts that have less in common (a word to look for, a pattern) are not compared line by line."""
AROUND = 2
"""Equal lines that are shown before and after a difference."""
MOST_COMPARED = 200
"""Lines of each text that are compared, counted from the first that differs."""
MOST_SHOWN = 24
WIDEST = 150
"""Characters of a line that are shown, from shortly before the first one that differs."""
_LEAD = 40
"""Characters of a long line that are shown before the first that differs."""


def compared_values(verdict: Verdict, case: CaseResult, trial: TrialResult) -> tuple[Any, Any]:
    """What a check expected and found. Where the check kept only the beginning of the whole answer, the whole answer.

    A missing tool call is compared with the call of that tool that comes nearest.
    """
    expected, found = verdict.expected, verdict.found
    if verdict.type == "equals" and case.expected is not None and (_is_cut(expected) or _is_cut(found)):
        return case.expected, _like(trial.transcript.output, case.expected)
    if verdict.type == "tool_called" and isinstance(expected, dict) and isinstance(found, list) and found:
        wanted = expected.get("arguments")
        return wanted, _part(max(found, key=lambda call: _alikeness(wanted, call)), wanted)
    if verdict.type == "contains" and isinstance(expected, dict):
        return expected, _part(found, expected)
    return expected, found


def difference(expected: Any, found: Any) -> Difference | None:
    """The difference of two texts, or of two objects or lists; None if both are short, or if they are unlike."""
    if isinstance(expected, str) and isinstance(found, str):
        if max(len(expected), len(found)) <= SHORT and not _has_lines(expected) and not _has_lines(found):
            return None
        if SequenceMatcher(None, expected[:1000], found[:1000]).quick_ratio() < ALIKE:
            return None
        before, after = expected.splitlines() or [""], found.splitlines() or [""]
    elif isinstance(expected, dict | list) and type(expected) is type(found):
        if max(len(value_text(expected)), len(value_text(found))) <= SHORT:
            return None
        before, after = _pretty(expected), _pretty(found)
    else:
        return None
    lines = list(_lines(before, after))
    if len(lines) > MOST_SHOWN:
        lines[MOST_SHOWN:] = [(" ", f"… {counted(len(lines) - MOST_SHOWN, 'more line')}")]
    return lines or None


def _lines(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[Sign, str]]:
    head = _common(before, after)
    begin = max(0, head - AROUND)
    left, right = before[begin : head + MOST_COMPARED], after[begin : head + MOST_COMPARED]
    groups = SequenceMatcher(None, left, right, autojunk=False).get_grouped_opcodes(AROUND)
    for number, group in enumerate(groups):
        if number:
            yield " ", "…"
        for kind, start, end, other_start, other_end in group:
            if kind == "equal":
                yield from ((" ", one_line(line, WIDEST)) for line in left[start:end])
                continue
            pairs = list(zip(left[start:end], right[other_start:other_end], strict=False))
            shown = [_around(*pair) for pair in pairs]
            yield from (("-", text) for text, _ in shown)
            yield from (("-", one_line(line, WIDEST)) for line in left[start + len(pairs) : end])
            yield from (("+", text) for _, text in shown)
            yield from (("+", one_line(line, WIDEST)) for line in right[other_start + len(pairs) : other_end])


def _around(before: str, after: str) -> tuple[str, str]:
    """Two lines that differ, from shortly before the place where they do; in JSON's notation if they look the same."""
    if before.split() == after.split() or not (before.isprintable() and after.isprintable()):
        return value_text(before, WIDEST), value_text(after, WIDEST)
    start = _common(before, after)
    if max(len(before), len(after)) > WIDEST and start > _LEAD:
        begin = before.rfind(" ", 0, start - _LEAD) + 1 or start - _LEAD
        before, after = f"…{before[begin:]}", f"…{after[begin:]}"
    return one_line(before, WIDEST), one_line(after, WIDEST)


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """How many of the first lines, or the first letters, are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def _has_lines(text: str) -> bool:
    return len(text.splitlines()) > 1


def _pretty(value: Any) -> list[str]:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, default=str).splitlines()


def _is_cut(value: Any) -> bool:
    return isinstance(value, str) and value.endswith("…")


def _like(output: Any, expected: Any) -> Any:
    """The output as the check compared it: as JSON, if it is a text with JSON and the expected value is not a text."""
    if isinstance(output, str) and not isinstance(expected, str):
        try:
            return json.loads(output)
        except (ValueError, RecursionError):
            return output
    return output


def _part(found: Any, expected: Any) -> Any:
    """What was found without the keys that were not asked for."""
    if not isinstance(found, dict) or not isinstance(expected, dict):
        return found
    return {name: _part(value, expected[name]) for name, value in found.items() if name in expected}


def _alikeness(wanted: Any, given: Any) -> float:
    """How many of the expected arguments a call has."""
    if not isinstance(wanted, dict) or not isinstance(given, dict):
        return 0.0
    there = {name: value for name, value in wanted.items() if name in given}
    return float(len(there) + sum(bool(given[name] == value) for name, value in there.items()))
