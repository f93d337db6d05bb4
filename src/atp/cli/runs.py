"""`atp runs`: the runs of this project."""

import sys
import time
from pathlib import Path
from typing import Any

import click

from atp.cli.output import print_json
from atp.loader.diagnostics import LoadError
from atp.loader.diagnostics_text import printable, render


@click.command("runs")
@click.option("--json", "as_json", is_flag=True, help="A JSON list on stdout.")
@click.argument("path", default=".", metavar="[PATH]", type=click.Path(exists=True))
def command(path: str, as_json: bool) -> int:
    """List the runs of the project around PATH, newest first."""
    try:
        rows = _rows(Path(path))
    except LoadError as error:
        click.echo(render(error.diagnostics, colour=sys.stderr.isatty()), err=True)
        return 2
    if as_json:
        print_json(rows)
        return 0
    for row in rows:
        passed = f"{row['passed']}/{row['total']} passed" if row["passed"] is not None else f"{row['total']} cases"
        inputs = printable(", ".join(Path(one).name for one in row["input"]))
        click.echo(f"{row['run']}  {row['at']}  {row['state']:<10}  {passed:<16}  {inputs}")
    if not rows:
        click.echo("No runs yet.")
    return 0


def _rows(path: Path) -> list[dict[str, Any]]:
    from atp.run.folder import all_runs, bounds, is_running
    from atp.run.places import find_root

    rows = []
    for run in all_runs(find_root(path)):
        start, summary = bounds(run)
        if start is None:
            continue
        state = "running" if is_running(run) else "unfinished"
        if summary is not None:
            state = "finished" if summary.complete else "stopped"
        counts = summary.counts if summary else {}
        not_run = max(0, start.cases - counts.get("total_cases", 0) - counts.get("skipped_by_test", 0))
        rows.append(
            {
                "run": run.name,
                "at": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(start.at)),
                "state": state,
                "reason": summary.reason if summary else None,
                "passed": counts.get("passed"),
                "total": counts.get("total", 0) + not_run,
                "not_run": not_run if summary else None,
                "input": start.input,
                "agents": start.agents,
            }
        )
    return rows
