"""The figures of a group of cases (a suite, a tag, an agent, a file): pass rate and metrics, each with its interval."""

from collections.abc import Sequence
from functools import lru_cache
from math import fsum

from msgspec import Struct, field

from atp.stats.averages import mean
from atp.stats.intervals import Interval, mean_interval, percentile, percentile_interval, se_runs, suite_interval
from atp.stats.run_numbers import RunNumbers
from atp.suite.metrics import MEASURED

MOST_GROUPS = 200
"""The most tags and the most files that are reported: a tag a case would make a report of nothing else."""


class MetricFigures(Struct, kw_only=True):
    """A metric over the judged runs of some cases. Intervals have the confidence 95%."""

    cases: int
    """How many cases have a value."""
    runs: int
    """How many runs have a value."""
    mean: float
    """The mean over the cases of each case's mean."""
    mean_interval: Interval | None = None
    """Where the mean lies for other cases like these, approximately; None below 5 cases, or if all are the same."""
    median: float
    """The median over all runs."""
    median_interval: Interval | None = None
    """Where the median lies; an end is infinite where too few values were seen."""
    p95: float
    """The value that 95% of the runs don't exceed."""
    p95_interval: Interval | None = None
    """Where that value lies; an end is infinite where too few values were seen."""


class GroupFigures(Struct, kw_only=True):
    """A group of cases. Shares are from 0 to 1."""

    cases: int
    """How many cases were judged, each once, however many agents it ran against."""
    pass_rate: float | None = None
    """The mean of the cases' pass rates; None if no case was judged."""
    interval: Interval | None = None
    """Where the pass rate lies for other cases like these, with 95% confidence; None below 5 cases."""
    se_runs: float | None = None
    """The standard error of the pass rate for these cases and other runs; None if a case has fewer than 2 runs."""
    metrics: dict[str, MetricFigures] = field(default_factory=dict)
    """The metrics, by name."""


class RunGroups(Struct, kw_only=True):
    """The figures of a run, and of the groups of its cases."""

    all: GroupFigures
    """All cases."""
    agents: dict[str, GroupFigures] = field(default_factory=dict)
    """The cases of each agent."""
    files: dict[str, GroupFigures] = field(default_factory=dict)
    """The cases of each file, where there are several."""
    tags: dict[str, GroupFigures] = field(default_factory=dict)
    """The cases with each tag."""


def run_groups(numbers: RunNumbers) -> RunGroups:
    """The figures of a run."""
    return _run_groups(numbers, len(numbers))


@lru_cache(1)  # several reports ask for those of the same run
def _run_groups(numbers: RunNumbers, _cases: int) -> RunGroups:
    everything = range(len(numbers))
    whole = group_figures(numbers, everything)

    def figures(rows: Sequence[int]) -> GroupFigures:
        return whole if len(rows) == len(everything) else group_figures(numbers, rows)

    files = numbers.files[:MOST_GROUPS] if len(numbers.files) > 1 else []
    tags = list(numbers.rows_by_tag().items())[:MOST_GROUPS]
    return RunGroups(
        all=whole,
        agents={name: figures(numbers.select(agent=name)) for name in numbers.agents},
        files={name or "": figures(numbers.select(file=name, by_file=True)) for name in files},
        tags={tag: figures(rows) for tag, rows in tags},
    )


def group_figures(numbers: RunNumbers, rows: Sequence[int]) -> GroupFigures:
    """The figures of the cases in these rows."""
    found = rate_figures(numbers, rows)
    metrics = {name: metric_figures(numbers, name, rows) for name in numbers.metrics}
    found.metrics = {name: of for name, of in metrics.items() if of is not None}
    return found


def rate_figures(numbers: RunNumbers, rows: Sequence[int]) -> GroupFigures:
    """The pass rate of the cases in these rows, without their metrics."""
    rates, lowest, highest, runs, counts = [], [], [], [], []
    for case in numbers.cases(rows):
        found = [one for row in case if (one := numbers.rates(row)) is not None]
        if not found:
            continue
        counts += [(one.passed, one.judged) for one in found if one.judged]
        if len(found) == 1:  # as in every run with one agent
            rate, low, high, _, _, number = found[0]
        else:
            rate = mean([one.rate for one in found if one.rate is not None])
            low, high = fsum(one.lowest for one in found) / len(found), fsum(one.highest for one in found) / len(found)
            number = sum(one.runs for one in found)
        lowest.append(low)
        highest.append(high)
        runs.append(number)
        if rate is not None:
            rates.append(rate)
    return GroupFigures(
        cases=len(rates),
        pass_rate=mean(rates),
        interval=suite_interval(lowest, runs, highest) if rates else None,
        se_runs=se_runs(counts),
    )


def metric_figures(numbers: RunNumbers, metric: str, rows: Sequence[int]) -> MetricFigures | None:
    """The figures of a metric over the cases in these rows; None if no run of theirs has it."""
    means: list[float] = []
    values: list[float] = []
    if (single := numbers.single_values(metric, rows)) is not None:
        means = values = single
    else:
        for case in numbers.cases(rows):
            own = [value for row in case for value in numbers.values(metric, row)]
            if (middle := mean(own)) is not None:
                means.append(middle)
                values += own
    figures = figures_of(values, means)
    if figures is not None and figures.mean_interval is not None and metric in MEASURED:
        low, high = figures.mean_interval
        figures.mean_interval = Interval(max(low, 0.0), min(high, 100.0) if metric == "score" else high)
    return figures


def figures_of(values: Sequence[float], means: Sequence[float]) -> MetricFigures | None:
    """The figures of values of which there are `means` of independent cases; None without values."""
    if not values:
        return None
    cases, values = len(means), sorted(values)  # once, and not for each of the figures
    return MetricFigures(
        cases=cases,
        runs=len(values),
        mean=mean(means) or 0.0,
        mean_interval=mean_interval(means),
        median=percentile(values, 0.5) or 0.0,
        median_interval=percentile_interval(values, 0.5, cases=cases),
        p95=percentile(values, 0.95) or 0.0,
        p95_interval=percentile_interval(values, 0.95, cases=cases),
    )
