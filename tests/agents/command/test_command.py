"""Agents that are commands: what they get, what they may write, and how they end."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.talk import COMMAND, LimitPassed, Talk, cli, run
from tests.waiting import until_async

from atp.agents.adapter import AdapterContext, AgentError, Finding, Reply
from atp.base.errors import ConfigurationError
from atp.suite.capabilities import Capabilities


@pytest.fixture(autouse=True)
def nothing_left(talk: Talk) -> Any:
    """Whatever a test does, no process with its marker is alive afterwards."""
    yield
    assert talk.alive() == []


def test_request_and_response(talk: Talk) -> None:
    seen = run(talk.ask(cli("show", environment={"MINE": "1"}), "Hi")).output
    assert seen["request"]["task"]["description"] == "Hi"
    assert seen["request"]["context"]["environment"] == {"MINE": "1"}
    assert seen["cwd"] == str(talk.workspace)


def test_environment_is_small(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    around = {"PATH": os.environ["PATH"], "HOME": "/h", "LANG": "C.UTF-8", "TERM": "dumb", "SECRET_KEY": "x"}
    talk.around = AdapterContext(base=talk.folder, environment=around, marker=talk.marker)
    seen = run(talk.ask(cli("show", environment={"MINE": "1", "LANG": "C"}))).output["env"]
    assert len(seen.pop("ATP_PROCESS")) == len(seen.pop("ATP_STARTED_BY")) == 16
    seen.pop("LC_CTYPE", None)  # Python's own doing
    del around["SECRET_KEY"]
    assert seen == {**around, "LANG": "C", "MINE": "1", "ATP_RUN": talk.marker}
    around["SECRET_KEY"] = "x"
    seen = run(talk.ask(cli("show", inherit_environment=True))).output["env"]
    assert seen["SECRET_KEY"] == "x"
    assert seen["ATP_RUN"] == talk.marker


def test_command_as_text_is_split_without_a_shell(talk: Talk) -> None:
    agent = cli()
    agent.config.command = f"{sys.executable} -S {COMMAND} show 'a b' $HOME ; echo"
    agent.config.args = ["c d"]
    assert run(talk.ask(agent)).output["argv"] == ["a b", "$HOME", ";", "echo", "c d"]


def test_paths_from_the_suites_folder(talk: Talk) -> None:
    (talk.folder / "bin").mkdir()
    script = talk.folder / "bin/agent.sh"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -S {COMMAND} show "$@"\n')
    script.chmod(0o755)
    (talk.folder / "data.csv").write_text("")
    for program in ("bin/agent.sh", "./bin/agent.sh", str(script)):
        seen = run(talk.ask(cli(program, "data.csv", "other.csv", "bin", own=True))).output
        assert seen["argv"] == [str(talk.folder / "data.csv"), "other.csv", "bin"]
    (talk.folder / "agent.sh").symlink_to(script)
    assert run(talk.ask(cli("agent.sh", own=True))).output["argv"] == []
    (talk.folder / "sh").write_text("not the shell")
    run(talk.ask(cli("sh", "bin/agent.sh", own=True)))


def test_working_directory(talk: Talk) -> None:
    (talk.folder / "elsewhere").mkdir()
    assert run(talk.ask(cli("show", working_dir="elsewhere"))).output["cwd"] == str(talk.folder / "elsewhere")
    error = run(talk.fail(cli("show", working_dir="nowhere")))
    assert (error.blame, str(error)) == ("environment", f"the working directory {talk.folder / 'nowhere'} is not there")


def test_events_and_log(talk: Talk) -> None:
    assert run(talk.ask(cli("events"))).output == "done"
    assert [(one.type, one.payload) for one in talk.events] == [
        ("tool_call", {"tool": "search", "args": {"q": 1}, "output": "found", "status": "success"}),
        ("reasoning", {"thought": "hm", "step": 2}),
        ("progress", {"current_step": 3}),
    ]
    assert talk.logs == ["starting up", '{"level": "info"}']


def test_stopped_at_the_event_that_passes_a_limit(talk: Talk) -> None:
    talk.most_events = 3
    with pytest.raises(LimitPassed):
        run(talk.ask(cli("many_events")))
    assert len(talk.events) == 4


@pytest.mark.parametrize(("mode", "words"), [("bad_event", "at `$.tool`"), ("broken_event", "an event is not JSON")])
def test_events_that_break_the_rules(talk: Talk, mode: str, words: str) -> None:
    error = run(talk.fail(cli(mode)))
    assert error.blame == "agent"
    assert words in str(error)
    assert error.raw is not None
    assert "event_type" in error.raw


def test_fifty_megabytes_on_both_pipes(talk: Talk) -> None:
    reply = run(talk.ask(cli("big")))
    assert len(reply.output) == 50 * 1024 * 1024
    assert len(talk.logs) == 1001
    assert talk.logs[500] == f"… {50 * 1024 - 1000} lines left out …"


def test_fifty_megabytes_to_stdin(talk: Talk) -> None:
    task = {"description": "x", "input_data": {"big": "y" * 50_000_000}}
    assert run(talk.ask(cli("echo"), "x", task=task, conversation=False)).output == "x"
    assert run(talk.ask(cli("deaf"), "x", task=task, conversation=False)).output == "I don't listen"


def test_one_long_line(talk: Talk) -> None:
    assert run(talk.ask(cli("one_long_line"))).output == "done"
    assert len(talk.logs) == 1
    assert talk.logs[0].endswith("xx… (20971520 bytes)")
    assert len(talk.logs[0]) < 2000


def test_too_much_output(talk: Talk) -> None:
    error = run(talk.fail(cli("too_big")))
    assert (str(error), error.blame) == ("agent error: wrote more than 64 MB to stdout", "agent")


@pytest.mark.parametrize(("mode", "output"), [("deaf", "I don't listen"), ("closes_stdin", "closed")])
def test_agents_that_don_t_listen(talk: Talk, mode: str, output: str) -> None:
    assert run(talk.ask(cli(mode), "x" * 90_000)).output == output


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("closes_stdout", "agent error: broke the protocol: the response is empty"),
        ("junk", "agent error: broke the protocol: the response is not JSON"),
        ("exits", "agent error: exit code 3: first line\nwhat went wrong"),
        ("exits_with_response", "agent error: exit code 1: no such city"),
        ("kills_itself", "agent error: ended by SIGSEGV"),
    ],
)
def test_agents_that_end_badly(talk: Talk, mode: str, text: str) -> None:
    error = run(talk.fail(cli(mode)))
    assert error.blame == "agent"
    assert str(error).startswith(text)
    if mode == "exits_with_response":
        assert error.reply is not None
        assert error.reply.usage is not None
        assert error.reply.usage.cost_usd == 0.25


def test_agents_that_say_they_failed(talk: Talk) -> None:
    assert str(run(talk.fail(cli("exits_well_but_failed", "failed", "no luck")))) == "agent error: no luck"
    error = run(talk.fail(cli("exits_well_but_failed", "timeout")))
    assert str(error) == "agent error: status `timeout`"
    assert type(error) is AgentError


@pytest.mark.parametrize("kind", ["absent", "not executable", "not a program", "folder"])
def test_commands_that_can_t_be_started(talk: Talk, kind: str) -> None:
    file = talk.folder / "agent"
    if kind == "folder":
        file.mkdir()
    elif kind != "absent":
        file.write_bytes(b"\x7fELF nonsense")
        file.chmod(0o755 if kind == "not a program" else 0o644)
    error = run(talk.fail(cli("./agent", own=True)))
    assert error.blame == "environment"
    assert not error.retryable
    assert f"`{file}` can't be started" in str(error)
    assert (f"(chmod +x {file})" in str(error)) is (kind == "not executable")


def checked(talk: Talk, *command: str, **config: Any) -> list[Finding]:
    return run(talk.adapter(cli(*command, own=True, **config)).check())


def test_program_that_is_not_executable(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = talk.folder / "my agent.sh"
    file.write_text("#!/bin/sh\n")
    for name in ("./my agent.sh", "my agent.sh", str(file)):
        (finding,) = checked(talk, name)
        assert (finding.ok, finding.detail) == (False, f"`{name}` is not executable")
        assert finding.hint == f"chmod +x '{file}'"
    (talk.folder / "elsewhere").mkdir()
    (talk.folder / "elsewhere/other").write_text("")
    monkeypatch.chdir(talk.folder / "elsewhere")  # where we run is not where programs are looked for
    assert checked(talk, "other")[0].detail == "`other` is not there, or can't be run"
    file.chmod(0o755)
    assert checked(talk, "my agent.sh") == [Finding(what="program", ok=True, detail=str(file))]


def test_program_with_a_slip_in_its_name(talk: Talk) -> None:
    (talk.folder / "bin").mkdir()
    (talk.folder / "bin/agent.sh").write_text("#!/bin/sh\n")
    (finding,) = checked(talk, "bin/agnt.sh")
    assert finding.detail == "`bin/agnt.sh` is not there, or can't be run"
    assert finding.hint == "did you mean `bin/agent.sh`?"
    error = run(talk.fail(cli("bin/agnt.sh", own=True)))
    assert str(error).endswith("(did you mean `bin/agent.sh`?)")


def test_script_that_is_not_there(talk: Talk) -> None:
    (talk.folder / "cli_agent.py").write_text("")
    command = (sys.executable, "-S", "cli_agnt.py")
    program, finding = checked(talk, *command)
    told = f"`cli_agnt.py` is not in {talk.folder}"
    assert (program.ok, finding.what, finding.ok, finding.detail) == (True, "file", False, told)
    assert finding.hint == "did you mean `cli_agent.py`?"
    assert checked(talk, sys.executable, "no/such.py")[1].hint == "give its path relative to the suite's file"
    error = run(talk.fail(cli(*command, own=True)))
    assert error.blame == "agent"
    assert str(error).startswith(f"agent error: exit code 2 ({told}; did you mean `cli_agent.py`?): ")


def test_words_that_are_no_missing_scripts(talk: Talk) -> None:
    (talk.folder / "here").mkdir()
    (talk.folder / "a.py").write_text("")
    (talk.folder / "here/b.py").write_text("")
    words = [
        "-x.py",
        "--x=y.py",
        "print('x.py')",
        "/no/such.py",
        "http://x/y.js",
        "*.py",
        "x.txt",
        "py",
        "a.py",
        "b.py",
    ]
    assert all(one.ok for one in checked(talk, "cat", *words, working_dir="here"))
    (talk.folder / "docker").write_text("#!/bin/sh\n")
    (talk.folder / "docker").chmod(0o755)
    assert all(one.ok for one in checked(talk, "./docker", "run", "image", "python", "app.py"))


def test_script_that_the_command_makes_itself(talk: Talk) -> None:
    agent = cli("sh", "-c", "cat > $0; exit 3", "made.py", own=True, protocol="text")
    assert str(run(talk.fail(agent, "x = 1"))) == "agent error: exit code 3"
    agent = cli("sh", "-c", "cat > $0; cat $0", "made.py", own=True, protocol="text")
    assert run(talk.ask(agent, "x = 1")).output == "x = 1"


def test_word_that_is_too_long_for_a_name(talk: Talk) -> None:
    agent = cli("sh", "-c", f"cat # {'x' * 5000}", own=True, protocol="text")
    assert run(talk.ask(agent, "Hi")).output == "Hi"


def test_text_without_its_protocol(talk: Talk) -> None:
    error = run(talk.fail(cli("echo", "You said so", own=True)))
    assert "stdout begins with `You said so`: if it prints plain text, set `protocol: text`" in str(error)


def test_command_that_is_nowhere_on_the_path(talk: Talk) -> None:
    assert "can't be started" in str(run(talk.fail(cli("no-such-command-xyz", own=True))))


@pytest.mark.parametrize(
    ("command", "config", "words"),
    [
        ("sh -c 'x", {}, "`command` can't be split"),
        ("  ", {}, "`command` is empty"),
        ("a\0b", {}, "NUL character"),
        ("a", {"environment": {"A=B": "1"}}, "the name 'A=B', which has a"),
    ],
)
def test_commands_that_can_t_be_right(talk: Talk, command: str, config: dict[str, Any], words: str) -> None:
    agent = cli("x", own=True, **config)
    agent.config.command = command
    with pytest.raises(ConfigurationError, match=words):
        talk.adapter(agent)


@pytest.mark.parametrize("mode", ["forks", "detaches"])
def test_children_that_hold_the_pipes(talk: Talk, mode: str) -> None:
    assert run(talk.ask(cli(mode))).output == "done"
    assert talk.logs == ["the agent left processes behind; they were ended"]


def test_daemon_that_nobody_notices_ends_with_the_run(talk: Talk) -> None:
    async def scene() -> None:
        adapter = talk.adapter(cli("detaches_quietly"))
        await adapter.turn(talk.request())
        assert len(talk.alive()) == 1
        await adapter.close()

    run(scene())


async def stop(talk: Talk, mode: str, times: int = 1) -> None:
    """Cancel a turn when its command, which never ends on its own, is at work."""
    adapter = talk.adapter(cli(mode))
    task = asyncio.ensure_future(adapter.turn(talk.request("x" * 90_000)))
    await until_async(lambda: talk.events or at_work(talk, mode))
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.05)
    with pytest.raises(asyncio.CancelledError):
        await task
    if times == 1:  # a second cancellation cuts the wait for the processes short
        assert talk.alive() == []
    await adapter.close()
    await until_async(lambda: talk.alive() == [])


def at_work(talk: Talk, mode: str) -> bool:
    """Whether a command that sends no events is where it will stay: it reads nothing, or has closed its output."""
    if mode == "deaf_and_stuck":
        return bool(talk.alive())
    return mode == "closes_all_and_stays" and any(not Path(f"/proc/{pid}/fd/2").exists() for pid in talk.alive())


@pytest.mark.parametrize("mode", ["sleeps", "detaches_and_sleeps", "deaf_and_stuck", "closes_all_and_stays"])
def test_cancelled_and_gone(talk: Talk, mode: str) -> None:
    run(stop(talk, mode))


def test_a_command_that_ignores_sigterm_is_killed(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    send = os.killpg

    def killpg(group: int, number: int) -> None:
        sent.append(number)
        send(group, number)

    monkeypatch.setattr(os, "killpg", killpg)
    run(stop(talk, "ignores_term"))
    assert list(dict.fromkeys(sent)) == [signal.SIGTERM, signal.SIGKILL]


def test_cancelled_twice(talk: Talk) -> None:
    run(stop(talk, "ignores_term", times=2))


def test_cancelled_at_any_time(talk: Talk) -> None:
    async def scene() -> None:
        for step in range(20):
            task = asyncio.ensure_future(talk.ask(cli("detaches_and_sleeps")))
            await asyncio.sleep(step * 0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert talk.alive() == []

    run(scene())


def test_loop_that_ends_in_the_middle(talk: Talk) -> None:
    async def scene() -> None:
        began = asyncio.Event()
        request = talk.request(emit=lambda _: began.set())
        task = asyncio.ensure_future(talk.adapter(cli("sleeps")).turn(request))
        await began.wait()
        assert not task.done()

    asyncio.run(scene())
    assert talk.alive() == []


def test_many_at_a_time(talk: Talk) -> None:
    async def scene() -> list[Reply]:
        adapter = talk.adapter(cli("echo"))
        return await asyncio.gather(*[adapter.turn(talk.request(str(number))) for number in range(20)])

    assert [reply.output for reply in run(scene())] == [str(number) for number in range(20)]


def test_text(talk: Talk) -> None:
    reply = run(talk.ask(cli("text", protocol="text"), "Grüße"))
    assert reply.output == "You said: 'Grüße\\n' in s-1"
    assert talk.events == []
    assert talk.logs == ["thinking", '{"event_type": "tool_call", "payload": {}}']
    error = run(talk.fail(cli("exits", protocol="text")))
    assert str(error) == "agent error: exit code 3: first line\nwhat went wrong"


def test_text_of_ordinary_commands(talk: Talk) -> None:
    assert run(talk.ask(cli("cat", own=True, protocol="text"), "a\nb")).output == "a\nb"
    assert run(talk.ask(cli("tr", "a-z", "A-Z", own=True, protocol="text"), "abc")).output == "ABC"
    assert run(talk.ask(cli("cat", "/dev/stdin", own=True, protocol="text"), "x")).output == "x"
    assert run(talk.ask(cli("printf", r"\377\n\n", own=True, protocol="text"), "x")).output == "\ufffd"
    assert run(talk.ask(cli("true", own=True, protocol="text"), "x")).output == ""


def test_what_each_can_observe(talk: Talk) -> None:
    assert talk.adapter(cli("echo")).capabilities == Capabilities()
    text = talk.adapter(cli("text", protocol="text")).capabilities
    assert text == Capabilities(tool_calls=False, tokens=False, cost=False, steps=False, history=False)


def test_planted_link(talk: Talk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    error = run(talk.fail(cli("artifact", str(outside))))
    assert "leads out of the workspace" in str(error)
    assert list(outside.iterdir()) == []


def test_conversation(talk: Talk) -> None:
    async def scene() -> Reply:
        adapter = talk.adapter(cli("counts_turns"))
        messages: list[dict[str, Any]] = []
        reply = Reply()
        for turn in (1, 2):
            messages.append({"role": "user", "content": "x"})
            reply = await adapter.turn(talk.request(turn=turn, messages=list(messages)))
            messages.append({"role": "assistant", "content": "y"})
        return reply

    assert run(scene()).output == [["1 s-1", "2 s-1"], 3]


def test_system_without_handles_of_processes(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    def pidfd_open(pid: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    assert run(talk.ask(cli("echo"), "Hi")).output == "Hi"
    assert run(talk.ask(cli("detaches"))).output == "done"
    run(stop(talk, "sleeps"))
    assert "exit code 3" in str(run(talk.fail(cli("exits"))))
