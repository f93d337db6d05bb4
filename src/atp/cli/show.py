"""`atp show`: what ATP understood of test files."""

import sys
from typing import Any

import click

from atp.base.diagnostics_text import printable, render
from atp.cli.inputs import load_files, takes_files
from atp.cli.output import print_json
from atp.loader.outline import outline, text


@click.command("show")
@takes_files
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(as_json: bool, **files: Any) -> int:
    """Show what ATP understood of test files.

    PATH is a file, a folder or a pattern. An expectation that has an exact meaning is shown with its check; a judge
    decides on the others. With --json, one file gives an object with `suite`, `cases` and `diagnostics`; several give
    an object with `suites`, a list of those. Exit 0 when all can be used, else 2.
    """
    loaded = load_files(**files)
    if as_json:
        plain = [outline(one, _exact) for one in loaded.files]
        several = {"suites": plain, "diagnostics": [one.as_dict() for one in loaded.path_diagnostics]}
        print_json(plain[0] if len(plain) == 1 and not loaded.path_diagnostics else several)
    else:
        for number, one in enumerate(loaded.files):
            click.echo("" if number else None, nl=bool(number))
            for line in text(one, _exact):
                click.echo(printable(line))
        if found := loaded.diagnostics:
            click.echo("", nl=any(one.suite for one in loaded.files), err=True)
            click.echo(render(found, sys.stderr.isatty(), loaded.secrets), err=True)
    return 0 if loaded.ok else 2


def _exact(expectation: str) -> str | None:
    from atp.checks.expectations.compile import compile_expectation, describe  # imported late: only some suites need it

    compiled = compile_expectation(expectation)
    return None if compiled is None else describe(compiled)
