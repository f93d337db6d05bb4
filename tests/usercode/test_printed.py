"""What the user's code prints: kept up to a bound, at a cost that grows with what is printed (finding A26)."""

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest
from tests.agents.support.talk import run
from tests.waiting import WAIT_LIMIT

from atp.usercode.call import Hosting, call
from atp.usercode.exits import LIVE_THREADS, foreign
from atp.usercode.printed import LONGEST, Printed, capture_threads


class Text(str):
    """A text that counts how often it is copied into another."""

    __slots__ = ()
    copied = 0

    def __radd__(self, other: str) -> str:
        Text.copied += len(other)
        return other + str(self)


def test_pieces_without_a_line_end_are_not_joined_again_and_again() -> None:
    printed = Printed()
    for _ in range(200_000):
        printed.write(Text("tok "))
    assert Text.copied == 0
    (line,) = printed.finish()
    assert line.startswith("tok tok ")
    assert line.endswith("(800000 characters)")
    assert len(line) < LONGEST + 100


def test_lines_in_pieces() -> None:
    printed = Printed()
    for piece in ("a", "b\nc\r\n", "\n", "", "d"):
        printed.write(piece)
    assert printed.finish() == ["ab", "c", "", "d"]
    printed.write("too late")
    assert printed.finish() == ["ab", "c", "", "d"]


class Background:
    """A function of the user's that starts a thread, which prints whenever it is let."""

    def __init__(self) -> None:
        self._go = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __call__(self) -> None:
        sys.stdout.write("in the call\n")
        self._thread.start()

    def _run(self) -> None:
        self._go.wait()
        sys.stdout.write("after the call\n")

    def end(self) -> None:
        self._go.set()
        self._thread.join(WAIT_LIMIT)
        assert not self._thread.is_alive()


@contextmanager
def host() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Streams of the host. Threads that other tests have left behind are not counted."""
    left = set(LIVE_THREADS)
    LIVE_THREADS.clear()
    try:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            yield out, err
    finally:
        LIVE_THREADS.update(left)


def test_the_hosts_streams_stay_what_they_are() -> None:
    with host() as (out, _):
        lines: list[str] = []
        with Hosting():
            run(call(print, ("of the agent",), log=lines.append))
            sys.stdout.write("of the host\n")
            assert sys.stdout is out
        assert lines == ["of the agent"]
        assert out.getvalue() == "of the host\n"
        assert not vars(out)


def test_what_a_thread_prints_after_its_call_never_reaches_the_host() -> None:
    with host() as (out, _):
        background, lines = Background(), list[str]()
        with Hosting():
            run(call(background, log=lines.append))
        sys.stdout.write("of the host\n")
        background.end()
        assert out.getvalue() == "of the host\n"
        assert lines == ["in the call"]
        with Hosting():
            pass
        assert not vars(out)


def test_a_thread_that_prints_without_end_is_ended_also_after_the_run() -> None:
    with host() as (out, _):

        def print_for_ever() -> None:
            while True:
                sys.stdout.write("tick")

        thread = threading.Thread(target=print_for_ever, daemon=True)
        with Hosting():
            run(call(thread.start))
        sys.stdout = sys.__stdout__  # as pytest does between two phases of a test
        thread.join(WAIT_LIMIT)
        assert not thread.is_alive()
        assert out.getvalue() == ""


def test_closing_and_flushing_are_the_hosts_affair() -> None:
    with host() as (out, _), Hosting():
        run(call(lambda: (sys.stdout.flush(), sys.stdout.close())))
        assert not out.closed
        sys.stdout.flush()
        sys.stdout.close()
        assert out.closed


def test_threads_that_a_module_starts_when_it_is_imported() -> None:
    with host() as (out, err):
        early, late = Background(), Background()
        with foreign() as code, capture_threads(code, lambda: sys.stderr):
            early()
            late()
            early.end()
        late.end()
        assert out.getvalue() == "in the call\nin the call\n"
        assert err.getvalue() == "after the call\n"


def test_a_stream_that_cannot_be_changed_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slots:
        __slots__ = ("text",)

        def __init__(self) -> None:
            self.text = ""

        def write(self, text: str) -> int:
            self.text += text
            return len(text)

        def flush(self) -> None: ...

        def close(self) -> None: ...

    stream = Slots()
    monkeypatch.setattr(sys, "stdout", stream)
    with Hosting():
        run(call(print, ("text",)))
    assert stream.text == "text\n"
