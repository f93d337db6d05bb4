"""A stand-in for your agent: it welcomes visitors and remembers their names."""

import re


def answer(messages: list[dict[str, str]]) -> dict[str, object]:
    """Called once a turn with the conversation so far. Replace it with a call of your own agent.

    A plain text will do, too. `usage` says how many steps the agent took, which shows that it tells what it does.
    """
    return {"output": reply(messages), "usage": {"steps": 1}}


def reply(messages: list[dict[str, str]]) -> str:
    """The text of the answer."""
    said = [message["content"] for message in messages if message["role"] == "user"]
    names = re.findall(r"[Mm]y name is (\w+)", " ".join(said))
    if names:
        return f"Your name is {names[-1]}."
    return "Welcome to the museum of clocks! I can tell you the opening hours and what there is to see."
