"""`atp show`: what ATP understood of test files."""

import sys
from typing import Any

import click

from atp.base.diagnostics_text import printable, render
from atp.base.secrets import secrets_of
from atp.cli.inputs import load_files, takes_files
from atp.cli.streams import print_json
from atp.loader.outline import lines_text, outline, text
from atp.suite.case import Case


@click.command("show")
@takes_files
@click.option("--lines", "by_line", is_flag=True, help="The file with what each line was read as, for .test.md files.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(by_line: bool, as_json: bool, **files: Any) -> int:
    """Show what ATP understood of test files.

    PATH is a file, a folder or a pattern. An expectation that has an exact meaning is shown with its check; a judge
    decides on the others, and where only a name is doubtful, the wording is shown that would be exact. With --json,
    one file gives an object with `suite`, `cases` and `diagnostics`; several give an object with `suites`, a list of
    those. With --lines, a Markdown file is printed as it stands, each line beside the part it plays: a case, a label, a
    prompt, an expectation, the intent, or not read, with the code of the diagnostic that says so; with --json it is a
    list `lines`. Exit 0 when all can be used, else 2.
    """
    from atp.cli.main import UNUSABLE

    loaded = load_files(**files)
    other = (
        next((one for one in loaded.files if one.suite and one.suite.dialect != "markdown"), None) if by_line else None
    )
    if other is not None:
        raise click.UsageError(f"--lines shows Markdown files (.test.md) only, and {other.path} is none")
    secrets = secrets_of(loaded.secrets)
    if as_json:
        plain = [outline(one, _wordings, by_line) for one in loaded.files]
        several = {"suites": plain, "diagnostics": [one.as_dict() for one in loaded.path_diagnostics]}
        print_json(secrets.mask(plain[0] if len(plain) == 1 and not loaded.path_diagnostics else several, numbers=True))
    else:
        for number, one in enumerate(loaded.files):
            click.echo("" if number else None, nl=bool(number))
            for line in lines_text(one) if by_line else text(one, _wordings):
                click.echo(printable(secrets.mask_text(line)))
        if found := loaded.diagnostics:
            click.echo("", nl=any(one.suite for one in loaded.files), err=True)
            click.echo(render(found, sys.stderr.isatty(), loaded.secrets), err=True)
    return 0 if loaded.ok else UNUSABLE


def _wordings(case: Case) -> list[tuple[str | None, str | None]]:
    from atp.checks.before_run import wordings  # imported late: only some suites need it

    return [(one.check, one.exact_if) for one in wordings(case)]
