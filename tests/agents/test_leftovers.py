"""What is left of a run that was killed is found and ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents.support.talk import HERE, Talk, cli
from tests.waiting import until

from atp.agents.leftovers import Forks, end_leftovers, marked
from atp.usercode.exits import foreign

ROOT = HERE.parents[2]


def wait_for(talk: Talk, number: int) -> None:
    until(lambda: len(talk.alive()) >= number)


@pytest.fixture(autouse=True)
def nothing_left(talk: Talk) -> Iterator[None]:
    yield
    assert talk.alive() == []


def test_after_a_kill_9_of_atp_itself(talk: Talk, tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = f"""
import asyncio, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from atp.agents.adapter import AdapterContext
from tests.agents.support.talk import Talk, cli
from tests.waiting import until_async
import os
talk = Talk(Path({str(tmp_path)!r}))
talk.around = AdapterContext(base=talk.folder, environment=dict(os.environ), marker={talk.marker!r})

async def ask():
    turn = asyncio.ensure_future(talk.ask(cli("detaches_and_sleeps")))
    await until_async(lambda: talk.events)
    Path({str(told)!r}).touch()
    await turn

asyncio.run(ask())
"""
    atp = subprocess.Popen([sys.executable, "-c", code])
    until(told.exists)  # a command that is still to write to its pipe would end when nobody reads it
    wait_for(talk, 3)
    atp.send_signal(signal.SIGKILL)
    atp.wait()
    assert len(talk.alive()) == 3
    assert end_leftovers(talk.marker) == 3
    assert talk.alive() == []
    assert end_leftovers(talk.marker) == 0


def test_only_those_with_the_very_marker(talk: Talk) -> None:
    environment = {**os.environ, "ATP_RUN": f"{talk.marker}-2", "OTHER": f"ATP_RUN={talk.marker}"}
    other = subprocess.Popen(["sleep", "30"], env=environment)
    mine = subprocess.Popen(["sleep", "30"], env={"ATP_RUN": talk.marker})
    try:
        wait_for(talk, 1)
        assert list(marked(talk.marker)) == [mine.pid]
        assert end_leftovers(talk.marker) == 1
        assert mine.wait() == -signal.SIGKILL
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_those_that_are_born_meanwhile(talk: Talk) -> None:
    script = "while true; do sleep 30 & sleep 0.01; done"
    fork = subprocess.Popen(["sh", "-c", script], env={**os.environ, "ATP_RUN": talk.marker}, start_new_session=True)
    wait_for(talk, 5)  # one of them may be the short sleep, which is over soon
    assert end_leftovers(talk.marker) >= 4
    fork.wait()


def test_agents_share_nothing_but_the_run(talk: Talk) -> None:
    """Ending one trial's processes must not end those of another trial of the same run."""
    import asyncio

    async def scene() -> None:
        adapter = talk.adapter(cli("detaches_and_sleeps"))
        began = asyncio.Event()
        first = asyncio.ensure_future(adapter.turn(talk.request(emit=lambda _: began.set())))
        await began.wait()
        await adapter_of_forks.turn(talk.request())
        assert len(talk.alive()) == 3
        assert not first.done()
        first.cancel()
        await asyncio.wait({first})

    adapter_of_forks = talk.adapter(cli("detaches"))
    asyncio.run(scene())


def ended(fork: int) -> int:
    """Wait for a fork; return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])


def daemon(tell: int) -> None:
    """Leave the process group and every open file, as daemons do, and fork once more."""
    os.setsid()
    os.closerange(0, tell)
    os.closerange(tell + 1, os.sysconf("SC_OPEN_MAX"))
    if not os.fork():
        os.write(tell, f"{os.getpid()} ".encode())
        signal.pause()
    os.write(tell, f"{os.getpid()} ".encode())
    signal.pause()


def test_forks_are_ended_also_those_that_have_closed_every_file(talk: Talk) -> None:
    forks = Forks()
    heard, tell = os.pipe()
    if not (fork := os.fork()):
        daemon(tell)
    os.close(tell)
    said = b""
    while said.count(b" ") < 2:
        said += os.read(heard, 100)
    assert all(int(pid) in forks for pid in said.split())
    assert end_leftovers(talk.marker, forks=forks) == 2
    assert ended(fork) == -signal.SIGKILL
    assert os.read(heard, 100) == b""  # nobody is left who could write
    os.close(heard)


def test_a_fork_is_known_before_it_has_run(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that forked may look for forks at once, when on a busy machine the fork has done nothing yet."""
    own = os.getpid()
    monkeypatch.setattr("os.getpid", lambda: own)  # what the fork records is not its own number
    forks = Forks()
    if not (fork := os.fork()):
        signal.pause()
    assert fork in forks
    assert end_leftovers(talk.marker, forks=forks) == 1
    assert ended(fork) == -signal.SIGKILL


def test_a_process_that_got_the_number_of_a_fork_is_not_ended(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    forks = Forks()
    if not (fork := os.fork()):
        signal.pause()
    until(lambda: fork in forks)
    later = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 10**12  # the fork may be recording itself only now
    with monkeypatch.context() as patched:
        patched.setattr("atp.agents.leftovers._started_ns", lambda _: later)
        assert end_leftovers(talk.marker, forks=forks) == 0
    assert end_leftovers(talk.marker, forks=forks) == 1
    assert ended(fork) == -signal.SIGKILL


def test_forks_of_the_program_itself_are_not_those_of_the_users_code(talk: Talk) -> None:
    forks = Forks(only_of_user_code=True)
    if not (mine := os.fork()):
        signal.pause()
    with foreign():
        if not (users := os.fork()):
            signal.pause()
    until(lambda: users in forks)
    assert end_leftovers(talk.marker, forks=forks) == 1
    assert ended(users) == -signal.SIGKILL
    assert mine not in forks
    os.kill(mine, signal.SIGTERM)
    assert ended(mine) == -signal.SIGTERM
