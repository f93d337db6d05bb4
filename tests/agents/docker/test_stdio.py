"""Agents in containers, on a real engine: what they get, what they may do, and that nothing of them is left."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.docker_engine import TestEngine
from tests.agents.support.docker_images import FOREIGN, PYTHON
from tests.agents.support.docker_talk import boxed, shell, use
from tests.agents.support.talk import LimitPassed, Talk, run

from atp.agents.adapter import Adapter, AgentError, AgentTimeout, Reply
from atp.base.errors import ConfigurationError
from atp.suite.capabilities import ONLY_ANSWERS


@pytest.fixture(autouse=True)
def nothing_left(talk: Talk, engine: TestEngine) -> Iterator[None]:
    """Whatever a test does, no container of its run is there afterwards."""
    use(talk, engine)
    yield
    assert engine.containers(f"atp.run={talk.marker}") == []


@pytest.fixture
def shared(talk: Talk) -> Path:
    """A folder that containers see as `/shared`."""
    folder = talk.folder / "shared"
    folder.mkdir()
    return folder


async def speaking(talk: Talk, engine: TestEngine) -> tuple[Adapter, "asyncio.Future[Reply]", dict[str, Any]]:
    """An agent in the midst of a turn, the turn, and its container."""
    began = asyncio.Event()
    adapter = talk.adapter(boxed("ignores_term"))
    await adapter.start()
    turn = asyncio.ensure_future(adapter.turn(talk.request(emit=lambda _: began.set())))
    await began.wait()
    (found,) = engine.containers(f"atp.run={talk.marker}")
    return adapter, turn, found


class TestWhatItGets:
    def test_request_and_response(self, talk: Talk) -> None:
        seen = run(talk.ask(boxed("context", "a b", environment={"MINE": "1"}), "Hi ☃")).output
        assert seen["request"]["task"]["description"] == "Hi ☃"
        assert seen["request"]["context"] == {
            "workspace_path": "/workspace",
            "tools_endpoint": None,
            "environment": {"MINE": "1"},
        }
        assert seen["argv"] == ["a b"]
        assert seen["cwd"] == "/workspace"
        assert (seen["env"]["MINE"], seen["env"]["OF_IMAGE"]) == ("1", "yes")
        assert not {name for name in seen["env"] if name.startswith(("ATP", "DOCKER"))}
        assert (seen["uid"], seen["gid"]) == (os.getuid(), os.getgid())

    def test_next_to_no_rights(self, talk: Talk) -> None:
        seen = run(talk.ask(boxed("context"))).output
        assert {int(value, 16) for value in seen["capabilities"].values()} == {0}
        assert seen["no_new_privileges"] == "1"
        assert seen["interfaces"] == ["lo"]

    def test_no_network_unless_asked_for(self, talk: Talk) -> None:
        async def scene(agent: Any) -> Any:
            server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            agent.config.command = ["tries", address]
            async with server:
                return (await talk.ask(agent)).output[address]

        assert run(scene(boxed())) == os.strerror(111)
        assert run(scene(boxed(network="host"))) == "well"

    def test_another_user_folder_and_entry_point(self, talk: Talk) -> None:
        talk.workspace.mkdir()
        talk.workspace.chmod(0o777)
        seen = run(talk.ask(boxed("context", user="1234:5678", working_dir="/tmp"))).output
        assert (seen["uid"], seen["gid"], seen["cwd"]) == (1234, 5678, "/tmp")
        agent = shell(":", protocol="text", entrypoint="/bin/busybox echo 'of the  entry'")
        agent.config.command = "and 'the  command'"
        assert run(talk.ask(agent)).output == "of the  entry and the  command"

    def test_mounts(self, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
        home = talk.folder / "home"
        for folder in ("data", "odd: name", "home/notes"):
            (talk.folder / folder).mkdir(parents=True)
            (talk.folder / folder / "file.txt").write_text(f"from {folder}")
        monkeypatch.setenv("HOME", str(home))
        (talk.folder / "one.txt").write_text("one")
        volumes = ["./data:/data:ro", "odd: name:/odd:rw", "~/notes:/notes", f"{talk.folder}/one.txt:/one.txt:ro"]
        paths = ["/data/file.txt", "/odd/file.txt", "/notes/file.txt", "/one.txt"]
        expected = ["from data", "from odd: name", "from home/notes", "one"]
        assert run(talk.ask(boxed("reads", *paths, volumes=volumes))).output == expected
        as_map = {"data": "/data:ro", "odd: name": "/odd", "~/notes": "/notes", "one.txt": "/one.txt"}
        assert run(talk.ask(boxed("reads", *paths, volumes=as_map))).output == expected
        tried = run(talk.ask(boxed("tries", "/data/file.txt", "/odd/new.txt", "/one.txt", volumes=volumes))).output
        assert tried == {
            "/data/file.txt": "Read-only file system",
            "/odd/new.txt": "well",
            "/one.txt": "Read-only file system",
        }
        assert (talk.folder / "odd: name/new.txt").read_text() == "written"

    def test_workspace_is_shared_over_turns(self, talk: Talk) -> None:
        async def scene() -> list[Any]:
            adapter = talk.adapter(boxed("counts_turns"))
            await adapter.start()
            try:
                return [(await adapter.turn(talk.request(turn=turn))).output for turn in (1, 2, 3)]
            finally:
                await adapter.close()

        assert run(scene())[-1] == [["1 s-1", "2 s-1", "3 s-1"], 1]
        written = talk.workspace / "turns.txt"
        assert (written.stat().st_uid, len(written.read_text().splitlines())) == (os.getuid(), 3)


class TestWhatItSays:
    def test_events_and_log(self, talk: Talk) -> None:
        assert run(talk.ask(boxed("events"))).output == "done"
        assert [one.type for one in talk.events] == ["tool_call", "reasoning", "progress"]
        assert talk.logs == ["starting up", '{"level": "info"}']

    def test_text(self, talk: Talk) -> None:
        agent = boxed("text", protocol="text")
        assert run(talk.ask(agent, "Hi")).output == r"You said: 'Hi\n' in s-1"
        assert talk.adapter(agent).capabilities == ONLY_ANSWERS
        assert talk.logs[0] == "thinking"

    def test_ten_megabytes_out_and_in(self, talk: Talk) -> None:
        assert run(talk.ask(boxed("large"))).output == "ü" * 5_000_000
        task = {"description": "x", "input_data": {"big": "y" * 10_000_000}}
        assert run(talk.ask(boxed("echo"), task=task, conversation=False)).output == "x"

    def test_one_that_does_not_listen(self, talk: Talk) -> None:
        task = {"description": "x", "input_data": {"big": "y" * 10_000_000}}
        assert run(talk.ask(boxed("deaf"), task=task, conversation=False)).output == "I don't listen"
        assert run(talk.ask(boxed("closes_stdin"), task=task, conversation=False)).output == "closed"

    def test_stopped_at_the_event_that_passes_a_limit(self, talk: Talk) -> None:
        talk.most_events = 3
        with pytest.raises(LimitPassed):
            run(talk.ask(boxed("many_events")))
        assert len(talk.events) == 4

    def test_a_broken_event_and_a_broken_response(self, talk: Talk) -> None:
        error = run(talk.fail(boxed("bad_event")))
        assert (error.blame, "at `$.tool`" in str(error)) == ("agent", True)
        error = run(talk.fail(boxed("junk")))
        assert (error.blame, error.raw) == ("agent", "Welcome to my agent!\n")


class TestHowItEnds:
    def test_exit_code(self, talk: Talk) -> None:
        error = run(talk.fail(boxed("exits_with", "7")))
        assert (error.blame, str(error)) == ("agent", "agent error: exit code 7: this is why")

    def test_exit_code_with_a_response(self, talk: Talk) -> None:
        error = run(talk.fail(boxed("exits_with_response")))
        assert str(error) == "agent error: exit code 1: no such city"
        assert error.reply is not None
        assert error.reply.usage is not None
        assert error.reply.usage.cost_usd == 0.25

    def test_a_signal(self, talk: Talk) -> None:
        error = run(talk.fail(shell("kill -SEGV $$; exit 139")))
        assert str(error) == f"agent error: exit code {128 + signal.SIGSEGV} (SIGSEGV)"

    def test_out_of_memory(self, talk: Talk) -> None:
        error = run(talk.fail(boxed("hogs", memory="48m")))
        assert error.blame == "agent"
        said = "agent error: out of memory: it needs more than `memory: 48m` (exit code 137 (SIGKILL)): hungry"
        assert str(error) == said

    def test_only_a_child_is_out_of_memory(self, talk: Talk) -> None:
        assert run(talk.ask(boxed("lets_a_child_hog", memory="48m"))).output == "survived"
        assert talk.logs[-1] == "a process in the container needed more than `memory: 48m` and was killed"

    def test_too_many_processes(self, talk: Talk) -> None:
        made, why = run(talk.ask(boxed("forks_many", pids=20))).output
        assert (made, why) == (19, "Resource temporarily unavailable")

    def test_the_time_of_one_request(self, talk: Talk) -> None:
        error = run(talk.fail(boxed("sleeps", timeout=1.5)))
        assert isinstance(error, AgentTimeout)
        assert str(error) == "timeout after 1.5s"

    def test_cancelled_at_any_time(self, talk: Talk, engine: TestEngine) -> None:
        """Before it is made, while it is being made or started, while it runs, and twice."""

        async def scene() -> None:
            adapter = talk.adapter(boxed("sleeps"))
            await adapter.start()
            turns = []
            for number in range(12):
                turns.append(asyncio.ensure_future(adapter.turn(talk.request())))
                await asyncio.sleep(number * 0.006)
            for _ in range(2):
                for turn in turns:
                    turn.cancel()
                await asyncio.sleep(0)
            await asyncio.wait(turns)
            assert all(turn.cancelled() for turn in turns)
            await adapter.close()
            assert engine.containers(f"atp.run={talk.marker}") == []

        run(scene())

    def test_cancelled_as_it_speaks(self, talk: Talk, engine: TestEngine) -> None:
        async def scene() -> None:
            adapter, turn, found = await speaking(talk, engine)
            assert found["Names"][0].startswith("/atp-my-agent-")
            assert found["State"] == "running"
            assert found["Labels"]["atp.case"] == "case-1"
            assert found["Labels"]["atp.pid"] == str(os.getpid())
            turn.cancel()
            await asyncio.wait({turn})
            assert engine.containers(f"atp.run={talk.marker}") == []
            await adapter.close()

        run(scene())

    def test_removed_by_somebody_else(self, talk: Talk, engine: TestEngine) -> None:
        """Which looks like an end by force, and must not be taken for one that the agent brought about."""

        async def scene() -> AgentError:
            adapter, turn, found = await speaking(talk, engine)
            await asyncio.to_thread(engine.ask, "DELETE", f"/containers/{found['Id']}?force=1")
            with pytest.raises(AgentError) as caught:
                await turn
            await adapter.close()
            return caught.value

        error = run(scene())
        assert error.blame == "environment"
        assert str(error) == "the container was removed by another program while it was in use"


class TestWhatCanBeWrong:
    def test_no_such_image(self, talk: Talk, engine: TestEngine) -> None:
        error = run(talk.fail(boxed(image="nobody/has-it:1")))
        assert error.blame == "environment"
        assert str(error) == (
            f"there is no image `nobody/has-it:1` on the container engine at {engine.url}: "
            "write `pull: true` to fetch it, or `build:` to build it"
        )

    def test_an_image_that_nobody_serves(self, talk: Talk) -> None:
        error = run(talk.fail(boxed(image="127.0.0.1:9/none:1", pull=True)))
        assert error.blame == "environment"
        assert str(error).startswith("the image `127.0.0.1:9/none:1` can't be fetched: ")

    def test_pull_fetches_nothing_that_is_there(self, talk: Talk) -> None:
        assert run(talk.ask(boxed("echo", image=PYTHON, pull=True))).output == "Hello"

    def test_another_architecture(self, talk: Talk, engine: TestEngine) -> None:
        theirs = engine.get(f"/images/{FOREIGN}/json")["Architecture"]
        ours = engine.get("/version")["Arch"]
        error = run(talk.fail(boxed(image=FOREIGN)))
        assert error.blame == "environment"
        assert str(error) == (
            f"the image is built for {theirs}, but the container engine runs {ours}: build it for {ours}"
        )

    def test_no_such_command(self, talk: Talk) -> None:
        error = run(talk.fail(boxed("/bin/nothing", image="atp-test/busybox")))
        assert error.blame == "environment"
        assert str(error).startswith("the container can't be started: exec: ")
        assert "stat /bin/nothing: no such file or directory" in str(error)

    def test_what_the_engine_refuses(self, talk: Talk) -> None:
        for config, words in (
            ({"network": "nowhere"}, "network nowhere not found"),
            ({"cpus": 4000}, "CPUs"),
            ({"memory": "1k"}, "memory"),
            ({"user": "nobody-knows-them"}, "nobody-knows-them"),
        ):
            error = run(talk.fail(boxed("echo", **config)))
            assert (error.blame, error.retryable) == ("environment", False)
            assert words in str(error)

    def test_nothing_to_mount(self, talk: Talk) -> None:
        with pytest.raises(ConfigurationError) as caught:
            talk.adapter(boxed("echo", volumes=["./gone:/data"]))
        assert str(caught.value) == f"`volumes`: there is no {talk.folder}/gone to mount"
        assert not (talk.folder / "gone").exists()


class TestMany:
    def test_twenty_at_a_time(self, talk: Talk, shared: Path) -> None:
        """Each waits for all the others, so they all live at the same time."""

        meet = "> /shared/$HOSTNAME; while set -- /shared/*; [ $# -lt 20 ]; do sleep 0.05; done; cat"

        async def scene() -> list[Any]:
            adapter = talk.adapter(shell(meet, protocol="text", volumes=["shared:/shared"], memory="64m"))
            await adapter.start()
            try:
                asked = [adapter.turn(talk.request(f"number {number}")) for number in range(20)]
                return [reply.output for reply in await asyncio.gather(*asked)]
            finally:
                await adapter.close()

        assert run(scene()) == [f"number {number}" for number in range(20)]
        assert len(list(shared.iterdir())) == 20


class TestBuild:
    def test_once_by_content(self, talk: Talk, engine: TestEngine) -> None:
        folder = talk.folder / "agent"
        folder.mkdir()
        (folder / "Dockerfile").write_text("FROM atp-test/busybox\nCOPY . /here\n")
        (folder / ".dockerignore").write_text("secret.*\n")
        (folder / "secret.key").write_text("key")
        (folder / "answer.txt").write_text("built")
        before = engine.tags()

        async def scene() -> list[Any]:
            agents = [shell("ls /here; cat /here/answer.txt", image=None, build="./agent", protocol="text")] * 3
            return [one.output for one in await asyncio.gather(*(talk.ask(agent) for agent in agents))]

        assert run(scene()) == ["Dockerfile\nanswer.txt\nbuilt"] * 3
        (built,) = engine.tags() - before
        assert built.startswith("atp-build:")
        made = [one for one in engine.get("/images/json?all=1") if "atp.build" in (one["Labels"] or {})]
        assert len([one for one in made if built in (one["RepoTags"] or ())]) == 1
        (folder / "secret.key").write_text("another key")
        run(scene())
        assert engine.tags() - before == {built}
        (folder / "answer.txt").write_text("again")
        assert run(scene())[0].endswith("again")
        assert len(engine.tags() - before) == 2

    @pytest.mark.parametrize(
        ("dockerfile", "words"),
        [
            ("FROM atp-test/busybox\nCOPY gone.py /agent.py", "gone.py"),
            ("FROM atp-test/busybox\nGO home", "unknown instruction: GO"),
            ("FROM nobody/has-it:2", "needs the image `nobody/has-it:2`, which the container engine doesn't have"),
        ],
    )
    def test_errors_are_shown(self, talk: Talk, dockerfile: str, words: str) -> None:
        (talk.folder / "agent").mkdir()
        (talk.folder / "agent/Dockerfile").write_text(dockerfile)
        error = run(talk.fail(boxed(build="agent")))
        assert error.blame == "environment"
        assert words in str(error)


def test_an_engine_that_dies(talk: Talk, engine: TestEngine) -> None:
    """In the middle of a trial: that is nobody's fault here, and trying again may help."""

    async def scene() -> AgentError:
        began = asyncio.Event()
        adapter = talk.adapter(boxed("sleeps"))
        await adapter.start()
        turn = asyncio.ensure_future(adapter.turn(talk.request(emit=lambda _: began.set())))
        await began.wait()
        engine.kill()
        with pytest.raises(AgentError) as caught:
            await turn
        with pytest.raises(AgentError, match=r"containers may be left, .*; the next run removes them"):
            await adapter.close()
        return caught.value

    try:
        error = run(scene())
    finally:
        engine.start()
    assert (error.blame, error.retryable) == ("environment", True)
    assert str(error).startswith(f"the container engine at {engine.url} went away: ")
    (left,) = engine.containers(f"atp.run={talk.marker}")
    engine.ask("DELETE", f"/containers/{left['Id']}?force=1")
