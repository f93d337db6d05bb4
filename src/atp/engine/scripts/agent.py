"""Agents as a test in Python calls them: `ctx.agent("a.b").send("…")` is a turn of a conversation with one."""

from copy import copy
from typing import Any

from msgspec.structs import replace

from atp.agents.adapter import Capabilities
from atp.base.diagnostics import Diagnostics
from atp.base.found_json import MISSING
from atp.checks.subject import Subject
from atp.engine.scripts.runner import ScriptError, Stage
from atp.engine.trial.conversation import Conversation
from atp.engine.trial.watch import Watch
from atp.loader.validate import Nowhere, read
from atp.suite.case import Case
from atp.suite.result import Artifact, ToolCall, Transcript, Usage


class Response:
    """What an agent answered in one turn."""

    def __init__(self, transcript: Transcript, agent: str, capabilities: Capabilities) -> None:
        self.transcript = transcript
        """This turn, and the conversation so far."""
        self.agent = agent
        """Who answered."""
        self.capabilities = capabilities
        """What that agent can ever report."""

    @property
    def output(self) -> Any:
        """The answer: text or any JSON value."""
        return self.transcript.output

    @property
    def content(self) -> str:
        """The answer as text; of a JSON value, its JSON text."""
        return Subject(self.output, "the output", "output").text

    @property
    def json(self) -> Any:
        """The answer as JSON, also where it is text with JSON in it. Raises `ValueError` if there is none."""
        found = Subject(self.output, "the output", "output").json
        if found is MISSING:
            raise ValueError(f"there is no JSON in the answer: {self.content[:200]!r}")
        return found

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tools that it called for this answer: `name`, `arguments`, `result`, `error`."""
        return self.transcript.tool_calls

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, this answer included."""
        return self.transcript.messages

    @property
    def artifacts(self) -> list[Artifact]:
        """What it handed over with this answer."""
        return self.transcript.artifacts

    @property
    def usage(self) -> Usage:
        """What this answer used, as far as the agent says."""
        return self.transcript.usage

    @property
    def duration_ms(self) -> float:
        """How long the answer took."""
        return self.transcript.turns[-1].duration_ms

    def __await__(self) -> Any:
        """So that type checkers know what `await agent.send(…)` gives."""
        yield from ()
        return self

    def __str__(self) -> str:
        return self.content


class CalledAgent:
    """A conversation with an agent: each `send` goes on with it."""

    def __init__(self, stage: Stage, name: str | None, about: dict[str, Any]) -> None:
        self._stage = stage
        self._name = name
        self._about = about
        self._conversation: Conversation | None = None

    def send(self, messages: str | dict[str, Any] | list[dict[str, Any]]) -> Response:
        """Say something, a text or messages, and get the answer. In a coroutine: `await agent.send(…)`.

        Raises `AgentError` if the agent gives none.
        """
        __tracebackhide__ = True
        said = _wire(messages)
        response: Response = self._stage.bring("send", lambda: self._turn(said))
        return response

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far."""
        return list(self._conversation.transcript.messages) if self._conversation is not None else []

    async def _turn(self, messages: list[dict[str, Any]]) -> Response:
        stage = self._stage
        tested = stage.tested(self._name)
        if self._conversation is None:
            conversation = self._open()
            await tested.begin_trial(conversation.session)
            self._conversation = conversation
        own = self._conversation.transcript
        stage.turns += 1
        number, before = stage.turns, _Before(own)
        try:
            await self._conversation.say(messages)
        finally:
            turn = before.turn_of(own)
            _take(stage.result.transcript, turn, number, own.messages[before.messages :])
        response = Response(turn, tested.name, tested.adapter.capabilities)
        stage.responses.append(response)
        return response

    def _open(self) -> Conversation:
        stage = self._stage
        case = Case(id=stage.trial.case.id, name=stage.trial.case.name, **self._about)
        trial = replace(stage.trial, tested=stage.tested(self._name), case=case)
        own = Transcript(logs=stage.result.transcript.logs)
        return Conversation(trial, Watch(case.limits, own), stage.workspace, stage.new_session())

    def end(self) -> None:
        """The test is over: the agent lets go of what it kept for this conversation. Called in the loop."""
        if self._conversation is not None:
            self._stage.tested(self._name).end_trial(self._conversation.session)


class _Before:
    """How far a conversation was before a turn."""

    def __init__(self, own: Transcript) -> None:
        self.messages = len(own.messages)
        self._turns, self._calls = len(own.turns), len(own.tool_calls)
        self._events, self._artifacts = len(own.events), len(own.artifacts)
        self._usage = copy(own.usage)

    def turn_of(self, own: Transcript) -> Transcript:
        """The turn alone, with all messages up to it."""
        fields = own.usage.__struct_fields__
        used = {name: _more(getattr(self._usage, name), getattr(own.usage, name)) for name in fields}
        if own.usage.total_tokens is not None:
            used["total_tokens"] = own.usage.total_tokens - (self._usage.tokens or 0)
        return Transcript(
            messages=list(own.messages),
            turns=own.turns[self._turns :],
            tool_calls=own.tool_calls[self._calls :],
            events=own.events[self._events :],
            artifacts=own.artifacts[self._artifacts :],
            usage=Usage(**used),
        )


def _more(before: Any, after: Any) -> Any:
    return after if before is None or after is None else after - before


def _take(whole: Transcript, turn: Transcript, number: int, messages: list[dict[str, Any]]) -> None:
    """Write a turn into the trial's transcript, whose turns are counted through, whoever they are with."""
    whole.messages.extend(messages)
    whole.turns.extend(replace(one, turn=number) for one in turn.turns)
    whole.tool_calls.extend(replace(one, turn=number) for one in turn.tool_calls)
    whole.events.extend(replace(one, turn=number) for one in turn.events)
    whole.artifacts.extend(turn.artifacts)
    whole.usage.add(turn.usage)


def _wire(messages: Any) -> list[dict[str, Any]]:
    """Messages as agents get them. Raises `ScriptError` if they are none."""
    __tracebackhide__ = True
    notes = Diagnostics()
    read_ = read(Case, {"id": "said", "messages": messages}, notes, Nowhere())
    if notes or read_ is None:
        raise ScriptError(f"`send`: {notes[0].message}")
    if not read_.messages:
        raise ScriptError("`send`: there is no message to send")
    return [one.wire() for one in read_.messages]


def check_about(options: Any, metadata: Any) -> dict[str, Any]:
    """What a call is told beside its messages. Raises `ScriptError` if it can't be used."""
    about = {name: value for name, value in (("options", options), ("metadata", metadata)) if value is not None}
    notes = Diagnostics()
    read(Case, {"id": "called", **about}, notes, Nowhere())
    if notes:
        raise ScriptError(f"`agent`: {notes[0].message}")
    return about
