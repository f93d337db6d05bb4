"""Calls code that is not ours: agents, tools, hooks, `script` checks, judges, generators, script tests.

A function may be sync, async or a generator, may block, print, exit, or never return. `call` returns its value or
raises `Raised`, and no other effect of the function reaches the run.
"""

import asyncio
import contextvars
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from atp.usercode.contain import value_of
from atp.usercode.exits import GUARD, LIVE_THREADS, ForeignCode, mark_foreign
from atp.usercode.printed import CAPTURE, Printed, restore_streams
from atp.usercode.signature import is_async
from atp.usercode.threads import Raised

__all__ = ["Hosting", "Raised", "call"]


async def call(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    log: Callable[[str], None] | None = None,
    printed: Printed | None = None,
    on_yield: Callable[[Any], None] | None = None,
    blocks: bool | None = None,
) -> Any:
    """Call a function that is not ours, and return its value. Raises `Raised` with whatever the function raised.

    `log` is called with each line that the function printed, after the call has ended in any way. A caller that makes
    several calls for one log passes the same `printed` to them. `on_yield` is called with each item of a generator, and
    what `on_yield` raises is raised unchanged. A caller that knows whether the function may block says so by
    `blocks`. On cancellation the call is abandoned: blocking code runs on in its thread until it prints.
    """
    own = Printed() if printed is None else printed
    code = ForeignCode()
    context = contextvars.copy_context()
    context.run(_mark, own, code)
    kwargs = kwargs or {}
    try:
        with HOSTING:
            if LIVE_THREADS:
                restore_streams()  # a thread that an earlier call left behind may have closed them
            if blocks is None:
                blocks = not is_async(function)
            made = partial(_watched, function, args, kwargs) if blocks else partial(function, *args, **kwargs)
            value = await value_of(made, context, blocks=blocks, on_yield=on_yield)
            if code.refused:  # in a thread of the function's own, or caught by the function
                raise Raised(code.refused[0])
            _check_streams()
            return value
    except ClosedStreams as error:
        raise Raised(error) from error
    except asyncio.CancelledError:
        own.abandoned = True
        raise
    finally:
        if printed is None:
            for line in own.finish():
                if log is not None:
                    log(line)


def _mark(printed: Printed, code: ForeignCode) -> None:
    printed.capture()
    mark_foreign(code)


class ClosedStreams(Exception):
    """Raised for code that is not ours when it closed standard streams of the process."""


def _watched(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    finally:
        _check_streams()


def _check_streams() -> None:
    # The next file to be opened would get the descriptor of a closed stream, and with it our output.
    if closed := restore_streams():
        raise ClosedStreams(f"it closed {', '.join(closed)} of the process that runs the tests")


class Hosting:
    """Protects the process while code that is not ours may run in it, in a call or after one.

    What the code prints is captured, and exits are refused. A run is inside this context manager from its first call to
    its last report.
    """

    def __enter__(self) -> None:
        CAPTURE.begin()
        GUARD.begin_run()

    def __exit__(self, *_error: object) -> None:
        GUARD.end_run()
        CAPTURE.end()


HOSTING = Hosting()
"""May be entered any number of times, also by several tasks at once."""
