"""What code that is not ours is refused: to end the process, and to close its streams."""

import atexit
import io
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.agents.support.talk import run

from atp.usercode.call import Raised, call
from atp.usercode.exits import EndsProcess, foreign


def raised(function: Callable[[], Any]) -> Raised:
    with pytest.raises(Raised) as found:
        run(call(function))
    return found.value


@pytest.mark.parametrize(
    ("close", "said"),
    [
        (lambda: os.close(0), "os.close(0)"),
        (lambda: os.closerange(0, 1), "os.closerange(0, 1)"),
    ],
)
def test_closing_a_stream_is_refused(close: Callable[[], None], said: str) -> None:
    error = raised(close)
    assert isinstance(error.error, EndsProcess)
    assert f"{said} would have closed the standard streams" in str(error)
    os.fstat(0)


def test_a_stream_that_was_closed_all_the_same_is_open_again() -> None:
    error = raised(lambda: io.FileIO(0).close())
    assert str(error) == "ClosedStreams: it closed stdin of the process that runs the tests"
    os.fstat(0)


def test_our_own_code_and_other_descriptors_may_be_closed() -> None:
    copy = os.dup(0)
    run(call(os.close, (copy,)))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(copy)
    copies = os.dup(0), os.dup(0)
    os.dup2(0, copies[1])
    os.closerange(copies[0], copies[0] + 1)
    os.close(copies[1])


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[Callable[..., Any]]:
    """What is registered to be called at the end of the process."""
    found: list[Callable[..., Any]] = []
    monkeypatch.setattr("atp.usercode.exits._REAL_REGISTER", lambda function, *_args: found.append(function))
    return found


def test_what_is_registered_for_the_end_of_the_process_is_refused_the_same(
    registered: list[Callable[..., Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    with foreign() as code:
        assert atexit.register(os._exit, 0) is os._exit
        thread = threading.Thread(target=lambda: atexit.register(os.abort))
        thread.start()
        thread.join()
    assert registered == [os._exit, os.abort]  # so that `atexit.unregister` finds them
    registered[0](0)
    registered[1]()
    assert capsys.readouterr().err == (
        "atp: at the end of the process: os._exit(0) would have ended the tests themselves\n"
        "atp: at the end of the process: os.abort() would have ended the tests themselves\n"
    )
    assert len(code.refused) == 2


def test_what_our_own_code_registers_is_as_it_was(registered: list[Callable[..., Any]]) -> None:
    with foreign():
        pass
    atexit.register(len, "")
    assert registered[0] is len
