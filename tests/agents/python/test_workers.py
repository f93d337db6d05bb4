"""Agents in environments of their own: the same behaviour, warm processes, and nothing left behind."""

import ast
import asyncio
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.talk import HERE, LimitPassed, Talk, custom, run
from tests.engine.support.project import Project
from tests.waiting import until, until_async

from atp.agents.adapter import Adapter, AgentError
from atp.agents.leftovers import end_leftovers
from atp.base.errors import ConfigurationError
from atp.suite.agent import Agent
from atp.usercode import worker

OWN = HERE / "own_process.py"
ROOT = HERE.parents[2]


def own(function: str, python: str = sys.executable, **config: Any) -> Agent:
    """A function of `own_process.py`, in a worker."""
    return custom(f"{OWN}:{function}", python=python, **config)


def scene(talk: Talk, agent: Agent, play: Callable[[Adapter], Coroutine[Any, Any, Any]]) -> Any:
    """Something that is done with an agent; nothing is alive afterwards."""

    async def played() -> Any:
        adapter = talk.adapter(agent)
        try:
            await adapter.start()
            return await play(adapter)
        finally:
            await adapter.close()
            assert talk.alive() == []

    return run(played())


def asked(talk: Talk, prompt: str, session: str = "s-1", **more: Any) -> Any:
    return talk.request(prompt, context={"session_id": session}, **more)


async def failure(turn: Coroutine[Any, Any, Any]) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await turn
    return caught.value


def outcome(talk: Talk, agent: Agent, prompt: str) -> dict[str, Any]:
    """All that comes of a turn."""
    found: dict[str, Any] = {}
    try:
        found["reply"] = reply = run(talk.ask(agent, prompt))
        reply.metrics = dict.fromkeys(reply.metrics, 0.0)  # how long the first piece took is never the same
    except AgentError as error:
        found |= {"error": str(error), "blame": error.blame, "raw": error.raw}
        found["error"] = re.sub(r"(exceeded) .*", r"\1", str(error))  # where the stack ends is chance
        found["partial"] = error.reply.output if error.reply is not None else None
    found["events"] = [(event.type, event.payload) for event in talk.events]
    if "error" not in found:
        found["logs"] = talk.logs
    return found


RETURNED = [
    "none",
    "number",
    "list",
    "empty",
    "tuple",
    "set",
    "object",
    "nan",
    "key",
    "surrogate",
    "bytes",
    "ring",
    "function",
]
RAISED = ["exit", "interrupt", "cancelled", "generator", "stop", "timeout", "value", "mute", "recursion"]


@pytest.mark.parametrize(
    ("function", "prompt"),
    [
        *((one, "Hi ä🙂\u2028") for one in ("echo", "async_echo", "gives_coroutine", "by_place", "parts", "remembers")),
        *((one, "x") for one in ("events", "sync_events", "answers_then_whole", "bad_event", "event_without_payload")),
        *((one, "x") for one in ("Counter", "AsyncCounter", "other_counter", "configured", "prints_much")),
        *(("returns", one) for one in (*RETURNED, "own shape", "bad calls", "bad usage", "bad artifact")),
        *(("raises", one) for one in RAISED),
        *(("async_raises", one) for one in RAISED),
        ("raises_in_stream", "value"),
        ("raises_in_generator", "value"),
        ("cancels_itself", "x"),
        ("everything", "x"),
        ("meddle", "x"),
    ],
)
def test_the_same_as_in_our_process(tmp_path: Path, function: str, prompt: str) -> None:
    here, there = Talk(tmp_path), Talk(tmp_path)
    expected = outcome(here, custom(function, colour="red"), prompt)
    assert outcome(there, custom(function, colour="red", python=sys.executable), prompt) == expected
    assert there.alive() == []


def test_a_worker_is_warm(talk: Talk) -> None:
    async def play(adapter: Adapter) -> list[Any]:
        return [(await adapter.turn(asked(talk, "x", f"s-{number}"))).output for number in range(5)]

    assert scene(talk, own("counts"), play) == [1, 2, 3, 4, 5]


def test_what_is_printed_when_it_is_loaded_is_in_the_first_log(talk: Talk) -> None:
    async def play(adapter: Adapter) -> None:
        await adapter.turn(asked(talk, "x"))
        assert talk.logs == ["loading"]
        await adapter.turn(asked(talk, "y"))

    scene(talk, own("counts"), play)
    assert talk.logs == ["loading"]


def test_its_surroundings(talk: Talk) -> None:
    about = run(talk.ask(own("about"))).output
    assert about["prefix"] == sys.prefix
    assert about["argv"] == [str(Path(worker.__file__).with_name("serve.py"))]
    assert about["atp"] == []
    assert str(Path(worker.__file__).parent) not in about["path"]
    assert not any(path.endswith("/src/atp") for path in about["path"])


def test_it_has_our_environment(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    around = talk.around.environment
    assert isinstance(around, dict)
    around |= {"MY_KEY": "k-1", "PYTHONHOME": "/nowhere"}
    assert run(talk.ask(own("environment"), "MY_KEY")).output == "k-1"
    assert run(talk.ask(own("environment"), "PYTHONHOME")).output is None


def test_several_at_a_time(talk: Talk) -> None:
    """As many conversations at a time, as many workers; each is used again by whoever led its conversation."""

    async def play(adapter: Adapter) -> None:
        there = asyncio.Barrier(3)

        async def lead(name: str) -> list[int]:
            pids = []
            for number in range(3):
                await there.wait()
                pids.append((await adapter.turn(asked(talk, "x", f"{name}-{number}"))).output)
            return pids

        led = await asyncio.gather(*(lead(name) for name in "abc"))
        assert all(len(set(pids)) == 1 for pids in led)
        assert len({pid for pids in led for pid in pids}) == 3

    scene(talk, own("pid"), play)


def test_no_more_than_are_allowed(talk: Talk) -> None:
    async def play(adapter: Adapter) -> set[int]:
        turns = (adapter.turn(asked(talk, "x", f"s-{number}")) for number in range(10))
        return {reply.output for reply in await asyncio.gather(*turns)}

    assert len(scene(talk, own("pid", parallel=2), play)) <= 2


def test_a_conversation_stays_with_its_worker(talk: Talk) -> None:
    """Between its turns others come, more than there may be workers; what the agent remembers is still there."""

    async def play(adapter: Adapter) -> None:
        async def lead(session: str) -> list[Any]:
            found = []
            for word in ("a", "b", "c"):
                found.append((await adapter.turn(asked(talk, word, session))).output)
                await asyncio.sleep(0)
            return found

        for said in await asyncio.gather(*(lead(f"s-{number}") for number in range(4))):
            assert [one["said"] for one in said] == [["a"], ["a", "b"], ["a", "b", "c"]]

    scene(talk, own("answers", parallel=2), play)


def test_one_that_hangs_is_ended_and_replaced(talk: Talk) -> None:
    async def play(adapter: Adapter) -> None:
        began = asyncio.Event()
        turn = asyncio.ensure_future(adapter.turn(asked(talk, "hang", emit=lambda _event: began.set())))
        await began.wait()
        (pid,) = talk.alive()
        turn.cancel()
        await asyncio.wait({turn})
        assert (await adapter.turn(asked(talk, "go on", "s-2"))).output == "well"
        assert pid not in talk.alive()

    scene(talk, own("hangs"), play)


def test_a_limit_ends_it_and_the_next_one_is_well(talk: Talk) -> None:
    async def play(adapter: Adapter) -> None:
        def refuse(_event: Any) -> None:
            raise LimitPassed("enough")

        with pytest.raises(LimitPassed):
            await adapter.turn(asked(talk, "hang", emit=refuse))
        assert (await adapter.turn(asked(talk, "go on", "s-2"))).output == "well"

    scene(talk, own("hangs"), play)


@pytest.mark.parametrize(("prompt", "how"), [("exit", "exit code 3: a last word"), ("killed", "ended by SIGKILL")])
def test_one_that_dies_is_replaced(talk: Talk, prompt: str, how: str) -> None:
    async def play(adapter: Adapter) -> AgentError:
        error = await failure(adapter.turn(asked(talk, prompt)))
        assert (await adapter.turn(asked(talk, "x", "s-2"))).output == "alive"
        return error

    error = scene(talk, own("dies"), play)
    assert str(error) == f"agent error: its process ended: {how}"
    assert error.blame == "agent"


def test_events_come_with_their_time(talk: Talk) -> None:
    """They are read together, but each happened when it did."""
    run(talk.ask(own("tells_the_time"), began=0.0))
    times = [(float(event.payload["message"]), event.at_ms) for event in talk.events]
    assert len(times) == 5
    in_a_row = [one for pair in times for one in pair]
    assert in_a_row == sorted(in_a_row)


def test_more_events_than_a_pipe_holds(talk: Talk) -> None:
    assert run(talk.ask(own("tells_much"), "3000")).output == "told"
    assert [event.payload["current_step"] for event in talk.events] == list(range(3000))


def test_pipes_of_any_size(talk: Talk) -> None:
    """On some machines a pipe holds a megabyte; none of it may be left to the next turn."""

    async def play(adapter: Adapter) -> None:
        for number in range(2):
            talk.events.clear()
            await adapter.turn(asked(talk, "100", f"s-{number}"))
            assert [event.payload["current_step"] for event in talk.events] == list(range(100))

    scene(talk, own("tells_much_at_once"), play)


def test_what_it_told_before_it_was_stopped_is_known(talk: Talk) -> None:
    async def play(adapter: Adapter) -> None:
        turn = asyncio.ensure_future(adapter.turn(asked(talk, "x")))
        await until_async((talk.workspace / "told").exists)
        turn.cancel()
        await asyncio.wait({turn})
        assert [event.payload["message"] for event in talk.events] == ["one", "two"]

    scene(talk, own("tells_and_hangs"), play)


def test_no_file_can_be_opened(talk: Talk) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept: list[int] = []

    async def play(adapter: Adapter) -> AgentError:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 10, hard))
        try:
            with contextlib.suppress(OSError):
                while True:
                    kept.append(os.dup(0))
            for _ in range(5):  # enough for two pipes
                os.close(kept.pop())
            return await failure(adapter.turn(asked(talk, "x")))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for one in kept:
                os.close(one)

    async def played() -> AgentError:
        adapter = talk.adapter(own("pid"))
        try:
            return await play(adapter)
        finally:
            await adapter.close()

    error = run(played())  # which sees that no file is left open
    assert str(error) == f"{sys.executable} can't be started: Too many open files"
    assert error.blame == "environment"


SLOW_TO_LOAD = """
import os, time
from pathlib import Path

here = Path(__file__).parent
with (here / "started").open("a") as file:
    file.write(f"{os.getpid()}\\n")
while not (here / "go").exists():
    time.sleep(0.01)


def main(prompt):
    if prompt == "exit":
        os._exit(3)
    return os.getpid()
"""


def test_a_start_outlives_the_trial_that_waits_for_it(talk: Talk) -> None:
    """A worker that takes longer to start than a trial may take is there for a later one."""
    (talk.folder / "slow.py").write_text(SLOW_TO_LOAD)
    started, go = talk.folder / "started", talk.folder / "go"
    go.touch()

    async def play(adapter: Adapter) -> None:
        await failure(adapter.turn(asked(talk, "exit")))
        go.unlink()
        for number in range(3):
            turn = asyncio.ensure_future(adapter.turn(asked(talk, "x", f"stopped-{number}")))
            await asyncio.sleep(0)
            await until_async(lambda: len(started.read_text().split()) == 2)
            turn.cancel()
            await asyncio.wait({turn})
            assert turn.cancelled()
        go.touch()
        replies = [await adapter.turn(asked(talk, "x", f"s-{number}")) for number in range(2)]
        assert [str(reply.output) for reply in replies] == started.read_text().split()[1:] * 2

    scene(talk, custom("slow.py:main", python=sys.executable), play)


def test_a_start_that_nobody_waits_for_is_ended_with_the_rest(talk: Talk) -> None:
    (talk.folder / "slow.py").write_text(SLOW_TO_LOAD)
    go = talk.folder / "go"
    go.touch()

    async def play(adapter: Adapter) -> None:
        await failure(adapter.turn(asked(talk, "exit")))
        go.unlink()
        turn = asyncio.ensure_future(adapter.turn(asked(talk, "x", "s-2")))
        await until_async(talk.alive)
        turn.cancel()
        await asyncio.wait({turn})

    scene(talk, custom("slow.py:main", python=sys.executable), play)


def test_killed_from_outside(talk: Talk) -> None:
    async def play(adapter: Adapter) -> AgentError:
        def kill(event: Any) -> None:
            os.kill(int(event.payload["message"]), signal.SIGKILL)

        error = await failure(adapter.turn(asked(talk, "hang", emit=kill)))
        assert (await adapter.turn(asked(talk, "x", "s-2"))).output == "well"
        return error

    assert str(scene(talk, own("hangs"), play)) == "agent error: its process ended: ended by SIGKILL"


def test_one_that_dies_between_two_turns(talk: Talk) -> None:
    async def play(adapter: Adapter) -> AgentError:
        assert (await adapter.turn(asked(talk, "later"))).output == "well"
        await until_async(lambda: not talk.alive())
        error = await failure(adapter.turn(asked(talk, "again")))
        assert (await adapter.turn(asked(talk, "x", "s-2"))).output == "well"
        return error

    error = scene(talk, own("dies_later"), play)
    assert "exit code 7" in str(error)
    assert error.blame == "agent"


def test_prints_are_not_the_protocol(talk: Talk) -> None:
    assert run(talk.ask(own("shouts"), "x")).output == "x: ''"
    assert talk.logs == [
        "loading",
        '{"returned": "not so"}',
        '{"returned": "not so"}',
        '{"returned": "by number"}',
        "\ufffd\ufffd",
        "from a child",
    ]


def test_closed_streams(talk: Talk) -> None:
    assert run(talk.ask(own("closes_its_streams"))).output == "still here"


@pytest.mark.parametrize(("prompt", "words"), [("close", "the worker's pipe was closed"), ("junk", "is not JSON")])
def test_an_agent_that_meddles_with_the_pipes(talk: Talk, prompt: str, words: str) -> None:
    async def play(adapter: Adapter) -> AgentError:
        return await failure(adapter.turn(asked(talk, prompt)))

    error = scene(talk, own("meddles"), play)
    assert str(error).startswith("agent error: broke the protocol: ")
    assert words in str(error)
    assert error.blame == "agent"


@pytest.mark.parametrize(
    ("function", "outputs"),
    [
        ("runs_a_loop", ["looped x", "looped x"]),
        ("keeps_a_client", [True, True]),
        ("leaves_a_task_that_exits", ["x", "x"]),
    ],
)
def test_loops(talk: Talk, function: str, outputs: list[Any]) -> None:
    async def play(adapter: Adapter) -> list[Any]:
        return [(await adapter.turn(asked(talk, "x"))).output for _ in range(2)]

    assert scene(talk, own(function), play) == outputs


def test_ten_megabytes_both_ways(talk: Talk) -> None:
    assert run(talk.ask(own("large"), "x" * 10_000_000)).output == "ä🙂" * 1_700_000 + "x"


def test_more_than_anybody_wants(talk: Talk) -> None:
    assert str(run(talk.fail(own("too_large")))) == "agent error: answered with more than 64 MB"


def test_children_are_ended(talk: Talk) -> None:
    async def play(adapter: Adapter) -> None:
        pid = (await adapter.turn(asked(talk, "x"))).output
        await until_async(lambda: pid in talk.alive())  # a process shows no environment before its exec

    scene(talk, own("leaves_a_child"), play)
    assert talk.alive() == []


def test_after_a_kill_9_of_atp_itself(talk: Talk, tmp_path: Path) -> None:
    """The worker sees that nobody asks any more, even while its agent hangs. What left its group is swept up later."""
    code = f"""
import asyncio, os, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from atp.agents.adapter import AdapterContext
from tests.agents.support.talk import Talk
from tests.agents.python.test_workers import own
talk = Talk(Path({str(tmp_path)!r}))
talk.around = AdapterContext(base=talk.folder, environment=dict(os.environ), marker={talk.marker!r})

def die(event):
    os.kill(os.getpid(), 9)

asyncio.run(talk.ask(own("hangs"), "hang", emit=die))
"""
    atp = subprocess.run([sys.executable, "-c", code], check=False)
    assert atp.returncode == -signal.SIGKILL
    until(lambda: not talk.alive())
    assert end_leftovers(talk.marker) == 0


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("env/bin/python", "there is no interpreter at"),
        ("no-such-python", "no-such-python, and no `no-such-python` on the PATH"),
        ("empty", "is not an environment: there is no bin/python in it"),
        ("notes.txt", "can't be executed"),
    ],
)
def test_interpreters_that_are_not_there(talk: Talk, python: str, message: str) -> None:
    (talk.folder / "empty").mkdir()
    (talk.folder / "notes.txt").write_text("")
    with pytest.raises(ConfigurationError, match=message) as caught:
        talk.adapter(own("pid", python))
    assert caught.value.hint


def script(talk: Talk, text: str) -> str:
    path = talk.folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return "./python"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo hello; echo and more; exit 0", "is not a Python interpreter: hello"),
        (
            '[ "$1" = -c ] && printf 3.7.16 || { echo SyntaxError >&2; exit 1; }',
            "is Python 3.7.16, and agents need 3.8",
        ),
        ('[ "$1" = -c ] && printf 3.12.1 || { echo no space >&2; exit 1; }', "could not start: exit code 1: no space"),
    ],
)
def test_interpreters_that_do_not_work(talk: Talk, text: str, message: str) -> None:
    error = run(talk.fail(own("pid", script(talk, text))))
    assert message in str(error)
    assert error.blame == "environment"


def test_forms_of_an_interpreter(talk: Talk) -> None:
    link = talk.folder / "env"
    link.symlink_to(Path(sys.prefix))
    for python in ("env", "env/bin/python", f"{sys.prefix}/bin/python"):
        assert run(talk.ask(own("about", python))).output["prefix"] == str(
            link if python.startswith("env") else Path(sys.prefix)
        )
    around = talk.around.environment
    assert isinstance(around, dict)
    around["PATH"] = f"{sys.prefix}/bin"
    assert run(talk.ask(own("about", "python"))).output["prefix"] == sys.prefix


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import not_installed_there", "ModuleNotFoundError: No module named 'not_installed_there' ("),
        ("import not_installed_there", f"(install what has `not_installed_there` for {sys.executable})"),
        ("x = 1 / 0", "can't be imported: ZeroDivisionError: division by zero ("),
        ("def main(:", "can't be imported: SyntaxError: invalid syntax ("),
        ("def mian(prompt): ...", "there is no `main` in"),
        ("def main(promt, x): ...", "it takes `promt`; an agent is given, by name, messages, prompt"),
        ("main = 17", "`broken.py:main` is not a function (it is of type int)"),
        ("import os; os._exit(0)", "its import ended the process: exit code 0"),
        ("import os; print('a last word'); os._exit(4)", "its import ended the process: exit code 4: a last word"),
    ],
)
def test_agents_that_cannot_be_loaded(talk: Talk, text: str, message: str) -> None:
    (talk.folder / "broken.py").write_text(f"\n{text}\n")
    error = run(talk.fail(custom("broken.py:main", python=sys.executable)))
    assert message in str(error)
    assert "broken.py" in str(error)
    assert sys.executable in str(error)
    assert error.blame == "environment"
    if "there is no" in message or "promt" in message:
        assert "(did you mean `" in str(error)


def test_a_module_that_is_nowhere(talk: Talk) -> None:
    error = run(talk.fail(custom("no_such_module:main", python=sys.executable)))
    assert f"(it is looked for in {Path.cwd()}, {talk.folder}, and among what is installed for" in str(error)


def test_a_module_beside_the_suite(talk: Talk) -> None:
    (talk.folder / "my_agent.py").write_text("import my_words\ndef main(prompt):\n    return my_words.said(prompt)\n")
    (talk.folder / "my_words.py").write_text("def said(prompt):\n    return prompt.upper()\n")
    assert run(talk.ask(custom("my_agent:main", python=sys.executable), "hi")).output == "HI"


@pytest.mark.parametrize("minor", range(8, 16))
def test_other_pythons(talk: Talk, minor: int) -> None:
    python = shutil.which(f"python3.{minor}")
    works = python and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    if not python or not works:
        pytest.skip(f"there is no python3.{minor} here")
    (talk.folder / "plain_agent.py").write_text(
        "import sys\n\nasync def main(prompt):\n    yield {'event_type': 'progress', 'payload': {'message': prompt}}\n"
        "    yield list(sys.version_info[:2])\n\ndef fails():\n    raise ValueError('no')\n"
    )
    assert run(talk.ask(custom("plain_agent.py:main", python=python))).output == [3, minor]
    assert [event.payload for event in talk.events] == [{"message": "Hello"}]
    assert str(run(talk.fail(custom("plain_agent.py:fails", python=python)))) == "agent error: ValueError: no"


def test_workers_need_no_new_python() -> None:
    """Every file that a worker loads is read by Python 3.8, and needs only that and, for a framework, the framework."""
    seen: set[Path] = set()
    rest = sorted(Path(worker.__file__).parent.glob("*.py"))
    while rest:
        path = rest.pop()
        if path in seen:
            continue
        seen.add(path)
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level > 0:
                rest.append(path.parents[node.level - 1] / f"{node.module}.py")
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                tops = {name.partition(".")[0] for name in names}
                assert "atp" not in tops, path
                assert path.name.startswith(("langgraph_", "crewai_")) or tops <= sys.stdlib_module_names, path
    assert len(seen) > 10


def test_from_the_command_line(tmp_path: Path) -> None:
    """A trial that hangs is stopped in time, its worker is replaced, and the rest of the run doesn't notice."""
    project = Project(tmp_path)
    agents = [
        {"name": name, "type": "custom", "config": {"entry": f"{OWN}:{name}", "python": sys.executable, "parallel": 1}}
        for name in ("hangs", "dies")
    ]
    tests: list[dict[str, Any]] = [
        {"id": "hang", "agents": ["hangs"], "input": "hang", "constraints": {"timeout_seconds": 5}},
        {"id": "well", "agents": ["hangs"], "input": "x", "assertions": [{"type": "equals", "value": "well"}]},
        {"id": "exit", "agents": ["dies"], "input": "exit"},
        {"id": "alive", "agents": ["dies"], "input": "x", "assertions": [{"type": "equals", "value": "alive"}]},
    ]
    ran = project.test(project.suite(agents, tests))
    assert {name: (one["status"], one["error"], one["blame"]) for name, one in ran.results.items()} == {
        "hang": ("timeout", "timeout after 5s", None),
        "well": ("passed", None, None),
        "exit": ("error", "agent error: its process ended: exit code 3: a last word", "agent"),
        "alive": ("passed", None, None),
    }
    assert ran.code == 1


def test_a_worker_that_cannot_start_is_everybodys_error(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("agent.py", "import not_installed_there\n")
    agent = {"name": "a", "type": "custom", "config": {"entry": "agent.py:main", "python": sys.executable}}
    ran = project.test(project.suite([agent], [{"id": "one"}, {"id": "two"}]))
    for one in ran.results.values():
        assert (one["status"], one["blame"]) == ("error", "environment")
        assert "No module named 'not_installed_there'" in one["error"]
    assert ran.code == 3


def test_an_interpreter_that_is_not_there_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    project = Project(tmp_path)
    agent = {"name": "a", "type": "custom", "config": {"entry": f"{OWN}:pid", "python": "env/bin/python"}}
    ran = project.atp("test", project.suite([agent], [{"id": "one"}]))
    assert ran.code == 2
    assert "there is no interpreter at" in ran.err


def test_a_start_is_none_of_the_trials_time(tmp_path: Path) -> None:
    """The second worker takes longer to load its agent than a trial may take."""
    project = Project(tmp_path)
    project.write(
        "agent.py",
        """
        import os, time
        from pathlib import Path

        if Path("loaded").exists():
            time.sleep(5.5)
        Path("loaded").touch()


        def main(prompt):
            if prompt == "die":
                os._exit(3)
            return prompt
        """,
    )
    agent = {"name": "a", "type": "custom", "config": {"entry": "agent.py:main", "python": sys.executable}}
    tests = [{"id": "dies", "input": "die"}, {"id": "lives", "input": "live", "expected": "live"}]
    suite = project.suite([agent], [{**one, "constraints": {"timeout_seconds": 5}} for one in tests])
    ran = project.test(suite, "--parallel", "1")
    assert ran.statuses == {"dies": "error", "lives": "passed"}


def test_a_worker_ends_in_its_own_time_beside_a_command(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(
        "agent.py",
        """
        import atexit, time
        from pathlib import Path

        @atexit.register
        def tidy_up():
            time.sleep(0.3)
            Path("tidy").touch()

        def main(prompt):
            return prompt
        """,
    )
    agents = [
        {"name": "quick", "type": "cli", "config": {"command": ["cat"], "protocol": "text"}},
        {"name": "slow", "type": "custom", "config": {"entry": "agent.py:main", "python": sys.executable}},
    ]
    assert project.test(project.suite(agents, [{"id": "a", "input": "x", "expected": "x"}])).code == 0
    assert (tmp_path / "tidy").exists()


@pytest.mark.parametrize("python", [None, sys.executable])
def test_what_it_said_before_its_time_was_up_is_in_the_report(tmp_path: Path, python: str | None) -> None:
    project = Project(tmp_path)
    project.write(
        "agent.py",
        """
        import time

        def main(prompt):
            yield {"usage": {"total_tokens": 7}}
            yield "so far "
            yield "so good"
            if prompt == "limit":
                for step in range(5):
                    yield {"event_type": "progress", "payload": {"current_step": step}}
            time.sleep(3600)
        """,
    )
    config = {"entry": "agent.py:main", **({} if python is None else {"python": python})}
    tests = [
        {"id": "hang", "input": "hang", "constraints": {"timeout_seconds": 3}},
        {"id": "limit", "input": "limit", "constraints": {"max_steps": 3}},
    ]
    suite = project.suite([{"name": "a", "type": "custom", "config": config}], tests)
    assert project.test(suite).statuses == {"hang": "timeout", "limit": "failed"}
    (journal,) = tmp_path.glob(".atp/runs/*/journal.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    trials = [line["result"] for line in lines if line["type"] == "trial"]
    assert len(trials) == 2
    for trial in trials:
        assert trial["transcript"]["messages"][-1] == {"role": "assistant", "content": "so far so good"}
        assert trial["transcript"]["usage"]["total_tokens"] == 7
