"""What commands on the runs and files of a project share: the option that names it, and its secrets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from atp.base.secrets import Secrets

Command = TypeVar("Command", bound=Callable[..., Any])


def in_project(command: Command) -> Command:
    """Give a command the option `--project`."""
    return click.option(
        "--project", default=".", metavar="PATH", type=click.Path(exists=True, path_type=Path), help="The project (.)"
    )(command)


@contextmanager
def masking_secrets(root: Path) -> "Iterator[Secrets]":
    """Mask the secrets of the environment and of a project's `.env`, which may be newer than its journals."""
    from atp.base.secrets import masking
    from atp.engine.prepare.settings import environment, environment_secrets

    secrets = environment_secrets(environment(root, None))
    with masking(secrets):
        yield secrets
