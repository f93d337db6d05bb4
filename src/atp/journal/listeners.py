"""Passes on what happens in a run to reports and the console."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from atp.base.secrets import current_secrets
from atp.journal.records import RunInfo, Summary
from atp.stats.judges import JudgeFigures
from atp.stats.run_numbers import RunNumbers
from atp.stats.suite_gates import GateResult
from atp.suite.case import Case
from atp.suite.result import CaseResult, TrialRef, TrialResult

if TYPE_CHECKING:
    from atp.stats.comparison import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """What is known when a run ends."""

    info: RunInfo
    """How it started."""
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
    """The run was not stopped: its journal was damaged since, so that parts of the run are missing. See the reason."""
    running: bool = False
    """The run has not ended: its journal was read while it ran."""
    exhausted: str | None = None
    """The setting, a budget, that has to be raised before it is any use to go on."""
    comparison: "Comparison | None" = None
    """How the run compares with the baseline that was given."""
    notes: Sequence[str] = ()
    """What a person should know when the run has ended."""
    gates: Sequence[GateResult] = ()
    """What the gates came to."""
    judges: Sequence[JudgeFigures] = ()
    """What the verdicts of judges are worth, by the calibrations of the project."""
    numbers: RunNumbers = field(default_factory=RunNumbers)
    """The numbers of all cases, which figures of groups of cases are made of."""

    @classmethod
    def of(cls, info: RunInfo, summary: Summary, numbers: RunNumbers) -> "RunEnd":
        """The end that a summary line records. The time between two parts of a run is not counted."""
        return cls(
            info=info,
            counts=summary.counts,
            ended_at=summary.at,
            duration_ms=round(info.duration_before_resume_ms + (summary.at - info.at) * 1000, 3),
            reason=summary.reason,
            exit_code=summary.exit_code,
            exhausted=summary.exhausted,
            notes=summary.notes,
            comparison=summary.comparison,
            gates=summary.gates,
            numbers=numbers,
        )


class Listener:
    """Is called when something happens in a run. Every method does nothing by default."""

    @property
    def problems(self) -> Sequence[str]:
        """What could not be written, and why (`report.json: No space left on device`); known when the run has ended."""
        return ()

    def start(self, info: RunInfo) -> None:
        """The run starts."""

    def skipped(self, file: str | None, case: Case) -> None:
        """A case is left out, as its file asks."""

    def began(self, trial: TrialRef) -> None:
        """A trial begins."""

    def ended(self, trial: TrialRef, result: TrialResult) -> None:
        """A trial ended."""

    def case(self, result: CaseResult) -> None:
        """All trials of a case against an agent ended."""

    async def finish(self, end: RunEnd) -> None:
        """All trials ended, and `end` is called next: the time for work that has to be awaited."""

    def end(self, end: RunEnd) -> None:
        """The run ended."""


Result = TypeVar("Result", TrialResult, CaseResult)


def _without_secret_numbers(result: Result) -> Result:
    """The result with secrets masked that are read as numbers. Listeners can't tell which numbers are an agent's."""
    secrets = current_secrets()
    if not secrets.has_numbers:
        return result
    masked: Result = secrets.mask(result, numbers=False)
    return masked


class Listeners(Listener):
    """All listeners of a run. One that raises is called no more and reported as a problem; the run goes on."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = list(listeners)
        self._subscribers: dict[str, list[tuple[Listener, Callable[..., None]]]] = {}
        """By method: the listeners that override it. Most methods are called once a trial, and most override few."""
        self._all = tuple(listeners)
        self._broken: list[str] = []

    @property
    def problems(self) -> Sequence[str]:
        """What could not be reported."""
        return [*self._broken, *(problem for listener in self._all for problem in listener.problems)]

    def start(self, info: RunInfo) -> None:
        """Call `start` of every listener."""
        self._dispatch("start", info)

    def skipped(self, file: str | None, case: Case) -> None:
        """Call `skipped` of every listener."""
        self._dispatch("skipped", file, case)

    def began(self, trial: TrialRef) -> None:
        """Call `began` of every listener."""
        self._dispatch("began", trial)

    def ended(self, trial: TrialRef, result: TrialResult) -> None:
        """Call `ended` of every listener."""
        if self._subscribed("ended"):
            self._dispatch("ended", trial, _without_secret_numbers(result))

    def case(self, result: CaseResult) -> None:
        """Call `case` of every listener."""
        self._dispatch("case", _without_secret_numbers(result))

    async def finish(self, end: RunEnd) -> None:
        """Call `finish` of every listener."""
        for listener in tuple(self._listeners):
            try:
                await listener.finish(end)
            except Exception as error:
                self._drop(listener, error)

    def end(self, end: RunEnd) -> None:
        """Call `end` of every listener."""
        self._dispatch("end", end)

    def _dispatch(self, method: str, *arguments: Any) -> None:
        for listener, call in self._subscribed(method):
            try:
                call(*arguments)
            except Exception as error:
                self._drop(listener, error)

    def _subscribed(self, method: str) -> list[tuple[Listener, Callable[..., None]]]:
        """The listeners that override a method, each with its own."""
        subscribers = self._subscribers.get(method)
        if subscribers is None:
            default = getattr(Listener, method)
            subscribers = [
                (one, getattr(one, method)) for one in self._listeners if getattr(type(one), method) is not default
            ]
            self._subscribers[method] = subscribers
        return subscribers

    def _drop(self, listener: Listener, error: Exception) -> None:
        self._listeners.remove(listener)
        self._subscribers.clear()
        self._broken.append(f"{type(listener).__name__}: {type(error).__name__}: {error}")
