"""Keeps ATP's stdout and stderr apart from those that code which is not ours finds in `sys`.

The user's code may replace, detach, reconfigure or close what it finds in `sys.stdout` and `sys.stderr`. Usual are the
line `sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-8")` and an object that copies all to a log.
"""

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import TextIO

_OWN: list[tuple[TextIO, TextIO]] = []
"""ATP's own stdout and stderr while others are in `sys`."""


def own_streams() -> tuple[TextIO, TextIO]:
    """ATP's own stdout and stderr."""
    return _OWN[0] if _OWN else (sys.stdout, sys.stderr)


@contextlib.contextmanager
def streams_for_user_code() -> Iterator[None]:
    """Put other objects into `sys.stdout` and `sys.stderr`, which write to descriptors 1 and 2, and take them away.

    Only in a process of ATP's own. Streams without a descriptor, as tests have them, stay where they are.
    """
    own = (sys.stdout, sys.stderr)
    others = (_copy(sys.stdout, 1), _copy(sys.stderr, 2))
    _OWN.insert(0, own)
    sys.stdout, sys.stderr = others
    try:
        yield
    finally:
        _OWN.remove(own)
        sys.stdout, sys.stderr = own
        for stream in others:
            with contextlib.suppress(BaseException):  # whatever the user's code has made of it
                stream.flush()


def _copy(stream: TextIO, number: int) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    try:
        stream.fileno()
    except OSError:
        return stream
    return io.TextIOWrapper(
        open(number, "wb", closefd=False),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=True,
    )
