"""Judges what the journal of an earlier run holds, with today's checks, limits and judge, into a run of its own.

The plan, the run and the judging are those of every run. Only the conversations come from the journal.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atp.agents.adapter import Adapter, AdapterContext, AgentError, Reply, TurnRequest
from atp.base.diagnostics import Diagnostic, LoadError, load_error
from atp.base.numbers import counted
from atp.base.project import keeping_working_directory
from atp.base.secrets import masking
from atp.base.text import one_line
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.case_source import CaseSource, Variations, is_varied, listed
from atp.engine.named_agent import NamedAgent
from atp.engine.planned_trial import Trial
from atp.engine.prepare.calibrated import calibrations_for
from atp.engine.prepare.case_gates import adaptive_gate
from atp.engine.prepare.generated import generate_source, names_script_tests
from atp.engine.prepare.options import Options
from atp.engine.prepare.plan import Plan, Shared, Unit, make_plan
from atp.engine.prepare.prepare import no_case_left, read_quarantine
from atp.engine.prepare.resume import FinishedTrials
from atp.engine.prepare.roles import missing_judges
from atp.engine.prepare.settings import environment, environment_secrets, environment_warnings, resolve_options
from atp.engine.prepare.sources import Input, is_message, is_reference, load_context, open_input
from atp.engine.run import Run
from atp.engine.run_context import RunContext
from atp.engine.services import RunServices
from atp.engine.trial.trial import TrialRunner
from atp.journal.find import find_run, run_at
from atp.journal.folder import RunFolder
from atp.journal.read import bounds
from atp.journal.recorded_run import RecordedRun
from atp.journal.recorded_trials import CasePlace, RecordedTrials
from atp.journal.records import AgentInputs, RunInfo
from atp.suite.case import Case
from atp.suite.record import AUTO
from atp.usercode.environment import extended_environ
from atp.usercode.importing import check_project_path

INHERITED = (
    *("name", "connector", "user", "team", "locale", "ctx", "simulator", "assessor", "role_connector"),
    *("judge_each", "weak_judge", "timeout", "run", "tags", "pass_rate", "confidence", "margin", "gates"),
)
"""Settings that the earlier run was given on its command line, and that hold again unless they are given again."""
MEANINGLESS = (
    *("before_all", "after_all", "budget_usd", "budget_tokens", "max_time", "generator", "record", "replay"),
    *("fail_fast", "max_errors", "keep_workspaces", "keep_failed"),
)
"""Settings of files and the environment that are about agents at work, or that spare their calls."""
MOST_NAMED = 10
"""Cases that a note names."""


def prepare_recheck(name: str, files: Sequence[str], flags: Mapping[str, Any], root: Path) -> "Recheck":
    """Load, plan and check what judging a run again takes. Raises `LoadError` before anything is judged.

    `name` is what people call the run, `files` are to be loaded in place of those of the run, `root` is the project's.
    """
    with keeping_working_directory():
        env = environment(root, flags.get("env_file"))
        secrets = environment_secrets(env)
        with masking(secrets):
            run = find_run(root, name)
            named = RecordedRun(run).info
            recorded = RecordedTrials(_origin(run))
            given = {key: value for key, value in named.given_options.items() if key in INHERITED}
            options = resolve_options({**given, **flags}, root, env)
            judgings = options.runs if "runs" in flags else 1
            if judgings == AUTO:
                message = "--runs of atp recheck says how often each conversation is judged, and can't be auto"
                raise load_error("contradiction", message, "give a number: --runs 5")
            unset = {key: type(options).model_fields[key].default for key in MEANINGLESS}
            unset |= _runs_of(recorded.info, options) | ({"judge_cache": False} if judgings > 1 else {})
            options = options.model_copy(update=unset)
            given_input, notes = _input_of(named, files)
            context = RunContext(options, root, env, given_input.anchor, secrets)
            recheck = _prepare(given_input, recorded, context, judgings)
        recheck.notes[:0] = notes
        return recheck


def _runs_of(info: RunInfo, options: Options) -> dict[str, Any]:
    """How often trials were run, as options: one run, where no case had `--runs auto`, because the journal says more.

    The flag `--runs` of a recheck says something else, so only that of the earlier run goes before what cases say.
    """
    runs = AUTO if info.adaptive else 1
    return {
        "runs": runs,
        "lower": options.lower - {"runs"} if "runs" in info.given_options else options.lower | {"runs"},
    }


def _origin(run: Path) -> Path:
    """The run that the conversations of a run come from: the one that a recheck judged again, if it is still there."""
    start, _ = bounds(run)
    while start is not None and start.rechecks is not None and (origin := run_at(run.parent / start.rechecks)):
        run, (start, _) = origin, bounds(origin)
    return run


def _input_of(info: RunInfo, files: Sequence[str]) -> tuple[Input, list[str]]:
    """The files to load, and notes about those of the run that are gone."""
    if files:
        return Input((), tuple(files)), []
    tests = tuple(filter(names_script_tests, info.input))
    files = [one for one in info.files if one and not (tests and one.endswith(".py"))]
    there = [one for one in files if os.path.exists(one)]
    gone = [one for one in files if one not in there]
    texts = tuple(one for one in info.input if is_message(one) and not is_reference(one)) if "" in info.files else ()
    texts += tests
    if not there and not texts:
        message = f"the run {info.id} has no test file that is still there"
        raise load_error("nothing-to-recheck", message, "name the files: atp recheck RUN FILE")
    return Input(texts, tuple(there)), [f"the file {one} is gone, and its cases are left out" for one in gone]


def _prepare(given_input: Input, recorded: RecordedTrials, context: RunContext, judgings: int) -> "Recheck":
    options, root = context.options, context.root
    check_project_path(root)
    loading = load_context(options, context.env)
    sources, found = open_input(given_input, loading, context.filter.wants, context.agent_tools)
    for text in filter(is_reference, given_input.texts):
        source, said = generate_source(text, loading, context)
        sources.append(source)
        found += said
    found = [*environment_warnings(context.env), *found]
    try:
        for source in sources:
            context.secrets.add(source.suite.secrets)
        if recorded.has_all_cases and (recorded.info.options.get("only_failed") or not recorded.info.cases):
            # other cases were never to be run
            context.filter.only = {(place.agent, place.case) for place in recorded.places()}
        with extended_environ(context.env):
            services = _RecordedAgents(context, recorded)
            planned = make_plan(sources, options, context.filter, services, is_recorded=True)
        plan = RecheckPlan(
            planned.units, options, planned.identities, planned.filter, planned.warnings, recorded=recorded
        )
        missing = [one for unit in plan.units for one in missing_judges(unit.source, context.roles)]
        if missing:
            raise LoadError(missing)
        calibrations = calibrations_for(plan, context)
        plan.take_over_variations()
        unused = read_quarantine(plan, given_input.identity(root), root)
        found += [*plan.warnings, *dict.fromkeys(context.services.warnings), *unused]
        if options.strict and found:
            raise LoadError(found)
        if not any(unit.source.survey.count or unit.source.survey.skipped for unit in plan.units):
            raise no_case_left(options, sources)
    except LoadError as error:
        raise LoadError(dict.fromkeys([*found, *error.diagnostics])) from error
    recheck = Recheck(context, given_input, plan, found, recorded, judgings)
    recheck.calibrations = calibrations
    return recheck


class _RecordedAdapter(Adapter):
    """Stands for an agent that is not called: nothing of it is loaded."""

    async def turn(self, request: TurnRequest) -> Reply:
        raise AgentError("no agent is called when a run is judged again", "internal")


class _RecordedAgents(RunServices):
    """Finds the agents of a run that is judged again, as files and flags describe them. No adapter is made."""

    def __init__(self, context: RunContext, recorded: RecordedTrials) -> None:
        super().__init__(context.options, context.root, context.env, {}, secrets=context.secrets)
        self._inputs = recorded.info.agent_inputs

    def agent_under_test(self, named: NamedAgent, source: CaseSource) -> AgentUnderTest:
        """An agent whose answers are recorded."""
        self.secrets.add(named.secrets)
        adapter = _RecordedAdapter(named.agent, AdapterContext(base=named.base, root=self.root))
        adapter.capabilities = named.capabilities
        inputs = self._inputs.get(self.secrets.mask_text(named.agent.name), AgentInputs())
        return AgentUnderTest(named, adapter, inputs, self.connector_of(named))

    def unrecorded_model(self, connector: str | None, needed_by: str) -> Any:
        """No model is asked for an agent, so none has to be there."""


@dataclass(slots=True, kw_only=True)
class RecheckPlan(Plan):
    """The trials of an earlier run, with the cases as they are today."""

    recorded: RecordedTrials

    def _place(self, unit: Unit, agent: str, case: Case) -> CasePlace:
        return self.recorded.place(unit.source.suite.path, agent, case.id)

    def _against(
        self, unit: Unit, tested: AgentUnderTest, case: Case, shared: Shared, before: Trial | None
    ) -> Iterator[Trial]:
        """The trials of a case against one agent, as often as they were run.

        Where the number of runs was not fixed, the recorded ones pass through the test that decides such a case.
        Where a stop cut the case short, those that never ran are planned, and not there: it is cut short again.
        """
        place, gate = self._place(unit, tested.name, case), shared.gate
        about, ran = self.recorded.about(place), self.recorded.runs(place) or 1
        planned, min_runs = ran, 0
        if about is not None and about.min_runs and shared.min_runs and gate.rate is not None:
            planned, min_runs = max(ran, about.planned_runs), about.min_runs
        elif about is not None and about.min_runs:  # `--runs auto`, which is not inherited, asked for a confidence
            gate = adaptive_gate(gate)
        elif about is not None:
            planned = max(ran, about.planned_runs)
        asked = shared._replace(runs=planned, gate=gate, min_runs=min_runs)
        for trial in Plan._against(self, unit, tested, case, asked, before):
            if about is not None and min_runs:
                trial.recorded_runs, trial.recorded_stop = ran, self.recorded.stopped_by(place)
                trial.other_runs = about.other_runs
                yield trial
            elif trial.run <= ran:
                trial.other_runs = gate.confidence is not None and self.recorded.was_looked_at(place)
                yield trial

    def counts(self) -> tuple[int, int]:
        """How many cases (each per agent) and trials there are."""
        cases = trials = 0
        for trial in self.trials():
            cases, trials = cases + (trial.variation == 0 and trial.run == 1), trials + (trial.recorded_runs or 1)
        return cases, trials

    def run_counts(self) -> set[int]:
        """How often trials are repeated: several numbers, where cases differ."""
        return {trial.recorded_runs or trial.runs for trial in self.trials()} or {1}

    def take_over_variations(self) -> None:
        """Take the prompts that were generated for the earlier run from its conversations."""
        for unit in self.units:
            if unit.source.survey.varied:
                for case in unit.source.cases():
                    if is_varied(case):
                        self.variations[id(unit.source), case.index] = self._varied(unit, case)

    def _varied(self, unit: Unit, case: Case) -> Variations:
        found: Variations = list(listed(case))
        said: dict[int, tuple[list[str] | None, Any]] = {}
        for tested in unit.agents:
            for number, result in self.recorded.variations(self._place(unit, tested.name, case)).items():
                said[number] = [str(turn.input) for turn in result.transcript.turns], result.origin
        for number in range(len(found), case.iterations or 0):
            found.append(said.get(number, (found[-1][0], "generated")))
        return found

    def pair_files(self) -> list[str]:
        """Take a file that the run did not have for the one of its files with the same cases. Returns notes."""
        notes = []
        for unit in self.units:
            path, agents = unit.source.suite.path, [tested.name for tested in unit.agents]
            if path and (known := self.recorded.take_for(path, agents, (case.id for case in unit.source.cases()))):
                notes.append(f"{path} is taken for {known} of that run, by the ids of its cases")
        return notes

    def left_out(self) -> list[CasePlace]:
        """The cases of the loaded files that the earlier run has, and that the plan has no longer."""
        files = {self.recorded.place(unit.source.suite.path, "", "").file for unit in self.units}
        known: set[CasePlace] = set()
        for unit in self.units:
            for case in unit.source.cases():
                known |= {self._place(unit, tested.name, case) for tested in unit.agents}
        return [place for place in self.recorded.places() if place.file in files and place not in known]


class Recheck(Run):
    """A run that judges the conversations of an earlier one."""

    calls_agents = False
    plan: RecheckPlan

    def __init__(
        self,
        context: RunContext,
        given_input: Input,
        plan: RecheckPlan,
        warnings: list[Diagnostic],
        recorded: RecordedTrials,
        judgings: int,
    ) -> None:
        """`judgings` is how often each conversation is judged."""
        super().__init__(context, given_input, plan, warnings)
        self.recorded = recorded
        self.judgings = judgings
        self.notes = [f"judges the run {recorded.info.id} again, and calls no agent"]
        """What a person should know before the run starts."""
        self.notes += plan.pair_files()
        if left := plan.left_out():
            names = ", ".join(f"`{one_line(place.case, 60)}`" for place in left[:MOST_NAMED])
            more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
            gone = counted(len(left), "case")
            self.notes.append(f"{gone} of that run, no longer in the files, left out: {names}{more}")

    async def _vary(self) -> list[str]:
        return self.notes  # the prompts are those that were recorded

    def make_runner(self) -> TrialRunner:
        """What judges the trials of the plan."""
        from atp.engine.trial.rechecked import RecheckRunner

        return RecheckRunner(self.context, self.recorded, self.judgings)

    def _make_info(self, folder: RunFolder, done: FinishedTrials, *, counted: bool) -> RunInfo:
        info, before = super()._make_info(folder, done, counted=counted), self.recorded.info
        info.rechecks = before.id
        info.connector, info.models = before.connector, {**before.models, **info.models}
        return info
