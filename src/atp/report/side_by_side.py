"""Puts the agents of a run side by side: a line for each case, a column for each agent, and the totals of each."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from atp.base.numbers import counted
from atp.base.secrets import Hide
from atp.history.compare import compare_with_first
from atp.history.figures import CaseFigures, FigureCollector
from atp.journal.listeners import Listener
from atp.journal.records import RunInfo
from atp.report.compare.words import column_sentence
from atp.report.records.figures import GridAgentRecord, GridCaseRecord, GridCellRecord, GridComparisonRecord, GridRecord
from atp.report.records.record import percents
from atp.stats.comparison import ColumnComparison
from atp.stats.group_figures import GroupFigures
from atp.suite.result import CaseResult


class Row(NamedTuple):
    """A case, and its figures against each agent, None where it did not run."""

    id: str
    file: str
    cells: list[CaseFigures | None]

    @property
    def differs(self) -> bool:
        """True if the case did not come to the same with all agents that it ran against."""
        return len({(cell.status, cell.rate) for cell in self.cells if cell is not None}) > 1


class SideBySide(Listener):
    """Collects the cases of a run with several agents. Of other runs it keeps nothing."""

    def __init__(self, hide: Hide) -> None:
        self._hide = hide
        self._figures = FigureCollector(hide)
        self.agents: list[str] = []
        """The names of the agents, which are the columns, in the order of the run."""
        self._compared: list[ColumnComparison] | None = None

    @property
    def is_needed(self) -> bool:
        """True if there are several agents."""
        return len(self.agents) > 1

    def start(self, info: RunInfo) -> None:
        """Look at how many agents there are."""
        self._figures.start(info)
        self.agents = list(dict.fromkeys(self._hide(name) for name in info.agents))

    def case(self, result: CaseResult) -> None:
        """Add a case that ended."""
        if self.is_needed:
            self._figures.case(result)

    def rows(self, most: int) -> tuple[list[Row], str]:
        """Return at most so many cases, and a sentence about the others. If not all fit, those that differ.

        There is none if every case ran against one agent only, as in a run of suites with an agent each.
        """
        found = self._rows()
        if not any(len(row.cells) - row.cells.count(None) > 1 for row in found):
            return [], ""
        if len(found) <= most:
            return found, ""
        differing = [row for row in found if row.differs]
        rest, alike = len(differing[most:]), len(found) - len(differing)
        left = [f"{counted(rest, 'more case')} in which agents differ"] if rest else []
        left += [f"{counted(alike, 'case')} in which all come to the same"] if alike else []
        return differing[:most], f"… and {', '.join(left)}"

    @property
    def repeated(self) -> bool:
        """True if a case has more than one run."""
        return any(_runs(case) > 1 for case in self._cases)

    @property
    def _cases(self) -> Sequence[CaseFigures]:
        return self._figures.figures(None).cases if self.is_needed else ()

    def _rows(self) -> list[Row]:
        places = {agent: number for number, agent in enumerate(self.agents)}
        found: dict[tuple[str, str, int], Row] = {}
        seen: dict[tuple[str, str, str], int] = {}
        for case in self._cases:
            if case.agent not in places:
                continue
            # A file may have two cases of the same id.
            number = seen[case.file, case.id, case.agent] = seen.get((case.file, case.id, case.agent), 0) + 1
            key = (case.file, case.id, number)
            row = found.setdefault(key, Row(case.id, case.file, [None] * len(self.agents)))
            row.cells[places[case.agent]] = case
        return list(found.values())

    def comparisons(self) -> list[ColumnComparison]:
        """Compare each further agent with the first, corrected for how many there are. Made once, when the run ends."""
        if self._compared is None:
            self._compared = compare_with_first(self._figures.figures(None), self.agents) if self.is_needed else []
        return self._compared

    def sentences(self) -> dict[str, str]:
        """Say how each further agent does beside the first, by its name, where a case was judged with both."""
        return {one.agent: column_sentence(one.overall) for one in self.comparisons() if one.overall.cases}

    def record(self, groups: Mapping[str, GroupFigures]) -> GridRecord:
        """Return the agents, cases and comparisons for the JSON report; `groups` has the figures of each agent."""
        rows = self._rows()
        figures = {self._hide(name): group for name, group in groups.items()}
        compared = {one.agent: one for one in self.comparisons()}
        return GridRecord(
            agents=[
                _agent_record(
                    name,
                    [cell for row in rows if (cell := row.cells[number]) is not None],
                    figures.get(name, GroupFigures(cases=0)),
                    compared.get(name),
                )
                for number, name in enumerate(self.agents)
            ],
            cases=[
                GridCaseRecord(id=row.id, file=row.file, results=list(map(_cell_record, row.cells))) for row in rows
            ],
        )


def cell_text(case: CaseFigures) -> str:
    """How often a case passed: `3/5`."""
    return f"{case.passed}/{_runs(case)}"


def ended_as(case: CaseFigures) -> str:
    """The status of a case, `failed` if an error or a timeout of the agent counts as that."""
    return "failed" if case.status in ("error", "timeout") and not case.in_error else case.status


def _runs(case: CaseFigures) -> int:
    return case.judged + case.errors + case.missing


def _cell_record(case: CaseFigures | None) -> GridCellRecord | None:
    return None if case is None else GridCellRecord(status=case.status, passed=case.passed, runs=_runs(case))


def _agent_record(
    name: str, cases: Sequence[CaseFigures], group: GroupFigures, compared: ColumnComparison | None
) -> GridAgentRecord:
    interval = None if group.interval is None else percents(group.interval)
    return GridAgentRecord(
        agent_id=name,
        cases=len(cases),
        passed=sum(case.status == "passed" for case in cases),
        pass_rate=None if group.pass_rate is None else round(100 * group.pass_rate, 1),
        pass_rate_interval=None if interval is None else (interval[0], interval[1]),
        compared_with_first=None if compared is None else _comparison_record(compared),
    )


def _comparison_record(compared: ColumnComparison) -> GridComparisonRecord:
    overall = compared.overall
    return GridComparisonRecord(
        kind=overall.kind,
        observed=overall.observed,
        difference=overall.difference,
        interval=overall.interval,
        p_value=overall.p_value,
        cases=overall.cases,
        regressed=compared.regressed,
        improved=compared.improved,
    )
