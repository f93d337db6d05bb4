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
from atp.journal.read import decode_trial, decode_trial_line, read_lines
from atp.journal.records import NAME, Kept, Line, RunInfo, Skipped, Summary, Trial
from atp.journal.records import Case as CaseLine
from atp.stats.suite_gates import evaluate_gates
from atp.stats.summary import Summary as Counts
from atp.suite.case import Case
from atp.suite.result import CaseInfo, CaseResult, TrialResult

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
class ReadTrial:
    """A trial of the journal, and the case it belongs to."""

    result: TrialResult
    """Everything about the trial."""
    file: str
    """The file of its case, from the directory of the run."""
    index: int
    """Where its case stands in the file."""
    about: CaseInfo | None
    """Its case, where the line has that."""
    offset: int
    """Where the line of the result begins."""
    line: int
    """Where the line begins that makes the trial one of the run: another where it was taken over from above."""


class RecordedRun:
    """A run in a journal. Raises `LoadError` if the journal has no run."""

    def __init__(self, run: Path, *, relocate: bool = True) -> None:
        """`relocate`: give the paths of test files from the working directory, and not as the journal has them."""
        self._journal = run / NAME
        self._running = is_running(run)
        self.earlier: dict[str, int] = {}
        """The offsets of the trials that were done before the run was last resumed, by key."""
        try:
            self.begin, self.info = self._find_start()
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
        counting = _Counting(self)
        for offset, line in read_lines(self._journal, begin=self.begin):
            if (one := counting.trial(offset, line)) is not None:
                yield one.offset, self._path(one.file), one.result, one.about
        for one in counting.rest():
            yield one.offset, self._path(one.file), one.result, one.about

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
        repetition = Repetition(self, listener)
        for offset, line in read_lines(self._journal, begin=self.begin, damaged=repetition.damaged):
            repetition.add(offset, line)
        repetition.add_rest()
        return repetition.end(running=self._running)

    def read(self, offset: int) -> "ReadTrial":
        """The trial whose line begins at an offset: its own, or the one by which a run that went on took it over.

        Raises one of `UNREADABLE` if there is no such line by now, and `OSError`.
        """
        with self._journal.open("rb") as file:
            file.seek(offset)
            return self.resolve(offset, decode_trial_line(file.readline()))

    def resolve(self, offset: int, line: Trial | Kept) -> "ReadTrial":
        """The trial of a line. Raises `KeyError` for a trial that was taken over, and does not stand above."""
        if isinstance(line, Trial):
            return ReadTrial(line.result, line.file, line.result.index, line.about, offset, offset)
        at = self.earlier[line.key]
        with self._journal.open("rb") as file:
            file.seek(at)
            return ReadTrial(decode_trial(file.readline()).result, line.file, line.index, line.about, at, offset)

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
                    self.earlier[line.result.key] = offset
        return starts[-1]


class _Counting:
    """Tells which trials of a journal count: those since the run last went on, and earlier ones as far as they do."""

    def __init__(self, recorded: RecordedRun) -> None:
        self._recorded = recorded
        self._seen: set[tuple[str, str, int, int, int]] = set()
        self._ended = False

    def trial(self, offset: int, line: Line) -> ReadTrial | None:
        """The trial of a line; None for lines of other kinds. Raises `KeyError` for one that is not there."""
        if not isinstance(line, Trial | Kept):
            self._ended = self._ended or isinstance(line, Summary)
            return None
        try:
            one = self._recorded.resolve(offset, line)
        except KeyError:
            return None
        if self._recorded.earlier:
            self._seen.add(_identity(one))
        return one

    def rest(self) -> Iterator[ReadTrial]:
        """Earlier trials that the run did not come to again, if it did not end."""
        for at in self._recorded.earlier.values() if not self._ended else ():
            one = self._recorded.read(at)
            if _identity(one) not in self._seen:
                yield one


class Repetition:
    """Repeats a run for a listener line by line: all calls but the last two, `finish` and `end`."""

    def __init__(self, recorded: RecordedRun, listener: Listener) -> None:
        self._recorded = recorded
        self._listener = listener
        self._collector = Collector()
        self._counting = _Counting(recorded)
        self._last = recorded.info.at
        self._open: dict[int, int] = {}
        self.closing: CaseLine | None = None
        """The line that closed the case with which the listener is called, if its number of runs was not fixed."""
        self.counts = Counts()
        """The counts of the cases so far."""
        self.summary: Summary | None = None
        """The end of the run, once it was read."""
        self.damaged: list[int] = []
        """The offsets of lines that could not be read."""
        listener.start(recorded.info)

    def add(self, offset: int, line: Line) -> ReadTrial | None:
        """Take in the line at an offset. Returns its trial, if it has one that counts."""
        if isinstance(line, Skipped):
            self.counts.add_skipped()
            self._listener.skipped(self._recorded.path(line.file) or None, _case(line))
        elif isinstance(line, Summary):
            self.summary = line
            self._counting.trial(offset, line)
        elif isinstance(line, CaseLine):
            with suppress(KeyError):  # its trials are damaged
                self._close(self._collector.close_read((line.file, line.agent, line.index), line), line)
        elif isinstance(line, Trial | Kept):
            one = self._counting.trial(offset, line)
            if one is None:
                self.damaged.append(offset)
            else:
                self._add(one)
            return one
        return None

    def add_rest(self) -> None:
        """Take in what a run that ended without its last lines leaves: earlier trials, and incomplete cases."""
        for one in self._counting.rest():
            self._add(one)
        for case in self._collector.rest():
            self._close(case)

    def line_of(self, trial: TrialResult) -> int:
        """Where the line of a trial begins, while the listener is called with its case."""
        return self._open[id(trial)]

    def _add(self, one: ReadTrial) -> None:
        self._last = max(self._last, one.result.started_at + one.result.duration_ms / 1000)
        self._open[id(one.result)] = one.line
        place = (one.file, one.result.agent, one.index)
        file = self._recorded.path(one.file) or None
        case = self._collector.add_read(place, file, one.index, one.result, one.about)
        if case is not None:
            self._close(case)

    def _close(self, case: CaseResult, line: CaseLine | None = None) -> None:
        self.closing = line
        self.counts.add_case(case)
        self._listener.case(case)
        for trial in case.trials:
            del self._open[id(trial)]

    def end(self, *, running: bool) -> RunEnd:
        """The end of the run as far as it was read."""
        running = running and self.summary is None
        return replace(self._ended(self.summary or self._unfinished(running)), running=running)

    def _unfinished(self, running: bool) -> Summary:
        """The summary of a run without one: the run is still running, or was killed."""
        why = "unfinished: it is still running" if running else "unfinished: it ended without a summary"
        counts = self.counts
        code = counts.exit_code(stopped=True)
        return Summary(at=self._last, complete=False, reason=why, counts=counts.counts(), exit_code=code)

    def _ended(self, summary: Summary) -> RunEnd:
        """The end of the run; the counts are of the lines. A finished run that lost lines must not look whole."""
        found, info, damaged = self.counts, self._recorded.info, len(self.damaged)
        counts = found.counts()
        told = {name: _valid_count(summary.counts.get(name), count) for name, count in counts.items()}
        end = replace(RunEnd.of(info, summary, found.numbers), counts=told)
        end = replace(end, gates=evaluate_gates(info.gates, found.numbers, complete=summary.complete))
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
        gates = evaluate_gates(info.gates, found.numbers, complete=False)
        return replace(end, counts=counts, reason=reason, damaged=True, gates=gates)


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


def _identity(one: ReadTrial) -> tuple[str, str, int, int, int]:
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
