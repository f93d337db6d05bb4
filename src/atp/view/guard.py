"""Who may ask the view's server: pages that it served itself, and programs that were told its token."""

import hmac
import secrets
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer: no other page learns of an address, frames the page or keeps what it shows."""
_READING = ("GET", "HEAD")


class Guard:
    """Lets through what has the token and comes from the server's own address. All else is answered with 403."""

    def __init__(self, refusal: Callable[[web.Request], web.StreamResponse | None]) -> None:
        """`refusal` makes the answer to a page without its token, if there is a page to show."""
        self.token = secrets.token_urlsafe(24)
        self.port = 0
        """The server's port, once it listens."""
        self._refusal = refusal

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which the server may be asked. Any other may be of a page that was led here by DNS."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    def middleware(self) -> Middleware:
        """The middleware of the server."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            if (why := self._why_not(request)) is not None:
                return web.json_response({"error": why}, status=403)
            if not self._has_token(request):
                missing = {"error": "no token, or another: use the address that atp view printed"}
                return self._refusal(request) or web.json_response(missing, status=403)
            return await handler(request)

        return guarded

    def _why_not(self, request: web.Request) -> str | None:
        """Why a request is refused, whatever its token; None if it is not."""
        hosts = request.headers.getall("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return "the Host is not this server's address"
        origins = request.headers.getall("Origin", [])
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            return "the Origin is another than this server"
        return None

    def _has_token(self, request: web.Request) -> bool:
        """True if the token is in the header, or in the address of a request that only reads."""
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer":
            given = request.query.get("token", "") if request.method in _READING else ""
        return hmac.compare_digest(given.strip().encode(), self.token.encode())


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that every answer has."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
