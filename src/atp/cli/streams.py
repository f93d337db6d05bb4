"""Keeping stdout for what a command has to say."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def stdout_for_us() -> Iterator[None]:
    """What processes print that agents in our own process start, and C code, goes to stderr: it isn't ours to say."""
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper) or stream.fileno() != 1:
        yield
        return
    stream.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = ours = io.TextIOWrapper(
        open(own, "wb"),  # noqa: SIM115  (closed below)
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
    )
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # an agent may have closed it
            os.dup2(own, 1)
        with contextlib.suppress(OSError):  # nobody reads it any more
            ours.close()  # what stands in `sys.stdout` by now may be an agent's
        sys.stdout = stream
