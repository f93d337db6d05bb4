"""The arguments and options that commands on test files share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from atp.loader.diagnostics import Diagnostic, Diagnostics
from atp.loader.given import Given
from atp.loader.inputs import find_files
from atp.loader.load import Loaded, load_path

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
    given = Given(agent=bool(agent), simulator=bool(simulator), assessor=bool(assessor))
    notes = Diagnostics()
    loaded = [load_path(path, given) for path in find_files(paths, notes)]
    if strict:
        loaded = [replace(one, diagnostics=[_as_error(note) for note in one.diagnostics]) for one in loaded]
    return loaded, list(notes)


def secrets_of(loaded: list[Loaded]) -> frozenset[str]:
    """What no output may show of these files."""
    return frozenset().union(*(one.suite.secrets for one in loaded if one.suite))


def _as_error(note: Diagnostic) -> Diagnostic:
    return replace(note, severity="error")
