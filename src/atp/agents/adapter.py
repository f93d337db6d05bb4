"""The interface of every kind of agent: a turn of the conversation in, a reply out.

An adapter knows nothing of checks, limits or retries. An adapter promises only to leave nothing behind when cancelled:
no process, container, connection or temporary folder.
"""

import builtins
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec
from msgspec import Struct

from atp.base.errors import Error
from atp.suite.capabilities import Capabilities
from atp.suite.result import Artifact, Blame, Event, ToolCall, Usage

if TYPE_CHECKING:
    from atp.agents.running import RunningAgent
    from atp.base.diagnostics import Diagnostic
    from atp.models.cassettes.cassette import Cassette
    from atp.models.model import Model
    from atp.suite.agent import Agent, AgentConfig


class TurnRequest(Struct, kw_only=True):
    """One turn of a conversation, as an agent is asked."""

    messages: list[dict[str, Any]]
    """The whole conversation so far, the newest user message last."""
    prompt: str
    """The newest user message's text."""
    task: dict[str, Any]
    """`description`, and where the case has them `input_data` and `expected_artifacts`."""
    constraints: dict[str, Any] = {}
    """The limits that are set."""
    context: dict[str, Any] = {}
    """`user`, `team`, `locale`, `client_type`, `client_ip`, `referer`, `accept`, `connector`, `run` (from 1),
    `iteration` (from 0), `turn` (from 1), `session_id`, `case_id`, `case_name`, `agent`, `config`, `metadata`."""
    options: dict[str, Any] = {}
    """The case's options."""
    task_id: str = ""
    """Fresh for each trial."""
    turn: int = 1
    """From 1."""
    began: float = msgspec.field(default_factory=time.monotonic)
    """When the trial began, by the monotonic clock."""
    conversation: bool = True
    """True for a conversation, whose messages agents of the wire protocol get, too; False for a task."""
    state: Any = None
    """The `state` of the agent's last reply."""
    workspace: Callable[[], Path]
    """Returns the trial's folder, which is made by the first call if the adapter does not say that it uses it."""
    emit: Callable[[Event], None]
    """Passes an event to the engine as it happens. Raises when a limit is passed, which ends the turn."""
    log: Callable[[str], None]
    """Adds a line to the trial's log."""
    schema: dict[str, Any] | None = None
    """The JSON Schema that the answer must have; set only for an adapter that `takes_schema`."""
    optional: frozenset[str] = frozenset()
    """Keys that the schema requires and the answer may leave out all the same."""
    so_far: "Callable[[], Reply] | None" = None
    """Returns the reply so far, if the turn is stopped. Set by adapters that get a reply piece by piece."""
    sequence: int | None = -1
    """The sequence number of the newest event; None once the log says that the numbers don't count up."""

    @property
    def task_with_messages(self) -> dict[str, Any]:
        """The task; in a conversation, its newest message with the whole conversation in `input_data.messages`."""
        if not self.conversation and self.turn == 1:
            return self.task
        data = {**(self.task.get("input_data") or {}), "messages": self.messages}
        return {**self.task, "description": self.prompt, "input_data": data}


class Reply(Struct, omit_defaults=True, kw_only=True):
    """An agent's answer to a turn."""

    output: Any = None
    """Text or any JSON value. None is an empty answer."""
    tool_calls: list[ToolCall] = []
    """Tool calls that were not already emitted as events."""
    artifacts: list[Artifact] = []
    """What the agent made."""
    usage: Usage | None = None
    """What the agent used in this turn."""
    metrics: dict[str, float] = {}
    """Named metrics of this turn, such as a confidence; of several turns, the last value of a name counts."""
    state: Any = None
    """A value that the request of the next turn has as its `state`."""
    messages: list[dict[str, Any]] = []
    """Messages that the agent adds to the conversation, if they are more than its answer."""
    warnings: list[str] = []
    """What is doubtful about the answer, for the trial's result."""


class AgentError(Error):
    """A turn that could not be completed, and who is to blame."""

    def __init__(
        self,
        message: str,
        blame: Blame = "agent",
        *,
        retry_after: float | None = None,
        retryable: bool = False,
        raw: str | None = None,
        reply: Reply | None = None,
    ) -> None:
        super().__init__(message)
        self.blame: Blame = blame
        self.retryable = retryable
        """True if the infrastructure failed, so trying again may help."""
        self.retry_after = retry_after
        """Seconds that the server asks to wait before the next attempt."""
        self.raw = raw
        """The beginning of what the agent sent, if it broke the protocol."""
        self.reply = reply
        """The reply so far: an agent that failed may still have made and used something."""


class AgentTimeout(AgentError):
    """A request that took longer than the agent's own `timeout`. The trial's status is `timeout`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"timeout after {seconds:g}s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One result of `atp agents check`."""

    what: str
    """What was checked: `health`, `image`, `model` …"""
    ok: bool
    """True if a run could use it."""
    detail: str
    """What was found."""
    hint: str | None = None
    """How to fix it."""

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return asdict(self)


class Adapter(ABC):
    """Reaches one agent of a suite, for all its trials. A subclass with a `type` and a `Config` is a kind of agent."""

    type: ClassVar[str]
    """What suites name as the `type` of such agents."""
    Config: "ClassVar[builtins.type[AgentConfig]]"
    """The keys that suites may give in `config`; without a `Config`, those that every kind takes."""
    capabilities: Capabilities = Capabilities()
    """What the adapter can report."""
    takes_schema: ClassVar[bool] = False
    """True if the adapter asks for an answer by the `schema` of a request. Other agents are told it in words."""
    uses_workspace: bool = True
    """False if turns hardly ever call `request.workspace`: then files are copied into it only when one does."""
    files: Sequence[Path] = ()
    """Files that decide what the agent does, beside those in its configuration."""
    variables: Mapping[str, str] = MappingProxyType({})
    """The environment variables that decide what the agent does."""
    secrets: frozenset[str] = frozenset()
    """Values that no output may show."""
    warnings: "Sequence[Diagnostic]" = ()
    """Warnings about the agent's files."""

    def __init__(self, agent: "Agent", context: "AdapterContext") -> None:
        """Raises `ConfigurationError` when the agent can't be as it is written: nothing runs then."""
        self.config: Any = agent.config
        self.context = context

    async def start(self) -> None:  # noqa: B027  (most have nothing to do)
        """Prepare for turns. Called before the first turn, and again after an `AgentError` that is `retryable`."""

    async def begin_trial(self, task_id: str) -> None:  # noqa: B027
        """Prepare a trial. The time that this takes does not count towards the trial's limit.

        Raises `AgentError`.
        """

    @abstractmethod
    async def turn(self, request: TurnRequest) -> Reply:
        """Ask the agent, and return its reply. Raises `AgentError`."""

    def end_trial(self, task_id: str) -> None:  # noqa: B027
        """Begin to release what was kept for a trial between its turns. `close` waits for the end of that."""

    async def close(self) -> None:  # noqa: B027
        """Release everything. Called once at the end, also after a failed start."""

    async def check(self) -> list[Finding]:
        """Check whether a run could reach the agent, without a turn. Called in place of `start`; `close` follows."""
        try:
            await self.start()
        except AgentError as error:
            return [Finding(what="start", ok=False, detail=str(error))]
        return [Finding(what="start", ok=True, detail="it starts")]


class Services(Protocol):
    """The services of a run for agents that run on models."""

    def model(self, connector: str | None, needed_by: str) -> "Model":
        """Return the model of a connector, by default the run's; recorded or replayed if the run is.

        Raises `ConfigurationError`.
        """

    @property
    def cassette(self) -> "Cassette | None":
        """The cassette that tool calls are recorded to or replayed from."""

    def running_agent(self, name: str) -> "RunningAgent":
        """Return another agent of the project, by its id or path. The run closes it. Raises `ConfigurationError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterContext:
    """What an adapter is made with, beside the agent's configuration."""

    base: Path
    """The folder of the file that names the agent. Relative paths start there."""
    search: tuple[Path, ...] = ()
    """Further folders in which modules are found."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment variables, those of `.env` included."""
    retries: int = 0
    """How often the engine tries again when the infrastructure fails."""
    marker: str = ""
    """The value of `ATP_RUN` in the environment of every process, by which leftovers are found."""
    root: Path | None = None
    """The project's root."""
    services: "Services | None" = None
    """The run's services; None where there are no models."""
