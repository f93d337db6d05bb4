"""Makes sure that stdin, stdout and stderr are open, reserves stdout for a command's own output, and prints JSON."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

import click


class Closed(io.TextIOWrapper):
    """A replacement for a stream that was closed when the process started. Output is discarded; `real` is None."""

    real = None


def replace_closed_streams() -> None:
    """Replace streams that were closed at the start (`2>&-`), because the next file opened would take their number."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            stream = Closed(open(os.devnull, f"{mode}b"), encoding="utf-8")  # noqa: SIM115  (it stays, as they do)
            if stream.fileno() == number:
                os.set_inheritable(number, True)
            setattr(sys, name, stream)


@contextlib.contextmanager
def stdout_reserved() -> Iterator[None]:
    """Redirect descriptor 1 to stderr, so that agents' processes and C code don't print into a command's output."""
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
        with contextlib.suppress(OSError):  # the reader is gone
            ours.close()
        sys.stdout = stream


def print_json(value: Any) -> None:
    """One JSON value, readable where stdout can show it and escaped where not."""
    import json  # not before there is something to print

    from atp.base.json.text import unsteered

    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not is_utf8, indent=2)
    click.echo(unsteered(text.encode("utf-8", "surrogatepass")).decode())
