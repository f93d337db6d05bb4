"""The plan: which trials there are, in which order. Nothing of it is in memory before it is needed."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from atp.agents.adapter import Adapter, AgentError, ConfigurationError, Surroundings
from atp.checks.case_checks import unjudgeable
from atp.checks.observable import met
from atp.loader.diagnostics import Diagnostic, Diagnostics, LoadError, has_errors
from atp.run.identity import Identities
from atp.run.key import agent_digest, case_text, digest
from atp.run.named_files import CaseFiles
from atp.run.options import Options
from atp.run.resolve import NamedAgent, Project, resolve_agents
from atp.run.source import CaseSource
from atp.run.survey import Origin, listed
from atp.suite.agent import AnyAgent, PromptConfig
from atp.suite.case import Case

MakeAdapter = Callable[[AnyAgent, Surroundings], Adapter]


@dataclass(slots=True)
class Tested:
    """An agent under test, with what reaches it."""

    agent: AnyAgent
    adapter: Adapter
    base: Path
    digest: str
    ad_hoc: bool
    limit: int | None = None
    """At most so many trials at a time."""
    active: int = 0
    """Trials running now."""
    secrets: frozenset[str] = frozenset()
    """Values in its configuration that no output may show."""
    config: dict[str, Any] = field(init=False)
    """Its configuration as data, for the agent to see."""
    _starting: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self.config = self.agent.config.model_dump(exclude_unset=True)

    async def ready(self) -> None:
        """Start the adapter, once for all trials. Why it can't start is every trial's error, unless that may pass."""
        if self._starting is None or _may_pass(self._starting):
            self._starting = asyncio.ensure_future(self.adapter.start())
        if not self._starting.done():
            await asyncio.shield(self._starting)
        self._starting.result()

    def is_among(self, names: Sequence[str] | None) -> bool:
        """Whether a case that is only for these agents, or for all, is for it. What -n names is for every case."""
        return names is None or self.ad_hoc or self.name in names

    @property
    def name(self) -> str:
        """What the suite calls it."""
        return self.agent.name


def _may_pass(starting: "asyncio.Task[None]") -> bool:
    """Whether a start failed that may go well the next time."""
    if not starting.done() or starting.cancelled():
        return starting.done()
    error = starting.exception()
    return isinstance(error, AgentError) and error.retryable


@dataclass(slots=True)
class Trial:
    """One agent × case × variation × run, to be done."""

    tested: Tested
    case: Case
    source: CaseSource
    chain: list[str] | None
    variation: int
    run: int
    runs: int
    key: str
    timeout: float
    context: dict[str, Any]
    """Who it runs as."""
    connector: str | None
    """The model connector that the command line names."""
    siblings: int
    """How many trials its case has against this agent."""
    origin: Origin | None = None
    """Where a variation's prompt comes from."""
    before: "Trial | None" = None
    """What is replayed before it, the last one; that one has its own."""
    leads: bool = False
    """It is what others are to go on from."""


@dataclass(slots=True)
class Unit:
    """A suite and the agents its cases run against."""

    source: CaseSource
    agents: list[Tested]
    files: CaseFiles


class Filter:
    """Which cases are wanted: by id and name, by tag."""

    def __init__(self, options: Options) -> None:
        self._pattern = re.compile(options.run) if options.run else None
        words = [word.strip() for word in (options.tags or "").split(",") if word.strip()]
        self._with = {word for word in words if not word.startswith("!")}
        self._without = {word[1:] for word in words if word.startswith("!")}
        self.only: set[tuple[str, str]] | None = None
        """With `--only-failed`: (agent, case) pairs."""

    def wants(self, case: Case) -> bool:
        """Whether a case is to be run."""
        if self._pattern and not (self._pattern.search(case.id) or self._pattern.search(case.name)):
            return False
        tags = set(case.tags)
        return not (tags & self._without) and (not self._with or bool(tags & self._with))

    def wants_pair(self, agent: str, case: Case) -> bool:
        """Whether a case is to be run against an agent."""
        return self.only is None or (agent, case.id) in self.only


@dataclass(slots=True)
class Plan:
    """What a run will do."""

    units: list[Unit]
    options: Options
    identities: Identities
    filter: Filter
    warnings: list[Diagnostic] = field(default_factory=list)
    variations: dict[tuple[int, int], list[tuple[list[str] | None, Origin | None]]] = field(default_factory=dict)
    """By source and case: the prompts of cases that ask for more than they list, once these are made."""

    def trials(self) -> Iterator[Trial]:
        """All trials, case by case."""
        for unit in self.units:
            yield from self._of_unit(unit)

    def _of_unit(self, unit: Unit) -> Iterator[Trial]:
        for case in unit.source.cases():
            if not case.skip and not case.only_before and self.filter.wants(case):
                yield from self.of_case(unit, case)

    def counts(self) -> tuple[int, int]:
        """How many cases (each per agent) and trials there are."""
        cases = trials = 0
        for unit in self.units:
            survey = unit.source.survey
            if survey.narrowed or self.filter.only is not None:
                for trial in self._of_unit(unit):
                    cases, trials = cases + (trial.variation == 0 and trial.run == 1), trials + 1
                continue
            runs = self.options.runs
            fixed = self.options.given("runs")
            each = sum(number * (runs if fixed or own is None else own) for own, number in survey.variations.items())
            cases, trials = cases + survey.count * len(unit.agents), trials + each * len(unit.agents)
        return cases, trials

    @property
    def runs(self) -> int:
        """How often trials are repeated; the most, where cases differ."""
        if self.options.given("runs"):
            return self.options.runs
        asked = [own for unit in self.units for own in unit.source.survey.variations]
        return max((own or self.options.runs for own in asked), default=self.options.runs)

    def tested(self) -> list[Tested]:
        """The agents, each once."""
        found = {id(one): one for unit in self.units for one in unit.agents}
        return list(found.values())

    def of_case(self, unit: Unit, case: Case) -> Iterator[Trial]:
        """The trials of one case."""
        options = self.options
        runs = options.runs if options.given("runs") or case.runs is None else case.runs
        shared = self._shared(case)
        varied = self.variations.get((id(unit.source), case.index)) or listed(case)
        for tested in unit.agents:
            if not tested.is_among(case.agents):
                continue
            if not self.filter.wants_pair(tested.name, case):
                continue
            before = self._before(unit, tested, case.before_sequence) if case.before_sequence else None
            key = self._key(unit, tested, case, shared, before)
            for number, (chain, origin) in enumerate(varied):
                said = key if origin is None or origin == "listed" else digest(key, chain)
                for run in range(1, runs + 1):
                    yield Trial(
                        tested=tested,
                        case=case,
                        source=unit.source,
                        chain=chain,
                        variation=number,
                        run=run,
                        runs=runs,
                        key=f"{said}-{number}-{run}",
                        timeout=shared.timeout,
                        context=shared.context,
                        connector=self._connector(tested),
                        siblings=len(varied) * runs,
                        origin=origin,
                        before=before,
                        leads=not number and run == 1 and case.index in unit.source.survey.leading,
                    )

    def _shared(self, case: Case) -> "_Shared":
        timeout = case.limits.timeout_seconds or self.options.timeout
        return _Shared(case_text(case), self.identities.of(case), timeout)

    def _connector(self, tested: Tested) -> str | None:
        """What goes before the agent's own: to a prompt agent, only a flag does."""
        options = self.options
        return options.connector if tested.agent.type != "prompt" or options.given("connector") else None

    def _key(self, unit: Unit, tested: Tested, case: Case, shared: "_Shared", before: Trial | None) -> str:
        files = unit.files.of(case, tested.base)
        parts = [shared.said, tested.digest, shared.context, self.options.connector, shared.timeout, files]
        return digest([*parts, before.key] if before else parts)

    def _before(self, unit: Unit, tested: Tested, sequence: list[int]) -> Trial:
        """The last of a sequence of befores: each runs once, with its first listed chain, and goes on from the last.

        Where a case has no other befores than these, this is its own first trial, and has its key.
        """
        before = self._before(unit, tested, sequence[:-1]) if len(sequence) > 1 else None
        case = unit.source.suite.cases[sequence[-1]]
        shared = self._shared(case)
        chain, origin = listed(case)[0]
        return Trial(
            tested=tested,
            case=case,
            source=unit.source,
            chain=chain,
            variation=0,
            run=1,
            runs=1,
            key=f"{self._key(unit, tested, case, shared, before)}-0-1",
            timeout=shared.timeout,
            context=shared.context,
            connector=self._connector(tested),
            siblings=1,
            origin=origin,
            before=before,
            leads=True,
        )


class _Shared(NamedTuple):
    """What the trials of a case have in common, whichever agent they are against."""

    said: msgspec.Raw
    context: dict[str, Any]
    timeout: float


def make_plan(
    sources: list[CaseSource],
    options: Options,
    wanted: Filter,
    root: Path,
    make_adapter: MakeAdapter,
    surroundings: dict[str, Any],
) -> Plan:
    """Resolve the agents and look for what can't work, before anything runs or costs money."""
    notes = Diagnostics()
    units: list[Unit] = []
    made: dict[tuple[str, str], Tested] = {}
    for source in sources:
        agents = []
        for named in resolve_agents(source, options.name, Project(root, surroundings["environment"]), notes):
            if isinstance(named.agent.config, PromptConfig) and options.given("connector"):
                named.agent.config.connector = options.connector
            tested = made.get(place := (str(named.base), named.agent.model_dump_json()))
            if tested is None:
                tested = _make(named, source, make_adapter, surroundings, notes)
            if tested is not None:
                made[place] = tested
                agents.append(tested)
        units.append(Unit(source, agents, CaseFiles(source.folder, source.fixtures, root)))
    plan = Plan(units, options, Identities(options), wanted)
    if not notes:
        _check_cases(plan, root, notes)
    if has_errors(notes):
        raise LoadError(notes)
    plan.warnings = list(notes)
    return plan


def _make(
    named: NamedAgent, source: CaseSource, make_adapter: MakeAdapter, surroundings: dict[str, Any], notes: Diagnostics
) -> Tested | None:
    around = Surroundings(base=named.base, search=(Path.cwd(), source.folder), **surroundings)
    try:
        adapter = make_adapter(named.agent, around)
    except ConfigurationError as error:
        notes.error("agent-configuration", f"agent `{named.agent.name}`: {error}", hint=error.hint)
        return None
    limit = getattr(named.agent.config, "parallel", None)
    hidden = named.secrets | adapter.secrets
    notes.extend(adapter.warnings)
    return Tested(named.agent, adapter, named.base, agent_digest(named, adapter), named.ad_hoc, limit, secrets=hidden)


def _check_cases(plan: Plan, root: Path, notes: Diagnostics) -> None:
    """What no adapter could ever show must not pass for lack of being seen."""
    for unit in plan.units:
        survey = unit.source.survey
        here = Diagnostics(unit.source.suite.path)
        for folder, examples in survey.workspaces.items():
            if not (unit.source.folder / folder).is_dir():
                for name, place in examples:
                    here.error("no-such-folder", f"case `{name}`: there is no folder {folder} to start with", place)
        for tested in unit.agents:
            doubtful = {one.index: one for (_, only), one in survey.doubtful.items() if tested.is_among(only)}
            for case in doubtful.values():
                for reason in unjudgeable(case, (tested.base, unit.source.folder, root)):
                    here.error("unjudgeable", f"case `{case.id}`: {reason}", case.place)
            for (need, only), examples in survey.needs.items():
                if met(need, tested.adapter.observes) or not tested.is_among(only):
                    continue
                for name, place in examples:
                    message = f"case `{name}`: agent `{tested.name}` can never report {need.why}"
                    here.error("unobservable", message, place, "drop the check, or let the agent speak protocol atp")
        if survey.narrowed and any(tested.ad_hoc for tested in unit.agents):
            here.warn("agents-ignored", "tests' own `agents:` lists are ignored, because -n names another agent")
        notes.extend(here)
