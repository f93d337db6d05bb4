"""Server-sent events to one page."""

import asyncio

from aiohttp import web

KEEP_ALIVE = 10.0
"""Seconds of silence after which a comment is sent: it tells whether the page is still there."""


class Events:
    """A stream of events. It ends when the page is closed or the server stops."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._silent = 0.0
        self._stopping: asyncio.Event = request.app[STOPPING]
        self.response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})

    async def open(self) -> None:
        """Send the head of the answer."""
        await self.response.prepare(self._request)

    @property
    def is_open(self) -> bool:
        """False once the server stops or the page is gone."""
        transport = self._request.transport
        return not self._stopping.is_set() and transport is not None and not transport.is_closing()

    async def send(self, kind: str, data: bytes) -> None:
        """Send an event; `data` is JSON, which has no line breaks."""
        self._silent = 0.0
        await self.response.write(b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n")

    async def pause(self, seconds: float) -> None:
        """Wait, but not when the server stops."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            self._silent += seconds
            if self._silent >= KEEP_ALIVE:
                self._silent = 0.0
                await self.response.write(b":\n\n")


STOPPING = web.AppKey("stopping", asyncio.Event)
"""Set when the server stops, so that no stream keeps it from doing so."""
