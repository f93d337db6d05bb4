"""The HTTP client for both wire formats: sends a request, retries it, and reads or streams the answer.

`openai.py` and `anthropic.py` only translate: a `ModelRequest` to the format's body, the response to a `ModelAnswer`.
"""

import asyncio
import codecs
import math
import random
import re
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec
from msgspec.structs import replace

from atp.base.durations import milliseconds_since
from atp.base.errors import ConfigurationError
from atp.base.json.text import UNREADABLE, encode
from atp.base.secrets import secrets_of
from atp.base.sse import SseMessage, SseParser, TooLong
from atp.base.text import cut, words
from atp.models.body import LARGEST, Body, too_large
from atp.models.calls import NOTHING_NOTED, CallNote, noted_call
from atp.models.connections import Limiter, ModelContext
from atp.models.connectors.connector import AuthMode, Connector
from atp.models.model import Model, ModelAnswer, ModelError, ModelRequest
from atp.models.prices import cost_usd
from atp.models.structured import Structured

RETRYABLE_STATUSES = frozenset((429, 500, 502, 503, 504, 529))
"""HTTP statuses after which a request is sent again."""
LONGEST_MESSAGE = 600
"""Characters of an error message, which may quote what the server sent."""
FIRST_WAIT = 0.5
"""Seconds before the first retry; doubled for each further one."""
LONGEST_WAIT = 60.0
"""Seconds. A server whose `Retry-After` asks for more is not asked again."""
_OPTIONAL = ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty")
"""Settings that some models reject and that a caller can do without."""

Result = TypeVar("Result")
OnText = Callable[[str], None]


class TransientError(ModelError):
    """A failure after which the same request may succeed."""

    def __init__(self, message: str, *, retry_after: float | None = None, status: int | None = None) -> None:
        super().__init__(message, retryable=True, retry_after=retry_after, status=status)


class MalformedAnswer(Exception):
    """An answer that the format doesn't allow; the message says what is wrong with it."""


class ErrorInAnswer(Exception):
    """An error object inside a response with status 200."""

    def __init__(self, error: Any, status: int | None = None) -> None:
        super().__init__(error_text({"error": error}))
        self.status = status


class StreamReader(Protocol):
    """Assembles the events of a stream to the response that a request without `stream` would have got."""

    done: bool
    """True once the stream has sent its closing event."""

    def add(self, message: SseMessage) -> None:
        """Add the next event. Raises `MalformedAnswer` and `ErrorInAnswer`."""

    def response(self) -> dict[str, Any]:
        """The assembled response."""


class HttpModel(Model):
    """A model behind an HTTP server. Subclasses translate to and from the server's format."""

    default_host: str
    """The provider's own address."""
    default_auth: AuthMode
    """The header that carries the key."""

    def __init__(self, connector: Connector, context: ModelContext) -> None:
        self.connector = connector.id
        self.name = connector.model
        self.settings = connector.settings
        self._connector = connector
        self._host = (connector.host or self.default_host).rstrip("/")
        self._netloc = _checked_netloc(self._host, connector)
        self._url = self._endpoint(self._host)
        self._headers = {**self._format_headers(), **self._auth_header(), **connector.headers}
        self._provider = context.provider(f"{urlsplit(self._host).scheme}://{self._netloc}", connector.key)
        self._structured = Structured(connector.id, connector.native_schema)
        self._rejected_settings: set[str] = set()

    @abstractmethod
    def _endpoint(self, host: str) -> str:
        """The URL to post to."""

    @abstractmethod
    def _body(self, request: ModelRequest, settings: dict[str, Any]) -> dict[str, Any]:
        """The request's body. Raises `ModelError` for content that the format can't carry."""

    @abstractmethod
    def _read(self, raw: dict[str, Any], request: ModelRequest) -> ModelAnswer:
        """The answer in a response. Raises `MalformedAnswer` and `ErrorInAnswer`."""

    @abstractmethod
    def _stream_reader(self, request: ModelRequest, on_text: OnText) -> StreamReader:
        """A reader of one stream, which calls `on_text` with each piece of text."""

    def _format_headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json"}

    def _auth_header(self) -> dict[str, str]:
        key, mode = self._connector.key, self._connector.auth_mode or self.default_auth
        if key is None:
            return {}
        return {"Authorization": f"Bearer {key}"} if mode == "bearer" else {mode: key}

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Answer a request. Raises `ModelError`."""
        if request.schema is None:
            return await self._ask(request)
        return await self._structured.ask(request, self._ask)

    async def _ask(self, request: ModelRequest) -> ModelAnswer:
        """Send the request; without the optional settings that the server rejects, if it names them."""
        settings = {name: value for name, value in request.settings.items() if name not in self._rejected_settings}
        try:
            return await self._send(replace(request, settings=settings))
        except ModelError as error:
            # Reasoning models reject `temperature`, for example. The connector's own settings are always sent: the
            # user wrote them.
            rejected = {one for one in _OPTIONAL if one in settings and re.search(rf"\b{one}\b", str(error))}
            if error.status != 400 or not rejected:
                raise
            self._rejected_settings |= rejected
            return await self._ask(request)

    async def _send(self, request: ModelRequest) -> ModelAnswer:
        body = self._body(request, {**self.settings, **request.settings})
        if request.on_text is not None:
            body["stream"] = True
        try:
            data = msgspec.json.encode(body)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._error(f"the request can't be written as JSON: {error}") from error
        with noted_call(self.connector, self.name, body) as note:
            answer = await with_retries(
                lambda: self._attempt(data, request, note), self._provider.limiter, self._connector.retries, note
            )
            answer.usage.llm_calls = 1
            answer.usage.cost_usd = cost_usd(self._connector, answer.usage, answer.model, self._host)
            note.used(answer.usage)
        return answer

    async def _attempt(self, data: bytes, request: ModelRequest, note: CallNote) -> ModelAnswer:
        """Post once, within the connector's time limit."""
        has_streamed = False

        def on_text(text: str) -> None:
            nonlocal has_streamed
            has_streamed = True
            assert request.on_text is not None
            request.on_text(text)

        try:
            async with asyncio.timeout(self._connector.timeout):
                return await self._post(data, request, on_text, note)
        except TimeoutError as error:
            raise self._error(f"no answer within {self._connector.timeout:g} s", retryable=True) from error
        except TransientError as error:
            if not has_streamed:
                raise
            # Not retried here: the caller has got text that can't be taken back.
            raise ModelError(str(error), retryable=True, status=error.status) from error

    async def _post(self, data: bytes, request: ModelRequest, on_text: OnText, note: CallNote) -> ModelAnswer:
        try:
            async with self._provider.session().post(
                self._url, data=data, headers=self._headers, allow_redirects=False
            ) as response:
                if response.status != 200:
                    raise self._status_error(response, await response.content.read(100_000))
                streams = request.on_text is not None and response.content_type == "text/event-stream"
                if streams:
                    raw = await self._read_stream(response, self._stream_reader(request, on_text))
                else:
                    raw = _decode(await Body(response).read())
                note.answered(raw)
                answer = self._read(raw, request)
                if request.on_text is not None and answer.text and not streams:
                    on_text(answer.text)
                return answer
        except MalformedAnswer as error:
            raise self._error(f"the answer can't be read: {error}", retryable=True) from error
        except TooLong as error:
            raise self._error(f"the answer can't be read: it is {too_large()}", retryable=True) from error
        except ErrorInAnswer as error:
            if error.status in RETRYABLE_STATUSES:
                raise self._transient(str(error), status=error.status) from error
            raise self._error(str(error), status=error.status) from error
        except aiohttp.ClientPayloadError as error:
            raise self._transient("the answer ended early") from error
        except aiohttp.ClientSSLError as error:
            raise self._error(f"no safe connection: {error}") from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise self._transient(f"can't be reached: {str(error) or type(error).__name__}") from error

    async def _read_stream(self, response: aiohttp.ClientResponse, reader: StreamReader) -> dict[str, Any]:
        parser, body = SseParser(LARGEST), Body(response)
        while not reader.done and (chunk := await body.next()):
            for message in parser.feed(chunk):
                reader.add(message)
        for message in () if reader.done else parser.end():
            reader.add(message)
        if not reader.done:
            raise self._transient("the answer ended early")
        return reader.response()

    def _status_error(self, response: aiohttp.ClientResponse, body: bytes) -> ModelError:
        if 300 <= response.status < 400:
            target = response.headers.get("Location", "nowhere")
            return self._error(f"HTTP {response.status}, a redirect to {target}: set the connector's `host` to it")
        detail = error_text(body)
        text = f"HTTP {response.status}{f': {detail}' if detail else ''}"
        if response.status in RETRYABLE_STATUSES:
            return self._transient(text, retry_after=retry_after(response.headers), status=response.status)
        return self._error(text, status=response.status)

    def _error(self, text: str, *, retryable: bool = False, status: int | None = None) -> ModelError:
        return ModelError(self._masked(text), retryable=retryable, status=status)

    def _transient(self, text: str, *, retry_after: float | None = None, status: int | None = None) -> TransientError:
        return TransientError(self._masked(text), retry_after=retry_after, status=status)

    def _masked(self, text: str) -> str:
        return cut(
            secrets_of(self._connector.secrets).mask_text(f"{self.connector} ({self._netloc}): {text}"), LONGEST_MESSAGE
        )


async def with_retries(
    attempt: Callable[[], Awaitable[Result]], limiter: Limiter, retries: int, note: CallNote = NOTHING_NOTED
) -> Result:
    """Call `attempt` until it succeeds, raises anything but `TransientError`, or was retried `retries` times.

    Waiting for a retry counts as a request under way, so that a provider in trouble gets no other request instead.
    """
    began = time.perf_counter()
    async with limiter.slot():
        note.waited(milliseconds_since(began))
        for tried in range(retries + 1):
            halvings = limiter.halvings
            try:
                result = await attempt()
            except TransientError as error:
                if error.status == 429:
                    limiter.on_rate_limited(halvings)
                seconds = _backoff(tried) if error.retry_after is None else error.retry_after
                if tried == retries or seconds > LONGEST_WAIT:
                    raise _gave_up(error, tried + 1, too_long=seconds > LONGEST_WAIT) from error
                note.failed(str(error))
                began = time.perf_counter()
                await asyncio.sleep(seconds)
                note.waited(milliseconds_since(began))
            except ModelError as error:
                if tried:
                    error.retryable = False  # as after retries that were in vain
                raise
            else:
                limiter.on_answered()
                return result
    raise AssertionError("the last attempt returns or raises")


def _backoff(tried: int) -> float:
    # With jitter: requests that failed together must not come back together.
    return min(FIRST_WAIT * 2.0**tried, LONGEST_WAIT) * random.uniform(0.5, 1)  # noqa: S311  (nothing secret)


def _gave_up(error: TransientError, times: int, *, too_long: bool) -> ModelError:
    """The error for the caller, who is not to ask again after retries here: that would multiply the requests."""
    tried = f" (tried {times} times)" if times > 1 else ""
    if too_long and error.retry_after is not None:
        tried += f"; not asked again, because the server asks to wait {error.retry_after:g} s"
    retryable = times == 1 and not too_long
    return ModelError(f"{error}{tried}", retryable=retryable, retry_after=error.retry_after, status=error.status)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait by the header `Retry-After`, which is a number or a date; none if it is missing or wrong."""
    text = headers.get("Retry-After", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def error_text(body: Any) -> str:
    """The message in an error response, on one line: from the usual keys if the body is JSON, else the body itself."""
    if isinstance(body, bytes):
        try:
            body = msgspec.json.decode(body.removeprefix(codecs.BOM_UTF8))
        except UNREADABLE:
            body = body.decode(errors="replace")
    for name in ("error", "message", "detail"):
        if isinstance(body, dict) and body.get(name):
            body = body[name]
    text = body if isinstance(body, str) else encode(body).decode()
    return words(text)


def _decode(raw: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except UNREADABLE as error:
        raise MalformedAnswer(f"it is not JSON: {error}" if raw.strip() else "it is empty") from error
    if not isinstance(value, dict):
        raise MalformedAnswer("it is not an object")
    return value


def decode_event(message: SseMessage) -> dict[str, Any]:
    """The JSON object in an event of a stream. Raises `MalformedAnswer`."""
    return _decode(message.data.encode(errors="replace"))


def token_count(raw: Any, name: str) -> int | None:
    """A number of tokens in a usage object; none if it is missing or not a count."""
    value = raw.get(name) if isinstance(raw, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _checked_netloc(host: str, connector: Connector) -> str:
    try:
        parts = urlsplit(host)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it must begin with http:// or https://")
        return parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    except ValueError as error:
        raise ConfigurationError(
            f"{connector.place('host')}: the connector `{connector.id}` has the host `{host}`, "
            f"which is not a URL: {error}"
        ) from error
