"""What the tests of a pytest session share: an event loop, agents and judges of each project, the runs of suites."""

import asyncio
import itertools
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from atp.base.diagnostics import Diagnostic, LoadError
from atp.base.diagnostics_text import printable
from atp.base.errors import Error
from atp.base.project import find_root, keeping_working_directory, working_directory
from atp.base.secrets import Secrets, hider, remember
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.keys import CaseFiles
from atp.engine.named_agent import NamedAgent
from atp.engine.prepare.identity import Identities
from atp.engine.prepare.plan import Plan, Unit
from atp.engine.prepare.prepare import prepare
from atp.engine.prepare.sources import Input, in_memory
from atp.engine.run import Run
from atp.engine.run_context import RunContext
from atp.engine.run_info import gates_of
from atp.engine.scripts.file import placeholder_agent
from atp.engine.scripts.runner import ScriptRunner
from atp.engine.scripts.verdict import verdict_text
from atp.engine.signals import BrokenLoop, log_unhandled
from atp.engine.trial.deadline import GRACE
from atp.engine.trial.workspace import WorkFolder, Workspace
from atp.journal.listeners import Listener, RunEnd
from atp.journal.records import RunInfo
from atp.report.console.case_text import conversation_lines
from atp.report.figure_text import gate_text, gate_title
from atp.suite.case import Case
from atp.suite.result import Blame, CaseResult, TrialResult
from atp.suite.suite import Suite
from atp.usercode.exits import GUARD
from atp.usercode.printed import CAPTURE
from atp.usercode.threads import DaemonExecutor

Result = TypeVar("Result")
NAME_FLAG = "--atp-name"
"""The flag that names the agent under test: here `-n` is another plugin's."""
CLOSE_LIMIT = 5.0
"""Seconds that tasks get to end when the session is over."""


class BackgroundLoop:
    """An event loop in a thread of its own, for the tests of a session, which aren't async."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        """The loop."""
        self.loop.set_exception_handler(log_unhandled)
        self.loop.set_default_executor(DaemonExecutor())
        self._closing = False
        self._waiting: set[Future[Any]] = set()
        self.broken: BaseException | None = None
        """What ended the loop, if the code under test closed the loop or its descriptors."""
        self._thread = threading.Thread(target=self._run, name="atp-pytest", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # asyncio lets a `SystemExit` of any task out of the loop, also of one that the user's code left behind.
        while True:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                continue
            except BaseException as error:
                self.broken = error
                for future in list(self._waiting):
                    future.set_exception(self._loop_is_broken())
                return
            if self._closing:
                return

    def _loop_is_broken(self) -> Error:
        assert self.broken is not None
        return BrokenLoop(self.broken)

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine, and wait for its result. The coroutine is cancelled if the wait is interrupted."""
        if self.broken is not None:
            work.close()
            raise self._loop_is_broken()
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self._waiting.add(future)
        try:
            if self.broken is not None:  # since a moment ago: nobody will set the future's result
                raise self._loop_is_broken()
            return future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            self._waiting.discard(future)

    def close(self) -> None:
        """Cancel the tasks that are left, and end the loop. A task that won't end is left alone."""
        self.wait(self._cancel_rest())
        self._closing = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CLOSE_LIMIT)
        if not self._thread.is_alive():
            self.loop.close()

    async def _cancel_rest(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=CLOSE_LIMIT)
        await self.loop.shutdown_asyncgens()


class NotRun(Error):
    """A case that was not run, because the run as a whole can't go on."""

    blame: Blame = "environment"
    """No agent is to blame."""


class SuiteRun(Listener):
    """The run of one test file. It starts with the first case that pytest runs, and ends with the session."""

    def __init__(self, run: Run, *, counted: bool) -> None:
        """`counted` is false where other processes run the other cases: how many come here is not known then."""
        self._run = run
        run.identity = ["pytest", *run.identity]  # `atp test --resume` doesn't go on with what pytest began
        self._counted = counted
        self._failure: NotRun | None = None
        self._planned = 0
        self._ended = 0
        self._results: list[CaseResult] = []
        self._skipped: set[int] = set()
        self._current: asyncio.Task[Any] | None = None
        self.collected: set[tuple[str, str]] = set()
        """The (agent, case) pairs that have an item."""
        self.missed_gates: list[str] = []
        """The gates that were not passed, once the run has ended: what they came to."""
        self.notes: list[str] = []
        """What a person should know of the run, once it has ended."""

    @property
    def context(self) -> RunContext:
        """What everything in the run shares."""
        return self._run.context

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self._run.plan

    @property
    def warnings(self) -> list[Diagnostic]:
        """The warnings of preparing the run."""
        return self._run.warnings

    @property
    def secrets(self) -> Secrets:
        """What no output may show."""
        return self._run.secrets

    def select(self, pairs: set[tuple[str, str]]) -> None:
        """Narrow the run to the (agent, case) pairs that pytest has selected."""
        if pairs != self.collected:
            self.plan.select(pairs)

    def start(self, info: RunInfo) -> None:
        """Remember how many cases are planned."""
        self._planned = info.cases

    def case(self, result: CaseResult) -> None:
        """Remember the result of the case that runs."""
        self._ended += 1
        self._results.append(result)

    def end(self, end: RunEnd) -> None:
        """Remember the gates that were not passed, and the notes."""
        missed = [gate for gate in end.gates if gate.outcome != "passed"]
        texts = [f"{gate_title(gate, end.info)}: {gate_text(gate)}" for gate in missed]
        self.missed_gates = [printable(self.secrets.mask_text(text)) for text in texts]
        self.notes = [printable(self.secrets.mask_text(note)) for note in end.notes]

    async def run_case(self, unit: Unit, tested: AgentUnderTest, case: Case) -> CaseResult:
        """Run all trials of a case against an agent. Raises `NotRun`."""
        self._current = asyncio.current_task()
        self._results.clear()
        with self._run.context.active():
            await self._start()
            trials = [trial for trial in self.plan.of_case(unit, case) if trial.tested is tested]
            await self._run.run_trials(trials, len(trials))
            self._run.report_incomplete_cases()
        if not self._results:
            raise NotRun(f"not run: {self._run.stop.reason}")
        return self._results[0]

    async def skip(self, unit: Unit, case: Case) -> None:
        """Start the run, whose journal names the cases that their file leaves out. Raises `NotRun`."""
        with self._run.context.active():
            await self._start()
            if not self._counted and case.index not in self._skipped:
                self._skipped.add(case.index)
                self._run.record_skipped(unit.source.suite, case)

    async def _start(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._run.is_started:
            return
        if not self._counted and gates_of(self._run):
            why = "the suite has gates, which are about all cases, and other processes run some of them"
            self._failure = NotRun(f"not run: leave out -n, or use `atp test`: {why}")
            raise self._failure
        try:
            await self._run.start([self], counted=self._counted)
        except LoadError as error:
            self._failure = NotRun("; ".join(f"not run: {one.message}" for one in error.diagnostics))
            raise self._failure from error

    async def close(self, *, interrupted: bool) -> None:
        """Finish the run if it was started, and leave nothing behind."""
        if self._current is not None and not self._current.done():
            await asyncio.wait({self._current}, timeout=3 * GRACE)  # interrupted: its trials are being cancelled
        if self._run.is_started:
            with self._run.context.active():
                if interrupted:
                    self._run.stop.interrupt()
                elif self._ended < self._planned:
                    self._run.stop.leave_rest("pytest ended before all cases had run")
                await self._run.finish()
                await self._run.close()
        await self._run.context.close()


class PytestSession:
    """What the tests of a pytest session share."""

    def __init__(self, flags: dict[str, Any], *, is_worker: bool) -> None:
        """`flags` are those of the command line, by the names of options; `is_worker` is true in a process of xdist."""
        self.flags = flags
        self._is_worker = is_worker
        self._background: BackgroundLoop | None = None
        self._working_directory = working_directory()
        self._contexts: dict[Path, RunContext] = {}
        """The contexts of tests in Python, by their project's root."""
        self._runs: list[SuiteRun] = []
        self._filters = ExitStack()
        """What code of the user's prints between two tests, in a thread or a task of the loop, is kept from pytest."""
        self._count = itertools.count(1)
        self.marks: set[str] = set()
        """Tags that pytest knows as marks by now."""

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop, and wait for its result."""
        __tracebackhide__ = True
        return self._loop.wait(work)

    def call(self, function: Callable[[], None]) -> None:
        """Call a function in the loop."""

        async def called() -> None:
            function()

        self.wait(called())

    @property
    def _loop(self) -> BackgroundLoop:
        if self._background is None:
            self._background = BackgroundLoop()
            if not self._is_worker:  # xdist notices a worker that ends
                GUARD.begin_run()  # until the end of the process, when objects of the user's are deleted
            self._filters.enter_context(CAPTURE.keep_filters())
        return self._background

    def prepare(self, path: Path) -> SuiteRun:
        """Load and plan a test file. Raises `LoadError`."""
        # As for a dry run: a model without a key must not keep anybody from collecting.
        run = prepare(Input((), (str(path),)), {**self.flags, "dry_run": True})
        remember(run.secrets)
        self._runs.append(SuiteRun(run, counted=not self._is_worker))
        return self._runs[-1]

    def select(self, items: "Iterable[tuple[SuiteRun, str, str]]") -> None:
        """Narrow the runs to the cases that pytest has selected, each given as run, agent and case."""
        pairs: dict[SuiteRun, set[tuple[str, str]]] = {run: set() for run in self._runs}
        for run, agent, case in items:
            pairs[run].add((agent, case))
        for run, selected in pairs.items():
            run.select(selected)

    def runner(self, name: str, path: Path, folder: Path) -> ScriptRunner:
        """What a test in Python acts on. Raises `LoadError`, `ConfigurationError`."""
        with keeping_working_directory(self._working_directory):  # an earlier test may have changed it
            return self._runner(name, path, folder)

    def _runner(self, name: str, path: Path, folder: Path) -> ScriptRunner:
        root = find_root(path.parent)
        context = self._contexts.get(root)
        if context is None:
            context = self._contexts[root] = RunContext.of_project(path.parent, self.flags)
            remember(context.secrets)
        options, roles = context.options, context.roles
        case = Case(id=name, name=name)
        source = in_memory(Suite(name=path.stem, dialect="script", path=str(path), cases=[case]), lambda _: True)
        if options.name:
            tested = context.services.called(options.name[0], source)
        else:
            named = NamedAgent(placeholder_agent(), source.folder, ad_hoc=True)
            tested = context.services.agent_under_test(named, source)
        unit = Unit(source, [tested], CaseFiles(source.folder, source.fixtures, root))
        trial = next(Plan([unit], options, Identities(options), context.filter).of_case(unit, case))
        number = next(self._count)
        return ScriptRunner(
            trial=trial,
            roles=roles,
            result=TrialResult(key=trial.key, agent=tested.name, case=name),
            workspace=Workspace(WorkFolder(folder), str(number)),
            root=root,
            new_session=partial(_session_name, number, itertools.count(1)),
            loop=self._loop.loop,
            limit=options.timeout,
            name_flag=NAME_FLAG,
        )

    def close(self, *, interrupted: bool) -> None:
        """Finish all runs, and leave nothing behind."""
        if self._background is None:
            return
        if self._background.broken:
            for context in (*(run.context for run in self._runs), *self._contexts.values()):
                context.leave()
            return
        for run in self._runs:
            self.wait(run.close(interrupted=interrupted))
        for context in self._contexts.values():
            self.wait(context.close())
        self._background.close()
        self._filters.close()

    @property
    def missed_gates(self) -> list[str]:
        """The gates of all runs that were not passed, once the session is closed."""
        return [gate for run in self._runs for gate in run.missed_gates]

    @property
    def notes(self) -> list[str]:
        """The notes of all runs, once the session is closed."""
        return [note for run in self._runs for note in run.notes]


def _session_name(test: int, numbers: "itertools.count[int]") -> str:
    return f"test-{test}-{next(numbers)}"


def left_unsaid(runner: ScriptRunner) -> str | None:
    """What a test has said without raising it, or has forgotten."""
    forgotten = runner.never_awaited()
    return failures(runner) or (str(forgotten) if forgotten is not None else None)


def failures(runner: ScriptRunner) -> str:
    """What did not hold in a test in Python, each with its line."""
    bad = [one for one in runner.result.verdicts if one.outcome == "failed"]
    return "\n".join(f"{verdict_text(one)} ({one.where})" for one in bad)


def conversation(runner: ScriptRunner) -> str:
    """What was said in a test in Python."""
    result = runner.result
    if not result.transcript.messages and not result.transcript.logs:
        return ""
    hide = hider(runner.roles.services.secrets)
    lines = conversation_lines(CaseResult(agent=result.agent, case=result.case, trials=[result]), result, hide)
    return "\n".join(text for text, _ in lines)
