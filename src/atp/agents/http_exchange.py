"""Posts turns to an HTTP server and reads its answers, for agents of type `http` and for servers in containers."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Literal, NamedTuple, Protocol

import aiohttp
from multidict import CIMultiDict

from atp.agents import http_faults as faults
from atp.agents.adapter import AdapterContext, AgentError, AgentTimeout, Reply, TurnRequest
from atp.agents.events import read_event
from atp.agents.http_faults import Address
from atp.agents.protocol import encode_request, take_response
from atp.agents.wire import RAW_LENGTH, ProtocolError, broken, read_json
from atp.base.errors import ConfigurationError
from atp.base.sse import SseMessage, SseParser, TooLong
from atp.models.body import LARGEST, Body, too_large
from atp.suite.agent import HttpSpeech, capabilities_of

CONNECTIONS = 256
CONNECT_SECONDS = 30.0
CLOSE_SECONDS = 0.5
"""Seconds that a stream may stay open after its response."""
IDLE_SECONDS = 3.0
"""Idle connections are dropped before servers close them (uvicorn: after 5 s), so no request meets a closing one."""
_OWN_JSON = "a URL must speak ATP's protocol: for a server with JSON of its own, write an agent with `protocol: json`"
_NOT_ATP = "if the server doesn't speak ATP's protocol, set `protocol: json` or `protocol: openai`"
_DONE = "[DONE]"
"""The message after the last one in streams of OpenAI's kind, which says nothing."""
_NOT_IN_HEADERS = re.compile(r"[\r\n\0]")

Look = Callable[[], Awaitable[str | None]]
"""Looks at a server in another way than by a request, and returns why the server is not ready."""


class NotReady(NamedTuple):
    """Why a server is not ready, and what helps, if anything but waiting does."""

    problem: str
    remedy: str | None = None


class Dialect(Protocol):
    """Writes the body of a turn's request, and reads the body of its response."""

    accept: str
    streams: bool
    uses_workspace: bool

    def body(self, request: TurnRequest) -> bytes:
        """Return the body of a turn's request."""

    def read(self, raw: bytes, request: TurnRequest) -> Reply:
        """Return the reply in a response's body. Raises `ProtocolError`, or `AgentError`."""


class AtpDialect:
    """ATP's own protocol."""

    accept = "text/event-stream, application/json"
    streams = True
    uses_workspace = True

    def body(self, request: TurnRequest) -> bytes:
        """Return the protocol's request object."""
        return encode_request(request)

    def read(self, raw: bytes, request: TurnRequest) -> Reply:
        """Return the reply in the protocol's response object."""
        message = read_json(raw, "the response")
        try:
            return take_response(message, request)
        except ProtocolError as error:
            if isinstance(message, dict) and "task_id" in message:
                raise
            raise ProtocolError(f"{error}; {_OWN_JSON}") from error


class HttpExchange:
    """Posts turns to one address over a pool of connections."""

    def __init__(
        self,
        key: str,
        url: str,
        speech: HttpSpeech,
        protocol: Literal["atp", "openai", "json"],
        context: AdapterContext,
        *,
        verify_ssl: bool = True,
    ) -> None:
        """`key` is the configuration's key that decides the URL, for messages. Raises `ConfigurationError`."""
        self.address = Address(key, url)
        """Where turns are posted."""
        self._speech = speech
        self._verify_ssl = verify_ssl
        self._dialect = _dialect(protocol, speech, context)
        self.capabilities = capabilities_of(speech)
        self.uses_workspace = self._dialect.uses_workspace
        """True if requests have the path of the trial's folder in them."""
        self.headers = _headers(speech, self._dialect.accept)
        """The headers of every request."""
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections, opened when first needed."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._speech.parallel or CONNECTIONS, keepalive_timeout=IDLE_SECONDS, ssl=self._verify_ssl
                ),
                cookie_jar=aiohttp.DummyCookieJar(),  # trials must not share cookies
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            )
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def wait_until_ready(
        self, address: Address, seconds: float, *, any_status: bool = False, also: Look | None = None
    ) -> NotReady | None:
        """Ask an address until it answers with success (`any_status`: with any status). Return why not, if not in time.

        `also` is called before each request, and returns another reason to wait on.
        """
        loop = asyncio.get_running_loop()
        deadline, wait = loop.time() + seconds, 0.02
        why: NotReady | None = None
        while True:
            problem = await also() if also is not None else None
            left = deadline - loop.time()
            newest = NotReady(problem) if problem else await self._not_ready(address, left, any_status)
            if newest is None:
                return None
            if why is None or loop.time() < deadline:  # a request that the deadline cut off says less than one before
                why = newest
            if loop.time() + wait >= deadline:
                return why
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, 1.0)

    async def _not_ready(self, address: Address, seconds: float, any_status: bool) -> NotReady | None:
        try:
            async with (
                asyncio.timeout(seconds),
                # A redirect to another host would take the agent's headers there.
                self.session.get(address.url, headers=self.headers, allow_redirects=False) as response,
            ):
                status, location = response.status, response.headers.get("Location", "nowhere")
        except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is an OSError
            return NotReady(f"{address}: {faults.unreachable(error)}")
        if any_status or status < 300:
            return None
        if status < 400:
            return NotReady(f"{address}: {faults.redirect(status, location)}", f"set `{address.key}` to it")
        remedy = address.check_path if status in faults.WRONG_PATH else None
        return NotReady(f"{address}: HTTP {status}", faults.CHECK_CREDENTIALS if status in faults.REFUSED else remedy)

    async def turn(self, request: TurnRequest) -> Reply:
        """Post a turn and return its reply. Raises `AgentError`, and `AgentTimeout` after `timeout` seconds."""
        body = self._dialect.body(request)
        seconds = self._speech.timeout
        if seconds is None:
            return await self._post(body, request)
        try:
            async with asyncio.timeout(seconds):
                return await self._post(body, request)
        except TimeoutError as error:
            raise AgentTimeout(seconds) from error

    async def _post(self, body: bytes, request: TurnRequest) -> Reply:
        answered = False
        try:
            async with self.session.post(
                self.address.url, data=body, headers=self.headers, allow_redirects=False
            ) as response:
                answered = True
                if not 200 <= response.status < 300:
                    text = await response.content.read(100_000)
                    hint = _NOT_ATP if isinstance(self._dialect, AtpDialect) else ""
                    raise faults.of_status(response.status, response.headers, text, self.address, hint)
                answer = _Body(response)
                if response.content_type == "text/event-stream" and self._dialect.streams:
                    return await _read_stream(answer, request)
                return await self._read(answer, request)
        except TooLong as error:
            raise AgentError(f"agent error: the answer is {too_large()}") from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise faults.of_exception(error, answered) from error

    async def _read(self, answer: "_Body", request: TurnRequest) -> Reply:
        raw = await answer.read()
        try:
            return self._dialect.read(raw, request)
        except ProtocolError as error:
            raise broken(error, raw) from error


class _Body(Body):
    """The body of an answer, whose beginning is kept."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        super().__init__(response)
        self.beginning = b""
        """The first bytes, for the report of a stream that breaks."""

    async def next(self) -> bytes:
        """Return the next piece; nothing at the end. Raises `TooLong`."""
        chunk = await super().next()
        if len(self.beginning) < RAW_LENGTH:
            self.beginning += chunk[:RAW_LENGTH]
        return chunk


async def _read_stream(answer: _Body, request: TurnRequest) -> Reply:
    """Emit the events of a stream as they arrive, up to the response, which must be the last message."""
    async with aclosing(_messages(answer)) as messages:
        async for message in messages:
            response = _read_message(message, request)
            if response is not None:
                await _wait_for_end(messages, request)
                with _quoting(message):
                    return take_response(response, request)
    raise broken("the stream ended without a response", answer.beginning)


async def _messages(answer: _Body) -> AsyncGenerator[SseMessage, None]:
    parser = SseParser(LARGEST)
    while chunk := await answer.next():
        for message in parser.feed(chunk):
            yield message
    for message in parser.end():
        yield message


async def _wait_for_end(messages: AsyncGenerator[SseMessage, None], request: TurnRequest) -> None:
    """Wait for the end of a stream after its response. Raises `AgentError` if there is more in the stream."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            async for message in messages:
                if message.data.strip() != _DONE:
                    raise broken("there is data after the final response", message.data)
    except TimeoutError:
        request.log(f"the stream was still open {CLOSE_SECONDS:g}s after its response; no more of it was read")
    except (aiohttp.ClientError, ConnectionError):
        pass  # the response is whole; how the connection ended does not matter


def _read_message(message: SseMessage, request: TurnRequest) -> dict[str, Any] | None:
    """Emit the event in a message of a stream; return a response instead, unread."""
    with _quoting(message):
        value = read_json(message.data.encode(), "a message of the stream")
        if not isinstance(value, dict):
            raise ProtocolError("a message of the stream is not an object")
    if message.event == "response" or ("status" in value and "event_type" not in value):
        return value
    if "event_type" not in value and message.event != "message":
        value["event_type"] = message.event
    with _quoting(message):
        event = read_event(value, request)
    request.emit(event)
    return None


@contextmanager
def _quoting(message: SseMessage) -> Iterator[None]:
    """Report a broken protocol with the message that breaks it."""
    try:
        yield
    except ProtocolError as error:
        raise broken(error, message.data) from error


def _dialect(protocol: str, speech: HttpSpeech, context: AdapterContext) -> Dialect:
    if protocol == "openai":
        from atp.agents.http.chat import ChatDialect

        return ChatDialect(speech, context)
    if protocol == "json":
        from atp.agents.http.json_api import JsonDialect

        return JsonDialect(speech)
    return AtpDialect()


def _headers(speech: HttpSpeech, accept: str) -> CIMultiDict[str]:
    headers = CIMultiDict({"Accept": accept, "Content-Type": "application/json"})
    if speech.api_key:
        headers["Authorization"] = f"Bearer {speech.api_key}"
    headers.update(speech.headers)
    for name, value in headers.items():
        if _NOT_IN_HEADERS.search(name + value):
            raise ConfigurationError(f"the header `{_NOT_IN_HEADERS.sub(' ', name)}` has a line break in it")
    return headers
