"""The environment of our own process, for code in it that can't be handed another."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Environment(dict[str, str]):
    """The process environment, with what a file adds: it never overrides what is really set."""

    def __init__(self, of_file: Mapping[str, str]) -> None:
        super().__init__({**of_file, **os.environ})
        self.of_file = of_file
        """What the file says."""


@contextmanager
def lent(env: Mapping[str, str]) -> Iterator[None]:
    """Put there what a file adds, for a while: agents and providers' packages look for their keys there."""
    # Of an environment only that: the rest of it may be out of date by now.
    offered = env.of_file if isinstance(env, Environment) else env
    added = {name: value for name, value in offered.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
