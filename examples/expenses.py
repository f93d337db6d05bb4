"""A small agent in Python, which files expenses: a function that gets the conversation and gives back its answer.

`messages`, `prompt`, `task`, `context`, `options` and `workspace` are on offer; a function takes those it names.
"""

import re
from typing import Any

Message = dict[str, Any]


def answer(messages: list[Message]) -> str | dict[str, Any]:
    """Propose what the user tells, and file it once the user has agreed."""
    said = messages[-1]["content"].lower()
    proposed = re.search(r"(\d+) EUR", messages[-2]["content"]) if len(messages) > 1 else None
    if proposed and re.match(r"(yes|ok|please do)\b", said):
        call = {"name": "create_expense", "arguments": {"amount": int(proposed[1]), "currency": "EUR"}}
        return {"output": f"Filed as EXP-{int(proposed[1]):04}.", "tool_calls": [call], "usage": {"total_tokens": 90}}
    if amount := re.search(r"(\d+) euros?", said):
        return f"{amount[1]} EUR, today. Shall I file it?"
    return "What did you pay for, and how much was it?"
