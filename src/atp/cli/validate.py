"""`atp validate`: the diagnostics of test files, without running anything."""

import shlex
import sys
from typing import Any

import click

from atp.base.diagnostics_text import printable, render, summary
from atp.base.secrets import secrets_of
from atp.cli.inputs import load_files, takes_files
from atp.cli.streams import print_json


@click.command("validate")
@takes_files
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(as_json: bool, **files: Any) -> int:
    """Say what is wrong with test files, without running anything.

    PATH is a file, a folder or a pattern. What `atp test` would refuse because of the files or the project's settings
    is refused here, too. Exit 0 when all can be used, else 2.
    """
    from atp.cli.main import UNUSABLE

    loaded = load_files(**files, check=True)
    found = loaded.diagnostics
    cases = sum(len(one.suite.cases) for one in loaded.files if one.suite)
    if as_json:
        shown = secrets_of(loaded.secrets).mask([one.as_dict() for one in found], numbers=False)
        print_json({"files": len(loaded.files), "cases": cases, "diagnostics": shown})
    else:
        if found:
            click.echo(render(found, sys.stdout.isatty(), loaded.secrets) + "\n")
        click.echo(summary(len(loaded.files), cases, found))
        named = [one.path for one in loaded.files if one.path and one.suite and (one.suite.agents or one.suite.target)]
        if named and loaded.ok:
            shown = shlex.join(named) if len(named) <= 3 else "FILE…"
            chosen = "".join(f" -n {shlex.quote(name)}" for name in files["name"])
            click.echo(printable(f"The agents were not looked at; this does it: atp agents check {shown}{chosen}"))
    return 0 if loaded.ok else UNUSABLE
