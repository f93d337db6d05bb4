"""The simulator: plays the user in a dialogue, a message at a time (document 5)."""

import json
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct, field

from atp.models.cassettes.cassette import Cassette
from atp.roles.fence import Fence
from atp.roles.judge.record import Piece, content_text, fitted
from atp.roles.player import Call, RoleClient, RoleError, Said
from atp.roles.simulator_answer import SimulatorError, SimulatorSays, read_says
from atp.suite.result import Usage

INSTRUCTIONS = """\
You play a human user who talks with an AI assistant, so that the assistant can be tested. You are never the \
assistant: you don't answer questions for it, offer help or do its work. Keep to your persona and pursue your goal \
step by step. Write as such a person would: one short message at a time, only what they would type, without a name or \
a role in front. Answer what you are asked, making up plausible details if need be and keeping to them afterwards. \
Don't say the same thing again and again: if the assistant doesn't help, ask differently. Set `goal_achieved` to true \
as soon as the conversation shows that your goal is achieved; your message may then be empty. Answer with JSON and \
nothing else."""

_FORM = """\
Write your next message to the assistant, as the user. Answer with one JSON object in this form:
{"input": "your message", "goal_achieved": false, "reasoning": "why, in a sentence"}"""

SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "input": {"type": "string"},
        "goal_achieved": {"type": "boolean"},
    },
    "required": ["reasoning", "input", "goal_achieved"],
    "additionalProperties": False,
}

VERSION = sha256(json.dumps([INSTRUCTIONS, _FORM, SCHEMA, Fence("").rule]).encode()).hexdigest()[:12]
"""Changes with the words: what was answered to others is no answer to these."""


class SimulatorTurn(Struct, kw_only=True):
    """What a simulator is told before the user's next message."""

    persona: str = ""
    """Who the user is; left out, the metadata's `persona`."""
    goal: str = ""
    """What they want; left out, the metadata's `goal`."""
    conversation: list[dict[str, Any]] = field(default_factory=list)
    """What was said so far."""
    turn_number: int = 1
    """Which turn is to come, from 1."""
    max_turns: int = 20
    """How many there are at most."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The simulator's metadata in the case; left out, that of the options."""
    options: dict[str, Any] = field(default_factory=dict)
    """Its options there."""
    session: str = ""
    """The same for all turns of one dialogue."""
    run: int = 1
    """Which repeat of the trial it is."""

    def __post_init__(self) -> None:
        """Fill in what the metadata says."""
        self.metadata = self.metadata or dict(self.options.get("metadata") or {})
        self.persona = self.persona or _text(self.metadata.get("persona"))
        self.goal = self.goal or _text(self.metadata.get("goal"))

    def payload(self) -> dict[str, Any]:
        """What a simulator of the user's gets."""
        return {
            **self.metadata,
            "persona": self.persona,
            "goal": self.goal,
            "conversation": self.conversation,
            "turn_number": self.turn_number,
            "max_turns": self.max_turns,
        }


class Simulator:
    """Simulates a user by asking a client."""

    def __init__(self, client: RoleClient, cassette: Cassette | None = None) -> None:
        self.client = client
        self._cassette = cassette

    async def next(self, turn: SimulatorTurn) -> SimulatorSays:
        """What the user does next. Raises `SimulatorError`, and `CassetteMiss` if nothing was recorded for it."""
        payload = turn.payload()

        async def ask() -> dict[str, Any]:
            said = await self._asked(turn)
            return {"answer": said.data, "usage": msgspec.to_builtins(said.usage)}

        if self._cassette is None:
            found = await ask()
        else:
            own = {"player": self.client.identity, "words": VERSION, "options": turn.options}
            found = await self._cassette.through("simulator", {**own, "asked": payload, "run": turn.run}, ask)
        try:
            says = read_says(found["answer"], turn.conversation)
        except SimulatorError as error:
            raise SimulatorError(f"{self.client.name}: {error}") from error
        says.usage = msgspec.convert(found["usage"], Usage)
        return says

    async def _asked(self, turn: SimulatorTurn) -> Said:
        """The answer. A bare model whose answer is none is told what is wrong and asked once more."""
        said = await self._ask(turn, None)
        if self.client.own:
            return said
        try:
            read_says(said.data, turn.conversation)
        except SimulatorError as error:
            again = await self._ask(turn, str(error))
            again.usage.add(said.usage)
            return again
        return said

    async def _ask(self, turn: SimulatorTurn, complaint: str | None) -> Said:
        payload = turn.payload()
        call = Call(
            role="simulator",
            instructions=INSTRUCTIONS,
            payload=payload,
            words=_words(turn, complaint),
            schema=SCHEMA,
            metadata={**turn.metadata, "persona": turn.persona, "goal": turn.goal, "turn_number": turn.turn_number},
            options=turn.options,
            session=turn.session,
            turn=turn.turn_number,
            run=turn.run,
        )
        try:
            return await self.client.ask(call)
        except RoleError as error:
            raise SimulatorError(str(error)) from error


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _words(turn: SimulatorTurn, complaint: str | None) -> str:
    """The turn in words, for a model. What the assistant said is data: it must not steer the user's part."""
    speakers = {"user": "You, the user, said", "assistant": "The assistant said"}
    record = fitted(
        [
            Piece(label=speakers[one["role"]], text=content_text(one.get("content")))
            for one in turn.conversation
            if one.get("role") in speakers
        ]
    )
    fence = Fence.around([*(one.text for one in record.pieces), turn.persona, turn.goal, complaint or ""])
    parts = [f"You are: {turn.persona or 'an ordinary user'}\nYour goal: {turn.goal or 'to find out what it can do'}"]
    parts.append(fence.rule)
    further = {key: value for key, value in turn.metadata.items() if key not in ("persona", "goal")}
    if further:
        parts.append(f"Further facts: {json.dumps(further, ensure_ascii=False, default=str)}")
    parts.append(f"This is turn {turn.turn_number} of at most {turn.max_turns}.")
    if record.pieces:
        said = "\n\n".join(f"{one.label}:\n{fence.put(one.text)}" for one in record.pieces)
        parts.append(f"The conversation so far:\n\n{said}\n\nThe conversation so far ends here.")
    else:
        parts.append("Nothing was said yet: begin the conversation.")
    if complaint is not None:
        parts.append(f"Your last answer could not be used. What was wrong with it:\n{fence.put(complaint)}")
    parts.append(_FORM)
    return "\n\n".join(parts)
