"""Agents that are Python code: how they are called, what they may give back, and that nothing else gets out."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.agents.support.talk import FUNCTIONS, LimitPassed, Talk, custom, make_agent, run
from tests.waiting import WAIT_LIMIT, until_async

from atp.agents.wire import RAW_LENGTH
from atp.base.errors import ConfigurationError
from atp.suite.agent import Agent


def functions() -> Any:
    """The module the agents are in, as the adapter has loaded it."""
    return next(module for name, module in sys.modules.items() if name.startswith("functions_"))


@pytest.fixture(autouse=True)
def seen() -> list[Any]:
    """What the agents write down."""
    from atp.usercode.code_path import load_function

    load_function(f"{FUNCTIONS}:echo", (FUNCTIONS.parent,))
    found: list[Any] = functions().SEEN
    found.clear()
    return found


@pytest.mark.parametrize("function", ["echo", "async_echo", "gives_coroutine"])
def test_answers(talk: Talk, function: str) -> None:
    assert run(talk.ask(custom(function), "Hi")).output == "You said: Hi"


def test_kwargs_get_everything(talk: Talk) -> None:
    context = {"user": "u", "session_id": "s-1"}
    request = {"messages": [{"role": "user", "content": "a"}], "options": {"mode": "x"}, "context": context}
    given = run(talk.ask(custom("everything", model="m"), "Hi", **request)).output
    assert given == {
        "messages": [{"role": "user", "content": "a"}],
        "prompt": "Hi",
        "task": {"description": "Hi", "input_data": {"messages": [{"role": "user", "content": "a"}]}},
        "context": {**context, "config": {"model": "m"}, "state": None},
        "options": {"model": "m", "mode": "x"},
        "workspace": str(talk.workspace),
    }


def test_parameters_of_all_kinds(talk: Talk) -> None:
    assert run(talk.ask(custom("by_place"), "Hi")).output == ["Hi", 1, {}, 3]


def test_workspace_is_made_only_for_those_who_ask(talk: Talk) -> None:
    run(talk.ask(custom("echo")))
    assert not talk.workspace.exists()


def test_configuration_goes_below_the_options_of_the_case(talk: Talk) -> None:
    agent = custom("configured", temperature=1, deep={"a": [1]}, parallel=2)
    output = run(talk.ask(agent, options={"temperature": 2})).output
    assert output == [{"temperature": 2, "deep": {"a": [1]}}, {"temperature": 1, "deep": {"a": [1]}}]


def test_what_an_agent_changes_is_its_own(talk: Talk) -> None:
    async def twice() -> list[Any]:
        adapter = talk.adapter(custom("meddle", seen=[]))
        requests = [talk.request("Hi"), talk.request("Hi")]
        outputs = [(await adapter.turn(request)).output for request in requests]
        assert requests[0].messages == [{"role": "user", "content": "Hi"}]
        assert requests[0].context
        return outputs

    assert run(twice()) == [1, 1]


@pytest.mark.parametrize(
    ("prompt", "output"),
    [
        ("none", None),
        ("number", 3),
        ("list", [1, {"a": None}]),
        ("own shape", {"output": 1, "more": 2}),
        ("empty", {}),
        ("tuple", [1, 2]),
    ],
)
def test_any_json_value_is_an_answer(talk: Talk, prompt: str, output: Any) -> None:
    assert run(talk.ask(custom("returns"), prompt)).output == output


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("set", "returned a set, which is not JSON"),
        ("object", "returned an object, which is not JSON"),
        ("nan", "returned nan at `a[0]`, which is not JSON"),
        ("key", "an object with the key 1"),
        ("surrogate", "half a surrogate pair"),
        ("bytes", "returned a bytes"),
        ("ring", "nested too deeply, or in itself"),
        ("function", "returned a function"),
        ("bad calls", "tool_calls: Object missing required field `name`"),
        ("bad usage", "`usage.input_tokens` is not a number from 0"),
        ("bad artifact", "has `..` in it"),
    ],
)
def test_junk_is_the_agents_error(talk: Talk, prompt: str, words: str) -> None:
    error = run(talk.fail(custom("returns"), prompt))
    assert error.blame == "agent"
    assert str(error).startswith("agent error: ")
    assert words in str(error)


def test_reply_in_parts(talk: Talk) -> None:
    reply = run(talk.ask(custom("parts")))
    assert reply.output == {"sum": 3}
    assert [(call.name, call.arguments, call.result, call.error) for call in reply.tool_calls] == [
        ("add", {"a": 1}, 3, None),
        ("save", None, None, "disk full"),
    ]
    assert (talk.workspace / "out/a.txt").read_text() == "A"
    assert [artifact.name for artifact in reply.artifacts] == ["out/a.txt"]
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.steps, reply.usage.cost_usd) == (5, 2, 0.5)
    assert reply.state == {"count": 1}
    assert talk.logs == ['beside the usage: {"colour":"red"}']


@pytest.mark.parametrize("agent", [custom("events"), custom("gives_generator")])
def test_async_generator_tells_events_and_pieces(talk: Talk, agent: Agent) -> None:
    reply = run(talk.ask(agent, "async"))
    assert [(event.type, event.payload) for event in talk.events] == [
        ("tool_call", {"tool": "search", "input": {"q": "async"}, "output": [1]}),
        ("progress", {"current_step": 2}),
    ]
    assert reply.output == "Hello"
    assert reply.usage is not None
    assert reply.usage.input_tokens == 3


@pytest.mark.parametrize("function", ["sync_events", "gives_generator"])
def test_generator_and_its_return_value(talk: Talk, function: str) -> None:
    reply = run(talk.ask(custom(function), "Hi"))
    assert len(talk.events) == 100
    assert (reply.output, reply.state) == ("Hi", "done")


def test_whole_answer_replaces_the_pieces(talk: Talk) -> None:
    assert run(talk.ask(custom("answers_then_whole"))).output == {"text": "the answer"}


@pytest.mark.parametrize("function", ["bad_event", "event_without_payload"])
def test_events_keep_to_the_protocol(talk: Talk, function: str) -> None:
    error = run(talk.fail(custom(function)))
    assert error.blame == "agent"
    assert error.raw is not None
    assert talk.events == []


@pytest.mark.parametrize("function", ["sync_events", "many_events"])
def test_stopped_at_the_event_that_passes_a_limit(talk: Talk, seen: list[Any], function: str) -> None:
    talk.most_events = 2
    with pytest.raises(LimitPassed):
        run(talk.ask(custom(function)))
    assert len(talk.events) == 3
    assert [one for one in seen if one != "closed"] == [0, 1, 2]


@pytest.mark.parametrize("function", ["raises", "async_raises", "raises_in_stream", "raises_in_generator"])
@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("exit", "SystemExit: 3"),
        ("interrupt", "KeyboardInterrupt"),
        ("cancelled", "CancelledError"),
        ("generator", "GeneratorExit"),
        ("timeout", "TimeoutError: mine"),
        ("value", "ValueError: bad\nnews"),
        ("mute", "Mute: (str() of the exception failed)"),
        ("recursion", "RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_nothing_that_an_agent_raises_gets_out(talk: Talk, function: str, prompt: str, text: str) -> None:
    error = run(talk.fail(custom(function), prompt))
    assert error.blame == "agent"
    assert str(error).startswith(f"agent error: {text}")
    assert any("functions.py" in line for line in talk.logs), "the traceback is in the log"
    if "in_" in function:
        assert error.reply is not None
        assert error.reply.output == "so far"


def test_agent_that_cancels_itself(talk: Talk) -> None:
    assert str(run(talk.fail(custom("cancels_itself")))) == "agent error: CancelledError"


async def _cancel(talk: Talk, function: str, when: Callable[[], object]) -> None:
    """Cancel a turn of an agent that never ends on its own, and wait for the turn's end."""
    task = asyncio.ensure_future(talk.ask(custom(function)))
    await asyncio.sleep(0)
    await until_async(when)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("function", ["blocks", "blocks_in_generator"])
def test_blocking_code_holds_up_nobody(talk: Talk, seen: list[Any], function: str) -> None:
    run(_cancel(talk, function, lambda: "began" in seen))
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "atp-agent")


def test_cancelled_code_may_clean_up(talk: Talk, seen: list[Any]) -> None:
    run(_cancel(talk, "waits", lambda: "began" in seen))
    assert seen == ["began", "cleaned up"]


def test_cancelled_before_it_began(talk: Talk, seen: list[Any]) -> None:
    run(_cancel(talk, "waits", lambda: True))
    assert seen in ([], ["began", "cleaned up"])


def test_code_that_refuses_to_be_cancelled_is_left(talk: Talk, seen: list[Any]) -> None:
    run(_cancel(talk, "refuses", lambda: "began" in seen))
    assert "refused" in seen


@pytest.mark.parametrize("function", ["blocks", "refuses"])
def test_interpreter_ends_whatever_an_agent_does(talk: Talk, function: str) -> None:
    code = f"""
import asyncio, sys
sys.path.insert(0, {str(FUNCTIONS.parents[3])!r})
from pathlib import Path
from tests.agents.support.talk import Talk, custom
async def main():
    try:
        await asyncio.wait_for(Talk(Path({str(talk.folder)!r})).ask(custom({function!r})), 0.1)
    except TimeoutError:
        print("timeout")
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_LIMIT, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("timeout\n", "", 0)


def test_objects_and_classes_are_called(talk: Talk) -> None:
    async def thrice(name: str) -> list[Any]:
        adapter = talk.adapter(custom(name))
        return [(await adapter.turn(talk.request())).output for _ in range(3)]

    assert run(thrice("Counter")) == [1, 2, 3]
    assert run(thrice("AsyncCounter")) == [1, 2, 3]
    assert run(thrice("counter")) == [1, 2, 3]
    assert run(thrice("counter.__call__")) == [4, 5, 6]


@pytest.mark.parametrize("name", ["Counter", "AsyncCounter"])
def test_a_class_is_made_anew_for_each_conversation(talk: Talk, name: str) -> None:
    """Otherwise conversations leak into each other (finding A28)."""

    async def hold() -> list[Any]:
        adapter = talk.adapter(custom(name))
        outputs = []
        for task in ("one", "two", "one", "one", "two"):
            request = talk.request()
            request.task_id = task
            outputs.append((await adapter.turn(request)).output)
        adapter.end_trial("one")
        request = talk.request()
        request.task_id = "one"
        return [*outputs, (await adapter.turn(request)).output]

    assert run(hold()) == [1, 1, 2, 3, 2, 1]


WRAP = "wrap it: write `def answer(messages): return {}(messages)`, and name that function"


@pytest.mark.parametrize(
    ("function", "words", "hint"),
    [
        ("unknown_parameter", "it takes `mesages`", "did you mean `messages`?"),
        ("NeedsMore", "`NeedsMore()` raised TypeError", None),
        (
            "Mute",
            "instances of the class `Mute` can't be called",
            WRAP.format("Mute().run"),
        ),
        (
            "Desk.ask",
            "it takes `self`: it is a method of the class `Desk`",
            WRAP.format("Desk().ask"),
        ),
        (
            "DESK",
            "is not a function",
            f"it is of type Desk; {WRAP.format('DESK.ask')}",
        ),
        ("NOT_CALLABLE", "is not a function", "it is of type int"),
        ("ecco", "there is no `ecco`", "did you mean `echo`?"),
    ],
)
def test_what_cant_be_called_is_found_before_a_run(talk: Talk, function: str, words: str, hint: str | None) -> None:
    with pytest.raises(ConfigurationError) as caught:
        talk.adapter(custom(function))
    assert words in str(caught.value)
    assert caught.value.hint == hint


def test_entry_is_needed(talk: Talk) -> None:
    with pytest.raises(ConfigurationError, match="needs `entry`"):
        talk.adapter(make_agent({"name": "a", "type": "custom", "config": {}}))


def test_what_agents_print_is_their_trials_log(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    other = Talk(talk.folder)

    async def both() -> None:
        adapter = talk.adapter(custom("async_prints"))
        await adapter.start()
        try:
            await asyncio.gather(adapter.turn(talk.request("a")), adapter.turn(other.request("b")))
            sys.stdout.write("ours\n")
        finally:
            await adapter.close()

    real = sys.stdout
    run(both())
    assert sys.stdout is real
    assert (talk.logs, other.logs) == (["one a", "two a"], ["one b", "two b"])
    assert capsys.readouterr() == ("ours\n", "")


def test_blocking_agents_print_too(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    run(talk.ask(custom("prints"), "x"))
    assert talk.logs == ["line x", "and moreto stderr"]
    assert capsys.readouterr() == ("", "")


def test_logs_are_bounded(talk: Talk) -> None:
    run(talk.ask(custom("prints_much")))
    assert len(talk.logs) == 1001
    assert talk.logs[0] == "0"
    assert talk.logs[500] == "… 4000 lines left out …"
    assert talk.logs[-1] == "4999"


def test_emitting_outside_of_the_agents_output(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    """What the engine prints when it hears of an event is not the agent's."""
    run(talk.ask(custom("events"), emit=lambda event: sys.stdout.write(f"heard {event.type}\n")))
    assert capsys.readouterr().out == "heard tool_call\nheard progress\n"
    assert talk.logs == []


def test_error_texts_are_cut(talk: Talk) -> None:
    functions().ERRORS["long"] = ValueError("x" * 100_000)
    assert len(str(run(talk.fail(custom("raises"), "long")))) < RAW_LENGTH + 100


def test_threads_are_used_again(talk: Talk) -> None:
    async def many() -> None:
        adapter = talk.adapter(custom("echo"))
        for _ in range(200):
            await adapter.turn(talk.request())

    before = threading.active_count()
    run(many())
    assert threading.active_count() <= before + 2


def test_state_is_carried_from_turn_to_turn(talk: Talk) -> None:
    async def scene() -> list[Any]:
        adapter = talk.adapter(custom("remembers"))
        state, outputs = None, []
        for turn, prompt in enumerate(["a", "b", "c"], 1):
            reply = await adapter.turn(talk.request(prompt, turn=turn, state=state))
            state = reply.state
            outputs.append(reply.output)
        return outputs

    assert run(scene()) == ["s-1: ['a']", "s-1: ['a', 'b']", "s-1: ['a', 'b', 'c']"]
