"""Options: what is handed to an agent beside the messages (`context.Options` of the JSONL format)."""

from pydantic import Field

from atp.suite.record import Json, JsonObject, OpenRecord


class Options(OpenRecord):
    """Options for one call of an agent. Further keys are handed on as they are."""

    skip: Json = None
    """Parts of the agent's own work to leave out."""
    connector: str | None = None
    """The model connector to use."""
    search: Json = None
    """Search settings."""
    mode: str | None = None
    """The agent's mode."""
    metadata: JsonObject = Field(default_factory=dict)
    """Free data: a simulator's `persona` and `goal`, a validator's `criteria`."""
