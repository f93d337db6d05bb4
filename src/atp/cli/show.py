"""`atp show`: what ATP understood."""

import sys

import click

from atp.base.diagnostics import has_errors
from atp.base.diagnostics_text import printable, render
from atp.cli.inputs import load_all, secrets_of, takes_files
from atp.cli.output import print_json
from atp.loader.outline import outline, text


@click.command("show")
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
    """Show what ATP understood of test files.

    PATH is a file, a folder or a pattern. An expectation that has an exact meaning is shown with its check; a judge
    decides on the others. With --json, one file gives an object with `suite`, `cases` and `diagnostics`; several give
    an object with `suites`, a list of those. Exit 0 when all can be used, else 2.
    """
    loaded, notes = load_all(paths, agent, simulator, assessor, strict)
    found = [*notes, *(note for one in loaded for note in one.diagnostics)]
    if as_json:
        plain = [outline(one, _exact) for one in loaded]
        several = {"suites": plain, "diagnostics": [one.as_dict() for one in notes]}
        one_object = plain[0] if len(plain) == 1 and not notes else several
        print_json(one_object)
    else:
        for number, one in enumerate(loaded):
            click.echo("" if number else None, nl=bool(number))
            for line in text(one, _exact):
                click.echo(printable(line))
        if found:
            click.echo("", nl=any(one.suite for one in loaded), err=True)
            click.echo(render(found, sys.stderr.isatty(), secrets_of(loaded)), err=True)
    return 2 if has_errors(found) else 0


def _exact(expectation: str) -> str | None:
    from atp.checks.expectations.compile import compile_expectation, describe  # a grammar, which only some suites need

    compiled = compile_expectation(expectation)
    return None if compiled is None else describe(compiled)
