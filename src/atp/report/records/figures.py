"""The records of figures over several cases: metrics, groups of cases, gates, and agents side by side."""

from math import isfinite
from typing import Any, Literal, Self

from msgspec import UNSET, UnsetType

from atp.journal.listeners import RunEnd
from atp.report.records.record import Count, Interval, Limits, Number, Percent, Record, Share, percents, rounded
from atp.stats.comparison import Class, Observed
from atp.stats.group_figures import GroupFigures, MetricFigures, run_groups
from atp.stats.suite_gates import GateResult
from atp.suite.result import CaseStatus, Decision


class MetricRecord(Record, kw_only=True):
    """A metric over the judged runs: of one case, or of a group of `cases`. Limits that are not known are null."""

    cases: Count | UnsetType = UNSET
    runs: Count
    mean: float
    mean_interval: Limits | UnsetType = UNSET
    median: float
    median_interval: Limits | UnsetType = UNSET
    p95: float
    p95_interval: Limits | UnsetType = UNSET

    @classmethod
    def of(cls, found: MetricFigures, *, of_case: bool = False) -> Self:
        """The record of a metric. Of a case that ran once, there is nothing to say about other runs."""
        made = cls(runs=found.runs, mean=rounded(found.mean), median=rounded(found.median), p95=rounded(found.p95))
        if not of_case:
            made.cases = found.cases
        if found.runs > 1:
            for name in ("mean_interval", "median_interval", "p95_interval"):
                if (interval := getattr(found, name)) is not None and any(map(isfinite, interval)):
                    setattr(made, name, [rounded(limit) if isfinite(limit) else None for limit in interval])
        return made


class GroupRecord(Record, kw_only=True):
    """The cases of an agent, of a file or with a tag. The interval is there from 5 cases on."""

    name: str
    cases: Count
    pass_rate: Percent | None
    pass_rate_interval: Interval | UnsetType = UNSET
    se_runs: Number | UnsetType = UNSET
    metrics: dict[str, MetricRecord]

    @classmethod
    def of(cls, name: str, found: GroupFigures) -> Self:
        """The record of a group."""
        metrics = {metric: MetricRecord.of(figures) for metric, figures in found.metrics.items()}
        return cls(name=name, cases=found.cases, metrics=metrics, **rate_fields(found))


class GroupsRecord(Record, kw_only=True):
    """The figures of all groups of cases."""

    agents: list[GroupRecord]
    files: list[GroupRecord]
    tags: list[GroupRecord]

    @classmethod
    def of(cls, end: RunEnd) -> Self:
        """The record of a run's groups."""
        found = run_groups(end.numbers)
        kinds = {"agents": found.agents, "files": found.files, "tags": found.tags}
        return cls(
            **{kind: [GroupRecord.of(name, group) for name, group in groups.items()] for kind, groups in kinds.items()}
        )


def run_metrics(end: RunEnd) -> dict[str, MetricRecord]:
    """The metrics of all cases of a run."""
    return {name: MetricRecord.of(figures) for name, figures in run_groups(end.numbers).all.metrics.items()}


def rate_fields(group: GroupFigures) -> dict[str, Any]:
    """The pass rate of a group of cases in percent, where it lies, and its standard error over other runs."""
    made: dict[str, Any] = {"pass_rate": None if group.pass_rate is None else round(100 * group.pass_rate, 2)}
    if group.interval is not None:
        made["pass_rate_interval"] = percents(group.interval)
    if group.se_runs is not None:
        made["se_runs"] = round(100 * group.se_runs, 2)
    return made


class GateRecord(Record, kw_only=True):
    """What a gate came to. `value`, `interval` and `with_errors` have the unit that the gate's text has.

    `known_cases` is there if not all cases have a value; the others, if runs ended in errors that are not the agent's:
    `value` is of the `judged_runs`, and `with_errors` says where it would lie if the `errors` had been judged.
    `doubt` is there if the gate rests on a judge that was never calibrated.
    """

    gate: str
    outcome: Decision
    value: float | None
    interval: Limits | None
    basis: Literal["observed", "approximate", "exact"]
    cases: Count
    known_cases: Count | UnsetType = UNSET
    judged_runs: Count | UnsetType = UNSET
    errors: Count | UnsetType = UNSET
    with_errors: list[float] | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    file: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    doubt: str | UnsetType = UNSET

    @classmethod
    def of(cls, gate: GateResult) -> Self:
        """The record of a gate."""
        return cls(
            gate=gate.gate,
            outcome=gate.outcome,
            value=None if gate.value is None else rounded(gate.value),
            interval=None
            if gate.interval is None
            else [None if limit is None else rounded(limit) for limit in gate.interval],
            basis=gate.basis,
            cases=gate.cases,
            known_cases=UNSET if gate.known_cases == gate.cases else gate.known_cases,
            judged_runs=gate.judged_runs if gate.errors else UNSET,
            errors=gate.errors or UNSET,
            with_errors=UNSET if gate.with_errors is None else list(map(rounded, gate.with_errors)),
            agent=UNSET if gate.agent is None else gate.agent,
            file=UNSET if gate.file is None else gate.file,
            reason=UNSET if gate.reason is None else gate.reason,
            doubt=UNSET if gate.doubt is None else gate.doubt,
        )


class GridCellRecord(Record, kw_only=True):
    """A case against one agent: of how many `runs` it passed. Runs without a verdict have not passed."""

    status: CaseStatus
    passed: Count
    runs: Count


class GridCaseRecord(Record, kw_only=True):
    """A case against each agent, in the order of `agents`; null if it did not run against one."""

    id: str
    file: str
    results: list[GridCellRecord | None]


class GridComparisonRecord(Record, kw_only=True, rename={"kind": "class"}):
    """An agent compared with the first agent of the run, as in `atp compare`: differences are in percentage points.

    `p_value` and `class` are corrected for how many agents are compared with the first (Holm); `interval`, of 95%, is
    not. `regressed` and `improved` count cases.
    """

    kind: Class
    observed: Observed | None
    difference: float | None
    interval: tuple[float, float] | None
    p_value: Share | None
    cases: Count
    regressed: Count
    improved: Count


class GridAgentRecord(Record, kw_only=True):
    """What the cases of one agent come to. `pass_rate` is the mean of the cases' rates, null if none was judged.

    `pass_rate_interval` says where that lies for other cases like these, with 95% confidence; null below 5 cases.
    `compared_with_first` is null for the first agent.
    """

    agent_id: str
    cases: Count
    passed: Count
    pass_rate: Percent | None
    pass_rate_interval: tuple[Percent, Percent] | None
    compared_with_first: GridComparisonRecord | None


class GridRecord(Record, kw_only=True):
    """The agents of a run side by side. In reports of runs with several agents."""

    agents: list[GridAgentRecord]
    cases: list[GridCaseRecord]
