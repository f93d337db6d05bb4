"""The numbers of all cases of a run that figures of a suite, a tag or an agent are made of.

They are kept in columns, a few bytes a case, because a run may have a million of them.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import isnan
from typing import NamedTuple

from atp.stats.case_counts import CaseCounts, VariationCounts
from atp.stats.judges import JudgeCriterion, JudgedVerdicts
from atp.stats.stability import is_judged
from atp.suite.metrics import MEASURED, measured
from atp.suite.result import CaseResult


class _Column:
    """The values of one metric, with the number of the case that each is of."""

    def __init__(self) -> None:
        self.cases = array("I")
        self.values = array("d")

    def of(self, case: int) -> "Sequence[float]":
        """The values of a case. Values are added case by case, so those of one case stand together."""
        cases = self.cases
        if 0 < case < len(cases) - 1 and cases[case] == case and cases[case - 1] != case != cases[case + 1]:
            return (self.values[case],)  # found at once where each case has one value, as in most runs
        return self.values[bisect_left(cases, case) : bisect_right(cases, case)]


_WIDTH = 7
"""How many numbers `RunNumbers` keeps of each case beside its metrics."""
CasePlace = tuple[int, int]
"""Which case a row is, whatever agent it ran against: the number of its file, and its place there."""


class CaseRates(NamedTuple):
    """The pass rate of a case, and what it is made of."""

    rate: float | None
    """Of the judged runs; None without any."""
    lowest: float
    """If every run in error had failed."""
    highest: float
    """If every run in error had passed."""
    passed: int
    """Runs that passed."""
    judged: int
    """Runs that say something of the agent."""
    runs: int
    """Judged runs and runs in error."""


@lru_cache(256)  # the cases of most runs come to few different counts
def _case_rates(passed: int, judged: int, errors: int) -> CaseRates | None:
    """The rates of a case by the counts of its runs; None without any."""
    runs = judged + errors
    if not runs:
        return None
    rate = passed / judged if judged else None
    return CaseRates(rate, passed / runs, (passed + errors) / runs, passed, judged, runs)


class RunNumbers:
    """Collects the numbers of cases as they end. A row is a case against an agent."""

    def __init__(self) -> None:
        self._agents: dict[str, int] = {}
        self._files: dict[str | None, int] = {}
        self._tag_sets: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._tags: list[tuple[str, ...]] = []
        self._rows = array("I")
        """`_WIDTH` numbers a row: agent, file, index, passed, judged, errors, missing."""
        self._more: dict[int, CaseCounts] = {}
        """The counts that don't fit into columns, by row: of several variations, or of `--runs auto`."""
        self._measured = array("d")
        """The metrics that ATP measures, of each judged trial: one for each of `MEASURED`, NaN if it is not known."""
        self._judged = array("I")
        """The row of each judged trial."""
        self._given: dict[str, _Column] = {}
        """The metrics that agents, checks and tests gave."""
        self._columns: dict[str, _Column] = {}
        """What was read of `_measured` since the last case was added."""
        self.judged = JudgedVerdicts()
        """The verdicts of judges."""
        self._judge_sets: dict[frozenset[JudgeCriterion], frozenset[JudgeCriterion]] = {}
        self._judges: dict[int, frozenset[JudgeCriterion]] = {}
        """By row: which judges decided about the case, and by which criteria."""

    def __len__(self) -> int:
        return len(self._tags)

    def add(self, case: CaseResult, counts: CaseCounts) -> None:
        """Add a case whose trials have ended, and that was not skipped. `counts` are its `case_counts`."""
        row = len(self._tags)
        tags = tuple(case.tags)
        self._tags.append(self._tag_sets.setdefault(tags, tags))
        if len(counts.variations) > 1 or counts.estimate is not None or counts.first is not None:
            self._more[row] = counts
        agent = self._agents.setdefault(case.agent, len(self._agents))
        file = self._files.setdefault(case.file, len(self._files))
        self._rows.extend((agent, file, case.index, *counts.total, counts.missing))
        self._columns.clear()
        if judges := self.judged.add(case):
            self._judges[row] = self._judge_sets.setdefault(judges, judges)
        for trial in case.counted:
            if is_judged(trial):
                self._judged.append(row)
                self._measured.extend(measured(trial))
                for name, value in trial.metrics.items():
                    metric = self._given.setdefault(name, _Column())
                    metric.cases.append(row)
                    metric.values.append(value)

    @property
    def agents(self) -> list[str]:
        """The agents, in the order in which their first cases ended."""
        return list(self._agents)

    @property
    def files(self) -> list[str | None]:
        """The files, in the order in which their first cases ended; None for cases of no file."""
        return list(self._files)

    @property
    def tags(self) -> list[str]:
        """The tags of all cases, sorted."""
        return sorted({tag for tags in self._tag_sets for tag in tags})

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics that some judged trial has: those that ATP measures first."""
        known = [*(name for name in MEASURED if self._column(name) is not None), *self._given]
        return sorted(known, key=lambda name: (name not in _ORDER, _ORDER.get(name, 0), name))

    def select(
        self, *, tag: str | None = None, agent: str | None = None, file: str | None = None, by_file: bool = False
    ) -> list[int]:
        """The rows with this tag, of this agent, of this file; `file` counts only if `by_file` is set."""
        agents, files = self._rows[0::_WIDTH], self._rows[1::_WIDTH]
        if tag is None and not by_file and (agent is None or [agent] == [*self._agents]):
            return list(range(len(self)))
        agent_number = None if agent is None else self._agents.get(agent, -1)
        file_number = self._files.get(file, -1) if by_file else None
        return [
            row
            for row, tags in enumerate(self._tags)
            if (tag is None or tag in tags)
            and (agent_number is None or agents[row] == agent_number)
            and (file_number is None or files[row] == file_number)
        ]

    def rows_by_tag(self) -> dict[str, list[int]]:
        """The rows of each tag, the tags sorted."""
        found: dict[str, list[int]] = {tag: [] for tag in self.tags}
        for row, tags in enumerate(self._tags):
            for tag in dict.fromkeys(tags):
                found[tag].append(row)
        return found

    def place(self, row: int) -> CasePlace:
        """The case of a row, the same for all agents."""
        return self._rows[row * _WIDTH + 1], self._rows[row * _WIDTH + 2]

    def counts(self, row: int) -> CaseCounts:
        """The runs of a row's case."""
        if (known := self._more.get(row)) is not None:
            return known
        passed, judged, errors, missing = self._rows[row * _WIDTH + 3 : (row + 1) * _WIDTH]
        return CaseCounts([VariationCounts(passed, judged, errors)] if judged or errors else [], missing)

    def rates(self, row: int) -> CaseRates | None:
        """The rates of a row's case; None if no run of it came to an end."""
        if row in self._more:
            counts = self._more[row]
            if not counts.variations:
                return None
            rates = counts.rate, counts.lowest or 0.0, counts.highest or 0.0
            return CaseRates(*rates, counts.passed, counts.judged, counts.judged + counts.errors)
        return _case_rates(*self._rows[row * _WIDTH + 3 : row * _WIDTH + 6])

    def judges(self, rows: Sequence[int]) -> set[JudgeCriterion]:
        """Which judges decided about the cases of these rows, and by which criteria."""
        return set().union(*{self._judges[row] for row in rows if row in self._judges})

    def values(self, metric: str, row: int) -> Sequence[float]:
        """The values of a metric in the judged runs of a row's case."""
        column = self._column(metric)
        return () if column is None else column.of(row)

    def single_values(self, metric: str, rows: Sequence[int]) -> list[float] | None:
        """The value of a metric in each of these rows, if every row is a case by itself with one value; else None."""
        column = self._column(metric)
        if column is None or len(self._agents) > 1 or column.cases != array("I", range(len(self))):
            return None
        values = column.values
        return values.tolist() if len(rows) == len(self) else [values[row] for row in rows]

    def has(self, metric: str) -> bool:
        """True if some judged trial has this metric."""
        return self._column(metric) is not None

    def _column(self, metric: str) -> _Column | None:
        """The values of a metric; None if no judged trial has it."""
        if metric not in MEASURED:
            return self._given.get(metric)
        column = self._columns.get(metric)
        if column is None:
            column = self._columns[metric] = _Column()
            values = self._measured[MEASURED.index(metric) :: len(MEASURED)]
            if isnan(sum(values)):  # some trials don't have it
                known = [number for number, value in enumerate(values) if not isnan(value)]
                column.cases.extend([self._judged[number] for number in known])
                column.values.extend([values[number] for number in known])
            else:
                column.cases.extend(self._judged)
                column.values.extend(values)
        return column if column.cases else None

    def cases(self, rows: Sequence[int]) -> Iterator[list[int]]:
        """The rows of each case: one, or one for each agent."""
        if len(self._agents) < 2:
            yield from ([row] for row in rows)
            return
        found: dict[CasePlace, list[int]] = {}
        for row in rows:
            found.setdefault(self.place(row), []).append(row)
        yield from found.values()


_ORDER = {name: number for number, name in enumerate(("duration_ms", "first_token_ms", "tokens", "cost_usd", "score"))}
