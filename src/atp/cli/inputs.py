"""The arguments and options that commands on test files share."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import click

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError
from atp.base.project import find_root
from atp.engine.prepare.settings import environment
from atp.engine.prepare.sources import Input
from atp.loader.inputs import find_files
from atp.loader.load import Loaded, load_path
from atp.loader.source import LoadContext

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = [
    click.argument("paths", nargs=-1, required=True, metavar="PATH..."),
    click.option("-n", "--name", "agent", help="An agent is named at run time: the file needs none."),
    click.option("--simulator", help="A simulator is named at run time: cases need none."),
    click.option("--assessor", help="An assessor is named at run time: the file needs none."),
    click.option("--strict", is_flag=True, help="Warnings are errors."),
]


def takes_files(command: Command) -> Command:
    """PATH…, what the command line may give in place of the file, and --strict."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def load_all(
    paths: tuple[str, ...], agent: str | None, simulator: str | None, assessor: str | None, strict: bool
) -> tuple[list[Loaded], list[Diagnostic]]:
    """The files that are meant, loaded, and what is wrong with the paths themselves."""
    notes = Diagnostics()
    given = LoadContext(
        env=_environment(paths, notes), agent=bool(agent), simulator=bool(simulator), assessor=bool(assessor)
    )
    loaded = [load_path(path, given) for path in find_files(paths, notes)]
    if strict:
        loaded = [replace(one, diagnostics=[_as_error(note) for note in one.diagnostics]) for one in loaded]
    return loaded, list(notes)


def _environment(paths: tuple[str, ...], notes: Diagnostics) -> Mapping[str, str]:
    """What a run of these files would see, the project's `.env` included: a file must not differ between the two."""
    try:
        return environment(find_root(Input((), paths).anchor), None)
    except LoadError as error:
        notes.extend(error.diagnostics)
        return os.environ


def secrets_of(loaded: list[Loaded]) -> frozenset[str]:
    """What no output may show of these files."""
    return frozenset().union(*(one.suite.secrets for one in loaded if one.suite))


def _as_error(note: Diagnostic) -> Diagnostic:
    return replace(note, severity="error")
