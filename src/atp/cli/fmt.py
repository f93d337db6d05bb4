"""`atp fmt`: the canonical form of `.test.md` files."""

import sys
from pathlib import Path

import click

from atp.base.diagnostics import Diagnostics, has_errors
from atp.base.diagnostics_text import printable, render
from atp.base.files import write_file
from atp.loader.inputs import find_files
from atp.loader.load import dialect_of, load_path
from atp.loader.markdown.format import try_format
from atp.loader.source import LoadContext, read_source


@click.command("fmt")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is not in its canonical form.")
def command(paths: tuple[str, ...], check: bool) -> int:
    """Bring .test.md files into their canonical form.

    PATH is a file, a folder or a pattern. The wording of prompts and expectations is never touched, nor what a file
    means. A file with errors is left as it is, and so is, with a warning, one that can't be rewritten safely. Exit 0; 1
    with --check if a file would change; 2 on errors.
    """
    notes = Diagnostics()
    files = [path for path in find_files(paths, notes) if dialect_of(path) == "markdown" or str(path) in paths]
    codes = [_format(path, check, notes) for path in files]
    if notes:
        click.echo(render(notes, sys.stderr.isatty()), err=True)
    return max([*codes, 2 if has_errors(notes) else 0])


def _format(path: Path, check: bool, notes: Diagnostics) -> int:
    if dialect_of(path) != "markdown":
        notes.error("not-markdown", f"{path}: only .test.md files have a canonical form", hint="name a .test.md file")
        return 2
    # Who is tested and who judges may come from the command line of the run: no reason not to format.
    errors = [
        one for one in load_path(path, LoadContext(agent=True, assessor=True)).diagnostics if one.severity == "error"
    ]
    if errors or read_source(path, notes) is None:
        notes.extend(errors)
        return 2
    written = path.read_bytes()  # with its own line ends, which stay what they are
    formatted = try_format(written.decode("utf-8-sig"))
    if formatted is None:
        reason = "it has no canonical form that surely means the same"
        click.echo(f"warning: {printable(str(path))} is left as it is: {reason}", err=True)
        return 0
    if formatted.encode() == written:
        return 0
    if check:
        click.echo(f"would change {printable(str(path))}")
        return 1
    write_file(path, formatted)
    click.echo(f"formatted {printable(str(path))}")
    return 0
