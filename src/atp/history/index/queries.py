"""What the index answers: the history of a case, flaky cases, cost, the trend of runs, durations."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import fsum, isfinite
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from atp.history.index.index import Index
from atp.history.index.rows import BLAMES, Kind
from atp.history.index.schema import ALL_AGENTS
from atp.stats.averages import mean
from atp.stats.flaky import FlakyBlame
from atp.stats.group_figures import figures_of
from atp.stats.intervals import Interval, case_interval, mean_interval
from atp.suite.result import CaseStatus

Period = Literal["day", "week", "month"]
"""What costs are added up by."""
NODE = "::"
"""Stands between a file and the id of a case, where the id alone may mean several."""


class Scope(NamedTuple):
    """Which runs a question is about."""

    agent: str | None = None
    """Only this agent."""
    branch: str | None = None
    """Only runs of this branch of git."""
    since: float | None = None
    """Only runs that started then or later, in seconds since 1970."""
    limit: int | None = None
    """At most so many rows."""

    def runs(self, *kinds: Kind) -> tuple[str, list[Any]]:
        """The condition on the table `run`, with its parameters; `kinds` are those that count, by default all."""
        conditions: list[str] = []
        values: list[Any] = []
        for condition, value in (("run.git_branch = ?", self.branch), ("run.started_at >= ?", self.since)):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        if kinds:
            conditions.append(f"run.kind IN ({', '.join('?' * len(kinds))})")
            values += kinds
        return " AND ".join(conditions) or "1 = 1", values

    def cases(self) -> tuple[str, list[Any]]:
        """The condition on the table `test_case`, with its parameters."""
        return ("1 = 1", []) if self.agent is None else ("test_case.agent = ?", [self.agent])

    @property
    def _most(self) -> str:
        return "" if self.limit is None else f" LIMIT {self.limit:d}"


AGENT_KINDS: tuple[Kind, ...] = ("all", "part", "failed")
"""The runs in which agents ran: a recheck is no new evidence of them."""


def _not_left_out(runs: str) -> str:
    """The condition of `Scope.runs` on the table `result`: few runs are left out, so this is faster than a join."""
    return f"result.run_no NOT IN (SELECT run.run_no FROM run WHERE CASE WHEN {runs} THEN 0 ELSE 1 END = 1)"


class Found(NamedTuple):
    """The rows of an answer."""

    rows: Sequence[Any]
    """As many as were asked for."""
    total: int
    """How many there are."""


class CaseRun(Struct, kw_only=True):
    """A case in a run, against one agent."""

    run: str
    """The run's id."""
    at: float
    """Seconds since 1970: when the run started."""
    commit: str | None
    """The commit of git that was checked out."""
    branch: str | None
    """The branch of git."""
    dirty: bool | None
    """Whether files that git knows differed from the commit."""
    file: str
    """The case's file, as a path from the project's root."""
    agent: str
    """The agent's name."""
    status: CaseStatus
    """What its runs came to."""
    runs: int
    """How often it ran in that run."""
    passed: int
    """How many of these passed."""
    errors: int
    """How many ended in an error that is not the agent's."""
    rate: float | None
    """The pass rate of those that were judged, from 0 to 1."""
    interval: Interval | None
    """Where the rate lies in the long run, with 95% confidence."""
    flaky: FlakyBlame | None
    """Whose fault it is that its runs differ, if they do."""
    changed: bool
    """True if the case, its agent, its judge or its simulated user was another than in the run before."""
    duration_ms: float | None
    """The median duration of the judged runs."""
    cost_usd: float | None
    """What the agent said they cost together."""
    recheck: bool
    """True if the run judged the conversations of another run again, and called no agent."""


def case_history(index: Index, name: str, scope: Scope = Scope()) -> list[CaseRun]:  # noqa: B008
    """What a case came to in each run, newest first. `name` is its id, or its file and its id with `::` between."""
    for condition, values in _meanings(name):
        runs, of_runs = scope.runs()
        cases, of_cases = scope.cases()
        found = index.database.query(
            "SELECT run.id, run.started_at, run.git_commit, run.git_branch, run.dirty, run.kind, test_case.case_no, "
            "test_case.file, test_case.agent, result.status, result.runs, result.passed, result.judged, result.errors, "
            "result.rate, result.low, result.high, result.blame, result.version, result.duration_ms, result.cost_usd "
            "FROM test_case JOIN result ON result.case_no = test_case.case_no "
            "JOIN run ON run.run_no = result.run_no "
            f"WHERE {condition} AND {runs} AND {cases} "
            "ORDER BY run.started_at, run.id, test_case.agent, test_case.file, test_case.number",
            [*values, *of_runs, *of_cases],
        )
        if found:
            return _case_runs(found)[: scope.limit]
    return []


def _meanings(name: str) -> Iterable[tuple[str, list[str]]]:
    yield "test_case.id = ?", [name]
    file, node, case = name.partition(NODE)
    if node:
        yield "test_case.file = ? AND test_case.id = ?", [file, case]


def _case_runs(found: Iterable[tuple[Any, ...]]) -> list[CaseRun]:
    """The rows, oldest first, as records, newest first."""
    versions: dict[int, int] = {}
    made = []
    for row in found:
        run, at, commit, branch, dirty, kind, case_no, file, agent, status, runs, passed, judged, errors = row[:14]
        rate, low, high, blame, version, duration, cost = row[14:]
        before = versions.get(case_no, version)
        versions[case_no] = version
        made.append(
            CaseRun(
                run=run,
                at=at,
                commit=commit,
                branch=branch,
                dirty=None if dirty is None else bool(dirty),
                file=file,
                agent=agent,
                status=status,
                runs=runs,
                passed=passed,
                errors=errors,
                rate=rate,
                interval=_interval(passed, judged, errors) if low is None else Interval(low, high),
                flaky=BLAMES[blame],
                changed=version != before,
                duration_ms=duration,
                cost_usd=cost,
                recheck=kind == "recheck",
            )
        )
    return made[::-1]


def _interval(passed: int, judged: int, errors: int) -> Interval | None:
    return case_interval(passed, judged, errors) if judged + errors else None


def case_names(index: Index) -> list[str]:
    """The ids of all cases that have a result."""
    found = index.database.query(
        "SELECT DISTINCT id FROM test_case "
        "WHERE EXISTS (SELECT 1 FROM result WHERE result.case_no = test_case.case_no) ORDER BY id"
    )
    return [name for (name,) in found]


class FlakyCase(Struct, kw_only=True):
    """A case that came to different results though nothing had changed: same case, agent, judge and simulated user."""

    case: str
    """The case's id."""
    file: str
    """Its file, as a path from the project's root."""
    agent: str
    """The agent's name."""
    results: int
    """In how many runs of the suite it stood, as long as nothing changed."""
    runs: int
    """How many runs of the case were judged in them."""
    passed: int
    """How many of these passed."""
    rate: float
    """The share that passed, from 0 to 1."""
    interval: Interval
    """Where the rate lies in the long run, with 95% confidence."""
    blame: FlakyBlame | None
    """Whose fault that is; None if only results of different runs differ, which doesn't tell."""


def flaky_cases(index: Index, scope: Scope = Scope()) -> Found:  # noqa: B008
    """The cases whose results differ though nothing had changed, those nearest to a coin first."""
    runs, of_runs = scope.runs(*AGENT_KINDS)
    cases, of_cases = scope.cases()
    found = index.database.query(
        "SELECT test_case.id, test_case.file, test_case.agent, SUM(same.results), SUM(same.judged) AS judged, "
        "SUM(same.passed) AS passed, SUM(same.errors), MAX(same.blame), COUNT(*) OVER () "
        "FROM (SELECT result.case_no, result.version, COUNT(*) AS results, SUM(result.judged) AS judged, "
        "SUM(result.passed) AS passed, SUM(result.errors) AS errors, MAX(result.blame) AS blame FROM result "
        f"WHERE result.judged > 0 AND {_not_left_out(runs)} GROUP BY result.case_no, result.version "
        "HAVING MAX(result.blame) > 0 OR (MIN(result.rate) < MAX(result.rate) AND result.version <> 0)) same "
        f"JOIN test_case ON test_case.case_no = same.case_no WHERE {cases} "
        "GROUP BY test_case.case_no, test_case.id, test_case.file, test_case.agent "
        "ORDER BY ABS(SUM(same.passed) * 2.0 / SUM(same.judged) - 1), SUM(same.judged) DESC, "
        f"test_case.id, test_case.file, test_case.agent{scope._most}",
        [*of_runs, *of_cases],
    )
    rows = []
    for case, file, agent, results, judged, passed, errors, blame, _ in found:
        rows.append(
            FlakyCase(
                case=case,
                file=file,
                agent=agent,
                results=int(results),
                runs=int(judged),
                passed=int(passed),
                rate=int(passed) / int(judged),
                interval=case_interval(int(passed), int(judged), int(errors)),
                blame=BLAMES[blame],
            )
        )
    return Found(rows, found[0][-1] if found else 0)


class Cost(Struct, kw_only=True):
    """What the runs of a period cost, as far as agents and models said it."""

    period: str
    """The day, the week (ISO 8601) or the month, as `2026-11-18`, `2026-W47` or `2026-11`."""
    start: str
    """Its first day."""
    runs: int
    """How many runs of suites were started in it."""
    cases: int
    """How many cases ran in them."""
    trials: int
    """How many trials."""
    cost_usd: float | None
    """What the agents cost together; None if none said anything."""
    roles_usd: float | None
    """What judging and simulating cost beside that."""
    tokens: float | None
    """What the agents read and wrote."""
    run_usd: float | None
    """What a run cost in the mean, roles included, over the runs that are known to have cost something."""
    run_interval: Interval | None
    """Where that mean lies for other runs like these, approximately; None below 5 runs."""


def cost(index: Index, by: Period = "week", scope: Scope = Scope()) -> Found:  # noqa: B008
    """What runs cost, period by period, newest first. Periods are those of the local calendar."""
    runs, values = scope.runs()
    found = index.database.query(
        "SELECT run.started_at, total.cases, total.runs, total.cost_usd, total.roles_usd, total.tokens "
        "FROM total JOIN run ON run.run_no = total.run_no "
        f"WHERE total.agent = ? AND {runs} ORDER BY run.started_at DESC",
        [scope.agent or ALL_AGENTS, *values],
    )
    periods: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for at, *figures in found:
        periods.setdefault(_period(at, by), []).append(tuple(figures))
    rows = [_cost(*period, some) for period, some in periods.items()]
    return Found(rows[: scope.limit], len(rows))


def _period(at: float, by: Period) -> tuple[str, str]:
    """The name of the period that a moment lies in, and its first day."""
    day = datetime.fromtimestamp(at).astimezone().date()
    if by == "day":
        return day.isoformat(), day.isoformat()
    if by == "month":
        return f"{day:%Y-%m}", day.replace(day=1).isoformat()
    year, week, weekday = day.isocalendar()
    return f"{year}-W{week:02}", (day - timedelta(days=weekday - 1)).isoformat()


def _cost(period: str, start: str, runs: list[tuple[Any, ...]]) -> Cost:
    cases, trials, agents, roles, tokens = zip(*runs, strict=True)
    of_runs = [(one or 0.0) + (role or 0.0) for one, role in zip(agents, roles, strict=True) if one or role]
    return Cost(
        period=period,
        start=start,
        runs=len(runs),
        cases=sum(cases),
        trials=sum(trials),
        cost_usd=_known_sum(agents),
        roles_usd=_known_sum(roles),
        tokens=_known_sum(tokens),
        run_usd=mean(of_runs),
        run_interval=_above_zero(mean_interval(of_runs)) if of_runs else None,
    )


def _known_sum(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return round(fsum(known), 9) if known else None


def _above_zero(interval: Interval | None) -> Interval | None:
    return None if interval is None else Interval(max(interval.low, 0.0), interval.high)


class TrendRun(Struct, kw_only=True):
    """What a run came to."""

    run: str
    """The run's id."""
    at: float
    """Seconds since 1970: when it started."""
    commit: str | None
    """The commit of git that was checked out."""
    branch: str | None
    """The branch of git."""
    dirty: bool | None
    """Whether files that git knows differed from the commit."""
    input: list[str]
    """What was tested. Only runs of the same input can be compared."""
    part: bool
    """True if a filter chose some of its cases."""
    state: str
    """`finished` or `stopped`."""
    cases: int
    """How many cases ran."""
    passed: int
    """How many of them passed."""
    pass_rate: float | None
    """The mean of the cases' pass rates, from 0 to 1."""
    interval: Interval | None
    """Where it lies for other cases like these, with 95% confidence; None below 5 cases."""
    cost_usd: float | None
    """What the agents said they cost."""
    duration_ms: float
    """How long the run took."""


def trend(index: Index, scope: Scope = Scope()) -> Found:  # noqa: B008
    """The runs, newest first, without those that only ran what had failed before, and without rechecks."""
    runs, values = scope.runs("all", "part")
    found = index.database.query(
        "SELECT run.id, run.started_at, run.git_commit, run.git_branch, run.dirty, run.inputs, run.kind, run.state, "
        "total.cases, total.passed, total.rate, total.low, total.high, total.cost_usd, run.duration_ms, "
        "COUNT(*) OVER () FROM total JOIN run ON run.run_no = total.run_no "
        f"WHERE total.agent = ? AND {runs} ORDER BY run.started_at DESC, run.id DESC{scope._most}",
        [scope.agent or ALL_AGENTS, *values],
    )
    rows = []
    for run, at, commit, branch, dirty, inputs, kind, state, cases, passed, rate, low, high, usd, took, _ in found:
        rows.append(
            TrendRun(
                run=run,
                at=at,
                commit=commit,
                branch=branch,
                dirty=None if dirty is None else bool(dirty),
                input=msgspec.json.decode(inputs, type=list[str]),
                part=kind == "part",
                state=state,
                cases=cases,
                passed=passed,
                pass_rate=rate,
                interval=None if low is None else Interval(low, high),
                cost_usd=usd,
                duration_ms=took,
            )
        )
    return Found(rows, found[0][-1] if found else 0)


class Duration(Struct, kw_only=True):
    """How long the runs of a case took. The value of each run of the suite is the median of its runs of the case."""

    case: str
    """The case's id."""
    file: str
    """Its file, as a path from the project's root."""
    agent: str
    """The agent's name."""
    results: int
    """How many runs of the suite have a value."""
    mean_ms: float
    """The mean."""
    mean_interval: Interval | None
    """Where the mean lies in the long run, approximately; None below 5 values."""
    median_ms: float
    """The median."""
    median_interval: tuple[float | None, float | None] | None
    """Where the median lies; None for an end that too few values tell."""
    p95_ms: float
    """What 95% of the values don't exceed."""
    p95_interval: tuple[float | None, float | None] | None
    """Where that lies; None for an end that too few values tell."""
    last_ms: float
    """The newest value."""


def durations(index: Index, scope: Scope = Scope()) -> Found:  # noqa: B008
    """The cases that take the longest in the mean, the slowest first."""
    runs, of_runs = scope.runs(*AGENT_KINDS)
    cases, of_cases = scope.cases()
    slowest = index.database.query(
        "SELECT test_case.case_no, test_case.id, test_case.file, test_case.agent, COUNT(*) OVER () FROM "
        "(SELECT result.case_no, AVG(result.duration_ms) AS middle FROM result "
        f"WHERE result.duration_ms IS NOT NULL AND {_not_left_out(runs)} GROUP BY result.case_no) took "
        f"JOIN test_case ON test_case.case_no = took.case_no WHERE {cases} "
        f"ORDER BY took.middle DESC, test_case.id, test_case.file, test_case.agent{scope._most}",
        [*of_runs, *of_cases],
    )
    some = ""
    if scope.limit is not None and slowest:
        some = f" AND result.case_no IN ({', '.join(str(row[0]) for row in slowest)})"
    values: dict[int, list[float]] = {row[0]: [] for row in slowest}
    for case_no, took in index.database.query(
        "SELECT result.case_no, result.duration_ms FROM result JOIN run ON run.run_no = result.run_no "
        f"WHERE result.duration_ms IS NOT NULL AND {runs}{some} ORDER BY run.started_at, run.id",
        of_runs,
    ):
        if case_no in values:
            values[case_no].append(took)
    rows = [
        _duration(case, file, agent, values[case_no]) for case_no, case, file, agent, _ in slowest if values[case_no]
    ]
    return Found(rows, slowest[0][-1] if slowest else 0)


def _duration(case: str, file: str, agent: str, values: list[float]) -> Duration:
    found = figures_of(values, values)
    assert found is not None
    return Duration(
        case=case,
        file=file,
        agent=agent,
        results=len(values),
        mean_ms=found.mean,
        mean_interval=_above_zero(found.mean_interval),
        median_ms=found.median,
        median_interval=_known_ends(found.median_interval),
        p95_ms=found.p95,
        p95_interval=_known_ends(found.p95_interval),
        last_ms=values[-1],
    )


def _known_ends(interval: Interval | None) -> tuple[float | None, float | None] | None:
    if interval is None or not any(map(isfinite, interval)):
        return None
    low, high = (one if isfinite(one) else None for one in interval)
    return low, high
