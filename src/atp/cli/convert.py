"""`atp convert`: a suite in another format."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from atp.base.diagnostics_text import printable, render
from atp.base.files import write_file
from atp.base.numbers import counted
from atp.cli.inputs import load_files, takes_files
from atp.loader.load import FileDialect, dialect_of
from atp.loader.writing import write
from atp.suite.suite import Suite

_NAMES: dict[str, FileDialect] = {"yaml": "yaml", "jsonl": "jsonl", "md": "markdown"}


@click.command("convert")
@takes_files
@click.option("-o", "--output", required=True, metavar="OUT", help="The file to write; - for stdout, with --to.")
@click.option("--to", type=click.Choice(list(_NAMES)), help="The format, if OUT's extension doesn't tell it.")
@click.option("--force", is_flag=True, help="Overwrite OUT.")
def command(output: str, to: str | None, force: bool, **files: Any) -> int:
    """Turn a suite into another format and list what was lost.

    PATH is one file. OUT ends in .yaml, .yml, .jsonl, .json or .test.md. Variables are written with the values they
    have now, secrets never: a variable stands for each. Exit 0 when OUT was written, else 2.
    """
    dialect = _dialect(output, to)
    if not force:
        _check_free(output)
    loaded = load_files(**files)
    if len(loaded.files) > 1:
        raise click.UsageError(f"convert takes one file, and PATH means {len(loaded.files)}.")
    if found := loaded.diagnostics:
        click.echo(render(found, sys.stderr.isatty(), loaded.secrets), err=True)
    suite = loaded.files[0].suite if loaded.files else None
    if suite is None or not loaded.ok:
        return 2
    return _convert(suite.model_copy(update={"secrets": loaded.secrets}), dialect, output)


def _convert(suite: Suite, dialect: FileDialect, output: str) -> int:
    written = write(suite, dialect)
    for loss in written.losses:
        click.echo(f"lost: {printable(loss)}", err=True)
    if not written.text:
        click.echo(f"nothing written: {dialect} cannot say any of the cases", err=True)
        return 2
    if output == "-":
        click.echo(written.text.encode(), nl=False)  # files are UTF-8, whatever the terminal takes
        return 0
    try:
        write_file(Path(output), written.text)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror or error}") from error
    lost = f", {counted(len(written.losses), 'thing')} lost" if written.losses else ""
    click.echo(f"wrote {printable(output)}{lost}")
    if suite.path and Path(output).resolve().parent != Path(suite.path).resolve().parent:
        click.echo("note: paths in it now start from another folder", err=True)
    return 0


def _dialect(output: str, to: str | None) -> FileDialect:
    by_name = None if output == "-" else dialect_of(Path(output))
    wanted = _NAMES[to] if to else None
    if by_name and wanted and by_name != wanted and (by_name, wanted) != ("json", "jsonl"):
        raise click.UsageError(f"{output} is {by_name} by its name, and --to says {to}.")
    dialect = by_name or wanted
    if dialect is None:
        raise click.UsageError(f"{output} does not show the format: give --to, or end it in .yaml, .jsonl or .test.md.")
    return dialect


def _check_free(output: str) -> None:
    if output != "-" and os.path.lexists(output):
        raise click.ClickException(f"{output} is there already: give --force to overwrite it.")
