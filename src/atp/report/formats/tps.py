"""The TPS report: the outcomes of each iteration of each case of an `x.test.md`, in an `x.tps.json` beside it.

The report is written anew after every iteration, so an earlier report stays until the first iteration ends. An
iteration is a trial whose expectations were all judged. A trial that ended in an error, a timeout or at a limit has no
outcomes and is left out. There is one report for a file; of several agents, the report is about the first. A run of
some cases (`--run`, `--tags`, `--only-failed`) keeps what the earlier report says of the others.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from atp.base.git import find_checkout, top_of
from atp.base.json.text import UNREADABLE, encode
from atp.base.secrets import Hide
from atp.engine.case_source import CaseSource, how_many
from atp.engine.prepare.filter import Filter
from atp.engine.prepare.options import Options
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.files import whole_file
from atp.report.reporter import Reporter
from atp.suite.case import Case
from atp.suite.record import AUTO
from atp.suite.result import CaseResult, TrialRef, TrialResult, Verdict

BUILT_IN = "built-in"
"""The assessor of a file that names none."""
NO_COMMIT = "0" * 40
"""Stands for a commit where there is none."""
SMALL = 1_000_000
"""Bytes. A larger report is not written again right after it was written: see `_waiting_is_better`."""


def tps_path(file: Path) -> Path | None:
    """The report's place, for a Markdown test file."""
    ending = ".test.md"
    return file.with_name(f"{file.name[: -len(ending)]}.tps.json") if file.name.lower().endswith(ending) else None


def tps_reports(sources: Iterable[CaseSource], secrets: Sequence[str], options: Options) -> "list[TpsReport]":
    """A report for each Markdown test file of a run."""
    files = [one for one in sources if one.suite.dialect == "markdown" and one.suite.path]
    return [TpsReport(one, secrets, options) for one in files if tps_path(Path(one.suite.path or ""))]


class TpsReport(Reporter):
    """The report on one test file."""

    def __init__(self, source: CaseSource, secrets: Sequence[str], options: Options, at: Path | None = None) -> None:
        """The report is written beside the test file, or to `at`."""
        file = Path(source.suite.path or "")
        super().__init__(None, secrets)  # no path until there is something to write
        self._file = file
        self._at = at or tps_path(file)
        self._source = source
        self._options = options
        self._agents: list[str] = []
        self._agent: str | None = None
        """The agent that the report is about."""
        self._target = source.suite.target or ""
        self._commit = NO_COMMIT
        self._began = 0.0
        self._about: dict[str, Any] = {}
        self._cases: dict[int, _CaseReport] = {}
        self._waiting = False
        self._next_write = 0.0

    def start(self, info: RunInfo) -> None:
        """Read the file and its commit, before anything changes them."""
        self._agents = info.agents
        suite, options = self._source.suite, self._options
        chosen = options.choose("assessor", suite.assessor)
        path, top = self._file, top_of(self._file)
        if top is not None:
            path = path.resolve().relative_to(top)
            self._commit = _commit(info, self._file, top) or NO_COMMIT
        try:
            content = self._file.read_bytes()
        except OSError as error:
            self.path = self._file
            self.problem(error)
            return
        self._about = {"hash": blob_id(content), "path": path.as_posix(), "assessor": chosen or BUILT_IN}
        self._began = info.started_at

    def ended(self, trial: TrialRef, result: TrialResult) -> None:
        """Add an iteration."""
        if trial.suite is not self._source.suite or self.problems or not self._is_about(trial.agent):
            return
        outcomes = _outcomes(trial.case, result)
        if outcomes is None:
            return
        if trial.ad_hoc or not self._target:
            self._target = trial.agent
        iteration = {"commit": self._commit, "prompts": trial.chain or [], "outcomes": outcomes}
        self._case(trial.case).add(trial, result, encode(self.hide(iteration)), [one["outcome"] for one in outcomes])
        self._write()

    def case(self, result: CaseResult) -> None:
        """Say how many iterations there are, once that is known of a case whose number of runs was not fixed."""
        if (
            not result.min_runs
            or result.file != self._source.suite.path
            or result.agent != self._agent
            or self.problems
        ):
            return
        if (known := self._cases.get(result.index)) is not None:
            known.close({(trial.variation, trial.run) for trial in result.counted})
            self._write()

    def _planned_runs(self, case: Case) -> int:
        """The most runs that a case may have."""
        runs: int | str = self._options.choose("runs", case.runs)
        return self._options.max_runs if runs == AUTO else int(runs)

    def end(self, end: RunEnd) -> None:
        """Write the iterations since the last write."""
        if self._waiting and not self.problems:
            self._next_write = 0.0
            self._write()

    def _is_about(self, agent: str) -> bool:
        """True for the agent that the report is about: of several, the one that the run names first."""
        known = [*self._agents, agent]
        if self._agent is None or known.index(agent) < known.index(self._agent):
            self._agent = agent
            self._cases = {}
        return agent == self._agent

    def _case(self, case: Case) -> "_CaseReport":
        if not self._cases:
            earlier = self._earlier_cases()
            wanted = Filter(self._options)
            for one in self._source.suite.cases:
                planned = 0 if one.only_before else how_many(one) * self._planned_runs(one)
                made = self._cases[one.index] = _CaseReport(one, planned, self._began)
                if self._options.only_failed or not wanted.wants(one):
                    made.keep(earlier, self.hide)
        return self._cases[case.index]

    def _earlier_cases(self) -> "list[_EarlierCase]":
        """The cases of the report that this one replaces, if it is about the same agent and the same assessor."""
        options = self._options
        if self._at is None or not (options.run or options.tags or options.only_failed):
            return []
        try:
            found = msgspec.json.decode((self._working_directory / self._at).read_bytes(), type=_EarlierReport)
        except (OSError, *UNREADABLE):
            return []
        same = (found.summary.target, found.summary.assessor) == (self._target, self._about["assessor"])
        return found.cases if same else []

    def _write(self) -> None:
        if self._waiting_is_better():
            return
        began = time.monotonic()
        parts = list(self._parts())
        self.path = self._at
        try:
            with whole_file(self.target) as file:
                file.writelines(parts)
        except OSError as error:
            self.problem(error)
        took = time.monotonic() - began
        large = sum(map(len, parts)) > SMALL
        self._next_write = time.monotonic() + 10 * took if large else 0.0
        self._waiting = False

    def _waiting_is_better(self) -> bool:
        """True soon after a large report was written: writing megabytes for each iteration would slow the run down."""
        self._waiting = time.monotonic() < self._next_write
        return self._waiting

    def _parts(self) -> Iterator[bytes]:
        cases = list(self._cases.values())
        most = max(case.planned for case in cases)
        summary = {
            **_time(cases, self._began),
            "iterations": most,
            # A case with fewer iterations than others must not hold the count back when it is done.
            "completed": min((case.completed for case in cases if case.completed < case.planned), default=most),
            "hash": self._about["hash"],
            "path": self._about["path"],
            "target": self._target,
            "assessor": self._about["assessor"],
        }
        yield b'{\n"summary": ' + encode(self.hide(summary)) + b',\n"cases": ['
        for number, case in enumerate(cases):
            yield b",\n{" if number else b"\n{"
            yield b'"summary": ' + encode(self.hide(case.summary())) + b',\n"iterations": ['
            for place, iteration in enumerate(case.iterations()):
                yield b",\n" if place else b"\n"
                yield iteration
            yield b"]}"
        yield b"\n]\n}\n"


class _CaseReport:
    """The iterations of a case so far."""

    def __init__(self, case: Case, planned: int, began: float) -> None:
        self._case = case
        self._began = began
        self.planned = planned
        """How many iterations there will be: variations × runs."""
        self.first: float | None = None
        """When the first iteration began, in seconds since 1970."""
        self.last = 0.0
        """When the last iteration ended."""
        self._iterations: dict[tuple[int, int], tuple[bytes, list[bool]]] = {}
        self._is_earlier = False
        """The iterations are those of an earlier run."""

    def keep(self, earlier: "Sequence[_EarlierCase]", hide: Hide) -> None:
        """Take over the iterations of the same case in an earlier report, until there is one of this run."""
        for one in earlier:
            if one.summary.is_of(self._case, hide) and one.iterations and one.is_whole:
                self._is_earlier = True
                self.planned = one.summary.iterations
                self.first = one.summary.timestamp / 1000
                self.last = (one.summary.timestamp + one.summary.elapsed) / 1000
                self._iterations = {
                    (place, 0): (encode(iteration), [outcome.outcome for outcome in iteration.outcomes])
                    for place, iteration in enumerate(one.iterations)
                }
                return

    @property
    def completed(self) -> int:
        """How many iterations there are."""
        return len(self._iterations)

    def add(self, trial: TrialRef, result: TrialResult, iteration: bytes, outcomes: list[bool]) -> None:
        """Add an iteration."""
        if self._is_earlier:
            self._is_earlier, self.first, self.last = False, None, 0.0
            self._iterations.clear()
        self.planned = trial.siblings
        began = result.started_at
        self.first = began if self.first is None else min(self.first, began)
        self.last = max(self.last, began + result.duration_ms / 1000)
        self._iterations[trial.variation, trial.run] = (iteration, outcomes)

    def close(self, counted: set[tuple[int, int]]) -> None:
        """Keep the iterations that count, by variation and run: there will be no others."""
        self._iterations = {place: one for place, one in self._iterations.items() if place in counted}
        self.planned = len(self._iterations)

    def iterations(self) -> Iterator[bytes]:
        """All iterations by variation and run, whichever ended first."""
        for place in sorted(self._iterations):
            yield self._iterations[place][0]

    def summary(self) -> dict[str, Any]:
        """The `summary` of the case."""
        case, tallies = self._case, [0] * len(self._case.expectations)
        for _, outcomes in self._iterations.values():
            tallies = [tally + outcome for tally, outcome in zip(tallies, outcomes, strict=True)]
        return {
            **_time([self], self._began),
            "iterations": self.planned,
            "completed": self.completed,
            "name": case.name or case.id,
            "promptLists": case.chains,
            "expectations": case.expectations,
            "dependencies": case.befores,
            "successes": tallies,
        }


class _EarlierOutcome(msgspec.Struct, omit_defaults=True):
    outcome: bool
    reasoning: list[str] = []
    analysis: list[str] = []
    improvements: list[str] = []


class _EarlierIteration(msgspec.Struct):
    commit: str
    prompts: list[str]
    outcomes: list[_EarlierOutcome]


class _EarlierSummary(msgspec.Struct, kw_only=True, rename="camel"):
    """The summary of a report or of a case in it."""

    timestamp: int
    elapsed: int
    iterations: int
    target: str = ""
    assessor: str = ""
    name: str = ""
    prompt_lists: list[list[str]] = []
    expectations: list[str] = []

    def is_of(self, case: Case, hide: Hide) -> bool:
        """True if the case still says and expects the same."""
        now = (hide(case.name or case.id), hide(case.chains), hide(case.expectations))
        return (self.name, self.prompt_lists, self.expectations) == now


class _EarlierCase(msgspec.Struct):
    summary: _EarlierSummary
    iterations: list[_EarlierIteration]

    @property
    def is_whole(self) -> bool:
        """True if every iteration has an outcome for each expectation."""
        wanted = len(self.summary.expectations)
        return all(len(one.outcomes) == wanted for one in self.iterations)


class _EarlierReport(msgspec.Struct):
    summary: _EarlierSummary
    cases: list[_EarlierCase]


def _time(cases: Sequence[_CaseReport], began: float) -> dict[str, int]:
    """When the iterations of cases began, and how long after that the last one ended, in milliseconds."""
    first = min((case.first for case in cases if case.first is not None), default=began)
    last = max((case.last for case in cases), default=0.0)
    timestamp = round(first * 1000)
    return {"timestamp": timestamp, "elapsed": max(round(last * 1000) - timestamp, 0)}


def _outcomes(case: Case, result: TrialResult) -> list[dict[str, Any]] | None:
    """The outcome of each expectation, in order; None if one was not judged."""
    found = [one for one in result.verdicts if one.type == "expectation"]
    judged = result.status in ("passed", "failed") and len(found) == len(case.expectations)
    if not judged or any(one.outcome == "unjudged" for one in found):
        return None
    return [{"outcome": one.passed, "reasoning": _reasoning(one)} for one in found]


def _reasoning(verdict: Verdict) -> list[str]:
    return [text for text in (verdict.message, *verdict.evidence) if text]


def _commit(info: RunInfo, file: Path, top: Path) -> str | None:
    """The commit of a file: the run's, unless the file is in another working tree than the run."""
    if info.folder and top_of(Path(info.folder)) == top:
        return info.commit
    checkout = find_checkout(file)
    return checkout.commit if checkout is not None else None


def blob_id(content: bytes) -> str:
    """The name under which git keeps a file with this content."""
    return hashlib.sha1(b"blob %d\x00%s" % (len(content), content), usedforsecurity=False).hexdigest()
