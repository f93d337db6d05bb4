"""A run as the view serves it: its rows, where the details of its cases stand in the journal, and how far it is."""

import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from atp.base.json.text import UNREADABLE, encode
from atp.base.secrets import Hide
from atp.base.text import cut
from atp.journal.collect import Collector
from atp.journal.follow import FollowedRun
from atp.journal.listeners import Listener, RunEnd
from atp.journal.recorded_run import ReadTrial
from atp.journal.records import Case as CaseLine
from atp.journal.records import RunInfo, Summary
from atp.journal.running import running_trials
from atp.report.facts import agent_usage, not_run, timestamp
from atp.report.html.detail import case_object, longest_text, trial_object
from atp.report.html.page import run_object
from atp.report.html.rows import LONGEST, case_row, skipped_row
from atp.report.side_by_side import SideBySide
from atp.stats.run_numbers import RunNumbers
from atp.suite.case import Case
from atp.suite.result import CaseResult

MOST_COMPARED = 20_000
"""Cases of several agents that are compared with each other: the figures of each take memory."""


class ServedRun:
    """A run that is read as far as its journal goes, and read on when asked to."""

    def __init__(self, folder: Path, hide: Hide) -> None:
        """Raises `LoadError` if there is no run."""
        self.hide = hide
        self.folder = folder
        self.is_read = False
        """Whether all of the journal that there is was read."""
        self._followed = FollowedRun(folder, self._rows_of)

    def _rows_of(self, followed: FollowedRun) -> Listener:
        self._rows = _Rows(followed, self.hide)
        return self._rows

    @property
    def id(self) -> str:
        """The run's id: the name of its folder."""
        return self.folder.name

    @property
    def generation(self) -> int:
        """Another number whenever the rows begin anew, because the run went on or its journal was replaced."""
        return self._followed.generation

    @property
    def rows(self) -> list[bytes]:
        """The rows of the cases that ended, in that order, as JSON."""
        return self._rows.rows

    @property
    def state(self) -> str:
        """`running`, `finished` or `stopped`. A run that was not read to its end counts as running."""
        return self._followed.state

    @property
    def version(self) -> tuple[int, int, int, str]:
        """Something else whenever there is something new."""
        return self.generation, self._followed.offset, len(self.rows), self.state

    def read(self, seconds: float) -> bool:
        """Read on for at most so many seconds. Returns whether there is more to read. Raises `LoadError`."""
        more = self._followed.read(seconds, self._rows.count)
        self.is_read = not more
        return more

    def about(self) -> dict[str, Any]:
        """What a list of runs says of this one."""
        return about_run(self._followed.end(), self.state, self.folder.name, self.hide)

    def whole(self) -> dict[str, Any]:
        """What the page shows of the run as a whole."""
        end = self._followed.end()
        compared = self._rows.compared(self.state)
        return {
            **about_run(end, self.state, self.id, self.hide),
            "read": self.is_read,
            "run": run_object(end, self.hide, compared),
        }

    def progress(self) -> dict[str, Any]:
        """How far the run is: trials and cases, cost, time left, what is running."""
        info, rows = self._followed.recorded.info, self._rows
        done, planned = self._followed.progress, max(info.trials - rows.spared, 0)
        now = time.time()
        ran = done - rows.kept
        left = None
        runs = self.state == "running" and self.is_read
        if runs and ran > 0 and planned > done:
            left = round((now - info.at) * 1000 / ran * (planned - done))
        return {
            "trials": done,
            "planned_trials": planned,
            "cases": len(self.rows),
            "planned_cases": info.cases,
            "cost_usd": round(rows.cost, 9) if rows.priced else None,
            "elapsed_ms": round((now - info.at) * 1000) if runs else None,
            "left_ms": left,
            "read": self.is_read,
            "running": self.hide(running_trials(self.folder)) if runs else [],
        }

    def rows_of(self, ident: str) -> list[dict[str, Any]]:
        """The rows of the cases with an id."""
        # The rows are kept as they are sent: only those that may be the wanted ones are unpacked.
        wanted = encode(cut(ident, LONGEST))
        found = (msgspec.json.decode(row) for row in self.rows if wanted in row)
        return [row for row in found if row["id"] == cut(ident, LONGEST)]

    def case(self, number: int) -> dict[str, Any] | None:
        """The details of a case; None if there is no such case by now."""
        found = self._case(number)
        if found is None:
            return None
        longest = longest_text(0, found.status == "passed")
        return case_object(found, self._followed.recorded.info, self.hide, longest)

    def trial(self, number: int, place: int) -> dict[str, Any] | None:
        """The details of a trial of a case; None if there is no such trial by now."""
        found = self._case(number)
        if found is None or not 0 <= place < len(found.trials):
            return None
        trial = found.trials[place]
        return trial_object(trial, found, self.hide, longest_text(0, trial.status == "passed"), self.folder)

    def place_of(self, number: int, place: int) -> ReadTrial | None:
        """The line of a trial in the journal; None if there is no such trial by now."""
        lines = self._rows.lines_of(number)
        return self._followed.recorded.read(lines[place]) if 0 <= place < len(lines) else None

    def _case(self, number: int) -> CaseResult | None:
        """A case with all its trials, read from the journal again."""
        recorded = self._followed.recorded
        collector, case = Collector(), None
        try:
            for offset in self._rows.lines_of(number):
                one = recorded.read(offset)
                file = recorded.path(one.file) or None
                case = collector.add_read(0, file, one.index, one.result, one.about)
            if case is not None:
                return case
            if (line := self._rows.closing.get(number)) is not None:
                return collector.close_read(0, line)
        except (OSError, KeyError, *UNREADABLE):  # the journal was damaged or replaced since
            return None
        return next(iter(collector.rest()), None)


class _Rows(Listener):
    """Makes a row of each case that ends, and keeps where its trials stand."""

    def __init__(self, followed: FollowedRun, hide: Hide) -> None:
        self._followed = followed
        self._hide = hide
        self._grid: SideBySide | None = SideBySide(hide)
        self.rows: list[bytes] = []
        self.closing: dict[int, CaseLine] = {}
        self._lines = array("Q")
        self._first = array("Q", [0])
        self.cost = 0.0
        self.priced = False
        self.kept = 0
        self.spared = 0
        """Trials that were planned at most, and not needed to decide their cases."""
        self._runs = 1

    def start(self, info: RunInfo) -> None:
        self._runs = info.runs
        if self._grid is not None:
            self._grid.start(info)

    def count(self, trial: ReadTrial) -> None:
        """Count a trial that ended."""
        self.kept += trial.line != trial.offset
        for usage in (agent_usage(trial.result), trial.result.role_usage):
            if usage is not None and usage.cost_usd is not None:
                self.cost += usage.cost_usd
                self.priced = True

    def skipped(self, file: str | None, case: Case) -> None:
        self._add(encode(skipped_row(file, case, self._hide)), [])

    def case(self, result: CaseResult) -> None:
        number = len(self.rows)
        spots = [(number, place) for place in range(len(result.trials))]
        row = case_row(result, self._hide, (number, -1), spots)
        self._add(encode(row), [self._followed.repetition.line_of(trial) for trial in result.trials])
        if (line := self._followed.repetition.closing) is not None:
            self.closing[number] = line
        if result.min_runs:
            self.spared += max(0, self._runs * result.variations - len(result.trials))
        if self._grid is not None:
            self._grid.case(result)
            if len(self.rows) > MOST_COMPARED:
                self._grid = None

    def _add(self, row: bytes, lines: list[int]) -> None:
        self.rows.append(row)
        self._lines.extend(lines)
        self._first.append(len(self._lines))

    def lines_of(self, number: int) -> "array[int]":
        """Where the lines of a case's trials begin."""
        if not 0 <= number < len(self.rows):
            return array("Q")
        return self._lines[self._first[number] : self._first[number + 1]]

    def compared(self, state: str) -> dict[str, str]:
        """How each further agent does beside the first. Compared once, when the run is over."""
        return {} if self._grid is None or state == "running" else self._grid.sentences()


def about_run(end: RunEnd, state: str, name: str, hide: Hide) -> dict[str, Any]:
    """What a list of runs says of a run."""
    counts, info = end.counts, end.info
    finished = counts.get("total_cases", 0)
    return {
        "id": name,
        "state": state,
        "finished": finished,
        "total": finished + not_run(end),
        **{kind: counts.get(kind, 0) for kind in ("passed", "failed", "errors")},
        "other": sum(counts.get(kind, 0) for kind in ("blocked", "cancelled", "inconclusive")),
        "skipped": counts.get("skipped", 0),
        "started_at": timestamp(info.started_at),
        "duration_ms": end.duration_ms,
        "commit": info.commit,
        "branch": hide(info.branch),
        "dirty": bool(info.dirty),
        "input": hide(info.input),
        "agents": hide(info.agents),
        "reason": hide(end.reason) if state == "stopped" else None,
    }


def about_finished(start: RunInfo, summary: Summary, name: str, hide: Hide) -> dict[str, Any]:
    """What a list of runs says of a run that wrote its summary, from its first and last lines."""
    state = "finished" if summary.complete else "stopped"
    return about_run(RunEnd.of(start, summary, RunNumbers()), state, name, hide)


def batches(rows: list[bytes], begin: int, most: int) -> Iterator[list[bytes]]:
    """The rows from `begin` on, in lists of at most so many bytes, or one row."""
    found: list[bytes] = []
    size = 0
    for number in range(begin, len(rows)):
        found.append(rows[number])
        size += len(rows[number])
        if size >= most:
            yield found
            found, size = [], 0
    if found:
        yield found
