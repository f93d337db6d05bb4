"""`atp validate`: diagnostics only."""

import shlex
import sys

import click

from atp.base.diagnostics import has_errors
from atp.base.diagnostics_text import printable, render, summary
from atp.cli.inputs import load_all, secrets_of, takes_files
from atp.cli.output import print_json


@click.command("validate")
@takes_files
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(
    paths: tuple[str, ...],
    agent: str | None,
    simulator: str | None,
    assessor: str | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Say what is wrong with test files, without running anything.

    PATH is a file, a folder or a pattern. Exit 0 when all can be used, else 2.
    """
    loaded, notes = load_all(paths, agent, simulator, assessor, strict)
    found = [*notes, *(note for one in loaded for note in one.diagnostics)]
    cases = sum(len(one.suite.cases) for one in loaded if one.suite)
    if as_json:
        plain = {"files": len(loaded), "cases": cases, "diagnostics": [one.as_dict() for one in found]}
        print_json(plain)
    else:
        if found:
            click.echo(render(found, sys.stdout.isatty(), secrets_of(loaded)) + "\n")
        click.echo(summary(len(loaded), cases, found))
        named = [one.path for one in loaded if one.path and one.suite and (one.suite.agents or one.suite.target)]
        if named and not has_errors(found):
            shown = shlex.join(named) if len(named) <= 3 else "FILE…"
            click.echo(printable(f"The agents were not looked at; this does it: atp agents check {shown}"))
    return 2 if has_errors(found) else 0
