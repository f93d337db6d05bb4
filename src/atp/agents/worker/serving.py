"""A worker at work: an agent is loaded once and then called for one turn after the other.

Requests and replies are lines of JSON on two pipes that nobody else knows of. What the agent prints goes where its
output goes, and can't get between them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import queue
import signal
import sys
import threading
import time
from typing import Any

from .made import make
from .turns import Turns
from .unusable import Unusable

LAST_SECONDS = 1.0
"""How long a worker may take to end once nobody asks any more: then it is ended, with what it has started."""


class Server:
    """Answers the requests of one pipe on another."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests = requests
        self._replies = replies
        self._first: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._asked: asyncio.Queue[Any] | None = None
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        """Load an agent, then hold turns until the requests end."""
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        request = self._first.get()
        if request is None:
            return
        asyncio.set_event_loop(self._loop)
        self._send({"loading": True})
        try:
            # Not within the loop: a module may well call `asyncio.run` when it is loaded.
            callee = make(request["load"])
        except Unusable as error:
            self._send({"unusable": error.wire()})
            return
        serving = self._loop.create_task(self._serve(Turns(callee, self._send), callee.takes))
        while not serving.done():
            # asyncio lets an exit of any task out of the loop; it is no more the end of a worker than of a run.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_until_complete(serving)

    async def _serve(self, turns: Turns, takes: tuple[str, ...]) -> None:
        self._asked = asyncio.Queue()
        self._send({"ready": {"takes": list(takes), "python": platform.python_version()}})
        while True:
            request = await self._asked.get()
            if request is None:
                return
            # A task of its own: what the agent puts into its context must not be there in the next turn.
            await self._loop.create_task(turns.hold(request["turn"]))

    def _read(self) -> None:
        with os.fdopen(self._requests, "rb") as lines:
            for line in lines:
                self._deliver(json.loads(line))
        self._deliver(None)
        time.sleep(LAST_SECONDS)
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)

    def _deliver(self, request: Any) -> None:
        if self._asked is None:
            self._first.put(request)
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._asked.put_nowait, request)

    def _send(self, message: dict[str, Any]) -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the agent may have closed or replaced it
                stream.flush()
        rest = memoryview(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        while rest:
            rest = rest[os.write(self._replies, rest) :]
