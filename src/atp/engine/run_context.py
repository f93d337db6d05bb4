"""What everything in one run shares: its settings, its project, its environment, its roles, its hooks.

`atp test`, `atp.run`, pytest, `atp chat` and `atp agents check` all start from here, and leave nothing behind by it.
"""

import itertools
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from atp.agents.leftovers import Forks, end_leftovers
from atp.base.diagnostics import load_error
from atp.base.project import find_root, keeping_working_directory, working_directory
from atp.base.secret_values import secret_settings
from atp.base.secrets import Secrets, masking
from atp.checks.golden_files import TrialGoldenFiles, Updates, golden_agent, golden_names
from atp.engine.case_source import CaseSource
from atp.engine.planned_trial import Trial
from atp.engine.prepare.agents import Project, agent_tools
from atp.engine.prepare.filter import Filter
from atp.engine.prepare.options import Options
from atp.engine.prepare.settings import connectors, environment, environment_secrets, resolve_options
from atp.engine.prepare.sources import hook_folders
from atp.engine.role_clients import RoleClients
from atp.engine.services import RunServices
from atp.engine.trial.befores import Snapshot
from atp.engine.trial.hooks import Hooks
from atp.engine.trial.workspace import WorkFolder, Workspace
from atp.journal.folder import RunFolder, marking
from atp.journal.made_files import FOLDER, MadeFiles
from atp.suite.result import TrialResult
from atp.usercode.call import Hosting
from atp.usercode.environment import extended_environ


class RunContext:
    """What everything in one run shares."""

    def __init__(
        self,
        options: Options,
        root: Path,
        env: Mapping[str, str],
        anchor: Path | None = None,
        known: Secrets | None = None,
    ) -> None:
        """`env` is the environment with what `.env` adds; `anchor` the folder of the input, where hooks are found.

        `known` are the secrets of the environment, if they are found already.
        """
        self.options = options
        self.root = root
        """The project's root."""
        self.env = env
        self.secrets = environment_secrets(env) if known is None else known
        """What no output may show: the environment's at first; suites, agents and connectors add theirs."""
        self.secrets.add(secret_settings(options.history))  # a password in its address
        self.filter = Filter(options)
        """Which cases are wanted."""
        self.marker = secrets.token_hex(8)
        """Is in the environment of every process that the run starts."""
        self.hooks = Hooks(hook_folders(anchor or root, root))
        """Python functions to be called before and after trials and the run."""
        self.problems: list[str] = []
        """What could not be closed, and why."""
        self.golden_updates = Updates(wanted=options.update_snapshots, refused=_why_no_updates(env))
        """What the run does with golden files beside reading them."""
        self._working_directory = working_directory()
        self._forks: Forks | None = None
        self._work: WorkFolder | None = None
        self._workspaces = 0
        self._task_prefix = secrets.token_hex(8)
        self._tasks = itertools.count(1)

    @classmethod
    def of_project(cls, anchor: Path, flags: Mapping[str, Any]) -> "RunContext":
        """The context of the project around an input. Raises `LoadError` for settings that can't be used."""
        root = find_root(anchor)
        env = environment(root, flags.get("env_file"))
        known = environment_secrets(env)
        with masking(known):
            options = resolve_options(flags, root, env)
        return cls(options, root, env, anchor, known)

    @cached_property
    def roles(self) -> RoleClients:
        """The clients of judges, simulators and generators. Raises `LoadError`."""
        return self.new_roles(self.marker)

    def new_roles(self, marker: str = "") -> RoleClients:
        """Clients of their own, for work in another event loop. Raises `LoadError`."""
        if self.options.record and self.options.replay:
            raise load_error("contradiction", "--record and --replay are both given", "record first, then replay")
        return RoleClients(RunServices(self.options, self.root, self.env, connectors(self.root), marker, self.secrets))

    def agent_tools(self, source: CaseSource) -> frozenset[str]:
        """The names of the tools of a suite's agents, as far as files name them."""
        return agent_tools(source, self.options, Project(self.root, self.env))

    @property
    def services(self) -> RunServices:
        """The models and agents of the run. Raises `LoadError`."""
        return self.roles.services

    @contextmanager
    def active(self) -> Iterator[None]:
        """Apply the run to this process: `.env`, the marker of new processes, what protects it from the user's code."""
        if self._forks is None:
            self._forks = Forks(only_of_user_code=True)
        with (
            masking(self.secrets),
            Hosting(),
            extended_environ(self.env),
            marking(self.marker),
            keeping_working_directory(self._working_directory),
        ):
            yield

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Apply the run to this process, which does nothing else meanwhile; at the end, close what it started."""
        with self.active():
            try:
                yield
            finally:
                await self.close()

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Let the run end what code that is imported inside starts. Without a run, because of an error, end it now.

        Only in a process of ATP's own: elsewhere a module that is imported once may serve several runs.
        """
        self._forks = Forks()
        try:
            with marking(self.marker):
                yield
        except BaseException:
            self.leave()
            raise

    async def close(self) -> None:
        """Close the roles, and end the processes that agents have left."""
        if "roles" in self.__dict__:
            self.problems += await self.roles.close()
        end_leftovers(self.marker, forks=self._forks)
        self._forks = None

    def leave(self) -> None:
        """End what agents have started, without waiting for anything else: the process is about to end."""
        end_leftovers(self.marker, within=0.3, forks=self._forks)
        self._forks = None

    def work_in(self, folder: RunFolder) -> None:
        """Make workspaces in a run's folder, beside those that an earlier part of the run has kept."""
        self._work = WorkFolder(folder.work)
        self._workspaces = max((int(one.name) for one in folder.work.glob("*") if one.name.isdecimal()), default=0)
        self.made_files = MadeFiles(folder.path / FOLDER)
        """Keeps the files that agents make."""

    def new_task_id(self) -> str:
        """Unique to each attempt, in this run and every other one."""
        return f"trial-{self._task_prefix}-{next(self._tasks)}"

    def workspace(self, trial: Trial, start: Snapshot | None) -> Workspace:
        """Return the workspace of one attempt, which starts from the snapshot of its befores."""
        assert self._work is not None
        self._workspaces += 1
        seed = trial.source.folder / trial.case.workspace if trial.case.workspace else None
        kept = start.workspace if start is not None else None
        return Workspace(self._work, str(self._workspaces), seed, trial.source.fixtures, kept, self.root)

    def new_folder(self) -> Path:
        """A path beside the workspaces that is not taken."""
        assert self._work is not None
        self._workspaces += 1
        return self._work.path / str(self._workspaces)

    def restored_folder(self) -> tuple[WorkFolder, Path]:
        """A path that is not taken, for files of an earlier run, and the folder that it is in."""
        assert self._work is not None
        return self._work, self.new_folder()

    def golden_files(self, trial: Trial) -> TrialGoldenFiles | None:
        """The golden files that a trial of a case with snapshots is compared with; None if its suite has no file."""
        folder = trial.source.golden_folder
        if folder is None:
            return None
        agent = golden_agent(trial.suite, trial.tested.column, trial.tested.column_connector)
        names = golden_names(trial.case, agent, trial.variation)
        return TrialGoldenFiles(folder, names, f"run {trial.run} of agent `{trial.agent}`", self.golden_updates)

    def keeps_workspace(self, result: TrialResult) -> bool:
        """Whether a trial's folder is to stay."""
        return self.options.keep_workspaces or (self.options.keep_failed and result.status != "passed")


def _why_no_updates(env: Mapping[str, str]) -> str | None:
    """Why golden files must not be written: what CI writes, nobody has looked at, and nobody commits."""
    return "CI is set" if env.get("CI", "").lower() not in ("", "0", "false", "no") else None
