"""The simulated user."""

from typing import Any


def speak(told: dict[str, Any]) -> dict[str, Any]:
    """Say what the user says next."""
    heard = told["conversation"][-1]["content"] if told["conversation"] else ""
    if "submitted" in heard:
        return {"input": "", "goal_achieved": True}
    if "Shall I" in heard:
        return {"input": "Yes, do"}
    return {"input": "310 euros for a hotel" if heard else "I have an expense"}
