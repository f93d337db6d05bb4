"""Finds the results of an earlier run by what its trials are: for each agent, case, variation and run, one."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from atp.base.json.text import UNREADABLE
from atp.base.project import unreadable
from atp.base.secrets import current_secrets
from atp.journal.read import decode_result, read_lines
from atp.journal.recorded_run import RecordedRun
from atp.journal.records import NAME, Before, RunInfo, Trial
from atp.journal.records import Case as CaseLine
from atp.suite.result import CaseInfo, StoppedBy, TrialResult


class CasePlace(NamedTuple):
    """A case of a run, against one agent."""

    file: str
    """The real path of its file; empty if it stands in none."""
    agent: str
    """The agent's name."""
    case: str
    """The case's id."""


class RecordedTrials:
    """The results of a run in a journal. Only where they stand is in memory. Raises `LoadError` if there is no run."""

    def __init__(self, run: Path) -> None:
        recorded = RecordedRun(run)
        self.folder = run
        """The run's folder."""
        self.info: RunInfo = recorded.info
        """How the run was started."""
        self._journal = run / NAME
        self._trials: dict[CasePlace, dict[tuple[int, int], int]] = {}
        self._about: dict[CasePlace, CaseInfo] = {}
        self._befores: dict[CasePlace, list[int]] = {}
        self._lines: dict[CasePlace, CaseLine] = {}
        self._taken_for: dict[str, str] = {}
        try:
            for offset, file, result, about in recorded.trials():
                place = self.place(file, result.agent, result.case)
                self._trials.setdefault(place, {})[result.variation, result.run] = offset
                if about is not None:
                    self._about[place] = about
            for offset, line in read_lines(self._journal):
                if isinstance(line, CaseLine):
                    self._lines[self.place(recorded.path(line.file), line.agent, line.case)] = line
                elif isinstance(line, Before) or (isinstance(line, Trial) and _may_be_before(line.result)):
                    place = self.place(recorded.path(line.file), line.result.agent, line.result.case)
                    self._befores.setdefault(place, []).append(offset)
        except OSError as error:
            raise unreadable(self._journal, error) from error

    def place(self, file: str | None, agent: str, case: str) -> CasePlace:
        """The place of a case in the file at this path. Secrets in the names are masked, as the journal has them."""
        hide, real = current_secrets().mask_text, os.path.realpath(file) if file else ""
        return CasePlace(self._taken_for.get(real, real), hide(agent), hide(case))

    def take_for(self, file: str, agents: Iterable[str], cases: Iterable[str]) -> str | None:
        """Take a file that the run does not have for the one of its files with some of the same cases.

        Returns that file; None if the run has the file itself, or if no other or several fit.
        """
        files, ids = {place.file for place in self._trials}, set(cases)
        if (real := os.path.realpath(file)) in files:
            return None
        wanted = {self.place(None, agent, case)[1:] for agent in agents for case in ids}
        fitting = {place.file for place in self._trials if place[1:] in wanted and place.file}
        if len(fitting) != 1:
            return None
        self._taken_for[real] = found = fitting.pop()
        return os.path.relpath(found)

    def places(self) -> Iterator[CasePlace]:
        """The cases that were run, each against one agent. Cases that were only replayed for others are left out."""
        return iter(self._trials)

    @property
    def has_all_cases(self) -> bool:
        """True if no stop kept a case of the run from being run."""
        return len(self._trials) >= self.info.cases

    def about(self, place: CasePlace) -> CaseInfo | None:
        """What the journal says of a case beside its trials."""
        return self._about.get(place)

    def stopped_by(self, place: CasePlace) -> StoppedBy | None:
        """What stopped the run before a case was decided whose number of runs was not fixed; None if nothing did."""
        line = self._lines.get(place)
        return "interrupted" if line is None else None if line.is_final else line.stopped_by

    def runs(self, place: CasePlace) -> int:
        """How often the trials of a case were repeated, at most; 0 if there are none."""
        return max((run for _, run in self._trials.get(place, ())), default=0)

    def was_looked_at(self, place: CasePlace) -> bool:
        """True if the number of a case's runs was not fixed beforehand, or not all of them are there."""
        about = self._about.get(place)
        if about is None:
            return True
        return about.min_runs > 0 or about.other_runs or len(self._trials.get(place, ())) < about.planned

    def offset(self, place: CasePlace, variation: int, run: int) -> int | None:
        """Where the result of a trial stands; None if there is none."""
        return self._trials.get(place, {}).get((variation, run))

    def read(self, offset: int) -> TrialResult:
        """The result in the line that begins at an offset. Raises `LoadError` if the journal has changed since."""
        try:
            with self._journal.open("rb") as file:
                file.seek(offset)
                return decode_result(file.readline()).result
        except (OSError, *UNREADABLE) as error:
            changed = error if isinstance(error, OSError) else OSError(0, "it was changed meanwhile")
            raise unreadable(self._journal, changed) from error

    def before(self, place: CasePlace, messages: Sequence[dict[str, Any]]) -> int | None:
        """Where the result of a before stands whose conversation is that of `messages`; None if there is none."""
        for offset in self._befores.get(place, ()):
            if self.read(offset).transcript.messages == list(messages):
                return offset
        return None

    def variations(self, place: CasePlace) -> dict[int, TrialResult]:
        """The longest conversation of each variation of a case."""
        found: dict[int, TrialResult] = {}
        for (variation, _), offset in self._trials.get(place, {}).items():
            result = self.read(offset)
            known = found.get(variation)
            if known is None or len(result.transcript.turns) > len(known.transcript.turns):
                found[variation] = result
        return found


def _may_be_before(result: TrialResult) -> bool:
    """True for the trial of a case that others may go on from: the first run of its first prompt."""
    return result.variation == 0 and result.run == 1
