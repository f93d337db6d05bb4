"""An agent for the documents' examples, in every form: a function, a coroutine, a generator, a command.

It needs nothing but Python, so that it can be named as a file (`expense.py:sync`) and started as one.
"""

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

KEYWORDS = {"keywords": ["keyword1", "keyword2"]}


def answer(messages: list[dict[str, Any]]) -> tuple[Any, list[dict[str, Any]]]:
    """What it says, and the tools it calls for it."""
    content = messages[-1]["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    said = " ".join(part.get("text", "") for part in parts)
    if any(part["type"] == "image" for part in parts):
        return "The receipt's amount is $42", []
    if said.startswith("Business travel to"):
        return "I'll create it. Please confirm.", [{"name": "create_expense", "arguments": {"amount": 3500}}]
    if said.startswith(("Yes", "Business travel,")):
        call = {"name": "create_expense", "arguments": {"amount": 3500}, "result": "EXP-2025-001"}
        return "Expense submitted. Reference: EXP-2025-001", [call]
    known: dict[str, Any] = {
        "Hello": 'Hi! {"need_search": false}',
        "I want to submit an expense": "What type of expense?",
        "What's the weather?": 'Let me see:\n```json\n{"need_search": true}\n```',
        "Calculate 2+2": {"need_search": False, "confidence": 0.99},
        "Text input": KEYWORDS,
    }
    return known.get(said, f"You said: {said}"), []


def sync(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """A plain function."""
    output, calls = answer(messages)
    return {"output": output, "tool_calls": calls}


async def asynchronous(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """A coroutine."""
    return sync(messages)


async def streaming(messages: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """An async generator that tells of its tools as events."""
    output, calls = answer(messages)
    for event in events(calls):
        yield event
    yield {"output": output}


def events(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tool calls as the protocol tells of them."""
    payloads = [{"tool": one["name"], "input": one["arguments"], "output": one["result"]} for one in calls]
    return [{"event_type": "tool_call", "payload": one, "sequence": number} for number, one in enumerate(payloads)]


def response(request: dict[str, Any], output: Any) -> dict[str, Any]:
    """The response of the protocol."""
    return {"version": "1.0", "task_id": request["task_id"], "status": "completed", "output": output}


def command() -> None:
    """The request on stdin, events on stderr, the response on stdout."""
    request = json.load(sys.stdin)
    output, calls = answer(request["task"]["input_data"]["messages"])
    for event in events(calls):
        sys.stderr.write(f"{json.dumps(event)}\n")
    sys.stdout.write(json.dumps(response(request, output)))


if __name__ == "__main__":
    command()
