"""`atp runs`: the runs of this project."""

import json
import time
from pathlib import Path

import click


@click.command("runs")
@click.option("--json", "as_json", is_flag=True, help="A JSON list on stdout.")
@click.argument("path", default=".", metavar="[PATH]")
def command(path: str, as_json: bool) -> int:
    """List the runs of the project around PATH, newest first."""
    from atp.run.folder import all_runs, bounds, is_running
    from atp.run.places import find_root

    rows = []
    for run in all_runs(find_root(Path(path))):
        start, summary = bounds(run)
        if start is None:
            continue
        state = "running" if is_running(run) else "unfinished"
        if summary is not None:
            state = "finished" if summary.complete else "stopped"
        counts = summary.counts if summary else {}
        rows.append(
            {
                "run": run.name,
                "at": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(start.at)),
                "state": state,
                "reason": summary.reason if summary else None,
                "passed": counts.get("passed"),
                "total": counts.get("total", start.cases),
                "input": start.input,
                "agents": start.agents,
            }
        )
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    for row in rows:
        passed = f"{row['passed']}/{row['total']} passed" if row["passed"] is not None else f"{row['total']} cases"
        inputs = ", ".join(Path(one).name for one in row["input"])
        click.echo(f"{row['run']}  {row['at']}  {row['state']:<10}  {passed:<16}  {inputs}")
    if not rows:
        click.echo("No runs yet.")
    return 0
