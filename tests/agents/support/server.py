"""A real HTTP server on 127.0.0.1 that plays an agent."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

FOREVER = 3600.0
"""Seconds; longer than any test waits."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class AgentServer:
    """What it was asked, and what it answers."""

    handler: Handler
    url: str = ""
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        self.bodies.append(json.loads(text) if text else None)
        self.headers.append(dict(request.headers))
        self.connections.add(request.transport)
        return await self.handler(request)


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[AgentServer]:
    """A server with this behaviour, on a port of its own."""
    server = AgentServer(handler)
    app = web.Application(client_max_size=100 * 1024 * 1024)
    app.router.add_route("*", "/{rest:.*}", server._handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = _address(runner)
        yield server
    finally:
        await runner.cleanup()


def _address(runner: web.AppRunner) -> str:
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}"


def completed(request: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"version": "1.0", "task_id": request["task_id"], "status": "completed", **fields}


def answering(**fields: Any) -> Handler:
    """Answers with a response object."""

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response(completed(await request.json(), **fields))

    return handler


def sending(value: Any, status: int = 200, **headers: str) -> Handler:
    """Answers with this JSON, or these bytes."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, headers={"Content-Type": "application/json", **headers})

    return handler


def streaming(pieces: Iterable[bytes], stay: float = 0) -> Handler:
    """Streams these pieces, each in a write of its own."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        await asyncio.sleep(stay)
        return response

    return handler


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"version": "1.0", "task_id": "trial-1", "sequence": 0, "event_type": kind, "payload": payload}


def sse(*messages: dict[str, Any] | tuple[str, dict[str, Any]]) -> bytes:
    """Messages as a stream; a pair gives the event's name too."""
    text = ""
    for message in messages:
        name, data = message if isinstance(message, tuple) else ("", message)
        text += (f"event: {name}\n" if name else "") + f"data: {json.dumps(data, ensure_ascii=False)}\n\n"
    return text.encode()


@asynccontextmanager
async def raw_server(answer: bytes, reset: bool = False) -> AsyncIterator[str]:
    """A server that reads something, writes these bytes and hangs up."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100_000)
        writer.write(answer)
        if reset:
            writer.transport.abort()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()
        await server.wait_closed()
