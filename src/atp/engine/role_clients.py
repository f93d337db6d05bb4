"""Resolves and caches the clients for the judge, the simulator and the generators of one run.

A client is resolved when the plan first names it, so that a missing one is reported before anything runs.
"""

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from atp.agents.running import RunningAgent
from atp.base.errors import ConfigurationError
from atp.base.project import working_directory
from atp.checks.before_run import deciders
from atp.engine.case_source import CaseSource
from atp.engine.keys import agent_inputs, digest
from atp.engine.named_agent import NamedAgent
from atp.engine.services import RunServices, close_all
from atp.journal.folder import TemporaryFolder
from atp.suite.assertion import Decider
from atp.suite.case import Case
from atp.suite.result import TrialResult, Usage
from atp.usercode.code_path import find_script, is_script, load_function

if TYPE_CHECKING:
    from atp.models.model import Model
    from atp.roles.ask import RoleClient
    from atp.roles.judge.assessor import Assessor
    from atp.roles.judge.judges import Judges
    from atp.roles.judge.validator import Validator
    from atp.roles.simulator import Simulator

HOW_TO_SET = (
    "name an agent or a connector with --{flag}, or a model for all roles with --role-connector; a function of your "
    "own needs no key: --{flag} scripts:file.function"
)


class RoleClients:
    """The clients of the roles in one run."""

    def __init__(self, services: RunServices) -> None:
        self.services = services
        """The models and agents that clients ask."""
        self._options = services.options
        self._clients: dict[tuple[str, Path | None], RoleClient] = {}
        self._assessors: dict[int, Assessor] = {}

    @cached_property
    def _folder(self) -> TemporaryFolder:
        return TemporaryFolder("roles")

    def client(self, name: str, role: str, source: CaseSource | None) -> "RoleClient":
        """The client of a script, an agent or a connector of this name. Raises `ConfigurationError`."""
        key = (name, source.folder if source is not None else None)
        if key not in self._clients:
            self._clients[key] = self._find_client(name, role, source)
        return self._clients[key]

    def _find_client(self, name: str, role: str, source: CaseSource | None) -> "RoleClient":
        from atp.roles.ask import AgentClient, FunctionClient, ModelClient

        services = self.services
        if is_script(name):
            return FunctionClient(load_function(name, self._script_folders(source)), name)
        named = self._find_agent(name, role, source)
        if named is None:
            return ModelClient(services.unrecorded_model(name, f"the {role}"))
        adapter = services.adapter(named, services=_RoleServices(services))
        # The command line may choose the model of a prompt agent, which its files don't name.
        known = agent_inputs(named, adapter, services.root, with_model=False).digest
        identity = {"agent": known, **getattr(adapter, "runs_on", {})}
        agent = RunningAgent(adapter, name, named.agent.config.model_dump(exclude_unset=True))
        return AgentClient(agent, identity, folder=lambda: self._folder.path)

    def _script_folders(self, source: CaseSource | None) -> tuple[Path, Path]:
        return source.folder if source is not None else working_directory(), self.services.root

    def _find_agent(self, name: str, role: str, source: CaseSource | None) -> NamedAgent | None:
        """The agent of this name; None if a connector has the name. Raises `ConfigurationError` if neither has."""
        name = name.removeprefix("agents:")  # as `use` of an assertion may write it
        try:
            return self.services.find_agent(name, source)
        except ConfigurationError as no_agent:
            try:
                self.services.models.described(name, f"the {role}")
            except ConfigurationError as no_model:
                if no_model.hint is None or "." not in name:
                    raise no_agent from no_model
                raise ConfigurationError(f"{no_agent}, and {no_model}", no_agent.hint or no_model.hint) from no_model
            return None

    def look_up(self, name: str | None, role: str, source: CaseSource) -> None:
        """Raise `ConfigurationError` if there is no client of this name, or no default. Runs no code."""
        if name is None:
            self.services.models.described(self._default_connector(role), f"the {role}")
        elif is_script(name):
            find_script(name, self._script_folders(source))
        else:
            self._find_agent(name, role, source)

    def _default_connector(self, role: str) -> str:
        if self._options.role_connector is None:
            flag = "assessor" if role == "judge" else role
            raise ConfigurationError(f"no model is set for the {role}", HOW_TO_SET.format(flag=flag))
        return self._options.role_connector

    def _default(self, role: str) -> "RoleClient":
        from atp.roles.ask import ModelClient

        return ModelClient(self.services.unrecorded_model(self._default_connector(role), f"the {role}"))

    def simulator_name(self, name: str | None) -> str | None:
        """The simulator that a case names, else the run's: by the JSONL format the flag is the default."""
        return name or self._options.simulator

    def assessor_name(self, name: str | None, source: CaseSource) -> str | None:
        """The judge that a check names, else the run's or the file's own."""
        return name or self._options.choose("assessor", source.suite.assessor)

    def generator_name(self, source: CaseSource) -> str | None:
        """The generator of variations; none means that rules generate them."""
        return self._options.choose("generator", source.suite.generator) or self._options.role_connector

    def simulator(self, name: str | None, source: CaseSource) -> "Simulator":
        """The simulator that a case names, else the run's. Raises `ConfigurationError`."""
        from atp.roles.simulator import Simulator

        name = self.simulator_name(name)
        client = self.client(name, "simulator", source) if name else self._default("simulator")
        return Simulator(client, cassette=self.services.cassette)

    def assessor(self, name: str | None, source: CaseSource) -> "Assessor":
        """The assessor of this name, else the run's or the file's own. Raises `ConfigurationError`."""
        from atp.roles.judge.assessor import Assessor

        name = self.assessor_name(name, source)
        client = self.client(name, "judge", source) if name else self._default("judge")
        if id(client) not in self._assessors:
            self._assessors[id(client)] = Assessor(
                client,
                cache=self.services.recordings.cache if client.may_be_cached else None,
                cassette=self.services.cassette,
                each=self._options.judge_each,
                allow_unfit=self._options.weak_judge,
            )
        return self._assessors[id(client)]

    def validator(self, use: str, source: CaseSource) -> "Validator":
        """The validator that an `agent` assertion names. Raises `ConfigurationError`."""
        from atp.roles.judge.validator import Validator

        client = self.client(use.removeprefix("agents:"), "validator", source)
        return Validator(client, cassette=self.services.cassette, allow_unfit=self._options.weak_judge)

    def judges(self, source: CaseSource, run: int, result: TrialResult) -> "Judges":
        """The judges of one trial, which add their usage and warnings to its result."""
        from atp.roles.judge.judges import Judges

        result.role_usage = result.role_usage or Usage()
        return Judges(
            assessor=lambda name: self.assessor(name, source),
            validator=lambda use: self.validator(use, source),
            secrets=self.services.secrets,
            run=run,
            usage=result.role_usage,
            warnings=result.warnings,
        )

    def judge_digest(self, case: Case, source: CaseSource) -> str | None:
        """A hash of the judges and validators that a case needs; None if there are none."""
        with suppress(ConfigurationError):  # the check reports it
            found = {self._decider(one, source).client for one in deciders(case)}
            return digest(*sorted((one.identity for one in found), key=digest)) if found else None
        return None

    def _decider(self, decider: Decider, source: CaseSource) -> "Assessor | Validator":
        if decider.role == "validator":
            return self.validator(decider.name or "", source)
        return self.assessor(decider.name, source)

    def simulator_digest(self, case: Case, source: CaseSource) -> str | None:
        """A hash of the simulated user of a case."""
        with suppress(ConfigurationError):  # the trial reports it
            named = case.simulator.use if case.simulator is not None else None
            return digest(self.simulator(named, source).client.identity)
        return None

    def variator(self, source: CaseSource) -> "RoleClient | None":
        """The generator of variations; none means that rules generate them. Raises `ConfigurationError`."""
        name = self.generator_name(source)
        return self.generator(self.client(name, "generator", source)) if name else None

    def generator(self, client: "RoleClient") -> "RoleClient":
        """The client of a generator. An answer may take as long as a trial. Recorded or replayed if the run is."""
        from atp.roles.ask import GeneratorClient

        return GeneratorClient(client, self._options.timeout, self.services.cassette)

    async def close(self) -> list[str]:
        """Close the clients and the services that they use. Returns what could not be closed, and why."""
        problems = await close_all(list(self._clients.values()))
        problems += await self.services.close()
        if "_folder" in self.__dict__:
            self._folder.remove()
            del self._folder
        return problems


class RoleLookup:
    """Finds out whether the roles of a suite can be resolved, without loading any code, for `atp validate`.

    The methods are those of `RoleClients`, and raise the same errors.
    """

    def __init__(self, roles: RoleClients) -> None:
        self._roles = roles

    def simulator(self, name: str | None, source: CaseSource) -> None:
        """Look up a simulator."""
        self._roles.look_up(self._roles.simulator_name(name), "simulator", source)

    def assessor(self, name: str | None, source: CaseSource) -> None:
        """Look up a judge."""
        self._roles.look_up(self._roles.assessor_name(name, source), "judge", source)

    def validator(self, use: str, source: CaseSource) -> None:
        """Look up a validator."""
        self._roles.look_up(use, "validator", source)

    def variator(self, source: CaseSource) -> None:
        """Look up the generator of variations; there need not be one."""
        if name := self._roles.generator_name(source):
            self._roles.look_up(name, "generator", source)


class _RoleServices:
    """The services of an agent that has a role.

    An agent that names no model gets the roles' own. Answers of a role are recorded as a whole, so nothing inside is.
    """

    cassette = None

    def __init__(self, services: RunServices) -> None:
        self._services = services

    def model(self, connector: str | None, needed_by: str) -> "Model":
        return self._services.unrecorded_model(connector or self._services.options.role_connector, needed_by)

    def running_agent(self, name: str) -> RunningAgent:
        return self._services.running_agent(name)
