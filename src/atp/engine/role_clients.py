"""The roles of a run: the models and agents that play the roles around the agent under test.

Each is found when the plan first names it, so that one that is missing is known before anything runs, and shared by all
trials. Nothing of it is imported before somebody needs it.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atp.agents.adapter import Adapter, AdapterContext
from atp.agents.running import RunningAgent
from atp.base.diagnostics import Diagnostics
from atp.base.errors import ConfigurationError
from atp.engine.prepare.agents import NamedAgent, Project, find_agent
from atp.engine.prepare.keys import agent_digest, role_digest
from atp.engine.prepare.options import Options
from atp.engine.prepare.sources import CaseSource
from atp.engine.recordings import Recordings
from atp.suite.agent import AnyAgent, PromptConfig
from atp.suite.result import TrialResult, Usage
from atp.usercode.code_path import is_script, load_function

if TYPE_CHECKING:
    from atp.engine.agent_under_test import AgentUnderTest
    from atp.models.cassettes.cassette import Cassette
    from atp.models.connectors.registry import Models
    from atp.models.model import Model
    from atp.roles.ask import RoleClient
    from atp.roles.judge.assessor import Assessor
    from atp.roles.judge.judges import Judges
    from atp.roles.judge.validator import Validator
    from atp.roles.simulator import Simulator

MakeAdapter = Callable[[AnyAgent, AdapterContext], Adapter]
HOW = (
    "name an agent or a connector with --{flag}, or a model for all roles with --role-connector; a function of your "
    "own needs no key: --{flag} scripts:file.function"
)


class RoleClients:
    """Finds who plays a role."""

    def __init__(self, options: Options, root: Path, environment: Mapping[str, str], tables: Mapping[str, Any]) -> None:
        """`tables` are the connectors of the project's file."""
        self._options = options
        self._root = root
        self._environment = environment
        self._tables = tables
        self._make_adapter: MakeAdapter | None = None
        self.around: dict[str, Any] = {}
        """What is around every agent of the run."""
        self._clients: dict[tuple[str, Path | None], RoleClient] = {}
        self._assessors: dict[int, Assessor] = {}
        self._tool_agents: list[RunningAgent] = []
        self._called: dict[tuple[str, Path], AgentUnderTest] = {}
        self._recall = Recordings(options, root, lambda: self.secrets | self.hidden)
        self.notes = Diagnostics()
        """What would keep somebody from playing in a run, where it is only planned."""
        self.hidden: frozenset[str] = frozenset()
        """What no judge is shown and no file of the roles keeps."""

    def act_with(self, make_adapter: MakeAdapter, around: dict[str, Any]) -> None:
        """How agents that play a role are reached."""
        self._make_adapter, self.around = make_adapter, around

    @cached_property
    def models(self) -> "Models":
        """The models behind connectors."""
        from atp.models.connectors.registry import Models

        return Models(self._root, self._environment, self._tables)

    @property
    def cassette(self) -> "Cassette | None":
        """Where answers are recorded to or played back from. Raises `LoadError` if that can't be used."""
        return self._recall.cassette

    def hide(self, secrets: frozenset[str]) -> None:
        """Keep what is secret in the run from judges, cassettes and caches."""
        self.hidden = secrets
        self._recall.hide(secrets)

    @property
    def secrets(self) -> frozenset[str]:
        """What no output may show of the roles's own."""
        models = self.models.secrets if "models" in self.__dict__ else ()
        return frozenset(models).union(*(called.secrets for called in self._called.values()))

    @cached_property
    def _folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="atp-roles-"))

    def begin_trial(self) -> None:
        """From here on, the same question asked again is the trial's second."""
        self._recall.begin_trial()

    def model(self, connector: str | None, needed_by: str, *, recorded: bool = True) -> "Model":
        """The model of an agent, whose answers are recorded or played back if the run's are."""
        name = connector or self._options.connector
        if name is None:
            from atp.models.connectors.sources import HOW_TO_SET

            raise ConfigurationError(f"{needed_by} needs a model, and none is named", HOW_TO_SET)
        model = self._plain_model(name, needed_by)
        if not recorded or self.cassette is None or self.cassette.mode == "replay":
            return model
        from atp.models.cassettes.recorded import RecordedModel

        return RecordedModel(model, self.cassette)

    def _plain_model(self, name: str, needed_by: str) -> "Model":
        if self.cassette is not None and self.cassette.mode == "replay":
            from atp.models.cassettes.recorded import replayed

            return replayed(self.models.described(name, needed_by), self.cassette)
        if self._options.dry_run and (lacking := self.models.lacking(name, needed_by)) is not None:
            from atp.models.cassettes.recorded import PlannedModel

            self.notes.warn("no-key", str(lacking), hint=lacking.hint)
            return PlannedModel(self.models.described(name, needed_by))
        model = self.models.get(name, needed_by)
        if self.cassette is not None:
            self.cassette.hide(self.models.secrets)
        return model

    def running_agent(self, name: str) -> RunningAgent:
        """Return another agent of the project, for an agent that uses it as a tool. Raises `ConfigurationError`."""
        named = self._agent(name, None)
        agent = RunningAgent(self.reach(named), name, named.agent.config.model_dump(exclude_unset=True))
        self._tool_agents.append(agent)
        return agent

    def called(self, name: str, source: CaseSource) -> "AgentUnderTest":
        """An agent that a test in Python calls, shared by all that do. Raises `ConfigurationError`."""
        from atp.engine.agent_under_test import AgentUnderTest

        place = (name, source.folder)
        if place not in self._called:
            named = self._agent(name, source)
            if isinstance(named.agent.config, PromptConfig) and self._options.given("connector"):
                named.agent.config.connector = self._options.connector
            adapter = self.reach(named, source.folder)
            known, hidden = agent_digest(named, adapter), named.secrets | adapter.secrets
            self._called[place] = AgentUnderTest(named.agent, adapter, named.base, known, ad_hoc=True, secrets=hidden)
        return self._called[place]

    def _agent(self, name: str, source: CaseSource | None) -> NamedAgent:
        notes = Diagnostics()
        found = find_agent(name, source, Project(self._root, self._environment), notes)
        if found is None:
            first = next(iter(notes))
            raise ConfigurationError(first.message, first.hint)
        return found

    def reach(self, named: NamedAgent, beside: Path | None = None, *, role: bool = False) -> Adapter:
        """An agent, wherever it is; `beside` is a further folder of modules. Raises `ConfigurationError`."""
        assert self._make_adapter is not None
        search = tuple(one for one in (Path.cwd(), beside, self._root) if one is not None)
        services = {"services": _RoleServices(self, self._options.role_connector)} if role else {}
        around = AdapterContext(base=named.base, search=search, **{**self.around, **services})
        return self._make_adapter(named.agent, around)

    def client(self, name: str, role: str, source: CaseSource | None) -> "RoleClient":
        """Who is called so: a script, an agent, or a connector. Raises `ConfigurationError`."""
        place = (name, source.folder if source is not None else None)
        if place not in self._clients:
            self._clients[place] = self._find_client(name, role, source)
        return self._clients[place]

    def _find_client(self, name: str, role: str, source: CaseSource | None) -> "RoleClient":
        from atp.roles.ask import AgentClient, FunctionClient, ModelClient

        if is_script(name):
            folders = (source.folder, self._root) if source is not None else (Path.cwd(), self._root)
            return FunctionClient(load_function(name, folders), name)
        try:
            named = self._agent(name, source)
        except ConfigurationError as no_agent:
            try:
                return ModelClient(self._plain_model(name, f"the {role}"))
            except ConfigurationError as no_model:
                if self._is_connector(name):
                    raise
                if no_model.hint is None or "." not in name:
                    raise no_agent from no_model
                raise ConfigurationError(f"{no_agent}, and {no_model}", no_agent.hint or no_model.hint) from no_model
        adapter = self.reach(named, role=True)
        # What a prompt runs on may be the command line's choice, of which its files say nothing.
        identity = {"agent": role_digest(named, adapter, self._root), **getattr(adapter, "runs_on", {})}
        agent = RunningAgent(adapter, name, named.agent.config.model_dump(exclude_unset=True))
        return AgentClient(agent, identity, folder=self._folder)

    def _is_connector(self, name: str) -> bool:
        """Whether there is such a connector, usable or not."""
        try:
            self.models.described(name, "")
        except ConfigurationError:
            return False
        return True

    def _default(self, role: str, flag: str, source: CaseSource | None) -> "RoleClient":
        from atp.roles.ask import ModelClient

        if self._options.role_connector is None:
            raise ConfigurationError(f"no model is set for the {role}", HOW.format(flag=flag))
        return ModelClient(self._plain_model(self._options.role_connector, f"the {role}"))

    def _chosen(self, flag: str, own: str | None) -> str | None:
        """The flag goes before what the file says, which goes before the environment and the project's file."""
        named: str | None = getattr(self._options, flag)
        return named if self._options.given(flag) or own is None else own

    def simulator(self, name: str | None, source: CaseSource) -> "Simulator":
        """Who plays the user of a dialogue, as its case names it or not. Raises `ConfigurationError`."""
        from atp.roles.simulator import Simulator

        name = name or self._options.simulator  # the flag is the default, for cases that name none (document 5)
        client = self.client(name, "simulator", source) if name else self._default("simulator", "simulator", source)
        return Simulator(client, cassette=self.cassette)

    def assessor(self, name: str | None, source: CaseSource) -> "Assessor":
        """Who judges; nobody named, the run's or the file's own. Raises `ConfigurationError`."""
        from atp.roles.judge.assessor import Assessor

        name = name or self._chosen("assessor", source.suite.assessor)
        client = self.client(name, "judge", source) if name else self._default("judge", "assessor", source)
        if id(client) not in self._assessors:
            self._assessors[id(client)] = Assessor(
                client,
                cache=self._recall.cache,
                cassette=self.cassette,
                each=self._options.judge_each,
                allow_unfit=self._options.weak_judge,
            )
        return self._assessors[id(client)]

    def validator(self, use: str, source: CaseSource) -> "Validator":
        """A validator of the user's own. Raises `ConfigurationError`."""
        from atp.roles.judge.validator import Validator

        client = self.client(use.removeprefix("agents:"), "validator", source)
        return Validator(client, cassette=self.cassette, allow_unfit=self._options.weak_judge)

    def judges(self, source: CaseSource, run: int, result: TrialResult) -> "Judges":
        """The judges of one trial, which add their usage and warnings to its result."""
        from atp.roles.judge.judges import Judges

        result.role_usage = result.role_usage or Usage()
        return Judges(
            assessor=lambda name: self.assessor(name, source),
            validator=lambda use: self.validator(use, source),
            secrets=self.hidden,
            run=run,
            usage=result.role_usage,
            warnings=result.warnings,
        )

    def variator(self, source: CaseSource) -> "RoleClient | None":
        """Who makes variations of prompts; nobody means that rules do. Raises `ConfigurationError`."""
        name = self._chosen("generator", source.suite.generator) or self._options.role_connector
        return self.generator(self.client(name, "generator", source)) if name else None

    def generator(self, client: "RoleClient") -> "RoleClient":
        """Who makes cases or variations, recorded or played back if the run is."""
        if self.cassette is None:
            return client
        from atp.roles.ask import RecordedClient

        return RecordedClient(client, self.cassette)

    async def close(self) -> list[str]:
        """Leave nothing behind. What could not be ended, and why."""
        problems: list[str] = []
        parts: list[Any] = [*self._clients.values(), *self._tool_agents, *self._called.values()]
        parts += [self.models] if "models" in self.__dict__ else []
        for part in parts:
            try:
                await part.close()
            except Exception as error:
                problems.append(f"{getattr(part, 'name', 'models')} could not be closed: {error}")
        problems += self._recall.close()
        if "_folder" in self.__dict__:
            shutil.rmtree(self._folder, ignore_errors=True)
        return problems


class _RoleServices:
    """The roles as agents that play a role see it.

    One that names no model gets the roles' own. What a role answers is recorded as a whole, so nothing inside of it is.
    """

    cassette = None

    def __init__(self, roles: RoleClients, connector: str | None) -> None:
        self._roles = roles
        self._connector = connector

    def model(self, connector: str | None, needed_by: str) -> "Model":
        """The model behind a connector, or that of the roles."""
        return self._roles.model(connector or self._connector, needed_by, recorded=False)

    def running_agent(self, name: str) -> RunningAgent:
        """Return another agent, as a tool."""
        return self._roles.running_agent(name)
