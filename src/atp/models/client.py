"""Models behind an HTTP address: sending, reading, streaming, trying again. The format is the subclass's business."""

import asyncio
import re
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp
import msgspec
from msgspec.structs import replace

from atp.base.secrets import mask
from atp.base.sse import SseMessage, SseParser, TooLong
from atp.models.attempts import PASSING, Passing, attempts, retry_after
from atp.models.connections import Shared
from atp.models.connectors.connector import AuthMode, Connector
from atp.models.model import Answer, Ask, Model, ModelError, NoModel
from atp.models.prices import cost_usd
from atp.models.structured import Structured

LARGEST = 64 * 1024 * 1024
"""Bytes that an answer may have."""
_OPTIONAL = ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty")
"""Settings that some models refuse; who asks can do without them."""

Tell = Callable[[str], None]


class Malformed(Exception):
    """An answer that the format doesn't allow; the message says what is wrong."""


class Refused(Exception):
    """An error inside an answer that began well."""

    def __init__(self, error: Any, status: int | None = None) -> None:
        super().__init__(said_in({"error": error}))
        self.status = status


class Joined(Protocol):
    """A stream's pieces, put together to the answer that would have come in one piece."""

    over: bool
    """The stream says that it is complete."""

    def take(self, message: SseMessage) -> None:
        """The next piece. Raises `Malformed` and `Refused`."""

    def whole(self) -> dict[str, Any]:
        """The answer."""


class WireModel(Model):
    """A model that is asked over HTTP."""

    default_host: str
    """The provider's own address."""
    default_auth: AuthMode
    """The header that carries the key."""

    def __init__(self, connector: Connector, shared: Shared) -> None:
        self.connector = connector.id
        self.name = connector.model
        self.settings = connector.settings
        self._connector = connector
        self._host = (connector.host or self.default_host).rstrip("/")
        self._netloc = _checked(self._host, connector)
        self._url = self._endpoint(self._host)
        self._headers = {**self._format_headers(), **self._auth(), **connector.headers}
        self._provider = shared.provider(f"{urlsplit(self._host).scheme}://{self._netloc}", connector.key)
        self._structured = Structured(connector.id, connector.native_schema)
        self._refused: set[str] = set()

    @abstractmethod
    def _endpoint(self, host: str) -> str:
        """The address to post to."""

    @abstractmethod
    def _body(self, ask: Ask, settings: dict[str, Any]) -> dict[str, Any]:
        """The request. Raises `ModelError` for what the format can't say."""

    @abstractmethod
    def _read(self, raw: dict[str, Any], ask: Ask) -> Answer:
        """The answer in a response. Raises `Malformed`."""

    @abstractmethod
    def _join(self, ask: Ask, tell: Tell) -> Joined:
        """Puts a stream together, and tells each piece of text."""

    def _format_headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json"}

    def _auth(self) -> dict[str, str]:
        key, mode = self._connector.key, self._connector.auth_mode or self.default_auth
        if key is None:
            return {}
        return {"Authorization": f"Bearer {key}"} if mode == "bearer" else {mode: key}

    async def ask(self, ask: Ask) -> Answer:
        """Answer, streamed if somebody listens. Raises `ModelError`."""
        return await (self._once(ask) if ask.schema is None else self._structured.ask(ask, self._once))

    async def _once(self, ask: Ask) -> Answer:
        wanted = {name: value for name, value in ask.settings.items() if name not in self._refused}
        try:
            return await self._request(replace(ask, settings=wanted))
        except ModelError as error:
            # Models that reason take no temperature, say; the connector's own settings are the user's word.
            named = {one for one in _OPTIONAL if one in wanted and re.search(rf"\b{one}\b", str(error))}
            if error.status != 400 or not named:
                raise
            self._refused |= named
            return await self._once(ask)

    async def _request(self, ask: Ask) -> Answer:
        body = self._body(ask, {**self.settings, **ask.settings})
        if ask.on_text is not None:
            body["stream"] = True
        try:
            data = msgspec.json.encode(body)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._error(f"the request can't be written as JSON: {error}") from error
        answer = await attempts(lambda: self._attempt(data, ask), self._provider.limiter, self._connector.retries)
        answer.usage.llm_calls = 1
        answer.usage.cost_usd = cost_usd(self._connector, answer.usage, answer.model, self._host)
        return answer

    async def _attempt(self, data: bytes, ask: Ask) -> Answer:
        told = False

        def tell(text: str) -> None:
            nonlocal told
            told = True
            assert ask.on_text is not None
            ask.on_text(text)

        try:
            async with asyncio.timeout(self._connector.timeout):
                return await self._post(data, ask, tell)
        except TimeoutError as error:
            raise self._error(f"no answer within {self._connector.timeout:g} s", retryable=True) from error
        except Passing as error:
            if not told:
                raise
            # What was told can't be taken back, so it is not told again.
            raise ModelError(str(error), retryable=True, status=error.status) from error

    async def _post(self, data: bytes, ask: Ask, tell: Tell) -> Answer:
        try:
            async with self._provider.session().post(
                self._url, data=data, headers=self._headers, allow_redirects=False
            ) as response:
                if response.status != 200:
                    raise self._of_status(response, await response.content.read(100_000))
                if ask.on_text is not None and response.content_type == "text/event-stream":
                    return self._read(await self._follow(response, self._join(ask, tell)), ask)
                answer = self._read(_decoded(await _all(response)), ask)
                if ask.on_text is not None and answer.text:
                    tell(answer.text)
                return answer
        except Malformed as error:
            raise self._error(f"the answer can't be read: {error}", retryable=True) from error
        except Refused as error:
            raise self._of_error(error) from error
        except aiohttp.ClientPayloadError as error:
            raise Passing(self._masked("the answer ended early")) from error
        except aiohttp.ClientSSLError as error:
            raise self._error(f"no safe connection: {error}") from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise Passing(self._masked(f"can't be reached: {str(error) or type(error).__name__}")) from error

    async def _follow(self, response: aiohttp.ClientResponse, joined: Joined) -> dict[str, Any]:
        parser, size = SseParser(LARGEST), 0
        try:
            while not joined.over and (piece := await response.content.readany()):
                size += len(piece)
                if size > LARGEST:
                    raise TooLong
                for message in parser.feed(piece):
                    joined.take(message)
            for message in () if joined.over else parser.end():
                joined.take(message)
        except TooLong as error:
            raise Malformed(_too_large()) from error
        if not joined.over:
            raise Passing(self._masked("the answer ended early"))
        return joined.whole()

    def _of_status(self, response: aiohttp.ClientResponse, body: bytes) -> ModelError:
        if 300 <= response.status < 400:
            place = response.headers.get("Location", "nowhere")
            return self._error(f"HTTP {response.status}, a redirect to {place}: set the connector's `host` to it")
        said = said_in(body)
        text = f"HTTP {response.status}{f': {said}' if said else ''}"
        if response.status in PASSING:
            return Passing(self._masked(text), retry_after=retry_after(response.headers), status=response.status)
        return self._error(text, status=response.status)

    def _of_error(self, error: Refused) -> ModelError:
        if error.status in PASSING:
            return Passing(self._masked(str(error)), status=error.status)
        return self._error(str(error), status=error.status)

    def _error(self, text: str, *, retryable: bool = False, status: int | None = None) -> ModelError:
        return ModelError(self._masked(text), retryable=retryable, status=status)

    def _masked(self, text: str) -> str:
        masked: str = mask(f"{self.connector} ({self._netloc}): {text}", self._connector.secrets)
        return masked


def said_in(body: Any) -> str:
    """What an error says: in the usual places of JSON, else as it stands."""
    if isinstance(body, bytes):
        try:
            body = msgspec.json.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            body = body[:2000].decode(errors="replace")
    for name in ("error", "message", "detail"):
        if isinstance(body, dict) and body.get(name):
            body = body[name]
    text = body if isinstance(body, str) else msgspec.json.encode(body).decode()
    return " ".join(text.split())[:500]


async def _all(response: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    while piece := await response.content.readany():
        size += len(piece)
        if size > LARGEST:
            raise Malformed(_too_large())
        pieces.append(piece)
    return b"".join(pieces)


def _too_large() -> str:
    return f"it is larger than {LARGEST // 1024 // 1024} MB"


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"it is not JSON: {error}" if raw.strip() else "it is empty") from error
    if not isinstance(value, dict):
        raise Malformed("it is not an object")
    return value


def decoded_piece(message: SseMessage) -> dict[str, Any]:
    """A piece of a stream. Raises `Malformed`."""
    return _decoded(message.data.encode(errors="replace"))


def count_in(raw: Any, name: str) -> int | None:
    """A number of tokens; what is none is not known."""
    value = raw.get(name) if isinstance(raw, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _checked(host: str, connector: Connector) -> str:
    try:
        parts = urlsplit(host)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it must begin with http:// or https://")
        return parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    except ValueError as error:
        raise NoModel(
            f"{connector.where}: the connector `{connector.id}` has the host `{host}`, which is no address: {error}"
        ) from error
