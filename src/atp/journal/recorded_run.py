"""Repeats a run for listeners from its journal alone: the same calls as while the run ran."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from atp.base.diagnostics import Diagnostics, LoadError, Place
from atp.base.numbers import counted
from atp.base.project import project_of_run, unreadable
from atp.journal.collect import Collector
from atp.journal.folder import is_running
from atp.journal.listeners import Listener, RunEnd
from atp.journal.read import decode_trial, read_lines
from atp.journal.records import NAME, Kept, Line, RunInfo, Skipped, Summary, Trial
from atp.journal.records import Case as CaseLine
from atp.stats.suite_gates import evaluate_gates
from atp.stats.summary import Summary as Counts
from atp.suite.case import Case
from atp.suite.result import CaseInfo, TrialResult

_COUNTED = (
    "total",
    "passed",
    "failed",
    "errors",
    "blocked",
    "cancelled",
    "inconclusive",
    "skipped",
    "total_cases",
    "total_runs",
)
"""Counts that mean the same in every version."""


@dataclass(frozen=True, slots=True)
class _ReadTrial:
    """A trial of the journal, and the case it belongs to."""

    result: TrialResult
    file: str
    index: int
    about: CaseInfo | None
    offset: int


class RecordedRun:
    """A run in a journal. Raises `LoadError` if the journal has no run."""

    def __init__(self, run: Path, *, relocate: bool = True) -> None:
        """`relocate`: give the paths of test files from the working directory, and not as the journal has them."""
        self._journal = run / NAME
        self._running = is_running(run)
        self._earlier: dict[str, int] = {}
        """The offsets of the trials that were done before the run was last resumed, by key."""
        try:
            self._begin, self.info = self._find_start()
        except OSError as error:
            raise unreadable(self._journal, error) from error
        self.info.folder = str(run)
        self.info.started_in = _started_in(self.info) if relocate else None
        self.info.input = [self._path(one) if self._is_file(one) else one for one in self.info.input]
        self.info.files = [self._path(one) for one in self.info.files]
        for gate in self.info.gates:
            gate.file = None if gate.file is None else self._path(gate.file)

    def trials(self) -> Iterator[tuple[int, str, TrialResult, CaseInfo | None]]:
        """The trials that count, each with the offset of its line, its file, and its case where the line has that."""
        for line in self._lines([]):
            if isinstance(line, _ReadTrial):
                yield line.offset, self._path(line.file), line.result, line.about

    def path(self, file: str) -> str:
        """The path of a test file from the working directory; the journal has it from the directory of the run."""
        return self._path(file)

    def _is_file(self, text: str) -> bool:
        """True if an input names a file or a folder, and no message."""
        return self.info.started_in is not None and os.path.exists(os.path.join(self.info.started_in, text))

    def _path(self, file: str) -> str:
        """The path of a test file from the working directory; the journal has it from the directory of the run."""
        if not file or self.info.started_in is None or os.path.isabs(file):
            return file
        return os.path.normpath(os.path.join(self.info.started_in, file))

    def repeat(self, listener: Listener) -> RunEnd:
        """Make all calls but the last two, `finish` and `end`, which the caller makes with the end returned."""
        try:
            return self._repeat(listener)
        except OSError as error:
            raise unreadable(self._journal, error) from error

    def _repeat(self, listener: Listener) -> RunEnd:
        listener.start(self.info)
        collector, counts, summary = Collector(), Counts(), None
        damaged: list[int] = []
        last = self.info.at
        for line in self._lines(damaged):
            if isinstance(line, Skipped):
                counts.add_skipped()
                listener.skipped(self._path(line.file) or None, _case(line))
            elif isinstance(line, Summary):
                summary = line
            elif isinstance(line, CaseLine):
                with suppress(KeyError):  # its trials are damaged
                    closed = collector.close_read((line.file, line.agent, line.index), line)
                    counts.add_case(closed)
                    listener.case(closed)
            elif isinstance(line, _ReadTrial):
                last = max(last, line.result.started_at + line.result.duration_ms / 1000)
                place = (line.file, line.result.agent, line.index)
                file = self._path(line.file) or None
                case = collector.add_read(place, file, line.index, line.result, line.about)
                if case is not None:
                    counts.add_case(case)
                    listener.case(case)
        for case in collector.rest():
            counts.add_case(case)
            listener.case(case)
        return self._ended(summary or self._unfinished(last, counts), counts, len(damaged))

    def _unfinished(self, last: float, counts: Counts) -> Summary:
        """The summary of a run without one: the run is still running, or was killed."""
        why = "unfinished: it is still running" if self._running else "unfinished: it ended without a summary"
        code = counts.exit_code(stopped=True)
        return Summary(at=last, complete=False, reason=why, counts=counts.counts(), exit_code=code)

    def _ended(self, summary: Summary, found: Counts, damaged: int) -> RunEnd:
        """The end of the run; `found` counts the lines. A finished run that lost lines must not look whole."""
        counts = found.counts()
        told = {name: _valid_count(summary.counts.get(name), count) for name, count in counts.items()}
        end = replace(RunEnd.of(self.info, summary, found.numbers), counts=told)
        end = replace(end, gates=evaluate_gates(self.info.gates, found.numbers, complete=summary.complete))
        if not summary.complete:
            return end
        differs = next((name for name in _COUNTED if told[name] != counts[name]), None)
        if damaged:
            were = "was" if damaged == 1 else "were"
            reason = f"{counted(damaged, 'damaged line')} of the journal {were} passed over"
        elif differs:
            reason = (
                "the lines of the journal are not those that its summary counts: "
                f"`{differs}` is {told[differs]} in the summary, {counts[differs]} in the lines"
            )
        else:
            return end
        gates = evaluate_gates(self.info.gates, found.numbers, complete=False)
        return replace(end, counts=counts, reason=reason, damaged=True, gates=gates)

    def _lines(self, damaged: list[int]) -> Iterator[Line | _ReadTrial]:
        """The lines since the run was last resumed, and earlier trials as far as they still count."""
        seen: set[tuple[str, str, int, int, int]] = set()
        ended = False
        with self._journal.open("rb") as file:

            def earlier(key: str) -> Trial:
                file.seek(self._earlier[key])
                return decode_trial(file.readline())

            for offset, line in read_lines(self._journal, begin=self._begin, damaged=damaged):
                if isinstance(line, Kept):
                    if line.key not in self._earlier:
                        damaged.append(self._begin)
                        continue
                    at = self._earlier[line.key]
                    one = _ReadTrial(earlier(line.key).result, line.file, line.index, line.about, at)
                elif isinstance(line, Trial):
                    one = _ReadTrial(line.result, line.file, line.result.index, line.about, offset)
                else:
                    ended = ended or isinstance(line, Summary)
                    yield line
                    continue
                if self._earlier:
                    seen.add(_identity(one))
                yield one
            for key in self._earlier if not ended else ():
                before = earlier(key)
                one = _ReadTrial(before.result, before.file, before.result.index, before.about, self._earlier[key])
                if _identity(one) not in seen:
                    yield one

    def _find_start(self) -> tuple[int, RunInfo]:
        """The last start record: a resumed run has several."""
        lines = read_lines(self._journal, trials=False)
        starts = [(offset, line) for offset, line in lines if isinstance(line, RunInfo)]
        if not starts:
            notes = Diagnostics(str(self._journal))
            notes.error("no-run", f"{self._journal} has no run in it", hint="atp runs lists those that there are")
            raise LoadError(notes)
        if len(starts) > 1:
            for offset, line in read_lines(self._journal):
                if offset < starts[-1][0] and isinstance(line, Trial):
                    self._earlier[line.result.key] = offset
        return starts[-1]


def _started_in(info: RunInfo) -> str | None:
    """The directory of the run, from the working directory; None if it is the same, unknown, or no longer there."""
    root = project_of_run(Path(info.folder).resolve())
    if info.directory is None or root is None:
        return None
    directory = os.path.relpath(root / info.directory)
    return directory if directory != os.curdir and os.path.isdir(directory) else None


def _valid_count(recorded: Any, found: Any) -> Any:
    """The count of a summary, unless it is damaged."""
    return recorded if type(recorded) is type(found) else found


def _identity(one: _ReadTrial) -> tuple[str, str, int, int, int]:
    return one.file, one.result.agent, one.index, one.result.variation, one.result.run


class _SkippedCase(Case):
    """A case that was left out: the journal has only its name, place and tags."""

    why: str | None = None

    @property
    def skip_reason(self) -> str | None:
        return self.why


def _case(line: Skipped) -> Case:
    place = Place(line=line.line)
    return _SkippedCase.model_construct(
        id=line.case, name=line.name, tags=line.tags, skip=True, place=place, why=line.reason
    )
