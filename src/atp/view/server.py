"""The view's server: aiohttp on a loopback address, with a token, until it is stopped."""

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from atp.base.diagnostics import load_error
from atp.base.secrets import Hide
from atp.view.api import Api, explain
from atp.view.events import STOPPING
from atp.view.guard import Guard, add_headers
from atp.view.page import page, page_without_token
from atp.view.runs import Runs

ADDRESS = "127.0.0.1"
_LOOK = 1.0
"""Seconds between two looks at whether anybody still uses the server."""


class ViewServer:
    """Serves the runs of a folder."""

    def __init__(self, folder: Path, hide: Hide, opened: str | None = None) -> None:
        """`opened` is the run that the page shows first; without one, it lists all."""
        self.stopping = asyncio.Event()
        """Ends the server when it is set."""
        self._api = Api(Runs(folder, hide), opened)
        self._guard = Guard(_refusal)
        self._app = app = web.Application(middlewares=[self._guard.middleware(), explain], client_max_size=1 << 20)
        app[STOPPING] = self.stopping
        app.on_response_prepare.append(add_headers)
        app.add_routes([web.get("/", _page), *self._api.routes()])

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"http://{ADDRESS}:{self._guard.port}/?token={self._guard.token}"

    async def serve(self, port: int, ready: Callable[[str], None], idle: float | None = None) -> None:
        """Listen on a port, a free one if it is 0, call `ready` with the address, and serve until `stopping` is set.

        `idle`: also end when no page has been open and nothing was asked for so many seconds. Raises `LoadError` if the
        port is in use.
        """
        listening = _listen(port)
        self._guard.port = listening.getsockname()[1]
        runner = web.AppRunner(self._app, access_log=None, handle_signals=False, shutdown_timeout=2.0)
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            ready(self.address)
            await self._until_stopped(idle)
        finally:
            self.stopping.set()
            await runner.cleanup()

    async def _until_stopped(self, idle: float | None) -> None:
        if idle is None:
            await self.stopping.wait()
            return
        while not self.stopping.is_set():
            if not self._api.watching and time.monotonic() - self._api.asked_at > idle:
                return
            try:
                await asyncio.wait_for(self.stopping.wait(), min(_LOOK, idle))
            except TimeoutError:
                continue


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((ADDRESS, port))
    except OSError as error:
        listening.close()
        why = error.strerror or str(error)
        raise load_error("bad-port", f"--port {port}: {why}", "name another port, or none for a free one") from error
    return listening


async def _page(request: web.Request) -> web.StreamResponse:
    body, allowed = page()
    return web.Response(body=body, content_type="text/html", charset="utf-8", headers=_policy(allowed))


def _refusal(request: web.Request) -> web.StreamResponse | None:
    """The answer to a page without its token; None for other requests."""
    if request.path != "/" or request.method != "GET" or request.query:
        return None
    text, allowed = page_without_token()
    return web.Response(text=text, status=403, content_type="text/html", headers=_policy(allowed))


def _policy(allowed: str) -> dict[str, str]:
    return {"Content-Security-Policy": allowed}
