"""`atp runs`: the runs of this project."""

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atp.base.diagnostics import Diagnostic, LoadError
from atp.base.diagnostics_text import printable, render
from atp.base.numbers import counted
from atp.cli.project import opened
from atp.cli.streams import print_json

if TYPE_CHECKING:
    from atp.base.secrets import Secrets


@click.command("runs")
@click.option("--json", "as_json", is_flag=True, help="A JSON list on stdout.")
@click.argument("path", default=".", metavar="[PATH]", type=click.Path(exists=True))
def command(path: str, as_json: bool) -> int:
    """List the runs of the project around PATH, newest first.

    Without PATH, the project is the one around the working directory. The runs of a project further down are listed
    with its folder as PATH.
    """
    from atp.base.exit_codes import INCOMPLETE
    from atp.report.files import open_stdout

    open_stdout()
    unread: list[Diagnostic] = []
    with opened(Path(path)) as (_, secrets):
        rows = [_without_secrets(row, secrets) for row in _rows(Path(path), unread)]
    if unread:
        click.echo(render(unread, colour=sys.stderr.isatty()), err=True)
    if as_json:
        print_json(rows)
        return INCOMPLETE if unread else 0
    for row in rows:
        if row["state"] == "unreadable":
            click.echo(f"{row['run']}  unreadable")
            continue
        total, passing = row["total"], row["passed"]
        passed = counted(total, "case") if passing is None else f"{passing}/{total} passed"
        inputs = printable(", ".join(Path(one).name for one in row["input"]))
        again = f"  (judges {printable(row['rechecks'])} again)" if row["rechecks"] else ""
        click.echo(f"{row['run']}  {row['at']}  {row['state']:<10}  {passed:<16}  {inputs}{again}")
    if not rows:
        click.echo(f"No runs yet in {printable(str(_folder(Path(path))))}.")
        for project in _projects_below(Path(path)):
            named = printable(shlex.quote(os.path.relpath(project)))
            click.echo(f"There are runs in {named}: atp runs {named}")
    return INCOMPLETE if unread else 0


def _without_secrets(row: dict[str, Any], secrets: "Secrets") -> dict[str, Any]:
    """The row with the secrets masked that are newer than the journal of its run."""
    return {**row, **{name: secrets.mask(row[name], numbers=False) for name in ("input", "agents", "reason")}}


def _folder(path: Path) -> Path:
    from atp.base.project import find_root, runs_folder

    return runs_folder(find_root(path))


def _projects_below(path: Path) -> list[Path]:
    from atp.journal.folder import projects_below

    return projects_below(path)


def _rows(path: Path, unread: list[Diagnostic]) -> list[dict[str, Any]]:
    """A row for each run. The diagnostics of unreadable runs are added to `unread`."""
    from atp.base.project import find_root
    from atp.journal.folder import all_runs

    rows = []
    for run in all_runs(find_root(path)):
        try:
            row = _row(run)
        except LoadError as error:
            unread.extend(error.diagnostics)
            row = {
                **dict.fromkeys(_KEYS),
                "run": run.name,
                "state": "unreadable",
                "total": 0,
                "input": [],
                "agents": [],
            }
        rows += [row] if row is not None else []
    return rows


_KEYS = ("run", "at", "state", "reason", "passed", "total", "not_run", "input", "agents", "rechecks")


def _row(run: Path) -> dict[str, Any] | None:
    """The row of a run; None if the run has not begun. Raises `LoadError`."""
    from atp.journal.folder import is_running
    from atp.journal.read import bounds

    start, summary = bounds(run)
    if start is None:
        return None
    state = "running" if is_running(run) else "unfinished"
    if summary is not None:
        state = "finished" if summary.complete else "stopped"
    counts = summary.counts if summary else {}
    not_run = max(0, start.cases - counts.get("total_cases", 0) - counts.get("skipped_by_test", 0))
    values = (
        run.name,
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(start.started_at)),
        state,
        summary.reason if summary else None,
        counts.get("passed"),
        counts.get("total", 0) + not_run,
        not_run if summary else None,
        start.identity,
        start.agents,
        start.rechecks,
    )
    return dict(zip(_KEYS, values, strict=True))
