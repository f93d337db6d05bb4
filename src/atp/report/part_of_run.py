"""Repeats the part of a recorded run that a search finds: `atp report -k`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec.structs import replace as changed

from atp.base.numbers import counted
from atp.base.secrets import Hide
from atp.journal.listeners import Listener, RunEnd
from atp.journal.recorded_run import RecordedRun
from atp.journal.records import RunInfo
from atp.report.html.rows import case_row, skipped_row
from atp.report.search import Search
from atp.stats.summary import Summary
from atp.suite.case import Case
from atp.suite.result import CaseResult


class PartOfRun:
    """The cases of a recorded run that match a query, as a run with only these. Raises `SearchError`."""

    def __init__(self, recorded: RecordedRun, query: str, hide: Hide) -> None:
        search = Search(query)
        self._recorded = recorded
        self._found = _Found(search, hide)
        recorded.repeat(self._found)
        found = self._found.summary
        self.matches = found.ran + found.skipped
        """How many cases match."""
        note = f"only {self.matches:,} of {counted(self._found.seen, 'case')}: those that match `{query}`"
        # Gates are about all cases, so a part of them decides none.
        self.info = changed(
            recorded.info,
            cases=found.ran + found.skipped_by_test,
            trials=found.runs,
            gates=[],
            notes=[*recorded.info.notes, note],
        )

    def repeat(self, listener: Listener) -> RunEnd:
        """Make all calls but the last two, as `RecordedRun.repeat`, for the cases that match."""
        end = self._recorded.repeat(_Passed(listener, self.info, self._found))
        found = self._found.summary
        return replace(
            end, info=self.info, counts=found.counts(), numbers=found.numbers, gates=(), comparison=None, notes=()
        )


class _Found(Listener):
    """Counts the cases that match."""

    def __init__(self, search: Search, hide: Hide) -> None:
        self._search = search
        self._hide = hide
        self.seen = 0
        self.summary = Summary()

    def skipped(self, file: str | None, case: Case) -> None:
        """Count a case that was left out."""
        self.seen += 1
        if self.wants_skipped(file, case):
            self.summary.add_skipped()

    def case(self, result: CaseResult) -> None:
        """Count a case that ended."""
        self.seen += 1
        if self.wants(result):
            self.summary.add_case(result)

    def wants(self, result: CaseResult) -> bool:
        """True if the case matches."""
        return self._search.matches(searched_row(result, self._hide))

    def wants_skipped(self, file: str | None, case: Case) -> bool:
        """True if the case that was left out matches."""
        return self._search.matches(searched_skipped(file, case, self._hide))


class _Passed(Listener):
    """Passes on to another listener what is about cases that match."""

    def __init__(self, listener: Listener, info: RunInfo, found: _Found) -> None:
        self._listener = listener
        self._info = info
        self._found = found

    def start(self, info: RunInfo) -> None:
        """Start with the part's own figures."""
        self._listener.start(self._info)

    def skipped(self, file: str | None, case: Case) -> None:
        """Pass the case on, if it matches."""
        if self._found.wants_skipped(file, case):
            self._listener.skipped(file, case)

    def case(self, result: CaseResult) -> None:
        """Pass the case on, if it matches."""
        if self._found.wants(result):
            self._listener.case(result)


def searched_row(case: CaseResult, hide: Hide) -> Mapping[str, Any]:
    """What a search looks at in a case: the row that the HTML report has of it."""
    return case_row(case, hide, (0, 0), [(0, 0)] * len(case.trials))


def searched_skipped(file: str | None, case: Case, hide: Hide) -> Mapping[str, Any]:
    """What a search looks at in a case that its file leaves out."""
    row = skipped_row(file, case, hide)
    name = row.name if row.name != row.id else None
    return {"id": row.id, "name": name, "file": row.file, "status": row.status, "tags": row.tags}
