"""The server in a worker process: loads an agent once, and calls it for one turn after the other.

Requests, events and replies are lines of JSON on three pipes, of which the agent's code knows nothing: what it prints
goes to the process's output, and can't get between the messages. Events have a pipe of their own, so that only the
reply wakes up the process that sent the request.
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
from time import monotonic  # the agent's code may replace `time.monotonic`
from typing import Any

from ..contain import value_of
from ..json_values import plain, refusal, safe_text
from ..load import UnusableCode
from ..signature import Callee
from ..threads import Raised
from .drivers import make
from .events import SEND_EVENT

LAST_SECONDS = 1.0
"""Seconds that a worker gets to exit once its request pipe is closed. Then its process group is killed."""
_PIECE = 256 * 1024
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Server:
    """Reads requests from one pipe, and writes events and replies to two others."""

    def __init__(self, requests: int, events: int, replies: int) -> None:
        self._requests = requests
        self._events = events
        self._replies = replies
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        """Load the agent, then run turns until the request pipe is closed."""
        threading.Thread(target=self._exit_when_closed, name="requests", daemon=True).start()
        request = self._read()
        if request is None:
            return
        asyncio.set_event_loop(self._loop)
        self._send_event({"loading": True})
        try:
            # Outside of the loop: a module may call `asyncio.run` when it is imported.
            callee = make(request["load"])
        except UnusableCode as error:
            self._send_reply({"unusable": error.to_json()})
            return
        serving = self._loop.create_task(
            self._serve(Turns(callee, self._send_event, self._send_reply), callee.parameters.names)
        )
        while not serving.done():
            # A `SystemExit` in a task of the agent's ends the loop, but must not end the worker.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_until_complete(serving)

    async def _serve(self, turns: Turns, takes: tuple[str, ...]) -> None:
        self._send_reply({"ready": {"takes": list(takes), "python": platform.python_version()}})
        readable = asyncio.Event()
        self._loop.add_reader(self._requests, readable.set)
        while True:
            await readable.wait()
            request = self._read()
            if request is None:
                return
            readable.clear()
            # A task per turn: context variables that the agent sets must not be set in the next turn.
            await self._loop.create_task(turns.run(request))

    def _read(self) -> Any:
        """Wait for a request, of which the pipe has at most one. None if the pipe was closed."""
        pieces = []
        while piece := os.read(self._requests, _PIECE):
            pieces.append(piece)
            if piece.endswith(b"\n"):
                return json.loads(b"".join(pieces))
        return None

    def _exit_when_closed(self) -> None:
        """End the process group after the request pipe is closed, even if the agent never returns."""
        poll = select.poll()
        poll.register(self._requests, 0)  # without events, only the closing of the other end is reported
        poll.poll()
        time.sleep(LAST_SECONDS)
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)

    def _send_event(self, message: dict[str, Any]) -> None:
        self._send(self._events, message)

    def _send_reply(self, message: dict[str, Any]) -> None:
        self._send(self._replies, message)

    def _send(self, pipe: int, message: dict[str, Any]) -> None:
        _flush(sys.stdout)
        _flush(sys.stderr)
        rest = memoryview(_ENCODE(message).encode() + b"\n")
        while rest:
            rest = rest[os.write(pipe, rest) :]


def _flush(stream: Any) -> None:
    with contextlib.suppress(Exception):  # the agent may have closed or replaced the stream
        stream.flush()


class _Refused(Exception):
    """Raised if the agent returned or yielded a value that is not JSON."""


class Turns:
    """Calls an agent, one turn at a time."""

    def __init__(
        self,
        callee: Callee,
        send_event: Callable[[dict[str, Any]], None],
        send_reply: Callable[[dict[str, Any]], None],
    ) -> None:
        self._callee = callee
        self._send_event = send_event
        self._send_reply = send_reply

    async def run(self, request: dict[str, Any]) -> None:
        """Call the agent, and send the result of the call."""
        for conversation in request["ended"]:
            self._callee.end(conversation)
        SEND_EVENT.set(self._on_yield)
        try:
            reply = await self._call(request["turn"], request["conversation"])
        except _Refused as refused:
            reply = {"refused": str(refused)}
        except Raised as raised:
            if raised.is_a(_Refused):  # an event of a driver is checked inside the driver's code
                reply = {"refused": str(raised.error)}
            else:
                reply = {"raised": {"said": safe_text(raised), "traceback": safe_text(raised.traceback)}}
        self._send_reply(reply)

    async def _call(self, values: dict[str, Any], conversation: str) -> dict[str, Any]:
        if "workspace" in values:
            values["workspace"] = Path(values["workspace"])
        args, kwargs = self._callee.parameters.arguments(values)
        context = contextvars.copy_context()
        function = self._callee.find(conversation)
        if function is None:
            function = await value_of(lambda: self._callee.make(conversation), context)
        call = functools.partial(function, *args, **kwargs)
        value = await value_of(call, context, blocks=not self._callee.is_async, on_yield=self._on_yield)
        return {"ended": True} if value is None else {"returned": _checked(value)}

    def _on_yield(self, item: Any) -> None:
        self._send_event({"yielded": _checked(item), "at": monotonic()})


def _checked(value: Any) -> Any:
    try:
        return plain(value)
    except BaseException as error:
        raise _Refused(refusal(error)) from error
