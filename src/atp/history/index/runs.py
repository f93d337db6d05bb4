"""The list of a project's runs, with what became of each: from the index where it has them, else from the journals."""

from pathlib import Path

import msgspec
from msgspec import Struct

from atp.base.diagnostics import LoadError
from atp.history.index.index import Index, signature
from atp.history.index.rows import RunRows, State, read_rows
from atp.history.index.schema import ALL_AGENTS, RUN_COLUMNS
from atp.journal.folder import all_runs, is_running
from atp.stats.intervals import Interval


class ListedRun(Struct, kw_only=True):
    """A run, and what it came to, as far as it went."""

    id: str
    """The run's id."""
    state: State
    """`running`, `finished`, or `stopped` before all was done, by whatever."""
    started_at: float
    """Seconds since 1970."""
    ended_at: float
    """Seconds since 1970; of a run that is under way: when its last trial ended."""
    duration_ms: float
    """How long it took, breaks left out."""
    total: int
    """How many cases it has, those included that are left out or were not run."""
    finished: int
    """Of how many of them nothing is missing."""
    passed: int
    """Cases that passed."""
    failed: int
    """Cases that failed."""
    errors: int
    """Cases that ended in an error that is not the agent's."""
    pass_rate: float | None
    """The mean of the cases' pass rates, from 0 to 1."""
    interval: Interval | None
    """Where it lies for other cases like these, with 95% confidence; None below 5 cases."""
    cost_usd: float | None
    """What the agents said they cost."""
    commit: str | None
    """The commit of git that was checked out."""
    branch: str | None
    """The branch of git."""
    dirty: bool | None
    """Whether files that git knows differed from the commit."""
    input: list[str]
    """What was tested: files, folders, texts."""
    agents: list[str]
    """The agents under test."""
    reason: str | None
    """Why it ended early, if it did."""
    rechecks: str | None
    """The run whose conversations it judged again, if it called no agent."""


_QUERY = (
    f"SELECT {', '.join(f'run.{name}' for name in RUN_COLUMNS)}, total.rate, total.low, total.high, total.cost_usd "
    "FROM run JOIN total ON total.run_no = run.run_no AND total.agent = ?"
)


def list_runs(root: Path, index: Index | None = None) -> list[ListedRun]:
    """The runs in a project's folder, newest first; runs that can't be read are left out.

    What the index has, and whose journal has not changed since, is taken from there. All else is read from the
    journals, a few tens of microseconds a trial: a handful of runs needs no index.
    """
    known = {} if index is None else _listed(index)
    found = []
    for run in all_runs(root):
        now = signature(run)
        listed = known.get(run.name)
        if listed is None or listed[0] != now or is_running(run):
            try:
                made = read_run(run)
            except LoadError:
                continue
        else:
            made = listed[1]
        found.append(made)
    return found


def read_run(run: Path) -> ListedRun:
    """A run, from its journal. Raises `LoadError`."""
    state_before = is_running(run)
    rows = read_rows(run)
    listed = _of_rows(rows)
    if state_before:
        listed.state = "running"
    return listed


def _of_rows(rows: RunRows) -> ListedRun:
    whole = next(iter(rows.total_rows()))
    return _listed_run(rows.run_row("", 0, 0), (*whole[6:10],))


def _listed(index: Index) -> dict[str, tuple[tuple[int, int], ListedRun]]:
    width = len(RUN_COLUMNS)
    rows = index.database.query(_QUERY, (ALL_AGENTS,))
    return {row[1]: ((row[3], row[4]), _listed_run(row[:width], row[width:])) for row in rows}


def _listed_run(row: tuple[object, ...], totals: tuple[object, ...]) -> ListedRun:
    have = dict(zip(RUN_COLUMNS, row, strict=True))
    rate, low, high, usd = totals
    values = {
        **have,
        "commit": have["git_commit"],
        "branch": have["git_branch"],
        "dirty": None if have["dirty"] is None else bool(have["dirty"]),
        "input": msgspec.json.decode(str(have["inputs"])),
        "agents": msgspec.json.decode(str(have["agents"])),
        "pass_rate": rate,
        "interval": None if low is None else (low, high),
        "cost_usd": usd,
    }
    return msgspec.convert(values, ListedRun)
