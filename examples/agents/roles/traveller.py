"""A simulated user in Python. It is called before each of the user's messages, with what was said so far."""

import json
from typing import Any


def speak(prompt: str) -> dict[str, Any]:
    """What the user says next: a simulator is told its case's metadata and the conversation as JSON."""
    told = json.loads(prompt)
    heard = told["conversation"][-1]["content"] if told["conversation"] else ""
    if "EXP-" in heard:
        return {"input": "", "goal_achieved": True}
    if "Shall I file it?" in heard:
        return {"input": "Yes please"}
    if "how much" in heard:
        return {"input": f"A hotel, {told['amount']} euros"}
    return {"input": "I am back from a trip"}
