"""An HTTP server whose paths are agents: in a thread of its own, on a free port of the loopback."""

import asyncio
import json
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Self

from aiohttp import web
from tests.engine.support.expense import answer, events, response
from tests.waiting import WAIT_LIMIT

Answer = Callable[["Server", web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


class Server:
    """Serves until it is left."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        """How often each path was posted to, by path and `?key=…`."""
        self.requests: list[dict[str, Any]] = []
        """The bodies that came, in order."""
        self.headers: list[dict[str, str]] = []
        """Their headers."""
        self.open = 0
        """Requests that are being answered now."""
        self.broken: set[str] = set()
        """The keys (`?key=…`) for which the agent `faulty` does not work now."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready = threading.Event()
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(WAIT_LIMIT)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_LIMIT)

    def url(self, path: str) -> str:
        """The address of an agent."""
        return f"http://127.0.0.1:{self._port}/{path}"

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = self._loop.run_until_complete(self._start())
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _start(self) -> web.AppRunner:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/{name}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._port = runner.addresses[0][1]
        self._ready.set()
        return runner

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.calls[request.path_qs.strip("/")] += 1
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        self.open += 1
        try:
            return await AGENTS[request.match_info["name"]](self, request, body)
        finally:
            self.open -= 1


def reply(body: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A response of the protocol."""
    return {"version": "1.0", "task_id": body["task_id"], "status": "completed", **fields}


async def echo(_: Server, _request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """Says what it was told, and makes what it was asked for."""
    expected = body["task"]["expected_artifacts"] or []
    if "result.txt" in body["task"]["description"]:
        expected = ["result.txt"]
    made = [{"type": "file", "path": path, "content": "made"} for path in expected]
    said = f"echo: {body['task']['description']}"
    artifacts = [{"type": "structured", "name": "output", "data": said}, *made]
    metrics = {"total_tokens": 10, "total_steps": 1, "cost_usd": 0.001}
    return web.json_response(reply(body, artifacts=artifacts, metrics=metrics))


async def whole(_: Server, _request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """Gives the request back."""
    return web.json_response(reply(body, output=body))


async def flaky(server: Server, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """Is not available twice, then works; `?key=…` keeps tests apart."""
    if server.calls[request.path_qs.strip("/")] <= 2:
        return web.Response(status=503, text="starting up", headers={"Retry-After": "0"})
    return await echo(server, request, body)


async def status(_: Server, request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
    """Answers with the status `?code=…`."""
    return web.Response(status=int(request.query["code"]), text="no", headers={"Retry-After": "0"})


async def broken(_: Server, _request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
    """Breaks the protocol."""
    return web.json_response({"hello": "there"})


async def slow(_: Server, _request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """Never answers."""
    await asyncio.sleep(600)
    return web.json_response(reply(body))


async def stream(_: Server, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """The documents' agent as a stream, every byte a chunk of its own, lines ended in every way the standard has."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    output, calls = answer(body["task"]["input_data"]["messages"])
    said = ": hello\r\n\r\n"
    for event in events(calls):
        said += f"id: 1\ndata: {json.dumps(event)}\n\n"
    first, _blank, rest = json.dumps(reply(body, output=output), ensure_ascii=False).partition(" ")
    said += f"event: response\rdata: {first}\rdata: {rest}"
    for byte in said.encode():
        await response.write(bytes([byte]))
    await response.write_eof()
    return response


async def expense(_: Server, _request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """The documents' agent, in one piece; of its tools only a stream could tell."""
    return web.json_response(response(body, answer(body["task"]["input_data"]["messages"])[0]))


async def endless(server: Server, request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
    """Calls tools for as long as anybody listens, and counts how often it could say so."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    number = 0
    while number < 500:
        event = {"event_type": "tool_call", "payload": {"tool": "search", "input": {"n": number}}}
        await response.write(f"data: {json.dumps(event)}\n\n".encode())
        number += 1
        server.calls["endless events"] = number
        await asyncio.sleep(0.05)
    return response


async def remembers(_: Server, _request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """Counts the messages of a conversation: stateless, from what it is handed."""
    messages = body["task"]["input_data"]["messages"]
    said = " / ".join(str(one["content"]) for one in messages)
    answer = f"turn {body['metadata']['turn']} of {body['metadata']['session_id']}: {said}"
    return web.json_response(reply(body, output=answer))


async def faulty(server: Server, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """Works, or fails in a way of `?how=…,…`, for as long as its `?key=…` is in `server.broken`."""
    if request.query["key"] not in server.broken:
        return await echo(server, request, body)
    ways = request.query["how"].split(",")
    how = random.Random(request.query["key"] + body["task"]["description"]).choice(ways)
    if how == "works":
        return await echo(server, request, body)
    if how == "stalls":
        await asyncio.sleep(600)
    if how == "redirects":
        return web.Response(status=307, headers={"Location": f"/whole?key={request.query['key']}"})
    if how == "refuses":
        return web.Response(status=429, text="too many", headers={"Retry-After": "0"})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    event = json.dumps({"event_type": "progress", "payload": {"message": "x" * 1000}})
    await response.write(f"data: {event}\n\n".encode())
    if how == "resets" and request.transport is not None:
        request.transport.abort()
    while how == "floods":
        await response.write(f"data: {event}\n\n".encode() * 100)
    return response


AGENTS: dict[str, Answer] = {
    function.__name__: function
    for function in (broken, echo, endless, expense, faulty, flaky, remembers, slow, status, stream, whole)
}
