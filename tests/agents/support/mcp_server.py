"""A real MCP server, written with the SDK, over stdio or HTTP (`http PORTFILE`): tools of every kind of behaviour.

Each start adds a line to the file that `MCP_STARTS` names.
"""

import asyncio
import itertools
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

server = MCPServer("example", log_level="CRITICAL")
calls = itertools.count(1)


def say(text: str, where: TextIO) -> None:
    where.write(f"{text}\n")
    where.flush()


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"


@server.tool()
def forecast(city: str) -> dict[str, Any]:
    """The weather, as JSON."""
    return {"city": city, "sky": "clear", "degrees": 21.5}


@server.tool()
def counted() -> int:
    """How often it was called since the server started."""
    return next(calls)


@server.tool()
def where() -> dict[str, str]:
    """Where the server runs, and what it was given."""
    return {"cwd": os.getcwd(), "run": os.environ.get("ATP_RUN", ""), "token": os.environ.get("API_TOKEN", "")}


@server.tool()
def write(path: str, text: str) -> str:
    """Writes a file where the server runs."""
    Path(path).write_text(text, encoding="utf-8")
    return f"wrote {path}"


@server.tool()
def fail(why: str) -> str:
    """Fails, and says why."""
    raise ToolError(why)


@server.tool()
def refuse() -> str:
    """Answers with an error of the protocol."""
    raise MCPError(-32099, "not today")


@server.tool()
def die(once: str = "") -> str:
    """Takes the whole server down; with a path, only if that isn't there yet."""
    if once and Path(once).exists():
        return "alive"
    if once:
        Path(once).touch()
    say("going down", sys.stderr)
    os._exit(7)


@server.tool()
async def hang() -> str:
    """Never answers."""
    await asyncio.Event().wait()
    return "never"


@server.tool()
def huge(size: int) -> str:
    """A large answer."""
    return "é" * size


@server.tool()
def mutter(text: str) -> str:
    """Writes to stderr."""
    say(text, sys.stderr)
    return "muttered"


@server.tool()
def litter() -> int:
    """Leaves a process behind that has left the server's group."""
    return subprocess.Popen(["sleep", "1000"], start_new_session=True).pid


@server.tool()
def picture() -> Image:
    """An image."""
    return Image(data=b"\x89PNG" * 10, format="png")


@server.tool()
def parcel() -> CallToolResult:
    """Something of each kind."""
    text = TextResourceContents(uri="memo://one", mime_type="text/plain", text="Buy milk")
    blob = BlobResourceContents(uri="memo://two", mime_type="application/pdf", blob="QUJDRA==")
    return CallToolResult(
        content=[
            TextContent(type="text", text="Here it is."),
            AudioContent(type="audio", data="QUJDRA==", mime_type="audio/wav"),
            EmbeddedResource(type="resource", resource=text),
            EmbeddedResource(type="resource", resource=blob),
            ResourceLink(type="resource_link", uri="https://example.com/x", name="x", title="The x"),
        ]
    )


@server.tool(name="naïve.tool")
def odd() -> str:
    """A name that models don't take."""
    return "odd"


def many(number: int) -> None:
    for one in range(number):
        server.add_tool(lambda: "", name=f"tool_{one}", description="One of many")


def over_http(port_file: Path) -> None:
    import uvicorn  # takes its time, and only this way of speaking needs it

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", int(os.environ.get("MCP_PORT", "0"))))
    listening.listen()
    stateless = "stateless" in sys.argv
    app = server.streamable_http_app(stateless_http=stateless)
    token = os.environ.get("HTTP_TOKEN")

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers") or []).get(b"authorization", b"").decode()
        if scope["type"] == "http" and token and given != f"Bearer {token}":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
        await app(scope, receive, send)

    running = uvicorn.Server(uvicorn.Config(guarded, log_level="error"))
    port_file.with_suffix(".part").write_text(str(listening.getsockname()[1]))
    port_file.with_suffix(".part").rename(port_file)
    asyncio.run(running.serve(sockets=[listening]))


def main() -> None:
    if starts := os.environ.get("MCP_STARTS"):
        with open(starts, "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode == "broken":
        sys.exit("no configuration found")
    if mode == "mute":
        time.sleep(1000)
    if mode == "chatty":
        say("Welcome to the server!", sys.stdout)
    if mode == "many":
        many(int(sys.argv[2]))
    if mode == "long":
        server.add_tool(lambda: "", name="l" * 40, description="A long name")
    if mode == "http":
        over_http(Path(sys.argv[2]))
    else:
        server.run()


if __name__ == "__main__":
    main()
