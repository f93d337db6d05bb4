"""Command-line options made from the one options object."""

from collections.abc import Callable
from typing import Any, TypeVar, get_origin

import click

from atp.engine.prepare.options import settings

Command = TypeVar("Command", bound=Callable[..., Any])


def takes_options(command: Command) -> Command:
    """Every setting as a flag; one that isn't given stays out of the call."""
    for name, about in reversed(settings().items()):
        command = _option(name, about)(command)
    return command


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The flags that were given. One with an empty value (`--budget-usd "$UNSET"`) was given, and is a mistake."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None and value != ()
    }


def _option(name: str, about: dict[str, Any]) -> Callable[[Command], Command]:
    flags = about["flags"]
    if not any(flag.startswith("--") for flag in flags):
        flags = [*flags, f"--{name.replace('_', '-')}"]
    kind = about["field"].annotation
    if kind is bool:
        if not about["only_flag"]:  # a file or the environment may have set it
            flags = [f"{flag}/--no-{flag[2:]}" if flag.startswith("--") else flag for flag in flags]
        return click.option(*flags, name, is_flag=True, default=None, help=about["help"])
    if get_origin(kind) is list:
        return click.option(*flags, name, multiple=True, metavar="TEXT", help=f"{about['help']} (repeatable)")
    return click.option(*flags, name, metavar=_metavar(name), help=about["help"])


def _metavar(name: str) -> str:
    """What kind of thing a flag takes."""
    known = {"timeout": "TIME", "max_time": "TIME", "run": "REGEX", "ctx": "FILE", "env_file": "FILE"}
    known |= {"resume_from": "RUN", "tags": "TAGS", "budget_usd": "USD"}
    numbers = {"runs", "parallel", "retries", "max_errors", "budget_tokens"}
    return "N" if name in numbers else known.get(name, "TEXT")
