"""Agents that a test in Python calls: `ctx.agent("a.b").send("…")` is one turn of a conversation."""

from copy import copy
from typing import Any

from msgspec.structs import replace

from atp.base.diagnostics import Diagnostics
from atp.base.json.found import MISSING
from atp.base.text import cut
from atp.checks.evidence import Subject
from atp.engine.scripts.runner import ScriptError, ScriptRunner
from atp.engine.trial.conversation import Conversation, Watch
from atp.loader.validate import NoLocator, validate
from atp.suite.capabilities import Capabilities
from atp.suite.case import Case
from atp.suite.result import Artifact, ToolCall, Transcript, Usage


class Response:
    """The answer of an agent in one turn."""

    def __init__(self, transcript: Transcript, agent: str, capabilities: Capabilities) -> None:
        self.transcript = transcript
        """The turn, with the messages of the conversation so far."""
        self.agent = agent
        """The name of the agent."""
        self.capabilities = capabilities
        """What the agent can report."""

    @property
    def output(self) -> Any:
        """The answer: text or any JSON value."""
        return self.transcript.output

    @property
    def content(self) -> str:
        """The answer as text. A JSON value is encoded."""
        return Subject(self.output, "the output", "output").text

    @property
    def json(self) -> Any:
        """The JSON value of the answer, also if the answer is text that contains JSON. Raises `ValueError`."""
        found = Subject(self.output, "the output", "output").json
        if found is MISSING:
            raise ValueError(f"there is no JSON in the answer: {cut(self.content, 200)!r}")
        return found

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls of this turn: `name`, `arguments`, `result`, `error`."""
        return self.transcript.tool_calls

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, this answer included."""
        return self.transcript.messages

    @property
    def artifacts(self) -> list[Artifact]:
        """The artifacts of this turn."""
        return self.transcript.artifacts

    @property
    def usage(self) -> Usage:
        """The usage of this turn, as far as the agent reports it."""
        return self.transcript.usage

    @property
    def metrics(self) -> dict[str, float]:
        """The named metrics that the agent gave in this turn."""
        return self.transcript.metrics

    @property
    def duration_ms(self) -> float:
        """The duration of this turn."""
        return self.transcript.turns[-1].duration_ms

    def __await__(self) -> Any:
        """Make `await agent.send(…)` type-check; a response is awaited only in coroutines."""
        yield from ()
        return self

    def __str__(self) -> str:
        return self.content


class CalledAgent:
    """A conversation with an agent. Each `send` is one turn."""

    def __init__(self, runner: ScriptRunner, name: str | None, about: dict[str, Any]) -> None:
        self._runner = runner
        self._name = name
        self._options = about
        self._conversation: Conversation | None = None

    def send(self, messages: str | dict[str, Any] | list[dict[str, Any]]) -> Response:
        """Send a text or messages, and return the answer. In a coroutine: `await agent.send(…)`.

        Raises `AgentError` if the agent fails.
        """
        __tracebackhide__ = True
        sent = _messages(messages)
        response: Response = self._runner.run_in_loop("send", lambda: self._asked(sent))
        return response

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far."""
        return list(self._conversation.transcript.messages) if self._conversation is not None else []

    async def _asked(self, messages: list[dict[str, Any]]) -> Response:
        self._runner.on_actor("agent")
        try:
            return await self._turn(messages)
        finally:
            self._runner.on_actor("test")

    async def _turn(self, messages: list[dict[str, Any]]) -> Response:
        runner = self._runner
        tested = runner.tested(self._name)
        if self._conversation is None:
            conversation = self._open()
            await tested.begin_trial(conversation.session)
            self._conversation = conversation
        own = self._conversation.transcript
        runner.turns += 1
        number, before = runner.turns, _Before(own)
        try:
            await self._conversation.say(messages)
        finally:
            turn = before.turn_of(own)
            _add_turn(runner.result.transcript, turn, number, own.messages[before.messages :])
        response = Response(turn, tested.name, tested.adapter.capabilities)
        runner.responses.append(response)
        return response

    def _open(self) -> Conversation:
        runner = self._runner
        case = Case(id=runner.trial.case.id, name=runner.trial.case.name, **self._options)
        trial = replace(runner.trial, tested=runner.tested(self._name), case=case, limits=case.limits.given())
        own = Transcript(logs=runner.result.transcript.logs)
        return Conversation(trial, Watch(case.limits, own), runner.workspace, runner.new_session())

    def end(self) -> None:
        """Release what the agent keeps for this conversation. Runs in the event loop, after the test."""
        if self._conversation is not None:
            self._runner.result.warnings.extend(self._conversation.warnings())
            self._runner.tested(self._name).end_trial(self._conversation.session)


class _Before:
    """The length of a transcript before a turn."""

    def __init__(self, own: Transcript) -> None:
        self.messages = len(own.messages)
        self._turns, self._calls = len(own.turns), len(own.tool_calls)
        self._events, self._artifacts = len(own.events), len(own.artifacts)
        self._usage = copy(own.usage)
        own.metrics = {}  # of the turn alone: `_add_turn` has added those of earlier turns to the trial's

    def turn_of(self, own: Transcript) -> Transcript:
        """Return the part of the transcript that the turn added, with all messages."""
        fields = own.usage.__struct_fields__
        used = {name: _difference(getattr(self._usage, name), getattr(own.usage, name)) for name in fields}
        if own.usage.total_tokens is not None:
            used["total_tokens"] = own.usage.total_tokens - (self._usage.tokens or 0)
        return Transcript(
            messages=list(own.messages),
            turns=own.turns[self._turns :],
            tool_calls=own.tool_calls[self._calls :],
            events=own.events[self._events :],
            artifacts=own.artifacts[self._artifacts :],
            usage=Usage(**used),
            metrics=own.metrics,
        )


def _difference(before: Any, after: Any) -> Any:
    return after if before is None or after is None else after - before


def _add_turn(whole: Transcript, turn: Transcript, number: int, messages: list[dict[str, Any]]) -> None:
    """Add a turn to the transcript of the trial, whose turns are numbered across all conversations."""
    whole.messages.extend(messages)
    whole.turns.extend(replace(one, turn=number) for one in turn.turns)
    whole.tool_calls.extend(replace(one, turn=number) for one in turn.tool_calls)
    whole.events.extend(replace(one, turn=number) for one in turn.events)
    whole.artifacts.extend(turn.artifacts)
    whole.usage.add(turn.usage)
    whole.metrics.update(turn.metrics)


def _messages(messages: Any) -> list[dict[str, Any]]:
    """Validate messages and return them in the form that agents get. Raises `ScriptError`."""
    __tracebackhide__ = True
    notes = Diagnostics()
    read_ = validate(Case, {"id": "said", "messages": messages}, notes, NoLocator())
    if notes or read_ is None:
        raise ScriptError(f"`send`: {notes[0].message}")
    if not read_.messages:
        raise ScriptError("`send`: there is no message to send")
    return [one.wire() for one in read_.messages]


def read_call_options(options: Any, metadata: Any) -> dict[str, Any]:
    """Validate the options and metadata of a conversation. Raises `ScriptError`."""
    about = {name: value for name, value in (("options", options), ("metadata", metadata)) if value is not None}
    notes = Diagnostics()
    validate(Case, {"id": "called", **about}, notes, NoLocator())
    if notes:
        raise ScriptError(f"`agent`: {notes[0].message}")
    return about
