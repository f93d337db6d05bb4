"""The figures of a run that comparisons need, case by case: made from a journal, or while the run runs.

A baseline is these figures in a file (`history/baselines.py`).
"""

import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from atp.base.project import project_of_run
from atp.base.secrets import Hide
from atp.journal.listeners import Listener, RunEnd
from atp.journal.records import RunInfo
from atp.stats.averages import median
from atp.stats.case_counts import case_counts
from atp.stats.stability import is_judged
from atp.suite.metrics import LARGEST, metrics_of, values_by_name
from atp.suite.result import CaseResult, CaseStatus, Moment, TrialResult

Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Figure(Struct, kw_only=True):
    """A figure of a case, over the runs that have it."""

    median: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
    """The median over the runs."""
    runs: Annotated[int, Meta(ge=1)]
    """How many runs have the figure."""


class Answer(Struct, omit_defaults=True, kw_only=True):
    """What the agent answered in one run of a case."""

    outputs: list[Any] = field(default_factory=list)
    """Its answers, turn by turn."""
    error: str | None = None
    """Why the run did not pass, if it did not."""
    variation: Count = 0
    """The variation of the prompt, from 0."""
    run: Count = 1
    """The repeat, from 1."""


class CaseFigures(Struct, omit_defaults=True, kw_only=True):
    """A case against an agent: how often it passed, what that depends on, and what its runs took."""

    id: str
    """The case's id."""
    agent: str
    """The agent's name."""
    file: str = ""
    """The test file, as a path from the project's root."""
    name: str = ""
    """The case's name, if it is another than its id."""
    status: CaseStatus
    """What the runs come to."""
    quarantined: bool = False
    """True if the case was in quarantine in that run."""
    passed: Count = 0
    """Runs that passed."""
    judged: Count = 0
    """Runs that say something of the agent: passed, failed, timeout, error of the agent."""
    errors: Count = 0
    """Runs that ended in an error that is not the agent's."""
    missing: Count = 0
    """Runs that were planned and never came to an end: blocked, cancelled, never begun."""
    rate: Share | None = None
    """The pass rate: the mean over the variations of the prompt. None without a judged run."""
    sequential: bool = False
    """True if how many runs there are depends on how they came out: `--runs auto`, or a number that was changed."""
    case_digest: str | None = None
    """A hash of what the case says. None in journals of early versions."""
    judge_digest: str | None = None
    """A hash of the judges that the case needs, if any."""
    simulator_digest: str | None = None
    """A hash of the simulated user, if there is one."""
    golden_digests: dict[int, str] = field(default_factory=dict)
    """A hash of the golden files that each variation was compared with, if the case has any."""
    figures: dict[str, Figure] = field(default_factory=dict)
    """The metrics of the judged runs: what they took, how well they did, and what was given by name."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """The answers of the first run that `passed` and of the first that `failed`, if they were asked for."""

    @property
    def in_error(self) -> bool:
        """True if some run did not come to a verdict, for whatever reason."""
        return self.errors > 0 or self.missing > 0


class RunFigures(Struct, omit_defaults=True, kw_only=True):
    """A run: where it came from, and the figures of its cases."""

    run: str
    """The run's id."""
    at: Moment
    """Seconds since 1970: when it started."""
    version: str = ""
    """The version of ATP that ran it."""
    commit: str | None = None
    """The commit of git that was checked out."""
    branch: str | None = None
    """The branch of git."""
    dirty: bool = False
    """Whether files that git knows differed from the commit."""
    host: str | None = None
    """A hash of the machine's name: durations are compared on one machine only."""
    parallel: Count = 1
    """Trials at a time."""
    stopped: str | None = None
    """Why it ended early, if it did."""
    cases: list[CaseFigures] = field(default_factory=list)
    """The cases, each once per agent, in the order of the files."""

    @property
    def agents(self) -> list[str]:
        """The agents, in the order of their first cases."""
        return list(dict.fromkeys(case.agent for case in self.cases))


class FigureCollector(Listener):
    """Collects the figures of a run as its cases end."""

    def __init__(self, hide: Hide, *, answers: bool = False) -> None:
        """`hide` masks secrets: a run's own results have them, a journal has not."""
        self._hide = hide
        self._answers = answers
        self._info: RunInfo | None = None
        self._cases: list[tuple[tuple[str, int, int], CaseFigures]] = []

    def start(self, info: RunInfo) -> None:
        """Remember where the run came from."""
        self._info = info

    def case(self, result: CaseResult) -> None:
        """Add a case. One that asked to be left out has no figures."""
        if result.status == "skipped" or self._info is None:
            return
        file = project_path(self._info, result.file or "")
        found = case_figures(result, file, answers=self._answers)
        agents = self._info.agents
        number = agents.index(result.agent) if result.agent in agents else len(agents)
        self._cases.append(((file, result.index, number), self._hide(found)))

    def figures(self, stopped: str | None) -> RunFigures:
        """The figures of all cases so far; `stopped` says why the run ended early."""
        info = self._info
        assert info is not None
        return RunFigures(
            run=info.id,
            at=info.started_at,
            version=info.version,
            commit=info.commit,
            branch=info.branch,
            dirty=bool(info.dirty),
            host=_digest(info.host),
            parallel=info.parallel,
            stopped=None if stopped is None else self._hide(stopped),
            cases=[case for _, case in sorted(self._cases, key=lambda one: one[0])],
        )


def run_figures(run: Path, hide: Hide, *, answers: bool = False) -> RunFigures:
    """The figures of a run, from its journal. Raises `LoadError`."""
    from atp.journal.recorded_run import RecordedRun  # a run imports this module, and reads no other run

    collector = FigureCollector(hide, answers=answers)
    end: RunEnd = RecordedRun(run, relocate=False).repeat(collector)
    return collector.figures(end.reason)


def project_path(info: RunInfo, file: str) -> str:
    """The path of a test file from the project's root, the same wherever the project is checked out."""
    if not file:
        return ""
    if not os.path.isabs(file):
        return os.path.normpath(os.path.join(info.directory or "", file))
    root = project_of_run(Path(info.folder).resolve())
    path = Path(file).resolve()
    return path.relative_to(root).as_posix() if root is not None and path.is_relative_to(root) else file


def case_figures(case: CaseResult, file: str, *, answers: bool = False) -> CaseFigures:
    """The figures of a case; `file` is its file's path from the project's root."""
    counts = case_counts(case)
    judged = [trial for trial in case.counted if is_judged(trial)]
    return CaseFigures(
        id=case.case,
        agent=case.agent,
        file=file,
        name=case.name if case.name != case.case else "",
        status=case.status,
        quarantined=case.quarantine is not None,
        passed=counts.passed,
        judged=counts.judged,
        errors=counts.errors,
        missing=counts.missing,
        rate=counts.rate,
        sequential=case.min_runs > 0 or case.other_runs,
        # A trial that never began has not asked who would judge it.
        case_digest=_first(trial.case_digest for trial in case.trials),
        judge_digest=_first(trial.judge_digest for trial in case.trials),
        simulator_digest=_first(trial.simulator_digest for trial in case.trials),
        golden_digests={one.variation: one.golden_digest for one in case.trials if one.golden_digest is not None},
        figures=_figures(judged),
        answers=_answers(judged) if answers else {},
    )


def _figures(judged: list[TrialResult]) -> dict[str, Figure]:
    """The medians of all metrics of the runs."""
    values = values_by_name(map(metrics_of, judged))
    return {name: Figure(median=round(median(found) or 0.0, 9), runs=len(found)) for name, found in values.items()}


def _answers(judged: list[TrialResult]) -> dict[str, Answer]:
    """The answers of the first run that passed, and of the first that did not."""
    found: dict[str, Answer] = {}
    for trial in judged:
        found.setdefault(
            "passed" if trial.status == "passed" else "failed",
            Answer(
                outputs=[turn.output for turn in trial.transcript.turns],
                error=trial.error,
                variation=trial.variation,
                run=trial.run,
            ),
        )
    return found


def _first(digests: Iterable[str | None]) -> str | None:
    return next((one for one in digests if one), None)


def _digest(text: str | None) -> str | None:
    return None if text is None else blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()
