"""Connectors: which model, at which address, asked with which settings."""

from typing import Any, Literal

from msgspec import Struct

TIMEOUT = 120.0
"""Seconds that one request may take."""
RETRIES = 4
"""How often a request is sent again when the server or the network fails."""
OPENAI, ANTHROPIC, PROVIDER, LOCAL = "openai", "anthropic", "provider", "local"
AuthMode = Literal["bearer", "api-key", "x-api-key"]

# fmt: off
SETTINGS = {
    OPENAI: frozenset((
        "temperature", "max_tokens", "max_completion_tokens", "top_p", "top_k", "min_p", "seed", "stop",
        "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "reasoning_effort", "reasoning",
        "thinking", "verbosity", "parallel_tool_calls", "service_tier", "user", "metadata", "store",
    )),
    ANTHROPIC: frozenset((
        "temperature", "max_tokens", "top_p", "top_k", "stop", "thinking", "service_tier", "metadata", "output_config",
    )),
    PROVIDER: frozenset((
        "temperature", "max_tokens", "top_p", "top_k", "seed", "stop", "presence_penalty", "frequency_penalty",
        "logit_bias", "parallel_tool_calls", "thinking", "service_tier",
    )),
}
# fmt: on
"""The settings that each built-in type knows. Other types take any."""


class Prices(Struct, kw_only=True, frozen=True):
    """What a million tokens cost, in US dollars."""

    input: float
    """Tokens read."""
    output: float
    """Tokens written."""
    cache_read: float | None = None
    """Tokens read from a cache; left out, the price of input."""
    cache_write: float | None = None
    """Tokens written to a cache; left out, the price of input."""


class Connector(Struct, kw_only=True, frozen=True):
    """A model, its address and how to ask it."""

    id: str
    """The connector's name in the project: `openai.gpt4`."""
    type: str
    """The kind of model: `openai`, `anthropic`, `provider`, `local`, or a plugin's."""
    model: str = ""
    """The model's own name."""
    key: str | None = None
    """The API key."""
    host: str | None = None
    """The server's address; left out, the provider's own."""
    auth_mode: AuthMode | None = None
    """The header that carries the key; left out, the one that the type uses."""
    headers: dict[str, str] = {}
    """Further headers of every request."""
    settings: dict[str, Any] = {}
    """`temperature`, `max_tokens` … of every request."""
    prices: Prices | None = None
    """What the model's tokens cost."""
    timeout: float = TIMEOUT
    """Seconds that one request may take."""
    retries: int = RETRIES
    """How often a request is sent again when the server or the network fails."""
    native_schema: bool | None = None
    """True if the server accepts a JSON Schema; left out, the first request tries it."""
    where: str = ""
    """Where the connector is configured, for messages."""
    places: dict[str, str] = {}
    """Where `type`, `model` and `host` stand in the connector's file, as `file:line:column`."""
    secrets: frozenset[str] = frozenset()
    """What no output may show: the key, and the values of headers."""

    def place(self, key: str) -> str:
        """Where the key stands, for messages; if that is not known, where the connector is configured."""
        return self.places.get(key, self.where)
