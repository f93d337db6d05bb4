"""A prepared run that is carried out case by case: whoever leads it, pytest for example, says which comes next.

Agents are started once, befores are shared, and all results go to one journal, as in a run of the whole.
"""

import asyncio
import os
import time

from atp import __version__
from atp.agents.leftovers import OF_RUN, end_leftovers
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.prepare.plan import Trial, Unit
from atp.engine.prepare.survey import is_varied
from atp.engine.prepare.variations_file import Sidecar, variations_for
from atp.engine.run import Session
from atp.engine.run_context import RunContext
from atp.engine.stop import Stop
from atp.engine.trial.hooks import HookError
from atp.engine.trial.trial import TrialRunner
from atp.journal.collect import Collector
from atp.journal.folder import RunFolder, new_run, sweep
from atp.journal.records import FORMAT, Before, RunInfo, Summary
from atp.journal.records import Trial as TrialLine
from atp.journal.write import Journal, JournalError
from atp.stats.summary import Summary as Counts
from atp.suite.case import Case
from atp.suite.result import Blame, CaseResult, TrialResult
from atp.usercode.environment import lent
from atp.usercode.printed import CAPTURE


class NotRun(Exception):
    """A case that was not run, because the run as a whole can't go on."""

    blame: Blame = "environment"
    """No agent is to blame."""


class Piecemeal:
    """A run, a case at a time."""

    def __init__(self, session: Session, leader: str) -> None:
        """`leader` is who says what comes next: the journal tells such a run from one of the whole input by it."""
        self._session = session
        self._leader = leader
        self._counts = Counts()
        self._collector = Collector()
        self._stop = Stop(session.options)
        self._begun: _Begun | None = None

    async def run(self, unit: Unit, tested: AgentUnderTest, case: Case) -> CaseResult:
        """All trials of a case against an agent. Raises `NotRun`."""
        before = os.environ.get(OF_RUN)
        os.environ[OF_RUN] = self._session.marker  # the processes that agents start are ours to end
        CAPTURE.begin()
        try:
            with lent(self._session.env):
                return await self._run(unit, tested, case)
        except (HookError, JournalError, OSError) as error:
            self._stop.broke(str(error))
            raise NotRun(f"not run: {error}") from error
        finally:
            CAPTURE.end()
            os.environ.pop(OF_RUN)
            if before is not None:
                os.environ[OF_RUN] = before

    async def _run(self, unit: Unit, tested: AgentUnderTest, case: Case) -> CaseResult:
        begun = self._begun or await self._begin()
        if self._stop.reason is not None:
            raise NotRun(f"not run: {self._stop.reason}")
        plan = self._session.plan
        if is_varied(case) and (id(unit.source), case.index) not in plan.variations:
            assert case.iterations is not None
            path, client = unit.source.suite.path, self._session.roles.variator(unit.source)
            made = await variations_for(case, case.iterations, Sidecar.beside(path), client, path)
            plan.variations[id(unit.source), case.index] = [(one.chain, one.origin) for one in made]
        gate = asyncio.Semaphore(min(self._session.options.parallel, tested.limit or self._session.options.parallel))
        trials = [trial for trial in plan.of_case(unit, case) if trial.tested is tested]
        ended = await asyncio.gather(*(self._one(trial, begun, gate) for trial in trials))
        whole = next(one for one in ended if one is not None)
        self._counts.add_case(whole)
        return whole

    async def _begin(self) -> "_Begun":
        session = self._session
        sweep(session.root)
        self._begun = begun = _Begun(session)
        begun.runner.befores.heard = lambda trial, result: begun.journal.write(
            Before(result=result, file=trial.source.suite.path or "")
        )
        start = RunInfo(
            format=FORMAT,
            id=begun.folder.id,
            at=time.time(),
            version=__version__,
            identity=[self._leader, *session.given_input.identity],
            agents=list(dict.fromkeys(tested.name for tested in session.plan.tested())),
            options=session.options.model_dump(mode="json", exclude_unset=True, exclude={"dry_run"}),
            input=[*session.given_input.texts, *session.given_input.paths],
            files=[unit.source.suite.path or "" for unit in session.plan.units],
            runs=session.plan.runs,
            connector=session.options.connector,
            parallel=session.options.parallel,
        )
        begun.journal.write(start)
        if session.options.before_all:
            await session.hooks.call(session.options.before_all, begun.about, lambda _: None)
        return begun

    async def _one(self, trial: Trial, begun: "_Begun", gate: asyncio.Semaphore) -> CaseResult | None:
        """Run a trial; the case, if it was its last."""
        async with gate:
            result = await _to_its_end(begun.runner, trial)
        about = self._collector.about(trial)
        begun.journal.write(TrialLine(result=result, file=trial.source.suite.path or "", about=about))
        self._stop.see(result)
        return self._collector.add(trial, result, about)

    async def close(self) -> list[str]:
        """End the run. What could not be ended, and why."""
        session, begun = self._session, self._begun
        problems: list[str] = []
        for tested in session.plan.tested() if begun is not None else ():
            try:
                await tested.close()
            except Exception as error:
                problems.append(f"agent {tested.name} could not be closed: {type(error).__name__}: {error}")
        problems += await session.roles.close()
        if begun is not None:
            try:
                if session.options.after_all:
                    await session.hooks.call(session.options.after_all, begun.about, lambda _: None)
            except Exception as error:
                problems.append(str(error))
            end_leftovers(session.marker)
            begun.end(self._counts, self._stop)
        return problems


class _Begun:
    """What a run has from its first case on."""

    def __init__(self, session: Session) -> None:
        options = session.options
        self.folder = RunFolder(new_run(session.root), session.marker)
        self.journal = Journal(self.folder.path, session.secrets)
        self.runner = TrialRunner(RunContext(self.folder.work, session.root, session.hooks, options, session.roles))
        self.about = {"run": self.folder.id, "workspace": str(self.folder.path)}
        """What the hooks of the whole run are told."""
        self._keep = options.keep_workspaces or options.keep_failed

    def end(self, counts: Counts, stop: Stop) -> None:
        """Write the last line, and let go of the folder."""
        code = counts.exit_code(stopped=stop.over_budget, interrupted=stop.interrupted)
        told = Summary(
            at=time.time(),
            complete=True,  # there is no more of it to come: which cases there are is the leader's business
            reason=stop.reason,
            counts=counts.counts(),
            exit_code=code,
            exhausted=stop.exhausted,
        )
        try:
            self.journal.write(told)
        finally:
            self.journal.close()
            self.folder.close(keep=self._keep)


async def _to_its_end(runner: TrialRunner, trial: Trial) -> TrialResult:
    """The result of a trial. One that won't end when its time is up is left alone."""
    given_up: asyncio.Future[TrialResult] = asyncio.get_running_loop().create_future()

    def abandon(result: TrialResult) -> None:
        if not given_up.done():
            given_up.set_result(result)

    task = asyncio.ensure_future(runner.run(trial, abandon))
    try:
        await asyncio.wait({task, given_up}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        task.cancel()
        raise
    return task.result() if task.done() else given_up.result()
