"""Threads that nobody waits for."""

import asyncio
import subprocess
import sys
import threading
import time
import tracemalloc

import pytest
from tests.agents.support.talk import run
from tests.waiting import WAIT_LIMIT, until, until_async

from atp.usercode import threads
from atp.usercode.threads import DaemonExecutor, in_thread


def about(a: int, b: int = 0) -> tuple[int, int, bool]:
    time.sleep(0.001)
    return a, b, threading.current_thread().daemon


def test_in_thread() -> None:
    async def scene() -> None:
        assert await in_thread(about, 1, b=2) == (1, 2, True)
        with pytest.raises(SystemExit):
            await in_thread(sys.exit, 3)

    run(scene())


def test_left_to_itself_when_cancelled() -> None:
    async def scene() -> None:
        began = threading.Event()

        def block() -> None:
            began.set()
            time.sleep(3600)

        task = asyncio.ensure_future(in_thread(block))
        await until_async(began.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(scene())


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.05)

    async def scene() -> None:
        await asyncio.gather(*[in_thread(time.sleep, 0.1) for _ in range(20)])

    before = {thread for thread in threading.enumerate() if thread.name == "atp-agent"}
    run(scene())
    until(lambda: {thread for thread in threading.enumerate() if thread.name == "atp-agent"} <= before)
    assert asyncio.run(in_thread(lambda: 7)) == 7


def test_many_at_a_time() -> None:
    async def scene() -> list[tuple[int, int, bool]]:
        return await asyncio.gather(*[in_thread(about, number) for number in range(300)])

    assert [number for number, *_ in run(scene())] == list(range(300))


def test_executor_of_a_loop() -> None:
    async def scene() -> None:
        asyncio.get_running_loop().set_default_executor(DaemonExecutor())
        assert await asyncio.to_thread(lambda: threading.current_thread().daemon)
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)

    run(scene())


def test_executor_holds_up_nothing() -> None:
    code = """
import asyncio, time
from atp.usercode.threads import DaemonExecutor
async def main():
    asyncio.get_running_loop().set_default_executor(DaemonExecutor())
    try:
        await asyncio.wait_for(asyncio.to_thread(time.sleep, 3600), 0.1)
    except TimeoutError:
        print("timeout")
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_LIMIT, check=False)
    assert (done.stdout, done.stderr) == ("timeout\n", "")


class HostileText(str):
    def __len__(self) -> int:
        raise KeyboardInterrupt

    encode = __add__ = __getitem__ = __format__ = splitlines = replace = __len__  # type: ignore[assignment]


class HostileName(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        sys.exit(0)


class Hostile(Exception, metaclass=HostileName):
    def __str__(self) -> str:
        return HostileText("why")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Hostile(), "Hostile: why"),
        (ValueError("\ud800 half"), r"ValueError: \ud800 half"),
        (ValueError("ü"), "ValueError: ü"),
    ],
)
def test_the_text_of_an_exception_is_plain(error: Exception, text: str) -> None:
    raised = threads.Raised(error)
    assert str(raised) == text
    assert type(str(raised)) is str
    str(raised).encode()
    raised.traceback.encode()


class Opaque(Exception):
    def __getattribute__(self, name: str) -> object:
        sys.exit(0)


def test_an_exception_whose_attributes_exit_is_an_outcome_and_its_thread_serves_again() -> None:
    def fail() -> None:
        raise Opaque

    async def scene() -> None:
        outcome = await asyncio.wait_for(threads.Thread().call(fail, last=True), WAIT_LIMIT)
        assert str(outcome) == "Opaque"
        assert outcome.is_a(Opaque)
        assert not outcome.is_a(StopIteration)
        assert await in_thread(about, 1) == (1, 0, True)

    run(scene())


def raised_by(code: str) -> threads.Raised:
    try:
        exec(code, {"size": 20_000_000})
    except Exception as error:
        return threads.Raised(error)
    raise AssertionError("it raised nothing")


@pytest.mark.parametrize(
    ("code", "copies"),
    [
        ("raise ValueError('y' * size)", 0),
        ("raise ValueError('why') from ValueError('y' * size)", 1),
    ],
)
def test_a_long_text_of_an_exception_is_cut_before_it_is_copied(code: str, copies: int) -> None:
    raised = raised_by(code)
    tracemalloc.start()
    try:
        described = raised.describe()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < copies * 20_000_000 + 5_000_000
    assert len(str(described)) < 2 * threads.LONGEST_TEXT
    assert len(described.traceback) < 3 * threads.LONGEST_TEXT
    assert "Traceback (most recent call last):\n  File" in described.traceback
    assert "\nValueError: " in described.traceback[-2 * threads.LONGEST_TEXT :]
