"""Going on with a run: what it has done already, and what has to be done again."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec.structs import asdict, replace

from atp.base.diagnostics import LoadError, load_error
from atp.base.json.text import UNREADABLE
from atp.base.secrets import MASK
from atp.journal.collect import finish_case
from atp.journal.folder import all_runs
from atp.journal.read import RunTimes, bounds, decode_trial, read_lines
from atp.journal.records import NAME, Case, Kept, RunInfo, Summary, Trial
from atp.journal.write import JournalError
from atp.suite.result import CaseInfo, CaseResult, TrialRef, TrialResult

AGAIN = frozenset({"error", "blocked", "cancelled"})
"""Statuses that say nothing of the agent: such a trial runs again."""


class FinishedTrials:
    """The trials of a run that need not run again, by key."""

    def __init__(self, journal: Path | None = None) -> None:
        self._offsets: dict[str, int] = {}
        self._lines: dict[str, Case] = {}
        """The lines that closed cases, by the key of the first trial of each."""
        self._planned: dict[tuple[str, str | None], set[tuple[int, int]]] = {}
        """How many runs were planned of cases with a confidence, by agent and the digest of the case."""
        again: _Again = {}
        gated: dict[str, CaseInfo] = {}
        self.times = RunTimes()
        """When the run started and how long it has taken so far."""
        self.start: RunInfo | None = None
        """How the run last started or went on."""
        self._file: BinaryIO | None = None
        self._runs: Counter[str] = Counter()
        if journal is not None:
            for offset, line in read_lines(journal):
                self.times.add(line)
                if isinstance(line, RunInfo):
                    self.start = line
                    again.clear()
                elif isinstance(line, Trial):
                    self._add(offset, line, again)
                elif isinstance(line, Kept) and line.about is not None and line.about.confidence is not None:
                    gated[line.key] = line.about
                elif isinstance(line, Case):
                    self._close(line, again)
            self._file = journal.open("rb")
            for key, about in gated.items():
                if (result := self.get(key)) is not None:
                    self._planned.setdefault((result.agent, result.case_digest), set()).add(_planned(about))

    def _add(self, offset: int, line: Trial, again: "_Again") -> None:
        result, about = line.result, line.about
        if result.status in AGAIN:
            self._offsets.pop(result.key, None)
            again.setdefault((line.file, result.agent, result.index), {})[result.key] = offset
        else:
            self._offsets[result.key] = offset
        if about is not None and about.confidence is not None:
            self._planned.setdefault((result.agent, result.case_digest), set()).add(_planned(about))

    def _close(self, line: Case, again: "_Again") -> None:
        """Keep all trials of a case that was closed: its errors counted, too."""
        if line.is_final:
            self._lines[line.key] = line
            self._offsets |= again.pop((line.file, line.agent, line.index), {})
        else:
            self._lines.pop(line.key, None)

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: str) -> bool:
        return key in self._offsets

    def get(self, key: str) -> TrialResult | None:
        """The result of a trial that is done."""
        offset = self._offsets.get(key)
        if offset is None or self._file is None:
            return None
        self._file.seek(offset)
        try:
            result = decode_trial(self._file.readline()).result
        except UNREADABLE:
            result = None
        if result is None or result.key != key:
            raise JournalError(f"{self._file.name} was cut or changed since the run went on with it")
        return result

    def runs_of(self, first: TrialRef) -> int:
        """How many runs of a trial are done, where their number is not fixed; `first` is the trial of the first run."""
        if not self._runs and self._offsets:
            self._runs = Counter(key.rpartition("-")[0] for key in self._offsets)
        return self._runs[first.key.rpartition("-")[0]]

    def case_line(self, first: TrialRef) -> Case | None:
        """The line that closed the case of a first trial, if the same is asked of the case now."""
        line = self._lines.get(first.key)
        if line is None or (line.gate, line.min_runs, line.max_runs) != (first.gate, first.min_runs, first.runs):
            return None
        return replace(line, index=first.case.index, file=first.file)

    def planned_otherwise(self, trial: TrialRef) -> bool:
        """True if another number of runs was planned before for the case of a trial: its results were looked at."""
        if not self._planned:
            return False
        before = self._planned.get((trial.agent, trial.case_digest), set())
        return bool(before - {(trial.min_runs, trial.runs)})

    def close(self) -> None:
        """Let go of the journal."""
        if self._file is not None:
            self._file.close()


_Again = dict[tuple[str, str, int], dict[str, int]]
"""The offsets of trials that run again, by file, agent and place of their case, and by key."""


def _planned(about: CaseInfo) -> tuple[int, int]:
    return about.min_runs, about.planned_runs


_UNJUDGED = ("errors", "blocked", "cancelled", "inconclusive")
"""Counts of cases that say nothing of the agent, or too little: more runs may tell."""


class EarlierRun(NamedTuple):
    """A run of the same input: its folder, how it started, and what it came to."""

    folder: Path
    start: RunInfo
    summary: Summary | None
    """None if the run did not come to its end."""


def earlier_runs(root: Path, identity: list[str]) -> Iterator[EarlierRun]:
    """The runs of the same input, newest first, without those that only judged again."""
    for run in all_runs(root):
        start, summary = bounds(run)
        if start is not None and start.rechecks is None and _same(start, identity, root):
            yield EarlierRun(run, start, summary)


def ran_everything(run: EarlierRun) -> bool:
    """Whether a run left no case of its input out."""
    narrowed = any(run.start.options.get(name) for name in _NARROWING)
    return run.summary is not None and run.summary.complete and not narrowed


def find_unfinished(root: Path, identity: list[str]) -> Path:
    """The newest run of the same input that did not come to its end; or just the newest, if trials are to run again."""
    newest = True
    for run, _, summary in earlier_runs(root, identity):
        if summary is None or not summary.complete or (newest and any(summary.counts.get(name) for name in _UNJUDGED)):
            return run
        newest = False
    raise _nothing("there is no unfinished run of this input", "run it without --resume, or name a run: atp runs")


def _same(start: RunInfo, identity: list[str], root: Path) -> bool:
    """Whether a run had the same input. Earlier versions wrote absolute paths."""
    known = [os.path.relpath(one, root) if one.startswith(f"{root}/") else one for one in start.identity]
    return [one if one != str(root) else "." for one in known] == identity


def last_failures(root: Path, identity: list[str]) -> set[tuple[str, str]]:
    """The (agent, case) pairs that did not pass when they last ran.

    That is the newest run of the same input and, for what it left out, those before it: up to one that ran everything.
    """
    decided: dict[_Place, bool] = {}
    whole: Path | None = None
    for run in earlier_runs(root, identity):
        here = _passed(run.folder / NAME)
        decided = {**here, **decided}
        if here and ran_everything(run):
            whole = run.folder
            break
    failed = {(agent, case) for (_, agent, case, _), passed in decided.items() if not passed}
    if failed:
        return failed
    if not decided:
        raise _nothing("this input has not been run yet", "run it without --only-failed")
    if whole is None:
        raise _nothing("nothing failed so far, but not everything has been run", "run it without --only-failed")
    raise _nothing(f"everything passed in the last run ({whole.name})", "run it without --only-failed")


_Place = tuple[str, str, str, int]
"""A case of a journal: its file, its agent, its id, and its number where secrets are masked in the id: others may look
the same."""
_NARROWING = ("run", "tags", "only_failed")
"""Settings with which a run leaves out some of its cases."""


def _passed(journal: Path) -> dict[_Place, bool]:
    """The cases of a run, by file and agent, and whether each passed the last time it was run.

    What the case itself asks of its trials counts: a `min_score`, a `pass_rate`, and that all of them have run.
    """
    trials: dict[_Place, dict[tuple[int, int], TrialResult]] = {}
    asked: dict[_Place, CaseInfo] = {}
    keys: dict[str, _Place] = {}
    closed: dict[_Place, Case] = {}
    for _, line in read_lines(journal):
        if isinstance(line, Trial):
            one = line.result
            place = keys[one.key] = (line.file, one.agent, one.case, one.index if MASK in one.case else 0)
            bare = TrialResult(
                key=one.key,
                agent=one.agent,
                case=one.case,
                variation=one.variation,
                run=one.run,
                status=one.status,
                blame=one.blame,
                score=one.score,
            )
            trials.setdefault(place, {})[one.variation, one.run] = bare
        elif isinstance(line, Kept) and line.key in keys:
            place = keys[line.key]
        elif isinstance(line, Case):
            closed[line.file, line.agent, line.case, line.index if MASK in line.case else 0] = line
            continue
        else:
            continue
        asked[place] = line.about or asked.get(place, CaseInfo())
    return {place: _is_passed(list(found.values()), asked[place], closed.get(place)) for place, found in trials.items()}


def _is_passed(trials: list[TrialResult], about: CaseInfo, line: Case | None) -> bool:
    if len(trials) < about.planned and line is None:
        return False
    case = CaseResult(agent="", case="", trials=trials, **asdict(about))
    return finish_case(case, line).status in ("passed", "skipped")


def _nothing(message: str, hint: str) -> LoadError:
    return load_error("nothing-to-resume", message, hint)
