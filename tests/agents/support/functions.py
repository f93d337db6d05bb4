"""Agents that are Python functions."""

# ruff: noqa: T201
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any

SEEN: list[Any] = []
FOREVER = 3600
"""Seconds; longer than any test waits."""


def echo(prompt: str) -> str:
    return f"You said: {prompt}"


async def async_echo(prompt: str) -> str:
    await asyncio.sleep(0)
    return f"You said: {prompt}"


def everything(**given: Any) -> dict[str, Any]:
    return {**given, "workspace": str(given["workspace"])}


def by_place(prompt: str, /, messages: list[Any], *, options: dict[str, Any], size: int = 3) -> list[Any]:
    return [prompt, len(messages), options, size]


def unknown_parameter(prompt: str, mesages: list[Any]) -> str:
    return prompt


def meddle(messages: list[dict[str, Any]], options: dict[str, Any], context: dict[str, Any]) -> int:
    before = len(messages)
    messages.append({"role": "assistant", "content": "?"})
    messages[0]["content"] = "changed"
    options.setdefault("seen", []).append(1)
    context.clear()
    return before


def parts(workspace: Path) -> dict[str, Any]:
    return {
        "output": {"sum": 3},
        "tool_calls": [
            {"name": "add", "arguments": {"a": 1}, "result": 3},
            {"name": "save", "error": "disk full"},
        ],
        "artifacts": [{"type": "file", "path": "out/a.txt", "content": "A"}],
        "usage": {"input_tokens": 5, "total_steps": 2, "cost_usd": 0.5, "colour": "red"},
        "state": {"count": 1},
    }


RETURNS: dict[str, Any] = {
    "none": None,
    "number": 3,
    "list": [1, {"a": None}],
    "own shape": {"output": 1, "more": 2},
    "empty": {},
    "tuple": (1, 2),
    "set": {1, 2},
    "object": object(),
    "nan": {"a": [float("nan")]},
    "key": {1: 2},
    "surrogate": "\ud800",
    "bytes": b"x",
    "bad calls": {"tool_calls": [{"arguments": {}}]},
    "bad usage": {"usage": {"input_tokens": -1}},
    "bad artifact": {"artifacts": [{"type": "file", "path": "../x", "content": ""}]},
    "function": echo,
}
ring: list[Any] = []
ring.append(ring)
RETURNS["ring"] = ring


def returns(prompt: str) -> Any:
    return RETURNS[prompt]


async def events(prompt: str) -> AsyncIterator[Any]:
    yield {"event_type": "tool_call", "payload": {"tool": "search", "input": {"q": prompt}, "output": [1]}}
    yield {"type": "progress", "payload": {"current_step": 2}}
    yield "Hel"
    await asyncio.sleep(0)
    yield "lo"
    yield {"usage": {"input_tokens": 1}}
    yield {"usage": {"input_tokens": 2}}


def sync_events(prompt: str) -> Generator[Any, None, dict[str, Any]]:
    for step in range(100):
        SEEN.append(step)
        yield {"event_type": "progress", "payload": {"current_step": step}}
    return {"output": prompt, "state": "done"}


async def many_events() -> AsyncIterator[Any]:
    try:
        for step in range(100):
            SEEN.append(step)
            yield {"event_type": "progress", "payload": {"current_step": step}}
    finally:
        SEEN.append("closed")


def answers_then_whole() -> Iterator[Any]:
    yield "a draft"
    yield {"text": "the answer"}


def bad_event() -> Iterator[Any]:
    yield {"event_type": "nonsense", "payload": {}}


def event_without_payload() -> Iterator[Any]:
    yield {"type": "tool_call", "tool": "x"}


def gives_generator(prompt: str) -> Any:
    return events(prompt) if prompt == "async" else sync_events(prompt)


def gives_coroutine(prompt: str) -> Any:
    return async_echo(prompt)


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, prompt: str) -> int:
        self.count += 1
        return self.count


class AsyncCounter(Counter):
    async def __call__(self, prompt: str) -> int:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().__call__(prompt)


counter = Counter()
other_counter = Counter()


class NeedsMore:
    def __init__(self, more: int) -> None: ...

    def __call__(self) -> None: ...


NOT_CALLABLE = 3
ERRORS: dict[str, BaseException] = {
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "cancelled": asyncio.CancelledError(),
    "generator": GeneratorExit(),
    "stop": StopIteration(1),
    "timeout": TimeoutError("mine"),
    "value": ValueError("bad\nnews"),
}


class Desk:
    def ask(self, messages: Any) -> str:
        return str(messages)


DESK = Desk()


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


ERRORS["mute"] = Mute()


def raises(prompt: str) -> None:
    if prompt == "recursion":
        raises(prompt)
    raise ERRORS[prompt]


async def async_raises(prompt: str) -> None:
    await asyncio.sleep(0)
    raises(prompt)


async def raises_in_stream(prompt: str) -> AsyncIterator[Any]:
    yield "so far"
    raises(prompt)


def raises_in_generator(prompt: str) -> Iterator[Any]:
    yield "so far"
    raises(prompt)


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


def blocks() -> None:
    SEEN.append("began")
    time.sleep(FOREVER)


def blocks_in_generator() -> Iterator[Any]:
    yield {"event_type": "progress", "payload": {}}
    SEEN.append("began")
    time.sleep(FOREVER)


async def waits() -> None:
    try:
        SEEN.append("began")
        await asyncio.sleep(FOREVER)
    finally:
        SEEN.append("cleaned up")


async def refuses() -> None:
    """Retries, whatever happens: a bare `except` in a loop."""
    SEEN.append("began")
    while True:
        try:
            await asyncio.sleep(FOREVER)
        except BaseException:
            SEEN.append("refused")


def prints(prompt: str) -> str:
    print("line", prompt)
    print("and", "more", end="")
    print("to stderr", file=sys.stderr)
    return "printed"


async def async_prints(prompt: str) -> AsyncIterator[Any]:
    print("one", prompt)
    yield {"event_type": "progress", "payload": {}}
    print("two", prompt)
    yield "printed"


def prints_much() -> None:
    for number in range(5000):
        print(number)


def remembers(prompt: str, context: dict[str, Any]) -> dict[str, Any]:
    said = [*(context["state"] or []), prompt]
    return {"output": f"{context['session_id']}: {said}", "state": said}


def configured(options: dict[str, Any], context: dict[str, Any]) -> Any:
    return [options, context["config"]]
