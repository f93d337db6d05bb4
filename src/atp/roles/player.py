"""Who plays a role: a model, a prompt agent, any other agent, or a Python function, all asked in the same way."""

from abc import ABC, abstractmethod
from typing import Any, Literal

from msgspec import Struct, field

from atp.base.errors import Error
from atp.suite.result import Usage

Role = Literal["assessor", "validator", "simulator", "generator", "variator", "reporter"]


class Call(Struct, kw_only=True):
    """One call of a role."""

    role: Role
    """Which."""
    instructions: str
    """What the job is, in words, for a model that has no prompt of its own."""
    payload: dict[str, Any]
    """What the job is about, as data. An agent of the user's gets this as the text of its message, in JSON."""
    words: str | None = None
    """The same for a model, in words, with what agents said fenced; left out, the payload in JSON serves. An assessor
    gets the words even if it is an agent of the user's: it must not take what it judges for instructions."""
    schema: dict[str, Any] | None = None
    """The JSON Schema of the answer; none if the answer is text."""
    metadata: dict[str, Any] = {}
    """For `options.metadata` of an agent: `test_mode` is added."""
    options: dict[str, Any] = {}
    """Further options of an agent, as a file gives them: `connector`, `mode` …"""
    session: str = ""
    """The same for all calls of one dialogue."""
    turn: int = 1
    """From 1."""
    run: int = 1
    """Which repeat of a trial asks."""


class Said(Struct, kw_only=True):
    """What came of a call."""

    data: Any = None
    """The answer as data, if the call had a schema; the text as it came if it is no JSON."""
    text: str = ""
    """The answer in words."""
    logs: list[str] = []
    """What it printed beside its answer."""
    usage: Usage = field(default_factory=Usage)
    """What it used."""


class RoleError(Error):
    """A role that could not be played: unreachable, broken, or an answer that is not what was asked for."""


class WrongAnswer(RoleError):
    """It answered, but not with what was asked for, also when asked again."""


class RoleClient(ABC):
    """Plays a role."""

    name: str
    """What to call it in messages: the agent's id or the connector's."""
    identity: dict[str, Any]
    """All that decides its answers beside the call: connector, model and settings; or the agent's configuration."""
    model: str | None = None
    """The name of the model it runs on, if known."""
    own: bool = False
    """An agent or function of the user's own, not a bare model that follows our instructions."""
    unfit_to_judge: str | None = None
    """Why it must not judge unless told otherwise."""

    @abstractmethod
    async def ask(self, call: Call) -> Said:
        """Play. Raises `RoleError`."""

    async def close(self) -> None:  # noqa: B027
        """Leave nothing behind."""
