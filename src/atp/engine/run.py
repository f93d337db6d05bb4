"""One run: prepared, started, its trials run, finished. The journal is written along the way."""

import asyncio
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from atp.base.diagnostics import Diagnostic, load_error
from atp.base.exit_codes import INCOMPLETE, INCONCLUSIVE, INTERRUPTED, PASSED
from atp.base.project import runs_folder
from atp.base.secrets import Secrets, current_secrets, hider
from atp.engine.engine import Engine
from atp.engine.golden_notes import golden_notes
from atp.engine.planned_trial import Trial
from atp.engine.prepare.options import Options
from atp.engine.prepare.plan import Plan
from atp.engine.prepare.resume import FinishedTrials
from atp.engine.prepare.roles import vary
from atp.engine.prepare.sources import Input
from atp.engine.role_clients import RoleClients
from atp.engine.run_context import RunContext
from atp.engine.run_info import make_info, why_again
from atp.engine.services import close_all
from atp.engine.signals import exit_error, without_exit
from atp.engine.stop import Stop
from atp.engine.trial.deadline import GRACE
from atp.engine.trial.hooks import HookError
from atp.engine.trial.trial import TrialRunner
from atp.history.calibrations import Calibrations
from atp.history.index.index import IndexListener, is_off
from atp.journal.folder import BusyRun, RunFolder, new_run, sweep
from atp.journal.listeners import Listener, Listeners, RunEnd
from atp.journal.records import NAME, RunInfo, Skipped, Summary
from atp.journal.running import RunningTrials
from atp.journal.write import Journal, JournalError, cut_torn_line
from atp.stats.comparison import combined_exit_code
from atp.stats.suite_gates import evaluate_gates
from atp.suite.case import Case
from atp.suite.suite import Suite

if TYPE_CHECKING:
    from atp.history.baselines import Baseline
    from atp.history.figures import FigureCollector
    from atp.stats.comparison import Comparison


class Run:
    """A prepared run: its input is loaded and planned, nothing has run yet.

    `run` runs the whole plan. Whoever chooses the trials, as pytest does, calls `start`, `run_trials` for some trials
    at a time, `finish` and `close`, each inside `context.active()`.
    """

    calls_agents = True
    """False if the conversations of the run are there already."""
    judgings = 1
    """How often each conversation is judged."""

    def __init__(
        self,
        context: RunContext,
        given_input: Input,
        plan: Plan,
        warnings: list[Diagnostic],
        resumes: Path | None = None,
    ) -> None:
        """`resumes` is the folder of the run that this one goes on with."""
        self.context = context
        self.given_input = given_input
        self.identity = given_input.identity(context.root)
        """What a later run must have in common to go on with this one."""
        self.plan = plan
        self.warnings = warnings
        self.resumes = resumes
        self.stop = Stop(context.options)
        """Why the run ends early, and the switch for it."""
        self.problems: list[str] = []
        """Reports that could not be written, and what could not be closed."""
        self.remarks: list[str] = []
        """What else a person should know when the run has ended. None of it is in the exit code."""
        self.baseline: Baseline | None = None
        """What the run is compared with when it is over, if anything."""
        self.calibrations = Calibrations()
        """How right the judges were measured to be, from the files of the project."""
        self._figures: FigureCollector | None = None
        self._index = IndexListener(context.root, context.options.history)
        self._started: _Started | None = None
        self._before_all_done = False
        self._counted = True
        self._notes: list[str] = []
        self._agents_open = True

    @property
    def options(self) -> Options:
        """The settings of the run."""
        return self.context.options

    @property
    def root(self) -> Path:
        """The project's root."""
        return self.context.root

    @property
    def roles(self) -> RoleClients:
        """The clients of judges, simulators and generators."""
        return self.context.roles

    @property
    def secrets(self) -> Secrets:
        """What no output may show."""
        return self.context.secrets

    @property
    def is_started(self) -> bool:
        """True once the run has a folder."""
        return self._started is not None

    def longest_timeout(self) -> float | None:
        """The longest time that any of the running trials may take. May be called in another thread."""
        started = self._started
        return None if started is None else max(started.engine.running_timeouts(), default=None)

    async def run(self, listeners: Sequence[Listener] = ()) -> int:
        """Run the whole plan. Returns the exit code. Raises `LoadError` if the run can't be started."""
        try:
            async with self.context.opened():
                try:
                    await self.start(listeners)
                    await self.run_trials(self.plan.trials(), self._running.info.trials)
                    code = await self.finish()
                finally:
                    await self.close()
        except SystemExit as left:
            # Of a function of Python's that the user's code has replaced. A program that calls us would end with 0.
            raise exit_error(left) from left
        self.problems += self.context.problems
        return code

    async def start(self, listeners: Sequence[Listener] = (), *, counted: bool = True) -> None:
        """Open the run's folder, write the start record and call the hook before the run. Raises `LoadError`.

        A run that is not `counted` does not know how many of the plan's cases it will run.
        """
        self._counted = counted
        notes = await self._vary()
        if self.options.update_snapshots and (refused := self.context.golden_updates.refused) is not None:
            notes.append(f"no golden file is written or removed, because {refused}")
        sweep(self.root)
        folder = self._open_folder()
        if self.resumes and (cut := cut_torn_line(folder.path / NAME)):
            notes.append(f"the last line of the journal was torn by a crash: {cut} bytes were cut off")
        done = FinishedTrials(folder.path / NAME if self.resumes else None)
        self.context.work_in(folder)
        info = self._make_info(folder, done, counted=counted)
        if folder.left_by is not None:
            notes.append(f"the run was begun on {folder.left_by}: make sure that it isn't still running there")
        info.notes = [*notes, *why_again(info, done)]
        self.context.made_files.secrets = self.secrets
        if self.baseline is not None:
            from atp.history.figures import FigureCollector

            self._figures = FigureCollector(hider(self.secrets))
            listeners = [self._figures, *listeners]
        if not is_off(self.options.history):
            listeners = [*listeners, self._index]
        listeners = [RunningTrials(), *listeners]
        self._started = started = _Started(self, folder, done, info, Listeners(listeners))
        try:
            started.journal.write(info)
            info.folder = str(folder.path)
            started.listeners.start(info)
            for unit in self.plan.units if counted else ():
                for case in unit.source.survey.skipped:
                    self.record_skipped(unit.source.suite, case)
            self.stop.watch_clock()
            if self.options.before_all:
                await self._call_hook(self.options.before_all)
            self._before_all_done = True
        except HookError as error:
            self.stop.abort(str(error))
        except JournalError as error:
            self.stop.on_broken_journal(error)

    async def _vary(self) -> list[str]:
        """Generate the variations that cases ask for. Returns notes about them."""
        return [one.message for one in await vary(self.plan, self.roles)]

    def make_runner(self) -> TrialRunner:
        """What runs the trials of the plan."""
        return TrialRunner(self.context)

    def _make_info(self, folder: RunFolder, done: FinishedTrials, *, counted: bool) -> RunInfo:
        return make_info(self, folder, done, counted=counted)

    def record_skipped(self, suite: Suite, case: Case) -> None:
        """Record a case that its file leaves out."""
        started = self._running
        started.engine.summary.add_skipped()
        started.journal.write(
            Skipped(
                case=case.id,
                name=case.name,
                file=suite.path or "",
                line=case.place.line,
                tags=case.tags,
                reason=case.skip_reason,
            )
        )
        started.listeners.skipped(suite.path, case)

    async def run_trials(self, trials: Iterable[Trial], count: int) -> None:
        """Run trials of the plan until all have ended, or the run is stopped; `count` is how many there are."""
        if self.stop.reason is not None:
            return
        try:
            await self._running.engine.run(trials, count)
        except JournalError as error:
            self.stop.on_broken_journal(error)

    def report_incomplete_cases(self) -> None:
        """Report the cases of which a stop left trials out."""
        self._running.engine.report_incomplete_cases()

    async def finish(self) -> int:
        """Write the summary and the reports of a run whose trials are over. Returns the exit code.

        Called once, before `close`, and not at all if the run broke. Closes the agents and calls the hook after the run
        first.
        """
        started = self._running
        await self.close_agents()
        if self.options.after_all and self._before_all_done:
            try:
                await self._call_hook(self.options.after_all)
            except HookError as error:
                self.problems.append(str(error))  # all trials are done: there is nothing to go on with
        self.stop.unwatch_clock()
        started.engine.report_incomplete_cases()
        self._notes = list(golden_notes(self.plan, self.context, whole=self._runs_whole_input))
        self._report_uncalibrated()
        comparison = self._compare()
        summary = self._summary(comparison)
        try:
            started.journal.write(summary)
            started.journal.check()
        except JournalError as error:
            self.stop.on_broken_journal(error)
            summary = self._summary(comparison)
        code = summary.exit_code
        end = self._calibrated(RunEnd.of(started.info, summary, started.engine.summary.numbers))
        await self._finish_listeners(end)
        started.listeners.end(end)
        self.problems += started.listeners.problems
        self.remarks += [] if self._index.warning is None else [self._index.warning]
        if self.stop.interrupted:
            return INTERRUPTED
        return INCOMPLETE if self.problems and code in (PASSED, INCONCLUSIVE) else code

    @property
    def _runs_whole_input(self) -> bool:
        """True if no filter, and no stop, has left a case of the input out."""
        options = self.options
        narrowed = options.run or options.tags or options.only_failed or self.plan.filter.only is not None
        return self._counted and not narrowed and self.stop.reason is None

    def _calibrated(self, end: RunEnd) -> RunEnd:
        """The end of the run with what the project's calibrations make of its judges."""
        if not end.numbers.judged.judges:
            return end
        from atp.history.judge_figures import with_calibrations

        return with_calibrations(end, self.calibrations)

    def _report_uncalibrated(self) -> None:
        """Note the judges that were not calibrated, if they must be: those of tests in Python are known only now."""
        judged = self._running.engine.summary.numbers.judged
        if self.options.require_calibration and judged.judges:
            from atp.history.judge_figures import uncalibrated

            for one in uncalibrated(judged, self.calibrations):
                self.problems.append(f"--require-calibration: no labels show {one} to be better than chance")

    def _compare(self) -> "Comparison | None":
        """Compare the run with its baseline, if it has one."""
        if self.baseline is None or self._figures is None:
            return None
        from atp.history.compare import compare_runs

        names, figures = (self.options.baseline or "", "this run"), self._figures.figures(self.stop.reason)
        found: Comparison = hider(self.secrets)(
            compare_runs(self.baseline, figures, names, margin=self.options.baseline_margin)
        )
        return found

    def _summary(self, comparison: "Comparison | None" = None) -> Summary:
        counts = self._running.engine.summary
        gates = evaluate_gates(self._running.info.gates, counts.numbers, complete=self.stop.reason is None)
        code = counts.exit_code(stopped=self.stop.over_budget, interrupted=self.stop.interrupted, gates=gates)
        if comparison is not None and (self.options.fail_on_regression or self.options.fail_on):
            code = combined_exit_code(code, comparison.exit_code(self.options.fail_on or "regression"))
        broken = self.stop.journal_broken and not self.stop.interrupted
        return Summary(
            at=time.time(),
            complete=self.stop.reason is None,
            reason=self.stop.reason,
            counts=counts.counts(),
            exit_code=INCOMPLETE if broken or (self.problems and code in (PASSED, INCONCLUSIVE)) else code,
            exhausted=self.stop.exhausted,
            notes=self._notes,
            gates=gates,
            comparison=comparison,
        )

    async def close(self) -> None:
        """Release what is open: agents, journal, folder. Called last, also if the run broke or never began.

        Writes nothing: the results of the run are in the journal, its summary is written by `finish`.
        """
        self.stop.unwatch_clock()
        if self._started is not None:
            await self.close_agents()
            started, self._started = self._started, None
            started.journal.close()
            started.done.close()
            started.folder.close(keep=self.options.keep_workspaces or self.options.keep_failed)

    @property
    def _running(self) -> "_Started":
        assert self._started is not None
        return self._started

    def _open_folder(self) -> RunFolder:
        try:
            return RunFolder(self.resumes or new_run(self.root), self.context.marker)
        except BusyRun as busy:
            raise load_error("busy-run", f"the run {busy} is under way in another process", "wait for it") from None
        except OSError as error:
            message = f"{runs_folder(self.root)} can't be written: {error.strerror}"
            raise load_error("no-journal", message, "check its permissions, and the space on the disk") from error

    async def _call_hook(self, name: str) -> None:
        """Call a hook of the whole run. Once a stop is asked for, the hook has only a moment left."""
        folder = self._running.folder
        about = {"run": folder.id, "workspace": str(folder.path)}
        call = asyncio.ensure_future(without_exit(self.context.hooks.call(name, about, _to_stderr)))
        stopped = asyncio.Event()
        self.stop.act = lambda cancel: stopped.set() if cancel else None
        if self.stop.interrupted:
            stopped.set()
        waiting = asyncio.ensure_future(stopped.wait())
        await asyncio.wait({call, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await asyncio.wait({call}, timeout=GRACE)
        if not call.done():
            call.cancel()
            raise HookError(f"hook {name}: cut short, because the run was stopped")
        call.result()

    async def close_agents(self) -> None:
        """Close the agents under test, once."""
        if not self._agents_open:
            return
        self._agents_open = False
        self.problems += await close_all(self.plan.agents())

    async def _finish_listeners(self, end: RunEnd) -> None:
        """Wait for reports that take their time, unless a stop is asked for."""
        work = asyncio.ensure_future(without_exit(self._running.listeners.finish(end)))

        def act(cancel: bool) -> None:
            if cancel:
                work.cancel()

        self.stop.act = act
        await asyncio.wait({work})


class _Started:
    """What a run has once it is started."""

    def __init__(self, run: Run, folder: RunFolder, done: FinishedTrials, info: RunInfo, listeners: Listeners) -> None:
        self.folder = folder
        self.done = done
        self.info = info
        self.listeners = listeners
        self.journal = Journal(folder.path, run.secrets)
        self.engine = Engine(run.make_runner(), self.journal, done, run.stop, listeners, run.options.parallel)


def _to_stderr(line: str) -> None:
    """Print a line of a hook of the whole run, which belongs to no trial."""
    print(current_secrets().mask_text(line), file=sys.stderr)  # noqa: T201
