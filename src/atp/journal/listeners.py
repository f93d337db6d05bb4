"""What a run tells those who listen: reports and the console."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from atp.engine.prepare.plan import Trial
from atp.suite.case import Case
from atp.suite.result import CaseResult, TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What is known when a run begins."""

    id: str
    """The run's id."""
    folder: str
    """Where its journal is."""
    input: list[str]
    """What was given to test."""
    agents: list[str]
    """The agents under test."""
    cases: int
    """How many cases, each per agent."""
    trials: int
    """How many trials."""
    runs: int
    """Runs per case; the most, where they differ."""
    started_at: float
    """Seconds since 1970. Of a run that went on: when it first began."""
    version: str
    """ATP's version."""
    environment: dict[str, Any] = field(default_factory=dict)
    """The test environment."""
    connector: str | None = None
    """The connector that was named."""
    parallel: int = 1
    """Trials at a time."""
    varied: bool = False
    """Some case runs with more than one prompt."""
    resumed: int = 0
    """Trials taken over from before."""
    resumed_at: float | None = None
    """When it last went on, if it did."""
    earlier_ms: float = 0.0
    """How long it took before that, breaks left out."""
    notes: tuple[str, ...] = ()
    """What a person should know before it starts."""
    files: tuple[str, ...] = ()
    """The test files, in order."""
    options: dict[str, Any] = field(default_factory=dict)
    """The settings that the command line, or the caller in code, gave; not those of files and of the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """What is known when a run ends."""

    info: RunInfo
    """How it began."""
    counts: dict[str, Any]
    """The summary: total, passed, failed, errors, skipped …"""
    ended_at: float
    """Seconds since 1970."""
    duration_ms: float
    """How long it took."""
    reason: str | None
    """Why it ended early, if it did."""
    exit_code: int
    """What the process should end with."""
    damaged: bool = False
    """It was not stopped: its journal was damaged since, so that not all of it can be told. The reason says so."""
    exhausted: str | None = None
    """The setting, a budget, that has to be raised before it is any use to go on."""


class Listener:
    """Hears what happens, as it happens. Does nothing of itself."""

    @property
    def problems(self) -> Sequence[str]:
        """What it could not write, and why (`report.json: No space left on device`); known when the run has ended."""
        return ()

    def start(self, info: RunInfo) -> None:
        """The run begins."""

    def skipped(self, file: str | None, case: Case) -> None:
        """A case is left out, as its file asks."""

    def began(self, trial: Trial) -> None:
        """A trial begins."""

    def ended(self, trial: Trial, result: TrialResult) -> None:
        """A trial ended."""

    def case(self, result: CaseResult) -> None:
        """All trials of a case against an agent ended."""

    async def finish(self, end: RunEnd) -> None:
        """All trials ended, and `end` is about to be told: the time for what has to be waited for."""

    def end(self, end: RunEnd) -> None:
        """The run ended."""


class Listeners(Listener):
    """All who listen. One that fails is heard no more and said so at the end; the run goes on."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = list(listeners)
        self._hearing: dict[str, list[tuple[Listener, Callable[..., None]]]] = {}
        """By what is told: those who do anything about it. Most of it is told once a trial, and most don't care."""
        self._all = tuple(listeners)
        self._broken: list[str] = []

    @property
    def problems(self) -> Sequence[str]:
        """What could not be reported."""
        return [*self._broken, *(problem for listener in self._all for problem in listener.problems)]

    def start(self, info: RunInfo) -> None:
        """Pass it on."""
        self._tell("start", info)

    def skipped(self, file: str | None, case: Case) -> None:
        """Pass it on."""
        self._tell("skipped", file, case)

    def began(self, trial: Trial) -> None:
        """Pass it on."""
        self._tell("began", trial)

    def ended(self, trial: Trial, result: TrialResult) -> None:
        """Pass it on."""
        self._tell("ended", trial, result)

    def case(self, result: CaseResult) -> None:
        """Pass it on."""
        self._tell("case", result)

    async def finish(self, end: RunEnd) -> None:
        """Wait for each."""
        for listener in tuple(self._listeners):
            try:
                await listener.finish(end)
            except Exception as error:
                self._drop(listener, error)

    def end(self, end: RunEnd) -> None:
        """Pass it on."""
        self._tell("end", end)

    def _tell(self, what: str, *words: Any) -> None:
        hearing = self._hearing.get(what)
        if hearing is None:
            deaf = getattr(Listener, what)
            hearing = [(one, getattr(one, what)) for one in self._listeners if getattr(type(one), what) is not deaf]
            self._hearing[what] = hearing
        for listener, hear in hearing:
            try:
                hear(*words)
            except Exception as error:
                self._drop(listener, error)

    def _drop(self, listener: Listener, error: Exception) -> None:
        self._listeners.remove(listener)
        self._hearing.clear()
        self._broken.append(f"{type(listener).__name__}: {type(error).__name__}: {error}")
