"""What commands on the runs and files of a project share: the option that names it, and its secrets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from atp.base.diagnostics_text import printable

if TYPE_CHECKING:
    from atp.base.secrets import Secrets

Command = TypeVar("Command", bound=Callable[..., Any])


def in_project(command: Command) -> Command:
    """Give a command the option `--project`."""
    return click.option(
        "--project", default=".", metavar="PATH", type=click.Path(exists=True, path_type=Path), help="The project (.)"
    )(command)


@contextmanager
def opened(project: Path) -> "Iterator[tuple[Path, Secrets]]":
    """The root of a project, and its secrets, which may be newer than its journals and other files."""
    from atp.base.project import project_at
    from atp.base.secrets import masking
    from atp.engine.prepare.settings import environment, environment_secrets

    root = project_at(project)
    secrets = environment_secrets(environment(root, None))
    with masking(secrets):
        yield root, secrets


def say(text: str, secrets: "Secrets", *, err: bool = False) -> None:
    """Print a text without secrets and without what could steer a terminal."""
    click.echo(printable(secrets.mask_text(text)), err=err)
