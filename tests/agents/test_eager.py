"""Tasks that begin at once, on every version of Python alike."""

import asyncio
import contextvars

import pytest

from atp.usercode.eager import start

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("NAME", default="outer")


def test_it_has_begun_before_anything_else_runs() -> None:
    seen: list[str] = []

    async def inner() -> str:
        seen.append("began")
        await asyncio.sleep(0)
        seen.append("went on")
        return "done"

    async def outer() -> str:
        task = start(inner())
        seen.append("started")
        return await task

    assert asyncio.run(outer()) == "done"
    assert seen == ["began", "started", "went on"]


def test_one_that_ends_at_once_has_ended() -> None:
    async def inner() -> int:
        return 7

    async def outer() -> int:
        task = start(inner())
        assert task.done()
        return task.result()

    assert asyncio.run(outer()) == 7


def test_what_it_raises_comes_when_it_is_asked_for() -> None:
    async def inner() -> None:
        raise ValueError("no")

    async def outer() -> None:
        with pytest.raises(ValueError, match="no"):
            await start(inner())

    asyncio.run(outer())


def test_while_it_begins_it_is_the_task_that_runs() -> None:
    async def inner() -> bool:
        began = asyncio.current_task()
        await asyncio.sleep(0)
        return began is asyncio.current_task()

    async def outer() -> None:
        own = asyncio.current_task()
        assert await start(inner())
        assert asyncio.current_task() is own

    asyncio.run(outer())


def test_a_timeout_that_it_sets_as_it_begins_is_its_own() -> None:
    async def inner() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        except TimeoutError:
            return "timed out"
        return "slept"

    async def outer() -> str:
        return await start(inner())

    assert asyncio.run(outer()) == "timed out"


def test_one_that_cancels_itself_as_it_begins() -> None:
    cleaned: list[str] = []

    async def inner() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(10)
        finally:
            cleaned.append("up")

    async def outer() -> None:
        with pytest.raises(asyncio.CancelledError):
            await start(inner())

    asyncio.run(outer())
    assert cleaned == ["up"]


def test_it_runs_in_the_context_it_is_given() -> None:
    async def inner() -> tuple[str, str]:
        first = NAME.get()
        await asyncio.sleep(0)
        return first, NAME.get()

    async def outer() -> tuple[str, str]:
        context = contextvars.copy_context()
        context.run(NAME.set, "inner")
        return await start(inner(), context)

    assert asyncio.run(outer()) == ("inner", "inner")
    assert NAME.get() == "outer"
