"""A run from beginning to end: input and options in, a journal and an exit code out."""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atp import __version__
from atp.agents.leftovers import end_leftovers
from atp.base.diagnostics import Diagnostic, refused
from atp.base.project import runs_folder
from atp.engine.engine import Engine
from atp.engine.prepare.identity import Identities
from atp.engine.prepare.options import Options
from atp.engine.prepare.plan import Plan
from atp.engine.prepare.resume import Done
from atp.engine.prepare.roles import vary
from atp.engine.prepare.sources import Input
from atp.engine.role_clients import RoleClients
from atp.engine.run_context import RunContext
from atp.engine.stop import Stop
from atp.engine.trial.deadline import GRACE
from atp.engine.trial.hooks import HookError, Hooks
from atp.engine.trial.trial import TrialRunner
from atp.journal.folder import BusyRun, RunFolder, marking, new_run
from atp.journal.listeners import Listener, Listeners, RunEnd
from atp.journal.records import FORMAT, NAME, RunInfo, Skipped, Summary
from atp.journal.write import Journal, JournalError, cut_torn_line
from atp.stats.summary import INCOMPLETE, INTERRUPTED
from atp.suite.case import Case
from atp.usercode.environment import lent
from atp.usercode.printed import CAPTURE


@dataclass(slots=True, kw_only=True)
class Session:
    """A run that is prepared: its input is loaded, its plan is made, nothing has run yet."""

    options: Options
    root: Path
    given_input: Input
    plan: Plan
    marker: str
    warnings: list[Diagnostic]
    env: Mapping[str, str]
    """The environment, `.env` included."""
    hooks: Hooks
    roles: RoleClients
    resumes: Path | None = None
    """The run that this one goes on with."""
    problems: list[str] = field(default_factory=list)
    """Reports that could not be written."""

    @property
    def secrets(self) -> frozenset[str]:
        """What no output may show."""
        suites = (unit.source.suite.secrets for unit in self.plan.units)
        return self.roles.secrets.union(*suites, *(tested.secrets for tested in self.plan.tested()))

    def leave(self) -> None:
        """End what agents have started, without waiting for anything else: the process is about to end."""
        end_leftovers(self.marker, within=0.3)

    async def run(self, listeners: Sequence[Listener], stop: Stop) -> int:
        """Carry the plan out. Returns the exit code."""
        CAPTURE.begin()  # until all is reported: what agents, roles and hooks print is not ours
        try:
            with lent(self.env), marking(self.marker):
                varied = await vary(self.plan, self.roles)
                return await self._run(listeners, stop, tuple(one.message for one in varied))
        finally:
            self.problems += await self.roles.close()
            CAPTURE.end()

    async def _run(self, listeners: Sequence[Listener], stop: Stop, notes: tuple[str, ...]) -> int:
        try:
            folder = RunFolder(self.resumes or new_run(self.root), self.marker)
        except BusyRun as busy:
            raise refused("busy-run", f"the run {busy} is under way in another process", "wait for it") from None
        except OSError as error:
            message = f"{runs_folder(self.root)} can't be written: {error.strerror}"
            raise refused("no-journal", message, "see to its rights, and to the space on the disk") from error
        notes += _cut(folder.path) if self.resumes else ()
        done = Done(folder.path / "journal.jsonl" if self.resumes else None)
        journal = Journal(folder.path, self.secrets)
        try:
            return await self._carry_out(folder, journal, done, notes, Listeners(listeners), stop)
        finally:
            journal.close()
            done.close()
            folder.close(keep=self.options.keep_workspaces or self.options.keep_failed)

    async def _carry_out(
        self,
        folder: RunFolder,
        journal: Journal,
        done: Done,
        notes: tuple[str, ...],
        audience: Listeners,
        stop: Stop,
    ) -> int:
        info = self._info(folder, done, notes)
        runner = TrialRunner(RunContext(folder.work, self.root, self.hooks, self.options, self.roles))
        engine = Engine(self.plan, runner, journal, done, stop, audience)
        try:
            journal.write(info)
            info.folder = str(folder.path)
            audience.start(info)
            self._tell_skipped(engine, journal, audience)
            await self._run_all(engine, folder, stop)
        except (HookError, JournalError) as error:
            stop.broke(str(error))
        engine.tell_rest()
        return await self._end(info, journal, engine, stop, audience)

    async def _run_all(self, engine: Engine, folder: RunFolder, stop: Stop) -> None:
        """The trials, between the hooks of the whole run. The one after them is called however they went."""
        about = {"run": folder.id, "workspace": str(folder.path)}
        stop.watch_clock()
        try:
            if self.options.before_all:
                await self._hook(self.options.before_all, about, stop)
            try:
                if stop.reason is None:
                    await engine.run()
            finally:
                if self.options.after_all:
                    await self._hook(self.options.after_all, about, stop)
        finally:
            stop.end()

    async def _hook(self, name: str, about: dict[str, Any], stop: Stop) -> None:
        """A hook of the whole run. Once a stop is asked for, it has only a moment left."""
        call = asyncio.ensure_future(self.hooks.call(name, about, _to_stderr))
        hurry = asyncio.Event()
        stop.act = lambda cancel: hurry.set() if cancel else None
        if stop.interrupted:
            hurry.set()
        waiting = asyncio.ensure_future(hurry.wait())
        await asyncio.wait({call, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await asyncio.wait({call}, timeout=GRACE)
        if not call.done():
            call.cancel()
            raise HookError(f"hook {name}: cut short, because the run was stopped")
        call.result()

    def _tell_skipped(self, engine: Engine, journal: Journal, audience: Listeners) -> None:
        for unit in self.plan.units:
            file = unit.source.suite.path
            for case in unit.source.survey.skipped:
                engine.summary.add_skipped()
                journal.write(
                    Skipped(
                        case=case.id,
                        name=case.name,
                        file=file or "",
                        line=case.place.line,
                        tags=case.tags,
                        reason=case.skip_reason,
                    )
                )
                audience.skipped(file, case)

    async def _end(self, info: RunInfo, journal: Journal, engine: Engine, stop: Stop, audience: Listeners) -> int:
        code = engine.summary.exit_code(stopped=stop.over_budget, interrupted=stop.interrupted)
        line = Summary(
            at=time.time(),
            complete=stop.reason is None,
            reason=stop.reason,
            counts=engine.summary.counts(),
            exit_code=code,
            exhausted=stop.exhausted,
        )
        with suppress(JournalError):  # then that is the reason, and it is told
            journal.write(line)
        end = RunEnd.of(info, line)
        await self._finish(end, stop, audience)
        audience.end(end)
        self.problems += [*engine.problems, *audience.problems]
        if stop.interrupted:
            return INTERRUPTED
        return INCOMPLETE if self.problems and code == 0 else code

    async def _finish(self, end: RunEnd, stop: Stop, audience: Listeners) -> None:
        """Wait for reports that take their time, unless a stop is asked for."""
        work = asyncio.ensure_future(audience.finish(end))

        def hurry(cancel: bool) -> None:
            if cancel:
                work.cancel()

        stop.act = hurry
        await asyncio.wait({work})

    def _info(self, folder: RunFolder, done: Done, notes: tuple[str, ...]) -> RunInfo:
        cases, trials = self.plan.counts()
        resumed = sum(trial.key in done for trial in self.plan.trials()) if done else 0
        options = self.options.model_dump(mode="json", exclude_unset=True)
        return RunInfo(
            format=FORMAT,
            id=folder.id,
            at=time.time(),
            version=__version__,
            identity=self.given_input.identity,
            input=[*self.given_input.texts, *self.given_input.paths],
            files=list(dict.fromkeys(unit.source.suite.path or "" for unit in self.plan.units)),
            agents=list(dict.fromkeys(tested.name for tested in self.plan.tested())),
            options=options,
            flags=[name for name in options if self.options.given(name)],
            cases=cases,
            trials=trials,
            runs=self.plan.runs,
            environment=Identities(self.options).of(Case(id="-")),
            connector=self.options.connector,
            parallel=self.options.parallel,
            varied=self.plan.varied,
            continues=self.resumes is not None,
            resumed=resumed,
            first_started_at=done.times.first_started_at,
            duration_before_resume_ms=done.times.duration_ms,
            notes=list(notes),
        )


def _to_stderr(line: str) -> None:
    """What a hook of the whole run prints belongs to no trial."""
    print(line, file=sys.stderr)  # noqa: T201


def _cut(run: Path) -> tuple[str, ...]:
    cut = cut_torn_line(run / NAME)
    return (f"the last line of the journal was torn by a crash: {cut} bytes were cut off",) if cut else ()
