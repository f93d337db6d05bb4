"""The plan of a run: resolves agents, refuses what can't work, and yields the trials one after the other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError, has_errors
from atp.base.errors import ConfigurationError
from atp.checks.golden_files import golden_agent, snapshots_of
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.case_source import AskedGate, CaseSource, Variations, how_many, listed
from atp.engine.keys import CaseFiles, case_text, digest
from atp.engine.named_agent import NamedAgent
from atp.engine.planned_trial import Trial
from atp.engine.prepare.agents import Project, resolve_agents
from atp.engine.prepare.case_gates import check_gates, gate_of, is_adaptive
from atp.engine.prepare.filter import Filter
from atp.engine.prepare.identity import Identities
from atp.engine.prepare.impossible_cases import check_cases, place_warnings, unknown_connectors
from atp.engine.prepare.options import Options
from atp.engine.services import RunServices
from atp.history.quarantine import Quarantine
from atp.suite.agent import PromptConfig
from atp.suite.case import Case, Mode
from atp.suite.gates import Gate
from atp.suite.record import AUTO

if TYPE_CHECKING:
    from atp.engine.prepare.order import Order, Rank


@dataclass(slots=True)
class Unit:
    """A suite and the agents its cases run against."""

    source: CaseSource
    agents: list[AgentUnderTest]
    files: CaseFiles


@dataclass(slots=True)
class Plan:
    """What a run will do."""

    units: list[Unit]
    options: Options
    identities: Identities
    filter: Filter
    warnings: list[Diagnostic] = field(default_factory=list)
    quarantine: Quarantine = field(default_factory=Quarantine)
    """The cases whose failures are taken out of the exit code."""
    order: "Order | None" = None
    """Which cases run first; None for the order of the files."""
    variations: dict[tuple[int, int], Variations] = field(default_factory=dict)
    """By source and case: the prompts of cases that ask for more than they list, once these are made."""
    _repetitions: "dict[AskedGate, Repetition]" = field(default_factory=dict)

    def trials(self) -> Iterator[Trial]:
        """All trials, case by case."""
        if self.order is not None:
            yield from self._in_order(self.order)
            return
        for unit in self.units:
            yield from self._of_unit(unit)

    def _in_order(self, order: "Order") -> Iterator[Trial]:
        """All trials, those of cases with a lower rank first. A before comes no later than what goes on from it."""
        pairs: list[tuple[Unit, Case, AgentUnderTest]] = []
        ranks: dict[tuple[int, int, int], Rank] = {}
        for unit in self.units:
            for case in self._wanted_cases(unit):
                for tested in unit.agents:
                    rank = order.rank(unit.source.suite.path, tested.name, case.id)
                    for index in (case.index, *case.before_sequence):
                        place = id(unit), index, id(tested)
                        ranks[place] = min(rank, ranks.get(place, rank))
                    pairs.append((unit, case, tested))
        pairs.sort(key=lambda pair: ranks[id(pair[0]), pair[1].index, id(pair[2])])
        for unit, case, tested in pairs:
            yield from self.of_case(unit, case, tested)

    def _of_unit(self, unit: Unit) -> Iterator[Trial]:
        for case in self._wanted_cases(unit):
            yield from self.of_case(unit, case)

    def _wanted_cases(self, unit: Unit) -> Iterator[Case]:
        """The cases of a suite that are run, if an agent runs them."""
        for case in unit.source.cases():
            if not case.skip and not case.only_before and self.filter.wants(case):
                yield case

    def runs_case(self, unit: Unit, case: Case) -> bool:
        """Whether a case is run against any agent."""
        pairs = (self.filter.wants_pair(tested.name, case) for tested in unit.agents)
        return not case.skip and self.filter.wants(case) and any(pairs)

    def select(self, pairs: set[tuple[str, str]]) -> None:
        """Narrow the plan to some (agent, case) pairs; those of cases that their file leaves out included."""
        self.filter.only = pairs
        cases = {case for _, case in pairs}
        for unit in self.units:
            unit.source.survey.skipped = [case for case in unit.source.survey.skipped if case.id in cases]

    def counts(self) -> tuple[int, int]:
        """How many cases (each per agent) and trials there are; the most, where the number of runs is not fixed."""
        cases = trials = 0
        for unit in self.units:
            survey = unit.source.survey
            if survey.narrowed or self.filter.only is not None:
                for trial in self._of_unit(unit):
                    cases += trial.variation == 0 and trial.run == 1
                    trials += trial.runs if trial.min_runs else 1
                continue
            each = sum(number * self._runs(own) for own, number in survey.variations.items())
            cases, trials = cases + survey.count * len(unit.agents), trials + each * len(unit.agents)
        return cases, trials

    def run_counts(self) -> set[int]:
        """How often trials are repeated, at most: several numbers, where cases differ."""
        found: set[int] = set()
        for unit in self.units:
            asked: Iterable[int | None] = unit.source.survey.variations
            if self.filter.only is not None:
                cases = (case for case in unit.source.cases() if not case.only_before)
                asked = {case.runs for case in cases if self.runs_case(unit, case)}
            found.update(map(self._runs, asked))
        return found or {self._runs(None)}

    def _runs(self, of_case: int | None) -> int:
        """How often the trials of a case are repeated, at most; `of_case` is what the case says."""
        if is_adaptive(of_case, self.options):
            return self.options.max_runs
        runs: int = self.options.choose("runs", of_case)
        return runs

    @property
    def adaptive(self) -> bool:
        """Whether the number of runs is not fixed for all cases."""
        options = self.options
        return options.runs == AUTO and any(
            is_adaptive(runs, options) for unit in self.units for runs in unit.source.survey.variations
        )

    @property
    def longest_timeout(self) -> float:
        """The longest time that any trial may take, in seconds."""
        surveys = [unit.source.survey for unit in self.units]
        default = self.options.timeout if any(survey.needs_timeout for survey in surveys) else 0.0
        return max([default, *(survey.longest_timeout for survey in surveys)])

    @property
    def varied(self) -> bool:
        """Whether any case runs with more than one prompt."""
        return any(sum(unit.source.survey.variations.values()) > unit.source.survey.count for unit in self.units)

    def agents(self) -> list[AgentUnderTest]:
        """The agents, each once."""
        found = {id(one): one for unit in self.units for one in unit.agents}
        return list(found.values())

    def of_case(self, unit: Unit, case: Case, only: AgentUnderTest | None = None) -> Iterator[Trial]:
        """The trials of one case, against all agents of the suite or `only` one.

        Where the number of runs is not fixed, those of the first run.
        """
        varied = self.variations.get((id(unit.source), case.index)) or listed(case)
        asked = AskedGate(case.pass_rate, case.confidence, case.margin, case.runs, len(varied))
        shared = self._shared(case, varied, self._repetition(asked))
        for tested in unit.agents if only is None else (only,):
            if tested.is_among(case.agents) and self.filter.wants_pair(tested.name, case):
                before = self._before(unit, tested, case.before_sequence) if case.before_sequence else None
                yield from self._against(unit, tested, case, shared, before)

    def _against(
        self, unit: Unit, tested: AgentUnderTest, case: Case, shared: "Shared", before: Trial | None
    ) -> Iterator[Trial]:
        """The trials of a case against one agent."""
        source, varied, runs = unit.source, shared.varied, shared.runs
        case_digest, key = self._digests(unit, tested, case, shared, before)
        leads = case.index in source.survey.leading
        quarantine = self.quarantine.of(source.suite.path, case.id)
        for number, (chain, origin) in enumerate(varied):
            of_variation = key if origin is None or origin == "listed" else digest(key, chain)
            for run in range(1, 2 if shared.min_runs else runs + 1):
                yield Trial(
                    key=f"{of_variation}-{number}-{run}",
                    case_digest=case_digest,
                    agent=tested.name,
                    ad_hoc=tested.ad_hoc,
                    suite=source.suite,
                    case=case,
                    chain=chain,
                    variation=number,
                    origin=origin,
                    run=run,
                    runs=runs,
                    siblings=len(varied) * runs,
                    gate=shared.gate,
                    min_runs=shared.min_runs,
                    tested=tested,
                    source=source,
                    limits=shared.limits,
                    mode=shared.mode,
                    has_snapshots=shared.has_snapshots,
                    timeout=shared.timeout,
                    context=shared.context,
                    before=before,
                    is_before=leads and not number and run == 1,
                    quarantine=quarantine,
                )

    def _repetition(self, asked: AskedGate) -> "Repetition":
        """How the trials of a case are repeated. Worked out once for all cases that ask for the same."""
        found = self._repetitions.get(asked)
        if found is None:
            min_runs = self.options.min_runs if is_adaptive(asked.runs, self.options) else 0
            found = Repetition(self._runs(asked.runs), min_runs, gate_of(asked, self.options))
            self._repetitions[asked] = found
        return found

    def _shared(self, case: Case, varied: Variations, repetition: "Repetition") -> "Shared":
        limits = case.limits.given()
        timeout = limits.get("timeout_seconds", self.options.timeout)
        snapshots = bool(snapshots_of(case))
        context = self.identities.of(case)
        return Shared(case_text(case), context, limits, case.mode, snapshots, timeout, varied, *repetition)

    def _digests(
        self, unit: Unit, tested: AgentUnderTest, case: Case, shared: "Shared", before: Trial | None
    ) -> tuple[str, str]:
        """The hash of the case alone, and of all that decides its trials against an agent.

        Golden files are no part of the case: a run may write them, and each trial says what it was compared with.
        """
        content: list[Any] = [shared.content, unit.files.of(case, tested.base)]
        own = digest([*content, before.case_digest] if before else content)
        parts: list[Any] = [own, tested.inputs.digest, shared.context, self._connector(tested), shared.timeout]
        if shared.has_snapshots:
            agent = golden_agent(unit.source.suite, tested.column, tested.column_connector)
            parts += unit.files.golden(case, agent, how_many(case))
        return own, digest([*parts, before.key] if before else parts)

    def _connector(self, tested: AgentUnderTest) -> str | None:
        """The connector of the options that the trials of an agent depend on."""
        return self.options.one_connector or (tested.connector if self.options.connector else None)

    def _before(self, unit: Unit, tested: AgentUnderTest, sequence: list[int]) -> Trial:
        """The last of a sequence of befores: each runs once, with its first listed chain, and goes on from the last.

        Where a case has no other befores than these, this is its own first trial, and has its key.
        """
        before = self._before(unit, tested, sequence[:-1]) if len(sequence) > 1 else None
        case = unit.source.suite.cases[sequence[-1]]
        asked = AskedGate(case.pass_rate, case.confidence, case.margin, case.runs, 1)
        once = Repetition(1, 0, gate_of(asked, self.options))
        trial = next(self._against(unit, tested, case, self._shared(case, listed(case)[:1], once), before))
        trial.is_before = True
        return trial


class Repetition(NamedTuple):
    """How the trials of a case are repeated, and what is asked of them."""

    runs: int
    """How often; at most, where the number is not fixed."""
    min_runs: int
    """The least number of runs, where it is not fixed; else 0."""
    gate: Gate


class Shared(NamedTuple):
    """What the trials of a case have in common, whichever agent they are against."""

    content: msgspec.Raw
    """The case as JSON."""
    context: dict[str, Any]
    limits: dict[str, Any]
    mode: Mode
    has_snapshots: bool
    timeout: float
    varied: Variations
    runs: int
    min_runs: int
    gate: Gate


def make_plan(
    sources: list[CaseSource], options: Options, wanted: Filter, services: RunServices, *, is_recorded: bool = False
) -> Plan:
    """Resolve the agents, and report what can't work before anything runs or costs money. Raises `LoadError`.

    `is_recorded`: the runs of the cases are those of an earlier run.
    """
    notes, root = Diagnostics(), services.root
    units: list[Unit] = []
    made: dict[tuple[str, str], AgentUnderTest] = {}
    updates = options.update_snapshots
    found = [resolve_agents(source, options, Project(root, services.environment), notes) for source in sources]
    _check_connectors((named for agents in found for named in agents), services)
    for source, chosen in zip(sources, found, strict=True):
        agents = []
        for named in chosen:
            tested = made.get(place := (str(named.base), named.agent.model_dump_json()))
            if tested is None:
                tested = _make_agent(named, source, services, notes)
            if tested is not None:
                made[place] = tested
                agents.append(tested)
        files = CaseFiles(source.folder, source.fixtures, root, source.golden_folder, updates=updates)
        units.append(Unit(source, agents, files))
    plan = Plan(units, options, Identities(options), wanted)
    if not notes:
        for unit in units:
            notes.extend(check_cases(unit.source, unit.agents, root))
            notes.extend(check_gates(unit.source, options, is_recorded=is_recorded))
            find = services.unrecorded_model
            notes.extend(unknown_connectors(unit.source, unit.agents, options, find, services.warnings))
    if has_errors(notes):
        raise LoadError(notes)
    plan.warnings = list(notes)
    return plan


def _check_connectors(agents: Iterable[NamedAgent], services: RunServices) -> None:
    """Report connectors of the options that are not there, where prompts are to run on them. Raises `LoadError`.

    Agents of other kinds are told the name of the connector, and may have connectors of their own.
    """
    options = services.options
    wanted = {named.connector for named in agents if isinstance(named.agent.config, PromptConfig)}
    notes = Diagnostics("<command line>" if options.given("connector") else None)
    for connector in options.connector:
        if connector not in wanted:
            continue
        try:
            services.models.connector(connector)
        except ConfigurationError as error:
            spelled = "-c " if options.given("connector") else "the setting `connector`: "
            notes.error("no-connector", f"{spelled}{connector}: {error}", hint=error.hint)
    if notes:
        raise LoadError(notes)


def _make_agent(
    named: NamedAgent, source: CaseSource, services: RunServices, notes: Diagnostics
) -> AgentUnderTest | None:
    place, warned = named.agent.place, len(services.warnings)
    name = named.group or named.agent.name  # what is wrong with all columns of an agent is said once
    try:
        tested = services.agent_under_test(named, source)
    except ConfigurationError as error:
        here = Diagnostics(source.suite.path if place.line else None)
        here.error("agent-configuration", f"agent `{name}`: {error}", named.agent.place_of(error.key), error.hint)
        notes.extend(here)
        return None
    if place.line:
        place_warnings(services.warnings, warned, source.suite.path, place)
    notes.extend(tested.adapter.warnings)
    return tested
