"""What every model promises: messages in, an answer out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from msgspec import Struct, field

from atp.base.errors import Error
from atp.suite.result import Usage


class Tool(Struct, kw_only=True, frozen=True):
    """A tool that a model may call."""

    name: str
    """Its name."""
    description: str = ""
    """What it is for."""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """The JSON Schema of its arguments."""


class ToolUse(Struct, kw_only=True, omit_defaults=True):
    """A model's wish to call a tool."""

    id: str
    """What the tool's result refers to."""
    name: str
    """The tool's name."""
    arguments: Any = None
    """What to call it with: an object; the text as it came if that is no JSON object."""


class Ask(Struct, kw_only=True):
    """What a model is asked."""

    messages: list[dict[str, Any]]
    """The conversation as role/content objects in the form of OpenAI's chat completions: `system`, `user`, `assistant`
    (with `tool_calls`) and `tool` (with `tool_call_id`); content is text or a list of parts."""
    tools: list[Tool] = []
    """The tools it may call."""
    schema: dict[str, Any] | None = None
    """The JSON Schema that the answer must have."""
    settings: dict[str, Any] = {}
    """Settings beyond the connector's own: `temperature`, `max_tokens`, `top_p`, `seed`, `stop` …"""
    run: int = 1
    """Which repeat of a trial asks, from 1: a recorded answer serves only the same one."""
    on_text: Callable[[str], None] | None = None
    """Told each piece of text as it arrives; given, the answer is streamed."""


class Answer(Struct, kw_only=True, omit_defaults=True):
    """What a model answered."""

    text: str = ""
    """Its words."""
    data: Any = None
    """With a schema: the answer as data, which has that schema."""
    tool_uses: list[ToolUse] = []
    """The tools it wants called."""
    usage: Usage = field(default_factory=Usage)
    """What it used, its cost where the price is known."""
    finish: str = "stop"
    """Why it ended: `stop`, `tool_calls`, `length`, or the server's own word."""
    model: str = ""
    """The model's name, as the server says it."""


class ModelError(Error):
    """A model that could not answer."""

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
        """Asking again may help: the server or the network failed."""
        self.retry_after = retry_after
        """How many seconds the server asks to wait."""
        self.status = status
        """The HTTP status, if the server answered with an error."""
        self.usage = usage
        """What was used all the same, by answers that were no use."""


class BadAnswer(ModelError):
    """The model answered, but not with what the schema asks for, also when asked again."""


class NoModel(Error):
    """No model is configured for a role, or not so that it can be used. Nothing runs."""


class CassetteError(Error):
    """A cassette that can't be used."""


class CassetteMiss(Error):
    """Nothing was recorded for what is asked now."""


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
    """Why it must not judge unless told otherwise."""

    @abstractmethod
    async def ask(self, ask: Ask) -> Answer:
        """Answer. Raises `ModelError`."""

    async def close(self) -> None:  # noqa: B027  (some have nothing to do)
        """Leave nothing behind."""
