"""What every model implements: a request in, an answer out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from msgspec import Struct, field

from atp.base.errors import Error
from atp.suite.result import Usage


class Tool(Struct, kw_only=True, frozen=True):
    """A tool that a model may call."""

    name: str
    """The tool's name."""
    description: str = ""
    """What the tool is for."""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """The JSON Schema of the tool's arguments."""


class ToolUse(Struct, kw_only=True, omit_defaults=True):
    """A model's request to call a tool."""

    id: str
    """The id that the tool's result refers to."""
    name: str
    """The tool's name."""
    arguments: Any = None
    """The arguments: an object; or the text as the model wrote it, if that is not a JSON object."""


class ModelRequest(Struct, kw_only=True):
    """What a model is asked."""

    messages: list[dict[str, Any]]
    """The conversation as role/content objects in the form of OpenAI's chat completions: `system`, `user`, `assistant`
    (with `tool_calls`) and `tool` (with `tool_call_id`); content is text or a list of parts."""
    tools: list[Tool] = []
    """The tools that the model may call."""
    schema: dict[str, Any] | None = None
    """The JSON Schema that the answer must have."""
    optional: frozenset[str] = frozenset()
    """Keys that the schema requires, so that servers enforce it, and that an answer may leave out all the same."""
    settings: dict[str, Any] = {}
    """Settings beyond the connector's own: `temperature`, `max_tokens`, `top_p`, `seed`, `stop` …"""
    run: int = 1
    """Which repeat of a trial asks, from 1. A recorded answer serves only the same repeat."""
    on_text: Callable[[str], None] | None = None
    """Called with each piece of text as it arrives. If set, the answer is streamed."""


class ModelAnswer(Struct, kw_only=True, omit_defaults=True):
    """What a model answered."""

    text: str = ""
    """The text."""
    data: Any = None
    """The answer as data, valid against the request's schema; none if the request has no schema."""
    tool_uses: list[ToolUse] = []
    """The tools that the model wants to be called."""
    usage: Usage = field(default_factory=Usage)
    """Tokens and, where the price is known, their cost."""
    finish: str = "stop"
    """Why the answer ended: `stop`, `tool_calls`, `length`, or the server's own word."""
    model: str = ""
    """The model's name, as the server gives it."""


class ModelError(Error):
    """A model could not answer."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        """True if the server or the network failed and was not asked again, so that asking again may help."""
        self.retry_after = retry_after
        """The seconds that the server asks to wait."""
        self.status = status
        """The HTTP status, if the server answered with an error."""
        self.usage = usage
        """What was used by answers that could not be used."""


class BadAnswer(ModelError):
    """The model's answer doesn't have the requested schema, also when asked again."""


class CassetteError(Error):
    """A cassette can't be used."""


class CassetteMiss(Error):
    """A cassette has no recorded answer for a request."""


class Model(ABC):
    """A model behind a connector, shared by all who ask it."""

    type: ClassVar[str]
    """The `type` of the connectors that lead to this class."""
    connector: str
    """The connector's id."""
    name: str
    """The model's own name."""
    settings: dict[str, Any]
    """The connector's settings (`temperature` …) that decide answers; without secrets."""
    unfit_to_judge: str | None = None
    """Why the model must not judge unless the user allows it."""

    @abstractmethod
    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Answer a request. Raises `ModelError`."""

    async def close(self) -> None:  # noqa: B027  (many models have nothing to close)
        """Release what the model has opened."""
