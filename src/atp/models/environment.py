"""The environment of our own process, for code in it that can't be handed another."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def lent(env: Mapping[str, str]) -> Iterator[None]:
    """Put there what `.env` adds, for a while: agents and providers' packages look for their keys there."""
    added = {name: value for name, value in env.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
