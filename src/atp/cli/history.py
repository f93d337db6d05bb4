"""`atp history`: what the runs of a project say together, from an index that is made of their journals."""

import re
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atp.base.diagnostics import load_error
from atp.base.diagnostics_text import render
from atp.base.numbers import between_text, counted, percent_text
from atp.base.project import runs_folder
from atp.cli.project import in_project, opened, say
from atp.cli.streams import print_json

if TYPE_CHECKING:
    from atp.history.index.index import Index
    from atp.history.index.queries import CaseRun, Cost, Duration, FlakyCase, Found, Period, Scope, TrendRun
    from atp.stats.intervals import Interval

QUESTIONS = ("flaky", "cost", "trend", "durations")
"""What can be asked beside the history of a case."""
_DAYS = re.compile(r"(\d{1,5})d")


@click.command("history")
@click.argument("what", metavar="[CASE|flaky|cost|trend|durations]", default="trend")
@click.option("--by", type=click.Choice(["day", "week", "month"]), help="cost: add up by day, week (default) or month")
@click.option("--agent", metavar="NAME", help="Only this agent")
@click.option("--branch", metavar="NAME", help="Only runs of this branch of git")
@click.option("--since", metavar="DAY", help="Only runs since that day: 2026-11-18, or 30d for the last 30 days")
@click.option("--limit", type=click.IntRange(min=0), default=20, metavar="N", help="At most N rows (20); 0: all")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout")
@in_project
def command(what: str, by: "Period | None", project: Path, as_json: bool, **scope: Any) -> int:
    """Say what the runs of a project come to over time.

    CASE is the id of a case, or FILE::ID: what it came to in each run, newest first. flaky: cases with different
    results though nothing had changed. cost: what runs cost. trend: the pass rate from run to run. durations: the
    slowest cases. All with 95% intervals.

    The answers come from an index of the journals in .atp/runs. Runs add themselves to it at their end, and this
    command adds what is missing. The setting `history` names another place for it.
    """
    from atp.base.exit_codes import INCOMPLETE
    from atp.base.secret_values import secret_settings
    from atp.base.secrets import hider
    from atp.engine.prepare.settings import environment, resolve_options
    from atp.history.index.index import DEFAULT, Index, is_off
    from atp.journal.find import no_runs
    from atp.journal.folder import all_runs

    if by is not None and what != "cost":
        raise click.UsageError("--by is for cost: atp history cost --by week")
    about = _scope(**scope)
    with opened(project) as (root, secrets):
        setting = resolve_options({}, root, environment(root, None)).history
        secrets.add(secret_settings(setting))
        if is_off(setting):
            raise load_error(
                "history-off", "`history` is off, so there is no index", "set it to a path, or leave it out"
            )
        if setting is None and not (root / DEFAULT).exists() and not all_runs(root):
            raise no_runs(root)  # a folder that is no project gets no index
        with Index(root, setting) as index:
            if unread := index.update():
                click.echo(render(unread, sys.stderr.isatty(), secrets), err=True)
            answer, lines = _answer(index, what, by or "week", about)
            if as_json:
                print_json(hider(secrets)(answer))
            for line in lines if not as_json else ():
                say(line, secrets)
    return INCOMPLETE if unread else 0


def _scope(agent: str | None, branch: str | None, since: str | None, limit: int) -> "Scope":
    from atp.history.index.queries import Scope

    return Scope(agent, branch, None if since is None else _moment(since), limit or None)


def _moment(text: str) -> float:
    """The moment that `--since` names: the beginning of a day, or some days ago."""
    if days := _DAYS.fullmatch(text):
        return max(0.0, time.time() - 86_400 * int(days[1]))
    try:
        return datetime.strptime(text, "%Y-%m-%d").astimezone().timestamp()
    except (ValueError, OverflowError) as error:
        hint = "write 2026-11-18, or 30d for the last 30 days"
        raise load_error("bad-since", f"--since {text}: this is no day", hint) from error


def _answer(index: "Index", what: str, by: "Period", scope: "Scope") -> tuple[dict[str, Any], list[str]]:
    """The answer as JSON values, and as lines for people."""
    if what not in QUESTIONS:
        results = _results(index, what, scope)
        rest = [f"… and older ones: --limit {2 * scope.limit}"] if scope.limit and len(results) == scope.limit else []
        return {"case": what, "results": _plain(results)}, [*_table(map(_case_cells, results)), *rest]
    found, cells = _found(index, what, by, scope)
    lines = _table(cells) or [_nothing(index, what)]
    more = found.total - len(found.rows)
    return {"rows": _plain(found.rows)}, [*lines, *([f"… and {more:,} more: --limit 0"] if more else [])]


def _found(index: "Index", what: str, by: "Period", scope: "Scope") -> "tuple[Found, Iterable[Sequence[str]]]":
    """The rows of an answer, and the cells of each for people."""
    from atp.history.index import queries

    match what:
        case "flaky":
            found = queries.flaky_cases(index, scope)
            return found, map(_flaky_cells, found.rows)
        case "cost":
            found = queries.cost(index, by, scope)
            return found, map(_cost_cells, found.rows)
        case "durations":
            found = queries.durations(index, scope)
            return found, map(_duration_cells, found.rows)
    found = queries.trend(index, scope)
    return found, map(_trend_cells, found.rows)


def _results(index: "Index", name: str, scope: "Scope") -> "list[CaseRun]":
    """What a case came to. Raises `LoadError` for a case that never ran."""
    from atp.base.near import near_miss
    from atp.history.index.queries import Scope, case_history, case_names

    if found := case_history(index, name, scope):
        return found
    if case_history(index, name, Scope(limit=1)):
        return []  # not of this agent, not of this branch, not since then
    known = case_names(index)
    meant = near_miss(name, [*known, *QUESTIONS])
    hint = f"did you mean `{meant}`?" if meant else "run it: atp test" if not known else "atp show lists the cases"
    raise load_error("no-result", f"there is no result of a case `{name}` in {runs_folder(index.root)}", hint)


def _nothing(index: "Index", what: str) -> str:
    if what == "flaky":
        return "No case had different results while nothing had changed."
    return f"No such runs in {runs_folder(index.root)}."


def _plain(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows as JSON values; times as `atp runs` has them."""
    from msgspec import to_builtins

    plain: list[dict[str, Any]] = to_builtins(rows)
    for row in plain:
        if "at" in row:
            row["at"] = _time(row["at"])
    return plain


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    """The rows with columns of one width. A column in which every row has nothing is left out."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width).rstrip() for row in cells
    ]


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _commit(row: "CaseRun | TrendRun") -> str:
    """`1a2b3c4d5e, changed, main`."""
    commit = "" if row.commit is None else row.commit[:10] + ("+" if row.dirty else "")
    return " ".join(one for one in (commit, row.branch or "") if one)


def _rate(rate: float | None, interval: "Interval | None") -> str:
    """`90%, between 60% and 98%`."""
    if rate is None:
        return "not judged"
    return percent_text(rate) + (f", {between_text(interval)}" if interval is not None else "")


def _name(row: "FlakyCase | Duration") -> tuple[str, str, str]:
    from atp.base.text import one_line

    return one_line(row.case, 60), row.file, one_line(row.agent, 40)


def _usd(value: float | None) -> str:
    from atp.report.facts import dollars

    return "" if value is None else dollars(value)


def _took(value: float | None) -> str:
    from atp.base.durations import elapsed

    return "" if value is None else elapsed(value)


def _case_cells(row: "CaseRun") -> Sequence[str]:
    from atp.base.text import one_line

    notes = ["judged again"] if row.recheck else []
    notes += ["case or agent changed"] if row.changed else []
    notes += [f"flaky ({row.flaky})"] if row.flaky else []
    return (
        _time(row.at),
        row.status,
        f"{row.passed}/{row.runs} passed",
        _rate(row.rate, row.interval),
        one_line(row.agent, 40),
        _took(row.duration_ms),
        _usd(row.cost_usd),
        _commit(row),
        ", ".join(notes),
    )


def _flaky_cells(row: "FlakyCase") -> Sequence[str]:
    passed = f"{row.passed}/{row.runs} passed"
    return *_name(row), passed, _rate(row.rate, row.interval), f"in {counted(row.results, 'run')}", row.blame or ""


def _cost_cells(row: "Cost") -> Sequence[str]:
    tokens = "" if row.tokens is None else f"{row.tokens:,.0f} tokens"
    mean = "" if row.run_usd is None else f"{_usd(row.run_usd)} a run"
    if row.run_interval is not None:
        mean += f", between {_usd(row.run_interval.low)} and {_usd(row.run_interval.high)}"
    roles = "" if row.roles_usd is None else f"roles {_usd(row.roles_usd)}"
    total = "cost unknown" if row.cost_usd is None else _usd(row.cost_usd)
    return row.period, total, roles, mean, tokens, counted(row.runs, "run"), counted(row.trials, "trial")


def _trend_cells(row: "TrendRun") -> Sequence[str]:
    return (
        _time(row.at),
        f"{row.passed:,}/{row.cases:,} passed",
        _rate(row.pass_rate, row.interval),
        _took(row.duration_ms),
        _usd(row.cost_usd),
        ", ".join(Path(one).name for one in row.input),
        _commit(row),
        ", ".join(["part of the cases"] * row.part + ["stopped"] * (row.state == "stopped")),
    )


def _duration_cells(row: "Duration") -> Sequence[str]:
    mean = f"{_took(row.mean_ms)} in the mean"
    if row.mean_interval is not None:
        mean += f", between {_took(row.mean_interval.low)} and {_took(row.mean_interval.high)}"
    median, p95 = f"median {_took(row.median_ms)}", f"p95 {_took(row.p95_ms)}"
    return *_name(row), mean, median, p95, f"last {_took(row.last_ms)}", f"in {counted(row.results, 'run')}"
