"""A simulator's answer: what the simulated user says next, and the ways in which it isn't that."""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from atp.base.found_json import MISSING, read_whole
from atp.base.near import near_miss
from atp.base.text import cut
from atp.roles.judge.record import content_text
from atp.roles.player import RoleError
from atp.suite.result import Usage

KEYS = ("input", "message", "goal_achieved", "reasoning")
MOST_REPEATS = 3
"""The same message so many turns running is a simulator that goes round in circles."""
_LONG_ENOUGH = 20
"""Characters: a user may well echo an agent's "Yes"."""
_OTHER_SPEAKER = re.compile(
    r"[\s*_#>\[(<|]*(ai|ai[ _-]?assistant|assistant|agent|bot|chatbot|system|developer|tool)[\s*_\])>|]*:",
    re.IGNORECASE,
)


class SimulatorError(RoleError):
    """A simulator that could not be asked, or broke its contract. The agent is not to blame."""


class SimulatorSays(Struct, kw_only=True):
    """What the simulated user does next."""

    input: str = ""
    """What they say; nothing if their goal is achieved and they have nothing left to say."""
    goal_achieved: bool = False
    """They have what they wanted."""
    reasoning: str = ""
    """Why."""
    usage: Usage = field(default_factory=Usage)
    """What the simulator used. Nothing of it is the agent's."""


def read_says(data: Any, conversation: Sequence[dict[str, Any]]) -> SimulatorSays:
    """The answer, if it keeps the contract of document 5. Raises `SimulatorError`."""
    if not isinstance(data, dict):
        raise SimulatorError(f"it answered {_cut(data)}, which is no JSON object with `input` and `goal_achieved`")
    for key in data:
        if key not in KEYS:
            near = near_miss(str(key), KEYS)
            raise SimulatorError(f"it answered with the unknown key `{_cut(key)}`" + (f"; `{near}`?" if near else ""))
    text, achieved, reasoning = _message(data), data.get("goal_achieved"), data.get("reasoning")
    if not isinstance(achieved, bool | None):
        raise SimulatorError(f"its `goal_achieved` is {_cut(achieved)}, not true or false")
    if not isinstance(reasoning, str | None):
        raise SimulatorError("its `reasoning` is not text")
    if not text.strip():
        if not achieved:
            raise SimulatorError("it says nothing, although its goal is not achieved")
        text = ""
    elif breach := _breach(text, conversation):
        raise SimulatorError(breach)
    return SimulatorSays(input=text, goal_achieved=bool(achieved), reasoning=reasoning or "")


def _message(data: dict[str, Any]) -> str:
    given = {key: data[key] for key in ("input", "message") if data.get(key) is not None}
    if len(given) > 1:
        raise SimulatorError("it answered with both `input` and `message`; one of them is what the user says")
    for key, text in given.items():
        if not isinstance(text, str):
            raise SimulatorError(f"its `{key}` is {_cut(text)}, not text")
        return text
    return ""


def _breach(text: str, conversation: Sequence[dict[str, Any]]) -> str | None:
    """How a message fails to be one of the user's."""
    if label := _OTHER_SPEAKER.match(text):
        return f"it speaks as somebody else than the user: the message begins with {_cut(label[0].strip())}"
    inner = read_whole(text) if text.lstrip().startswith("{") else MISSING
    if isinstance(inner, dict) and inner.get("role") not in (None, "user"):
        return f"it speaks as somebody else than the user: the message is one of the role {_cut(inner['role'])}"
    words = _normal(text)
    answers = [_spoken(one) for one in conversation if one.get("role") == "assistant"]
    if answers and words == answers[-1] and len(words) >= _LONG_ENOUGH:
        return "it repeats the agent's last answer word for word"
    before = [_spoken(one) for one in conversation if one.get("role") == "user"][1 - MOST_REPEATS :]
    if len(before) == MOST_REPEATS - 1 and all(one == words for one in before):
        return f"it says the same {MOST_REPEATS} turns running: {_cut(text)}"
    return None


def _spoken(message: dict[str, Any]) -> str:
    return _normal(content_text(message.get("content")))


def _normal(text: str) -> str:
    return " ".join(text.split())


def _cut(value: Any) -> str:
    return cut(repr(value), 100)
