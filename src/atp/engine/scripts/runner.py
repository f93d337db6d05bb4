"""What a test in Python acts on: the agents it calls, those who judge, and the place where all of it is written down.

The test's own code runs in a thread, or as a coroutine; what it asks for runs in the run's event loop. A call from a
thread waits for its answer. A call from a coroutine gives something to be awaited.
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
from atp.engine.prepare.plan import Trial
from atp.engine.role_clients import RoleClients
from atp.engine.scripts.file import NOBODY
from atp.engine.trial.workspace import Workspace
from atp.suite.case import Case
from atp.suite.result import Transcript, TrialResult, Usage, Verdict

if TYPE_CHECKING:
    from atp.engine.scripts.agent import Response
    from atp.roles.judge.judges import Judging

_OURS = str(Path(__file__).parent)
Begin = Callable[[], Coroutine[Any, Any, Any]]
"""Begins something that takes its time."""
Works = Callable[[Literal["agent", "judge"]], None]
"""Told who is at work."""


class ScriptError(Error):
    """A test in Python that is wrong in itself: no agent is to blame."""

    __module__ = "atp"


class Skipped(BaseException):
    """A test asked to be left out. Not an `Exception`, so that the test's own `except` lets it pass."""


class Coming:
    """What a call in a coroutine gives: it is there once it is awaited."""

    def __init__(self, what: str, where: str, begin: Begin) -> None:
        self._what = what
        self._begin = begin
        self.where = where
        """The line that asked for it."""
        self.awaited = False
        """Whether anybody waits for it: if not, it never happens."""

    def __await__(self) -> Generator[Any, Any, Any]:
        self.awaited = True
        return self._begin().__await__()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"`{self._what}` has not been done yet, so it has no `{name}`: write `await` before it")

    def __str__(self) -> str:
        return f"`{self._what}` at {self.where} was not awaited, so it was never done"


@dataclass(slots=True, kw_only=True)
class Stage:
    """One test at work."""

    trial: Trial
    """What it is a trial of."""
    roles: RoleClients
    """Who can be called."""
    result: TrialResult
    """What comes of it: its transcript, verdicts, warnings."""
    workspace: Workspace
    """The folder that the agents it calls work in."""
    root: Path
    """The project's root."""
    new_session: Callable[[], str]
    """Gives the id of a conversation."""
    loop: asyncio.AbstractEventLoop
    """Where agents and judges are called."""
    works: Works = lambda _: None
    """Told who is at work."""
    limit: float | None = None
    """Seconds that a single call may take, where nobody watches over the whole test."""
    name_flag: str = "-n"
    """The flag that names the agent under test."""
    turns: int = 0
    """How many turns were held, with whomever."""
    responses: "list[Response]" = field(default_factory=list)
    """What agents have answered, in order."""
    skipped: str | None = None
    """Why it asked to be left out."""
    _coming: list[Coming] = field(default_factory=list)
    _waiting: set["Future[Any]"] = field(default_factory=set)
    _over: bool = False

    def __post_init__(self) -> None:
        self.result.verdicts = []  # of this attempt, not of one before it

    def tested(self, name: str | None) -> AgentUnderTest:
        """The agent of this name, or the one under test. Raises `ConfigurationError`, `ScriptError`."""
        if name is not None:
            return self.roles.called(name.removeprefix("agents:"), self.trial.source)
        if self.trial.tested.name == NOBODY:
            raise ScriptError(f"no agent is under test: name one in `ctx.agent(…)`, or with {self.name_flag}")
        return self.trial.tested

    def bring(self, what: str, begin: Begin, then: Callable[[Any], Any] = lambda found: found) -> Any:
        """What comes of a coroutine of ours: waited for in a thread, to be awaited in a coroutine.

        `then` is told what it gave, where the test is: what that raises is raised in the test.
        """
        __tracebackhide__ = True
        if self._over:
            raise ScriptError(f"`{what}`: the test is over")
        if not self.in_coroutine():
            return then(self._wait_for(self._within_limit(what, begin())))
        ours = asyncio.get_running_loop() is self.loop

        async def come() -> Any:
            __tracebackhide__ = True
            work = self._within_limit(what, begin())
            return then(await (work if ours else self._hand_over(work)))

        coming = Coming(what, caller(), come)
        self._coming.append(coming)
        return coming

    @staticmethod
    def in_coroutine() -> bool:
        """Whether whoever calls must not be kept waiting."""
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
                raise  # somebody else's
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
            raise error.with_traceback(None) from None  # how we came to know is of no use to who reads it
        except BaseException:
            future.cancel()  # nobody waits for it any more, if it was not itself that ended
            raise
        finally:
            self._waiting.discard(future)

    async def _hand_over(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Have our loop do what somebody else's waits for."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def never_awaited(self) -> Coming | None:
        """Something that the test asked for and then forgot."""
        return next((one for one in self._coming if not one.awaited), None)

    def close(self) -> None:
        """The test is over: a thread of it that still waits for an answer gets none."""
        self._over = True
        for future in tuple(self._waiting):
            future.cancel()

    def record(self, verdict: Verdict, here: str) -> None:
        """Write down what a check found, with the line that asked."""
        plain = verdict.where in (None, "output")
        verdict.where = here if plain else f"{verdict.where}, {here}"
        self.result.verdicts.append(verdict)

    def evidence(self, transcript: Transcript, *, judged: bool = False) -> Evidence:
        """All that a check may look at of what an agent answered."""
        trial = self.trial
        return Evidence(
            case=Case(id=trial.case.id, name=trial.case.name, metadata=trial.case.metadata),
            transcript=transcript,
            workspace=self.workspace,
            folders=(trial.tested.base, trial.source.folder, self.root),
            context=trial.context,
            judge=self.judging() if judged else None,
        )

    def judging(self) -> "Judging":
        """Who judges."""
        from atp.roles.judge.judges import Judging

        usage = self.result.role_usage = self.result.role_usage or Usage()
        judges = self.roles.judges(self.trial.source)
        return Judging(judges=judges, run=self.trial.run, usage=usage, warnings=self.result.warnings)


def caller() -> str:
    """The line of the test that is being carried out: `test_expense.py:12`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
