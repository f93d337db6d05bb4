"""`atp baseline`: what a run came to, kept in a file of the project for later runs to be compared with."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atp.base.diagnostics import Diagnostic, LoadError
from atp.base.diagnostics_text import render
from atp.base.numbers import counted
from atp.cli.project import in_project, opened, say
from atp.cli.streams import print_json

if TYPE_CHECKING:
    from atp.history.figures import CaseFigures, RunFigures


@click.group("baseline")
def command() -> None:
    """Keep what a run came to, to compare later runs with it.

    A baseline is a file, baselines/NAME.json.gz at the project's root, that is meant to be committed. It has the
    verdicts, hashes and figures of each case, and no answer of an agent unless --with-answers asks for them.
    """


@command.command("save")
@click.argument("name")
@click.argument("run", default="last", metavar="[RUN]")
@click.option("--with-answers", is_flag=True, help="Keep answers of the agents, too, to see how later ones differ.")
@click.option("--force", is_flag=True, help="Replace a baseline of that name.")
@in_project
def save_command(name: str, run: str, with_answers: bool, force: bool, project: Path) -> int:
    """Save a run as a baseline.

    RUN is a run's id, the beginning of one, `last` (the default), `last~1` (the one before), `commit:SHA` (the newest
    run of that commit), or the path of its folder. The same run gives the same file, byte by byte.
    """
    from atp.base.secrets import hider
    from atp.history import baselines
    from atp.history.figures import run_figures
    from atp.journal.find import find_run

    with opened(project) as (root, secrets):
        found = run_figures(find_run(root, run), hider(secrets), answers=with_answers)
        path = baselines.save(root, name, found, force=force)
        for warning in _warnings(found):
            say(f"atp: {warning}", secrets, err=True)
        say(f"Baseline: {path} ({_about(found)})", secrets)
    return 0


def _warnings(run: "RunFigures") -> list[str]:
    """What makes a run a poor baseline."""
    found = []
    if run.stopped is not None:
        found.append(f"the run was not finished: {run.stopped}")
    if broken := sum(case.in_error for case in run.cases):
        found.append(f"{counted(broken, 'case')} of it ended in an error, or did not run to the end")
    if run.dirty and run.commit is not None:
        found.append(f"files of the project differed from commit {run.commit[:10]}")
    return found


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="A JSON list on stdout.")
@in_project
def list_command(as_json: bool, project: Path) -> int:
    """List the baselines of the project."""
    from atp.base.exit_codes import UNUSABLE
    from atp.base.secrets import hider
    from atp.history import baselines

    unread: list[Diagnostic] = []
    rows: list[tuple[str, Any]] = []
    with opened(project) as (root, secrets):
        for name in baselines.names(root):
            try:
                rows.append((name, baselines.load(root, name)))
            except LoadError as error:
                unread.extend(error.diagnostics)
                rows.append((name, None))
        if unread:
            click.echo(render(unread, sys.stderr.isatty(), secrets), err=True)
        if as_json:
            facts = [{"name": name, **(_facts(found) if found else {"run": None})} for name, found in rows]
            print_json(hider(secrets)(facts))
        for name, found in rows if not as_json else ():
            say(f"{name}  {_about(found)}" if found else f"{name}  unreadable", secrets)
        if not rows and not as_json:
            say(f"No baselines yet in {baselines.folder(root)}.", secrets)
    return UNUSABLE if unread else 0


@command.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="The whole baseline as JSON on stdout.")
@in_project
def show_command(name: str, as_json: bool, project: Path) -> int:
    """Show what is in a baseline."""
    from msgspec import to_builtins

    from atp.base.secrets import hider
    from atp.history import baselines

    with opened(project) as (root, secrets):
        found = hider(secrets)(baselines.load(root, name))  # before anything is cut
        if as_json:
            print_json(to_builtins(found))
            return 0
        say(f"{name}  {_about(found)}", secrets)
        several = len(found.agents) > 1
        rows = [_row(case, several) for case in found.cases]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
        for row in rows:
            cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            say(f"  {cells.rstrip()}", secrets)
    return 0


@command.command("drop")
@click.argument("name")
@in_project
def drop_command(name: str, project: Path) -> int:
    """Delete a baseline."""
    from atp.history import baselines

    with opened(project) as (root, secrets):
        say(f"Deleted: {baselines.drop(root, name)}", secrets)
    return 0


def _facts(run: "RunFigures") -> dict[str, Any]:
    return {
        "run": run.run,
        "at": _date(run),
        "commit": run.commit,
        "branch": run.branch,
        "dirty": run.dirty,
        "agents": run.agents,
        "cases": len(run.cases),
        "passed": sum(case.status == "passed" for case in run.cases),
        "runs": sum(case.judged for case in run.cases),
        "answers": any(case.answers for case in run.cases),
    }


def _about(run: "RunFigures") -> str:
    """`run 2026…, 2026-11-18 04:12:00, commit 1a2b3c4d5e, 9 of 10 cases passed, 50 runs`."""
    facts = _facts(run)
    parts = [f"run {run.run}", _date(run)]
    parts += [f"commit {run.commit[:10]}{' with changes' if run.dirty else ''}"] if run.commit else []
    parts.append(f"{facts['passed']:,} of {counted(len(run.cases), 'case')} passed")
    parts.append(counted(facts["runs"], "run"))
    return ", ".join([*parts, *(["with answers"] if facts["answers"] else [])])


def _date(run: "RunFigures") -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.at))


def _row(case: "CaseFigures", name_agent: bool) -> Sequence[str]:
    from atp.base.text import one_line
    from atp.report.facts import figure_text

    broken = case.errors + case.missing
    figures = ", ".join(f"{name} {figure_text(name, one.median)}" for name, one in case.figures.items())
    return (
        one_line(case.id, 60),
        *((one_line(case.agent, 40),) if name_agent else ()),
        case.status,
        f"{case.passed}/{case.judged} passed" + (f", {broken} without a verdict" if broken else ""),
        figures,
    )
