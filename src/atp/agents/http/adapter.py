"""Agents behind an HTTP address."""

import asyncio
import re
from typing import Protocol

import aiohttp
from multidict import CIMultiDict

from atp.agents.adapter import (
    Adapter,
    AdapterContext,
    AgentError,
    AgentTimeout,
    Capabilities,
    Finding,
    Reply,
    TurnRequest,
)
from atp.agents.breach import RAW_LENGTH, ProtocolError, broken, read_json
from atp.agents.events import read_event
from atp.agents.http import faults as http_faults
from atp.agents.http.faults import Address
from atp.agents.protocol import encode_request, take_response
from atp.base.errors import ConfigurationError
from atp.base.sse import SseMessage, SseParser, TooLong
from atp.suite.agent import Agent, HttpConfig

LARGEST = 64 * 1024 * 1024
"""Bytes that an answer may have."""
CONNECTIONS = 256
CONNECT_SECONDS = 30.0
IDLE_SECONDS = 3.0
"""Idle connections are dropped before servers do it (uvicorn: after 5 s): a request must not meet a closing one."""
READY_SECONDS = 5.0
"""How long `health_endpoint` may take to answer well."""
_OWN_JSON = "a URL must speak ATP's protocol: for a server with JSON of its own, write an agent with `protocol: json`"
_START = "start the agent, or wait until it is up"
_UNFIT = re.compile(r"[\r\n\0]")


class Dialect(Protocol):
    """A way to ask in the body of a request, and to answer in that of a response."""

    accept: str
    streams: bool
    capabilities: Capabilities

    def body(self, request: TurnRequest) -> bytes:
        """The body of a turn's request."""

    def read(self, raw: bytes, request: TurnRequest) -> Reply:
        """The reply in a body. Raises `ProtocolError`, or `AgentError`."""


class AtpDialect:
    """ATP's own protocol."""

    accept = "text/event-stream, application/json"
    streams = True
    capabilities = Capabilities()

    def body(self, request: TurnRequest) -> bytes:
        """The request object."""
        return encode_request(request)

    def read(self, raw: bytes, request: TurnRequest) -> Reply:
        """The response object."""
        message = read_json(raw, "the response")
        try:
            return take_response(message, request)
        except ProtocolError as breach:
            if isinstance(message, dict) and "task_id" in message:
                raise
            raise ProtocolError(f"{breach}; {_OWN_JSON}") from breach


class HttpAdapter(Adapter):
    """Posts each turn to an address."""

    def __init__(self, agent: Agent, context: AdapterContext, key: str = "endpoint") -> None:
        """`key` is where the user says to which path turns go."""
        config: HttpConfig = agent.config
        self._config = config
        self._dialect = _dialect(config, context)
        self.capabilities = self._dialect.capabilities
        text = config.endpoint
        if config.stream_endpoint:
            key, text = "stream_endpoint", config.stream_endpoint
        self._turns = Address(key, text)
        self._health = Address("health_endpoint", config.health_endpoint) if config.health_endpoint else None
        self._headers = _headers(config, self._dialect.accept)
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """See that the agent is well, if it says where to ask."""
        if self._health is not None and (ill := await self._wait_until_well(self._health)) is not None:
            raise AgentError("; ".join(ill), "environment", retryable=True)

    async def _wait_until_well(self, health: Address) -> tuple[str, str] | None:
        """What is wrong and what helps, if it isn't well in time."""
        session, loop = self._connect(), asyncio.get_running_loop()
        deadline, wait = loop.time() + READY_SECONDS, 0.1
        while True:
            ill = await self._ill(session, health, deadline - loop.time())
            if ill is None:
                return None
            if loop.time() + wait >= deadline:
                problem, remedy = ill
                return f"the agent isn't ready: {health}: {problem}", remedy
            await asyncio.sleep(wait)
            wait = min(wait * 2, 1.0)

    async def _ill(self, session: aiohttp.ClientSession, health: Address, seconds: float) -> tuple[str, str] | None:
        try:
            async with asyncio.timeout(seconds), session.get(health.url, headers=self._headers) as response:
                status = response.status
        except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is an OSError
            return http_faults.unreachable(error), _START
        if status < 300:
            return None
        if status in http_faults.REFUSED:
            return f"HTTP {status}", http_faults.CHECK_CREDENTIALS
        return f"HTTP {status}", health.check_path if status in http_faults.WRONG_PATH else _START

    async def check(self) -> list[Finding]:
        """Ask whether it is well; if it doesn't say where to, see that somebody answers where turns would be posted."""
        return [await (self._check_connection() if self._health is None else self._check_health(self._health))]

    async def _check_connection(self) -> Finding:
        turns = self._turns
        try:
            async with (
                asyncio.timeout(CONNECT_SECONDS),
                self._connect().head(turns.url, headers=self._headers, allow_redirects=False) as response,
            ):
                status = response.status
        except (aiohttp.ClientError, OSError) as error:
            why, remedy = http_faults.unreachable(error), http_faults.remedy(error, turns)
            return Finding(what="connection", ok=False, detail=f"{turns}: {why}", hint=remedy)
        if status in http_faults.REFUSED:
            refused = f"{turns}: the credentials are refused (HTTP {status})"
            return Finding(what="credentials", ok=False, detail=refused, hint=http_faults.CHECK_CREDENTIALS)
        proven = f"{turns}: a server answers (HTTP {status} to HEAD); whether the path takes a turn, only a test shows"
        hint = turns.check_path if status == 404 else None  # some say that of a path that takes POST
        return Finding(what="connection", ok=True, detail=proven, hint=hint)

    async def _check_health(self, health: Address) -> Finding:
        ill = await self._wait_until_well(health)
        if ill is not None:
            return Finding(what="health", ok=False, detail=ill[0], hint=ill[1])
        return Finding(what="health", ok=True, detail=f"{health} says that it is well")

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def turn(self, request: TurnRequest) -> Reply:
        """Post the request and read the answer, within the time that one request may take."""
        body = self._dialect.body(request)
        seconds = self._config.timeout
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
            async with self._connect().post(
                self._turns.url, data=body, headers=self._headers, allow_redirects=False
            ) as response:
                answered = True
                if not 200 <= response.status < 300:
                    text = await response.content.read(100_000)
                    raise http_faults.of_status(response.status, response.headers, text, self._turns)
                answer = _Body(response)
                if response.content_type == "text/event-stream" and self._dialect.streams:
                    return await _follow(answer, request)
                return await self._read(answer, request)
        except (aiohttp.ClientError, ConnectionError) as error:
            raise http_faults.of_exception(error, answered) from error

    async def _read(self, answer: "_Body", request: TurnRequest) -> Reply:
        chunks: list[bytes] = []
        while chunk := await answer.next():
            chunks.append(chunk)
        raw = b"".join(chunks)
        try:
            return self._dialect.read(raw, request)
        except ProtocolError as breach:
            raise broken(breach, raw) from breach

    def _connect(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._config.parallel or CONNECTIONS,
                    keepalive_timeout=IDLE_SECONDS,
                    ssl=self._config.verify_ssl,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),  # one trial's cookies are none of another's business
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            )
        return self._session


class _Body:
    """The body of an answer, up to its largest size."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._content = response.content
        self._size = 0
        self.beginning = b""
        """Of a stream: for the report, should it break."""

    async def next(self) -> bytes:
        """A piece of it; nothing at its end."""
        chunk = await self._content.readany()
        self._size += len(chunk)
        if self._size > LARGEST:
            raise _too_large()
        if len(self.beginning) < RAW_LENGTH:
            self.beginning += chunk[:RAW_LENGTH]
        return chunk


def _too_large() -> AgentError:
    return AgentError(f"agent error: the answer is larger than {LARGEST // 1024 // 1024} MB")


async def _follow(answer: _Body, request: TurnRequest) -> Reply:
    """A stream: events, told as they come, up to the response."""
    parser = SseParser(LARGEST)
    try:
        while chunk := await answer.next():
            for message in parser.feed(chunk):
                if (reply := _take(message, request)) is not None:
                    return reply
        for message in parser.end():
            if (reply := _take(message, request)) is not None:
                return reply
    except TooLong as error:
        raise _too_large() from error
    raise broken("the stream ended without a response", answer.beginning)


def _take(message: SseMessage, request: TurnRequest) -> Reply | None:
    """Tell of an event, or give the response."""
    try:
        value = read_json(message.data.encode(), "a message of the stream")
        if not isinstance(value, dict):
            raise ProtocolError("a message of the stream is not an object")
        if message.event == "response" or ("status" in value and "event_type" not in value):
            return take_response(value, request)
        if "event_type" not in value and message.event != "message":
            value["event_type"] = message.event
        event = read_event(value, request)
    except ProtocolError as breach:
        raise broken(breach, message.data) from breach
    request.emit(event)
    return None


def _dialect(config: HttpConfig, context: AdapterContext) -> Dialect:
    match config.protocol:
        case "atp":
            return AtpDialect()
        case "openai":
            from atp.agents.http.chat import ChatDialect

            return ChatDialect(config, context)
        case "json":
            from atp.agents.http.json_api import JsonDialect

            return JsonDialect(config)


def _headers(config: HttpConfig, accept: str) -> CIMultiDict[str]:
    headers = CIMultiDict({"Accept": accept, "Content-Type": "application/json"})
    if config.api_key:
        headers["Authorization"] = f"Bearer {config.api_key}"
    headers.update(config.headers)
    for name, value in headers.items():
        if _UNFIT.search(name + value):
            raise ConfigurationError(f"the header `{_UNFIT.sub(' ', name)}` has a line break in it")
    return headers
