"""What the agents of a run may use: models, other agents, recorded answers. Imports nothing before it is needed."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atp.agents.adapter import Adapter, AdapterContext, Services
from atp.agents.registry import make_adapter
from atp.agents.running import RunningAgent
from atp.base.diagnostics import Diagnostics, load_error
from atp.base.errors import ConfigurationError
from atp.base.project import working_directory
from atp.base.secrets import Secrets
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.case_source import CaseSource
from atp.engine.keys import agent_inputs, digest
from atp.engine.named_agent import NamedAgent
from atp.engine.prepare.agents import Project, find_agent
from atp.engine.prepare.options import Options

if TYPE_CHECKING:
    from atp.models.cassettes.cassette import Cassette
    from atp.models.cassettes.store import Cache
    from atp.models.connectors.registry import Models
    from atp.models.model import Model


class RunServices:
    """Finds the models and agents of one run, and closes them. Models are recorded or replayed if the run is."""

    def __init__(
        self,
        options: Options,
        root: Path,
        environment: Mapping[str, str],
        connectors: Mapping[str, Any],
        marker: str = "",
        secrets: Secrets | None = None,
    ) -> None:
        """`connectors` are those of the project's file; `marker` is set in the environment of every process."""
        self.options = options
        self.root = root
        self.environment = environment
        self.secrets = Secrets() if secrets is None else secrets
        """The run's secrets. Those of connectors and agents are added when these are made."""
        self.recordings = Recordings(options, root, self.secrets)
        """The cassette and the judges' cache."""
        self.warnings = Diagnostics()
        """Warnings of a dry run about models that could not be asked in a real run."""
        self.used_models: dict[str, str] = {}
        """The models that agents and roles have asked for so far, by connector."""
        self._connectors = connectors
        self._marker = marker
        self._lacking: set[tuple[str, str]] = set()
        """The connectors that `warnings` is about, each with who needs the model."""
        self._tool_agents: list[RunningAgent] = []
        self._called: dict[tuple[str, Path, str | None], AgentUnderTest] = {}
        self._recorded_as: dict[str, list[str]] = {}
        """By model and settings: the connectors of agents that lead there, in the order of their first use."""

    @cached_property
    def models(self) -> "Models":
        """The models behind the project's connectors."""
        from atp.models.connectors.registry import Models

        models = Models(self.root, self.environment, self._connectors)
        self.secrets.add(models.secrets)
        return models

    @property
    def cassette(self) -> "Cassette | None":
        """Where answers are recorded to or replayed from. Raises `LoadError` if it can't be used."""
        return self.recordings.cassette

    def model(self, connector: str | None, needed_by: str) -> "Model":
        """The model of an agent, recorded or replayed if the run is. Raises `ConfigurationError`."""
        model = self.unrecorded_model(connector, needed_by)
        if self.cassette is None:
            return model
        if self.cassette.mode == "replay":
            from atp.models.cassettes.recorded import ReplayedModel

            assert isinstance(model, ReplayedModel)
            return model.of_connector(self._further_connector(model))
        from atp.models.cassettes.recorded import RecordedModel

        return RecordedModel(model, self.cassette, self._further_connector(model))

    def _further_connector(self, model: "Model") -> str | None:
        """The model's connector, if another one of the run leads to a model of the same name and settings.

        Recordings are found by name and settings, so the answers of two servers would be taken for each other's.
        """
        known = self._recorded_as.setdefault(digest(model.name, model.settings), [])
        if model.connector not in known:
            known.append(model.connector)
        return model.connector if known[0] != model.connector else None

    def unrecorded_model(self, connector: str | None, needed_by: str) -> "Model":
        """The model of a role, whose answers are recorded as a whole; replayed if the run is."""
        model = self._find_model(connector, needed_by)
        self.used_models[model.connector] = model.name
        return model

    def _find_model(self, connector: str | None, needed_by: str) -> "Model":
        name = connector or self.options.one_connector
        if name is None and self.options.connector:
            several = f"{needed_by} needs a model of its own: the connectors of the run are for the agents under test"
            raise ConfigurationError(several, "name its model in its own file, or for all roles with --role-connector")
        if name is None:
            from atp.models.connectors.sources import HOW_TO_SET

            raise ConfigurationError(f"{needed_by} needs a model, and none is named", HOW_TO_SET)
        if self.cassette is not None and self.cassette.mode == "replay":
            from atp.models.cassettes.recorded import replayed

            return replayed(self.models.described(name, needed_by), self.cassette)
        if self.options.dry_run and (lacking := self.models.lacking(name, needed_by)) is not None:
            from atp.models.cassettes.recorded import PlannedModel

            if (name, needed_by) not in self._lacking:
                self._lacking.add((name, needed_by))
                self.warnings.warn("no-key", str(lacking), hint=lacking.hint)
            return PlannedModel(self.models.described(name, needed_by))
        model = self.models.get(name, needed_by)
        self.secrets.add(self.models.secrets)
        return model

    def find_agent(self, name: str, source: CaseSource | None) -> NamedAgent:
        """An agent by its name in a suite, its id or its path. Raises `ConfigurationError`."""
        notes = Diagnostics()
        found = find_agent(name, source, Project(self.root, self.environment), notes)
        if found is None:
            first = next(iter(notes))
            raise ConfigurationError(first.message, first.hint)
        return found

    def adapter(
        self, named: NamedAgent, *, search: Sequence[Path] | None = None, services: Services | None = None
    ) -> Adapter:
        """The adapter of an agent. Raises `ConfigurationError`.

        `search` are the folders in which its modules are looked up; by default the working directory and the root.
        """
        context = AdapterContext(
            base=named.base,
            search=tuple(search if search is not None else (working_directory(), self.root)),
            environment=self.environment,
            retries=self.options.retries,
            marker=self._marker,
            root=self.root,
            services=services or self,
        )
        self.secrets.add(named.secrets)
        adapter = make_adapter(named.agent, context)
        self.secrets.add(adapter.secrets)
        return adapter

    def running_agent(self, name: str, services: Services | None = None) -> RunningAgent:
        """Another agent of the project, for an agent that uses it as a tool. Raises `ConfigurationError`."""
        named = self.find_agent(name, None)
        adapter = self.adapter(named, services=services)
        agent = RunningAgent(adapter, name, named.agent.config.model_dump(exclude_unset=True))
        self._tool_agents.append(agent)
        return agent

    def called(self, name: str, source: CaseSource, connector: str | None = None) -> AgentUnderTest:
        """The agent that tests in Python call, one for all tests of a folder. Raises `ConfigurationError`.

        `connector` is that of the column in which the test runs, if the run has several.
        """
        if connector is None and len(self.options.connector) > 1:
            raise ConfigurationError("a test in Python runs with one connector, and several are named", "name one")
        key = (name, source.folder, connector)
        if key not in self._called:
            named = self.find_agent(name, source)
            replacing = connector or (self.options.one_connector if self.options.given("connector") else None)
            chosen = named if replacing is None else named.with_connector(replacing)
            self._called[key] = self.agent_under_test(chosen, source)
        return self._called[key]

    def agent_under_test(self, named: NamedAgent, source: CaseSource) -> AgentUnderTest:
        """An agent with its adapter, for the trials of a source. Raises `ConfigurationError`."""
        several = len(self.options.connector) > 1
        services = _ColumnServices(self, named.connector) if several and named.connector else None
        search = (working_directory(), source.folder, self.root)
        adapter = self.adapter(named, search=search, services=services)
        return AgentUnderTest(named, adapter, agent_inputs(named, adapter, self.root), self.connector_of(named))

    def connector_of(self, named: NamedAgent) -> str | None:
        """The connector that an agent is told. A prompt agent has its own, which only a flag or a column replaces."""
        default = None if named.agent.type == "prompt" else self.options.one_connector
        return named.connector or default

    async def close(self) -> list[str]:
        """Close the agents, the models and the recordings. Returns what could not be closed, and why."""
        models = [self.models] if "models" in self.__dict__ else []
        problems = await close_all([*self._tool_agents, *self._called.values(), *models])
        return problems + self.recordings.close()


class _ColumnServices:
    """The services of an agent in a run with several connectors: agents that name no model get the column's own."""

    def __init__(self, services: RunServices, connector: str) -> None:
        self._services = services
        self._connector = connector

    @property
    def cassette(self) -> "Cassette | None":
        return self._services.cassette

    def model(self, connector: str | None, needed_by: str) -> "Model":
        return self._services.model(connector or self._connector, needed_by)

    def running_agent(self, name: str) -> RunningAgent:
        return self._services.running_agent(name, self)


class Recordings:
    """The cassette and the judges' cache of one run. Each is opened when it is first needed."""

    def __init__(self, options: Options, root: Path, secrets: Secrets) -> None:
        """`secrets` are masked in both."""
        self._options = options
        self._root = root
        self._secrets = secrets

    @cached_property
    def cassette(self) -> "Cassette | None":
        """Where answers are recorded to or replayed from; none if the run does neither. Raises `LoadError`."""
        folder = self._options.replay or self._options.record
        if folder is None:
            return None
        from atp.models.cassettes.cassette import Cassette
        from atp.models.model import CassetteError

        try:
            return Cassette(Path(folder), "replay" if self._options.replay else "record", self._secrets)
        except CassetteError as error:
            raise load_error("cassette", str(error), error.hint) from error

    @cached_property
    def cache(self) -> "Cache | None":
        """The judges' earlier answers; none if the run doesn't use them."""
        if not self._options.judge_cache:
            return None
        from atp.models.cassettes.store import Cache

        return Cache(self._root / ".atp" / "judge-cache", self._secrets)

    def _opened(self) -> "list[Cassette | Cache]":
        stores = (self.__dict__.get(name) for name in ("cassette", "cache"))
        return [store for store in stores if store is not None]

    def begin_trial(self) -> None:
        """Number the answers to repeated calls of a new trial from 1 again."""
        if self.__dict__.get("cassette") is not None:
            from atp.models.cassettes.cassette import begin_trial

            begin_trial()

    def close(self) -> list[str]:
        """Close the cassette and the cache of judges. Returns what could not be written, and why."""
        from atp.models.model import CassetteError

        problems: list[str] = []
        for store in self._opened():
            try:
                store.close()
            except CassetteError as error:
                problems.append(str(error))
        if (cache := self.__dict__.get("cache")) is not None and cache.problem:
            problems.append(f"the judge cache is not kept: {cache.problem}")
        return problems


async def close_all(parts: Sequence[Any]) -> list[str]:
    """Close each part, also if another can't be closed. Returns what could not be closed, and why."""
    problems: list[str] = []
    for part in parts:
        try:
            await part.close()
        except Exception as error:
            what = f"agent {part.name}" if hasattr(part, "name") else "the models"
            problems.append(f"{what} could not be closed: {type(error).__name__}: {error}")
    return problems
