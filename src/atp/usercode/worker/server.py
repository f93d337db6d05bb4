"""A worker at work: an agent is loaded once and then called for one turn after the other.

Requests and replies are lines of JSON on pipes that nobody else knows of: one for requests, one for what is told while
a request is at work, one for how it ended, which wakes whoever asked. What the agent prints goes where its output goes,
and can't get between them.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import json
import os
import platform
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from time import monotonic  # the agent may put another in its place
from typing import Any

from ..contain import value_of
from ..json_values import plain, refusal, words
from ..load import UnusableCode
from ..signature import Callee, is_async
from ..threads import Raised
from .drivers import make
from .events import AT_ONCE

LAST_SECONDS = 1.0
"""How long a worker may take to end once nobody asks any more: then it is ended, with what it has started."""
_PIECE = 256 * 1024
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Server:
    """Answers the requests of one pipe on two others."""

    def __init__(self, requests: int, told: int, replies: int) -> None:
        self._requests = requests
        self._told = told
        self._replies = replies
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        """Load an agent, then hold turns until the requests end."""
        threading.Thread(target=self._watch, name="requests", daemon=True).start()
        request = self._read()
        if request is None:
            return
        asyncio.set_event_loop(self._loop)
        self._tell({"loading": True})
        try:
            # Not within the loop: a module may well call `asyncio.run` when it is loaded.
            callee = make(request["load"])
        except UnusableCode as error:
            self._end({"unusable": error.to_json()})
            return
        serving = self._loop.create_task(self._serve(Turns(callee, self._tell, self._end), callee.parameters.names))
        while not serving.done():
            # asyncio lets an exit of any task out of the loop; it is no more the end of a worker than of a run.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_until_complete(serving)

    async def _serve(self, turns: Turns, takes: tuple[str, ...]) -> None:
        self._end({"ready": {"takes": list(takes), "python": platform.python_version()}})
        asked = asyncio.Event()
        self._loop.add_reader(self._requests, asked.set)
        while True:
            await asked.wait()
            request = self._read()
            if request is None:
                return
            asked.clear()
            # A task of its own: what the agent puts into its context must not be there in the next turn.
            await self._loop.create_task(turns.run(request))

    def _read(self) -> Any:
        """A request, of which there is only ever one; it is waited for. None when there are no more."""
        pieces = []
        while piece := os.read(self._requests, _PIECE):
            pieces.append(piece)
            if piece.endswith(b"\n"):
                return json.loads(b"".join(pieces))
        return None

    def _watch(self) -> None:
        """End all of it when nobody asks any more, even if the agent never comes back."""
        gone = select.poll()
        gone.register(self._requests, 0)  # only that the other end is closed
        gone.poll()
        time.sleep(LAST_SECONDS)
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)

    def _tell(self, message: dict[str, Any]) -> None:
        self._send(self._told, message)

    def _end(self, message: dict[str, Any]) -> None:
        self._send(self._replies, message)

    def _send(self, pipe: int, message: dict[str, Any]) -> None:
        _flush(sys.stdout)
        _flush(sys.stderr)
        rest = memoryview(_ENCODE(message).encode() + b"\n")
        while rest:
            rest = rest[os.write(pipe, rest) :]


def _flush(stream: Any) -> None:
    with contextlib.suppress(Exception):  # the agent may have closed or replaced it
        stream.flush()


class _Refused(Exception):
    """The agent returned what is not JSON."""


class Turns:
    """Calls an agent, one turn at a time."""

    def __init__(
        self, callee: Callee, tell: Callable[[dict[str, Any]], None], end: Callable[[dict[str, Any]], None]
    ) -> None:
        self._callee = callee
        self._tell = tell
        self._end = end

    async def run(self, request: dict[str, Any]) -> None:
        """Call the agent, and report how the call ended."""
        for conversation in request["ended"]:
            self._callee.end(conversation)
        AT_ONCE.set(self._yielded)
        try:
            end = await self._call(request["turn"], request["conversation"])
        except _Refused as refused:
            end = {"refused": str(refused)}
        except Raised as raised:
            if isinstance(raised.error, _Refused):  # what a driver of ours tells is refused within its own code
                end = {"refused": str(raised.error)}
            else:
                end = {"raised": {"said": words(raised), "traceback": words(raised.traceback)}}
        self._end(end)

    async def _call(self, given: dict[str, Any], conversation: str) -> dict[str, Any]:
        if "workspace" in given:
            given["workspace"] = Path(given["workspace"])
        args, kwargs = self._callee.parameters.arguments(given)
        context = contextvars.copy_context()
        function = self._callee.find(conversation)
        if function is None:
            function = await value_of(lambda: self._callee.make(conversation), context)
        call = functools.partial(function, *args, **kwargs)
        value = await value_of(call, context, blocks=not is_async(function), on_yield=self._yielded)
        return {"ended": True} if value is None else {"returned": _checked(value)}

    def _yielded(self, item: Any) -> None:
        self._tell({"yielded": _checked(item), "at": monotonic()})


def _checked(value: Any) -> Any:
    try:
        return plain(value)
    except BaseException as error:
        raise _Refused(refusal(error)) from error
