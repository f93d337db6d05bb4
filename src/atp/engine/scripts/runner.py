"""Runs what a test in Python asks for (turns of agents, verdicts of judges) in the event loop of the run.

The function of the test runs in a thread or as a coroutine. A call from a thread waits for its result. A call from a
coroutine returns a `PendingCall` to be awaited.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from atp.agents.adapter import AgentError, AgentTimeout
from atp.base.errors import ConfigurationError, Error
from atp.checks.evidence import Evidence
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.planned_trial import Trial
from atp.engine.role_clients import RoleClients
from atp.engine.scripts.file import NO_AGENT
from atp.engine.trial.workspace import Workspace
from atp.suite.case import Case
from atp.suite.metrics import read_metrics
from atp.suite.result import Transcript, TrialResult, Verdict

if TYPE_CHECKING:
    from atp.engine.scripts.agent import Response
    from atp.roles.judge.judges import Judges

_OURS = str(Path(__file__).parent)
Begin = Callable[[], Coroutine[Any, Any, Any]]
"""Creates the coroutine of a call."""
OnActor = Callable[[Literal["agent", "judge", "test"]], None]
"""Called when the agent, the judge or again the test itself begins to work, so that a timeout blames the right one."""


class ScriptError(Error):
    """A test in Python that is wrong itself: no agent is to blame."""

    __module__ = "atp"


class Skipped(BaseException):
    """Raised by `t.skip`. Not an `Exception`, so that `except Exception` in the test does not catch it."""


class PendingCall:
    """The result of a call in a coroutine. The call happens when it is awaited."""

    def __init__(self, what: str, where: str, begin: Begin) -> None:
        self._what = what
        self._begin = begin
        self.where = where
        """The line of the call."""
        self.awaited = False
        """True once the call is awaited: without, it never happens."""

    def __await__(self) -> Generator[Any, Any, Any]:
        self.awaited = True
        return self._begin().__await__()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"`{self._what}` has not been done yet, so it has no `{name}`: write `await` before it")

    def __str__(self) -> str:
        return f"`{self._what}` at {self.where} was not awaited, so it was never done"


@dataclass(slots=True, kw_only=True)
class ScriptRunner:
    """The state of one running test, and its way into the event loop of the run."""

    trial: Trial
    """The trial that the test is."""
    roles: RoleClients
    """The judges, simulators and agents that the test can call."""
    result: TrialResult
    """The result of the trial: transcript, verdicts, warnings."""
    workspace: Workspace
    """The workspace of the trial."""
    root: Path
    """The project's root."""
    new_session: Callable[[], str]
    """Returns the id of a new conversation."""
    loop: asyncio.AbstractEventLoop
    """The event loop of the run, in which agents and judges are called."""
    on_actor: OnActor = lambda _: None
    """Called when another one begins to work."""
    limit: float | None = None
    """Seconds that a single call may take, where no deadline covers the whole test."""
    name_flag: str = "-n"
    """The flag that names the agent under test."""
    turns: int = 0
    """The number of turns so far, with all agents."""
    responses: "list[Response]" = field(default_factory=list)
    """The answers of all agents, in order."""
    skipped: str | None = None
    """The reason of `t.skip`, once it was called."""
    _pending: list[PendingCall] = field(default_factory=list)
    _waiting: set["Future[Any]"] = field(default_factory=set)
    _closed: bool = False

    def __post_init__(self) -> None:
        self.result.verdicts, self.result.metrics = [], {}  # drops those of an earlier attempt

    def tested(self, name: str | None) -> AgentUnderTest:
        """Return the agent of this name, or the agent under test. Raises `ConfigurationError`, `ScriptError`."""
        if name is not None:
            services, tested = self.roles.services, self.trial.tested
            column = tested.connector if len(services.options.connector) > 1 else None
            return services.called(name.removeprefix("agents:"), self.trial.source, column)
        if NO_AGENT in (self.trial.tested.name, self.trial.tested.group):
            raise ScriptError(f"no agent is under test: name one in `ctx.agent(…)`, or with {self.name_flag}")
        return self.trial.tested

    def run_in_loop(self, what: str, begin: Begin, then: Callable[[Any], Any] = lambda found: found) -> Any:
        """Run a coroutine in the event loop of the run: wait for it in a thread, return a `PendingCall` in a coroutine.

        `then` is called with the result in the thread of the test, so that what `then` raises is raised in the test.
        """
        __tracebackhide__ = True
        if self._closed:
            raise ScriptError(f"`{what}`: the test is over")
        if not self.in_coroutine():
            return then(self._wait_for(self._within_limit(what, begin())))
        ours = asyncio.get_running_loop() is self.loop

        async def come() -> Any:
            __tracebackhide__ = True
            work = self._within_limit(what, begin())
            return then(await (work if ours else self._run_in_own_loop(work)))

        pending = PendingCall(what, calling_line(), come)
        self._pending.append(pending)
        return pending

    @staticmethod
    def in_coroutine() -> bool:
        """True if the caller runs in an event loop, which must not block."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    async def _within_limit(self, what: str, work: Coroutine[Any, Any, Any]) -> Any:
        if self.limit is None:
            return await work
        clock = asyncio.timeout(self.limit)
        try:
            async with clock:
                return await work
        except TimeoutError:
            if not clock.expired():
                raise  # a timeout of the agent's own
            if what == "send":
                raise AgentTimeout(self.limit) from None
            raise AgentError(f"timeout after {self.limit:g}s while judging", "judge") from None

    def _wait_for(self, work: Coroutine[Any, Any, Any]) -> Any:
        __tracebackhide__ = True
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self._waiting.add(future)
        try:
            return future.result()
        except (AgentError, ConfigurationError, ScriptError) as error:
            raise error.with_traceback(None) from None  # the frames of ATP do not help the reader
        except BaseException:
            future.cancel()  # the test stopped waiting
            raise
        finally:
            self._waiting.discard(future)

    async def _run_in_own_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the event loop of the run, for a test that has an event loop of its own."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def never_awaited(self) -> PendingCall | None:
        """Return a call that the test did not await, if there is one."""
        return next((one for one in self._pending if not one.awaited), None)

    def close(self) -> None:
        """End the test: calls that its threads still wait for are cancelled, further calls are refused."""
        self._closed = True
        for future in tuple(self._waiting):
            future.cancel()

    def record(self, verdict: Verdict, here: str) -> None:
        """Add a verdict to the result, with the line of the call."""
        plain = verdict.where in (None, "output")
        verdict.where = here if plain else f"{verdict.where}, {here}"
        self.result.verdicts.append(verdict)

    def give_metrics(self, metrics: Any) -> None:
        """Add named metrics to the result. Raises `ScriptError`."""
        __tracebackhide__ = True
        try:
            self.result.metrics.update(read_metrics(metrics))
        except ValueError as error:
            raise ScriptError(str(error)) from error

    def evidence(self, transcript: Transcript, *, judged: bool = False) -> Evidence:
        """Return the evidence of a check on an answer."""
        trial = self.trial
        return Evidence(
            case=Case(id=trial.case.id, name=trial.case.name, metadata=trial.case.metadata),
            transcript=transcript,
            workspace=self.workspace,
            folders=(trial.tested.base, trial.source.folder, self.root),
            context=trial.context,
            judge=self.judges() if judged else None,
        )

    def judges(self) -> "Judges":
        """Return the judges of this trial."""
        return self.roles.judges(self.trial.source, self.trial.run, self.result)


def calling_line() -> str:
    """Return the line of the test that calls into ATP: `test_expense.py:12`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
