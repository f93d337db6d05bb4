"""What every kind of agent promises: a turn of the conversation in, a reply out.

An adapter knows nothing of checks, limits or retries. It promises only: when cancelled, it leaves nothing behind
(process group, container, connection, temporary folder).
"""

import builtins
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct

from atp.base.errors import Error
from atp.suite.result import Artifact, Blame, Event, ToolCall, Usage

if TYPE_CHECKING:
    from atp.agents.running import RunningAgent
    from atp.base.diagnostics import Diagnostic
    from atp.models.cassettes.cassette import Cassette
    from atp.models.model import Model
    from atp.suite.agent import Agent, AgentConfig


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an adapter can ever report. A limit on anything else would be kept by not looking."""

    tool_calls: bool = True
    """Which tools were called."""
    tokens: bool = True
    """How many tokens were used."""
    cost: bool = True
    """What it cost."""
    steps: bool = True
    """How many steps it took."""


@dataclass(slots=True, kw_only=True)
class TurnRequest:
    """What an agent is asked in one turn."""

    messages: list[dict[str, Any]]
    """The whole conversation so far, the newest user message last."""
    prompt: str
    """The newest user message's text."""
    task: dict[str, Any]
    """`description`, and where given `input_data` and `expected_artifacts`."""
    constraints: dict[str, Any] = field(default_factory=dict)
    """The limits that are set."""
    context: dict[str, Any] = field(default_factory=dict)
    """`user`, `team`, `locale`, `client_type`, `client_ip`, `referer`, `accept`, `connector`, `run` (from 1),
    `iteration` (from 0), `turn` (from 1), `session_id`, `case_id`, `case_name`, `agent`, `config`, `metadata`."""
    options: dict[str, Any] = field(default_factory=dict)
    """The case's options."""
    task_id: str = ""
    """Fresh for each trial."""
    turn: int = 1
    """From 1."""
    began: float = field(default_factory=time.monotonic)
    """When the trial began, by the monotonic clock."""
    conversation: bool = True
    """Part of a conversation, so agents of the wire protocol get its messages too; a task stands for itself."""
    state: Any = None
    """What the agent's last reply asked to be handed back."""
    workspace: Callable[[], Path]
    """Gives the trial's folder, made when first asked for."""
    emit: Callable[[Event], None]
    """Tell the engine of an event as it happens; raises when a limit is passed, which ends the turn."""
    log: Callable[[str], None]
    """Keep a line that the agent printed beside the protocol."""
    so_far: "Callable[[], Reply] | None" = None
    """What there is of a reply, should the turn be stopped; for adapters that learn it piece by piece."""
    sequence: int | None = -1
    """The number of the newest event that had one; nothing once the log says that they don't count up."""


class Reply(Struct, omit_defaults=True, kw_only=True):
    """What an agent answered."""

    output: Any = None
    """Text or any JSON value; nothing is an empty answer."""
    tool_calls: list[ToolCall] = []
    """Calls that weren't already told as events."""
    artifacts: list[Artifact] = []
    """What it made."""
    usage: Usage | None = None
    """What it used in this turn."""
    state: Any = None
    """To be handed back with the next turn."""
    messages: list[dict[str, Any]] = []
    """What the agent adds to the conversation when that is more than its answer."""


class AgentError(Error):
    """A turn that could not be completed, and whose fault that is."""

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
        """Trying again may help: the infrastructure failed, not the agent."""
        self.retry_after = retry_after
        """How many seconds the other side asks to wait."""
        self.raw = raw
        """What the agent sent, cut, when it broke the protocol."""
        self.reply = reply
        """What there was of a reply: an agent that says it failed may still have made and used something."""


class AgentTimeout(AgentError):
    """The agent's own request timeout (`config.timeout`) ran out: the trial's status is `timeout`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"timeout after {seconds:g}s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing about an agent that was looked at, without a test."""

    what: str
    """What was looked at: `health`, `image`, `model` …"""
    ok: bool
    """Whether it is as a run needs it."""
    detail: str
    """What was found, in words."""
    hint: str | None = None
    """How to fix it."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Adapter(ABC):
    """One agent of a suite, shared by all its trials. A subclass with a `type` and a `Config` is a kind of agent."""

    type: ClassVar[str]
    """What suites name as the `type` of such agents."""
    Config: "ClassVar[builtins.type[AgentConfig]]"
    """The keys that suites may give in `config`; without a `Config`, those that every kind takes."""
    capabilities: Capabilities = Capabilities()
    """What it can ever report."""
    files: Sequence[Path] = ()
    """Files beyond those its configuration names that decide what the agent does."""
    variables: Mapping[str, str] = MappingProxyType({})
    """What it took from the environment, by name."""
    secrets: frozenset[str] = frozenset()
    """Values that no output may show."""
    warnings: "Sequence[Diagnostic]" = ()
    """What is worth a look in its files."""

    def __init__(self, agent: "Agent", context: "AdapterContext") -> None:
        """Raises `ConfigurationError` when the agent can't be as it is written: nothing runs then."""
        self.config: Any = agent.config
        self.context = context

    async def start(self) -> None:  # noqa: B027  (most have nothing to do)
        """Get ready; called once, before the first turn. Raises `AgentError` when it can't be reached at all."""

    async def begin_trial(self, task_id: str) -> None:  # noqa: B027
        """A trial is about to begin: have there what it needs. The trial's time does not count yet.

        Raises `AgentError`.
        """

    @abstractmethod
    async def turn(self, request: TurnRequest) -> Reply:
        """Hold one turn of a conversation."""

    def end_trial(self, task_id: str) -> None:  # noqa: B027
        """A trial is over, however it went: begin to let go of what was kept for it between its turns.

        Nobody waits for that here; `close` does.
        """

    async def close(self) -> None:  # noqa: B027
        """Leave nothing behind; called once at the end, also after a failed start."""

    async def check(self) -> list[Finding]:
        """See whether a run could reach the agent, without a turn. Called in place of `start`; `close` follows."""
        try:
            await self.start()
        except AgentError as error:
            return [Finding(what="start", ok=False, detail=str(error))]
        return [Finding(what="start", ok=True, detail="it starts")]


class Services(Protocol):
    """What a run provides to agents that run on models."""

    def model(self, connector: str | None, needed_by: str) -> "Model":
        """The model behind a connector, the run's default if none is named; recorded or replayed if the run is.

        Raises `ConfigurationError`.
        """

    @property
    def cassette(self) -> "Cassette | None":
        """Where tool calls are recorded to or replayed from."""

    def running_agent(self, name: str) -> "RunningAgent":
        """Return another agent of the project, by its id or path. The run closes it. Raises `ConfigurationError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterContext:
    """Where an agent is found and what is around it."""

    base: Path
    """The folder of the file that names the agent: relative paths start there."""
    search: tuple[Path, ...] = ()
    """Further folders where modules are looked up."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The process environment, `.env` included."""
    retries: int = 0
    """How often the engine may try again on failures of the infrastructure."""
    marker: str = ""
    """The environment variable `ATP_RUN` of every process that is started, so that leftovers can be found."""
    root: Path | None = None
    """The project's root."""
    services: "Services | None" = None
    """What agents that run on models need; none where there are no models."""
