"""A stand-in for your agent: it answers greetings and adds whole numbers."""

import re


def answer(messages: list[dict[str, str]]) -> dict[str, object]:
    """Called once a turn with the conversation so far. Replace it with a call of your own agent.

    A plain text will do, too. `usage` is what limits such as `max_steps` look at.
    """
    return {"output": reply(messages), "usage": {"steps": 1}}


def reply(messages: list[dict[str, str]]) -> str:
    """The text of the answer."""
    prompt = messages[-1]["content"]
    numbers = [int(number) for number in re.findall(r"\d+", prompt)]
    if "+" in prompt and numbers:
        return f'{{"sum": {sum(numbers)}}}'
    return "Hello! What can I do for you?"
