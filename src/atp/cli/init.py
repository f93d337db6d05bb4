"""`atp init`: a small suite to start from."""

import json
import os
import shlex
from importlib.resources import files
from pathlib import Path

import click

from atp.base.files import write_file
from atp.loader.schema import schema

_STARTERS = {
    "yaml": ["suite.yaml", "agent.py"],
    "md": ["first.test.md", "agents/greeter.md", "agents/greeter.py", "agents/assessor.md"],
    "jsonl": ["cases.jsonl", "agent.py"],
}
"""By format, the files of the folder `starters` that make a suite, the suite itself first."""
_SCHEMA = "suite.schema.json"
"""Where the first line of `suite.yaml` tells editors to look."""


@click.command("init")
@click.argument("kind", type=click.Choice(list(_STARTERS)), default="yaml", metavar="[yaml|md|jsonl]")
@click.option("--dir", "folder", default=".", metavar="DIR", help="Where to write; the current folder by default.")
def command(kind: str, folder: str) -> int:
    """Write a small suite to start from, with what it needs.

    Nothing is overwritten: if another file of the same name is there, nothing is written and the exit code is 2.
    """
    root = Path(folder)
    texts = {root / name: files("atp.cli").joinpath("starters", name).read_text("utf-8") for name in _STARTERS[kind]}
    suite = next(iter(texts))
    if kind == "yaml":
        texts[root / _SCHEMA] = json.dumps(schema("yaml"), ensure_ascii=False) + "\n"
    kept = {path for path, text in texts.items() if _holds(path, text)}
    if taken := [str(path) for path in texts if os.path.lexists(path) and path not in kept]:
        verb = "is" if len(taken) == 1 else "are"
        raise click.ClickException(f"{', '.join(taken)} {verb} there already. Nothing was written.")
    try:
        for path in texts:
            path.parent.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            if path in kept:
                click.echo(f"kept {path}: it is the same already")
                continue
            write_file(path, text)
            click.echo(f"wrote {path}")
    except OSError as error:
        raise click.ClickException(f"{error.filename} cannot be written: {error.strerror}") from error
    agent = ["-n", f"{root / 'agent.py'}:answer"] if kind == "jsonl" else []
    click.echo(f"\nNext: {shlex.join(['atp', 'test', str(suite), *agent])}")
    return 0


def _holds(path: Path, text: str) -> bool:
    """Whether a file is there with just this text: another `init` may have written it."""
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False
