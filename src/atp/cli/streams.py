"""The process's own streams: all three are there, and stdout is kept for what a command has to say."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator


class Closed(io.TextIOWrapper):
    """What stands for a stream that we were started without: it leads nowhere, and `real` says so."""

    real = None


def open_closed_ones() -> None:
    """Have those that we were started without (`2>&-`) lead nowhere: the next file opened would stand in for one."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            stream = Closed(open(os.devnull, f"{mode}b"), encoding="utf-8")  # noqa: SIM115  (it stays, as they do)
            if stream.fileno() == number:
                os.set_inheritable(number, True)
            setattr(sys, name, stream)


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
    sys.stdout = ours = type(stream)(
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
