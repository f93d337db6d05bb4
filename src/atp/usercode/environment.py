"""Adds the variables of an environment file to the environment of our own process."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from atp.base.diagnostics import Diagnostic


class Environment(dict[str, str]):
    """The process environment, with the variables of a file. The file never overrides a variable of the process."""

    def __init__(self, from_file: Mapping[str, str], warnings: Sequence[Diagnostic] = ()) -> None:
        super().__init__({**from_file, **os.environ})
        self.from_file = from_file
        """The variables of the file, including those that the process overrides."""
        self.warnings = warnings
        """Warnings about the file."""


@contextmanager
def extended_environ(env: Mapping[str, str]) -> Iterator[None]:
    """Add the variables that are not set to `os.environ` inside: agents and provider packages read their keys there."""
    # Only those of the file: `os.environ` may have changed since the rest was copied.
    extra = env.from_file if isinstance(env, Environment) else env
    added = {name: value for name, value in extra.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
