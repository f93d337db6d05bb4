"""The lines of a failed check on the console: its message, and what it expected and found, each text once."""

from collections.abc import Iterator
from typing import Any

from atp.base.secrets import Hide
from atp.base.text import Line, one_line, some_lines, value_text
from atp.checks.verdicts import SHORT, show
from atp.report.differences import Difference, compared_values, difference
from atp.suite.result import CaseResult, TrialResult, Verdict

MOST_FAILURES = 10
"""How many failed checks of a case are shown."""
DEEPEST = 3
"""How many levels of groups of checks are shown."""
_LOOKS = {"-": "removed", "+": "added", " ": "detail"}
_PLAIN_PLACES = ("output", "tool calls", "artifacts")
"""Places that the kind of a check tells already."""


class FailedChecks:
    """Writes the failed checks of one trial. A long text that several checks found is shown with the first of them."""

    def __init__(self, case: CaseResult, trial: TrialResult, hide: Hide) -> None:
        self._case = case
        self._trial = trial
        self._hide = hide
        self._shown: set[str] = set()

    def lines(self, headline: str | None = None) -> Iterator[Line]:
        """The lines of all failed checks. The message of a single one is left out if it is the `headline` above."""
        bad = [one for one in self._trial.verdicts if not one.passed]
        for verdict in bad[:MOST_FAILURES]:
            told = len(bad) == 1 and verdict.message == headline
            yield from self._check(verdict, "  ", 1, told=told)
        if len(bad) > MOST_FAILURES:
            yield f"  … and {len(bad) - MOST_FAILURES} more", "detail"

    def _check(self, verdict: Verdict, indent: str, depth: int, *, told: bool = False) -> Iterator[Line]:
        expected, found = compared_values(verdict, self._case, self._trial)
        differs = difference(self._hide(expected), self._hide(found)) if not verdict.parts else None
        message = self._message(verdict, expected, found, differs)
        if not told:
            unjudged = "not judged: " if verdict.outcome == "unjudged" else ""
            yield from some_lines(f"{verdict.type}: {unjudged}{message}", indent, "failed")
        if differs is not None:
            yield from ((f"{indent}  {sign} {text}", _LOOKS[sign]) for sign, text in differs)
        else:
            yield from self._values(verdict, message, indent)
        if verdict.where and verdict.where not in _PLAIN_PLACES and verdict.where.split(", ")[-1] not in message:
            yield f"{indent}  where:    {one_line(self._hide(verdict.where))}", "detail"
        if depth < DEEPEST:
            for part in [one for one in verdict.parts if not one.passed][:MOST_FAILURES]:
                yield from self._check(part, indent + "  ", depth + 1)

    def _message(self, verdict: Verdict, expected: Any, found: Any, differs: Difference | None) -> str:
        """The message without the long texts that the lines below it have."""
        message = verdict.message or verdict.name or ""
        if verdict.parts:
            message = message.partition(f": {verdict.parts[0].type}: ")[0]
        elif differs is not None and verdict.type == "tool_called":
            message = f"{message.partition(' with ')[0]} with other arguments (- expected, + found in the nearest call)"
        elif differs is not None and _stated(message, expected) and _stated(message, found):
            message = f"{verdict.where or 'the value'} differs (- expected, + found)"
        elif differs is None and len(stated := show(verdict.found, SHORT)) > SHORT:
            message = message.replace(stated, "…")
        return str(self._hide(message))

    def _values(self, verdict: Verdict, message: str, indent: str) -> Iterator[Line]:
        """What was expected and found, as far as the message doesn't tell."""
        in_words = verdict.type in ("expectation", "llm_eval") and verdict.judged
        expected = verdict.name if in_words and verdict.expected is None else verdict.expected
        if verdict.type in ("tool_called", "behavior"):
            return  # the message names the tools and the calls
        for label, value in (("expected", expected), ("found", verdict.found)):
            if value is None or _stated(message, self._hide(value)):
                continue
            text = value_text(self._hide(value))
            again = len(text) > SHORT and text in self._shown
            self._shown.add(text)
            yield f"{indent}  {label + ':':<9} {'the same as above' if again else text}", "detail"


def _stated(message: str, value: Any) -> bool:
    """True if the message has the value in it, or the beginning of a long one."""
    if value is None:
        return False
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value) and ", ".join(value) in message:
        return True
    return show(value, SHORT) in message or value_text(value) in message or f"`{value}`" in message
