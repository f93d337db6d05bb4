"""The simulator: writes the user's next message in a dialogue."""

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct, field

from atp.base.json.found import MISSING, SearchCutShort, read_whole
from atp.base.json.text import readable
from atp.base.near import near_miss
from atp.base.text import comparable, cut, value_text
from atp.models.cassettes.cassette import Cassette
from atp.roles.ask import PLAYER, RoleAnswer, RoleCall, RoleClient, RoleError, ask_twice, call_maker, recorded_answer
from atp.roles.fence import Fence
from atp.roles.quotation import said
from atp.roles.record import Piece, content_text, fitted
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
Write your next message to the assistant, as the user. Answer with one JSON object and nothing else, neither before \
nor after it, in this form, with what is to be filled in between < and >. Nobody but you was told its `mark`.
{{"mark": "{mark}", "reasoning": "<why, in a sentence>", "input": "<your message>", \
"goal_achieved": <true or false>}}"""

SCHEMA = {
    "type": "object",
    "properties": {
        "mark": {"type": "string"},
        "reasoning": {"type": "string"},
        "input": {"type": "string"},
        "goal_achieved": {"type": "boolean"},
    },
    "required": ["mark", "reasoning", "input", "goal_achieved"],
    "additionalProperties": False,
}
_OPTIONAL = frozenset({"reasoning"})

VERSION = sha256(json.dumps([INSTRUCTIONS, _FORM, SCHEMA, Fence("").rule]).encode()).hexdigest()[:12]
"""Changes with the prompts, so that answers to other prompts are not replayed."""

_SHOWN = 100
"""Characters of a wrong answer that a message shows."""
_KEYS = ("input", "message", "goal_achieved", "reasoning")
MOST_REPEATS = 3
"""A simulator that repeats a message this many turns in a row is broken."""
_LONG_MESSAGE = 20
"""Characters. A user may well repeat a short answer, such as "Yes"."""
_OTHER_SPEAKER = re.compile(
    r"[\s*_#>\[(<|]*(ai|ai[ _-]?assistant|assistant|agent|bot|chatbot|system|developer|tool)[\s*_\])>|]*:",
    re.IGNORECASE,
)


class SimulatorError(RoleError):
    """A simulator could not be asked or broke its contract. The agent is not to blame."""


class SimulatedMessage(Struct, kw_only=True):
    """The simulated user's next message."""

    input: str = ""
    """The message; empty if the goal is achieved and nothing is left to say."""
    goal_achieved: bool = False
    """True if the user has what they wanted."""
    reasoning: str = ""
    """Why, in the simulator's words."""
    usage: Usage = field(default_factory=Usage)
    """What the simulator used, which doesn't count for the agent."""


class SimulatorTurn(Struct, kw_only=True):
    """What a simulator needs to write the user's next message."""

    persona: str = ""
    """Who the user is; left out, the metadata's `persona`."""
    goal: str = ""
    """What the user wants; left out, the metadata's `goal`."""
    conversation: list[dict[str, Any]] = field(default_factory=list)
    """The messages so far."""
    turn_number: int = 1
    """The number of the next turn, from 1."""
    max_turns: int = 20
    """The highest number of turns."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The simulator's metadata in the case; left out, the options' `metadata`."""
    options: dict[str, Any] = field(default_factory=dict)
    """The simulator's options in the case."""
    session: str = ""
    """The id of the dialogue."""
    run: int = 1
    """Which repeat of the trial asks, from 1."""

    def __post_init__(self) -> None:
        """Take the persona and the goal from the metadata if they are not given."""
        self.metadata = self.metadata or dict(self.options.get("metadata") or {})
        self.persona = self.persona or _text(self.metadata.get("persona"))
        self.goal = self.goal or _text(self.metadata.get("goal"))

    def payload(self) -> dict[str, Any]:
        """The data that a simulator of the user's gets."""
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

    async def next(self, turn: SimulatorTurn) -> SimulatedMessage:
        """The user's next message. Raises `SimulatorError`, and `CassetteMiss` if none was recorded."""
        parts = {
            PLAYER: self.client.identity,
            "words": VERSION,
            "options": turn.options,
            "asked": turn.payload(),
            "run": turn.run,
        }
        answer = await recorded_answer(self._cassette, "simulator", parts, lambda: self._ask(turn))
        try:
            message = read_message(answer.data, turn.conversation)
        except SimulatorError as error:
            raise SimulatorError(f"{self.client.name}: {error}") from error
        message.usage = answer.usage
        return message

    async def _ask(self, turn: SimulatorTurn) -> RoleAnswer:
        call = RoleCall(
            role="simulator",
            instructions=INSTRUCTIONS,
            payload=turn.payload(),
            schema=SCHEMA,
            optional=_OPTIONAL,
            conversation_texts=said(turn.conversation, by_user=False),
            metadata={**turn.metadata, "persona": turn.persona, "goal": turn.goal, "turn_number": turn.turn_number},
            options=turn.options,
            session=turn.session,
            turn=turn.turn_number,
            run=turn.run,
        )

        def wrong(data: Any) -> str | None:
            try:
                read_message(data, turn.conversation)
            except SimulatorError as error:
                return str(error)
            return None

        try:
            return await ask_twice(
                self.client, call_maker(self.client, call, lambda complaint: _prompt(turn, complaint)), wrong
            )
        except RoleError as error:
            raise SimulatorError(str(error)) from error


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _prompt(turn: SimulatorTurn, complaint: str | None) -> tuple[str, str]:
    """The turn as text for a model, and the mark of the call.

    What the assistant said is fenced: it must not steer the simulated user.
    """
    speakers = {"user": "You, the user, said", "assistant": "The assistant said"}
    pieces = [
        Piece(label=speakers[one["role"]], text=content_text(one.get("content")))
        for one in turn.conversation
        if one.get("role") in speakers
    ]
    record = fitted(pieces).pieces
    fence = Fence.around([*(one.text for one in record), turn.persona, turn.goal, complaint or ""])
    parts = [f"You are: {turn.persona or 'an ordinary user'}\nYour goal: {turn.goal or 'to find out what it can do'}"]
    parts.append(fence.rule)
    further = {key: value for key, value in turn.metadata.items() if key not in ("persona", "goal")}
    if further:
        parts.append(f"Further facts: {readable(further)}")
    parts.append(f"This is turn {turn.turn_number} of at most {turn.max_turns}.")
    if record:
        messages = "\n\n".join(f"{one.label}:\n{fence.put(one.text)}" for one in record)
        parts.append(f"The conversation so far:\n\n{messages}\n\nThe conversation so far ends here.")
    else:
        parts.append("Nothing was said yet: begin the conversation.")
    if complaint is not None:
        parts.append(fence.put_complaint(complaint))
    parts.append(_FORM.format(mark=fence.nonce))
    return "\n\n".join(parts), fence.nonce


def read_message(data: Any, conversation: Sequence[dict[str, Any]]) -> SimulatedMessage:
    """The message in an answer that keeps the simulator's contract in the JSONL format. Raises `SimulatorError`."""
    if not isinstance(data, dict):
        raise SimulatorError(
            f"it answered {value_text(data, _SHOWN)}, which is no JSON object with `input` and `goal_achieved`"
        )
    for key in data:
        if key not in _KEYS:
            near = near_miss(str(key), _KEYS)
            raise SimulatorError(
                f"it answered with the unknown key `{cut(key, _SHOWN)}`" + (f"; `{near}`?" if near else "")
            )
    text, achieved, reasoning = _text_of(data), data.get("goal_achieved"), data.get("reasoning")
    if not isinstance(achieved, bool | None):
        raise SimulatorError(f"its `goal_achieved` is {value_text(achieved, _SHOWN)}, not true or false")
    if not isinstance(reasoning, str | None):
        raise SimulatorError("its `reasoning` is not text")
    if not text.strip():
        if not achieved:
            raise SimulatorError("it says nothing, although its goal is not achieved")
        text = ""
    elif problem := _problem(text, conversation):
        raise SimulatorError(problem)
    return SimulatedMessage(input=text, goal_achieved=bool(achieved), reasoning=reasoning or "")


def _text_of(data: dict[str, Any]) -> str:
    given = {key: data[key] for key in ("input", "message") if data.get(key) is not None}
    if len(given) > 1:
        raise SimulatorError("it answered with both `input` and `message`; one of them is what the user says")
    for key, text in given.items():
        if not isinstance(text, str):
            raise SimulatorError(f"its `{key}` is {value_text(text, _SHOWN)}, not text")
        return text
    return ""


def _problem(text: str, conversation: Sequence[dict[str, Any]]) -> str | None:
    """Why a message can't be the user's; none if it can."""
    if label := _OTHER_SPEAKER.match(text):
        return (
            f"it speaks as someone other than the user: the message begins with {value_text(label[0].strip(), _SHOWN)}"
        )
    try:
        inner = read_whole(text) if text.lstrip().startswith("{") else MISSING
    except SearchCutShort as error:
        return f"it is JSON that could not be read: {error}"
    if isinstance(inner, dict) and inner.get("role") not in (None, "user"):
        role = value_text(inner["role"], _SHOWN)
        return f"it speaks as someone other than the user: the message is one of the role {role}"
    normal = comparable(text)
    answers = [_normal_content(one) for one in conversation if one.get("role") == "assistant"]
    if answers and normal == answers[-1] and len(normal) >= _LONG_MESSAGE:
        return "it repeats the agent's last answer word for word"
    before = [_normal_content(one) for one in conversation if one.get("role") == "user"][1 - MOST_REPEATS :]
    if len(before) == MOST_REPEATS - 1 and all(one == normal for one in before):
        return f"it says the same {MOST_REPEATS} turns in a row: {value_text(text, _SHOWN)}"
    return None


def _normal_content(message: dict[str, Any]) -> str:
    return comparable(content_text(message.get("content")))
