"""One turn of a prompt agent after the other: what the model gets, what is told, what stops it, who is blamed."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.prompts import Scripted, Stage, uses
from tests.agents.support.talk import LimitPassed, Talk, run

from atp.agents.adapter import Reply
from atp.base.errors import ConfigurationError
from atp.models.cassettes.cassette import Cassette
from atp.models.model import CassetteMiss, ModelAnswer, ModelError, ModelRequest, ToolUse
from atp.suite.capabilities import Capabilities
from atp.suite.result import Usage

TOOLS = """
CALLS = []
def tide(place: str) -> str:
    "The tide."
    CALLS.append(place)
    if place == "nowhere":
        raise ValueError("unknown")
    return f"high in {place} ({len(CALLS)})"
"""
AGENT = "---\ncommands: ['tools.py:tide']\n---\nYou know tides."


@pytest.fixture
def stage(talk: Talk) -> Stage:
    made = Stage(talk, Scripted("Hello"))
    made.tools(TOOLS)
    made.write(**{"agents/x.md": AGENT})
    return made


def play(stage: Stage, *script: Any) -> Scripted:
    model = Scripted(*script)
    stage.models[None] = model
    return model


def test_an_answer(stage: Stage, talk: Talk) -> None:
    model = play(
        stage, ModelAnswer(text="High.", usage=Usage(input_tokens=9, output_tokens=2, cost_usd=0.01), model="m-1")
    )
    reply = run(talk.ask(stage.agent(), "Tide?"))
    assert reply.output == "High."
    assert reply.messages == [{"role": "assistant", "content": "High."}]
    assert reply.usage == Usage(input_tokens=9, output_tokens=2, cost_usd=0.01, llm_calls=1, tool_calls=0, steps=0)
    assert model.asked[0].messages == [
        {"role": "system", "content": "You know tides."},
        {"role": "user", "content": "Tide?"},
    ]
    (event,) = talk.events
    assert event.type == "llm_request"
    assert event.payload.pop("duration_ms") >= 0
    assert event.payload == {"model": "m-1", "input_tokens": 9, "output_tokens": 2, "cost_usd": 0.01}


def test_it_can_report_everything(stage: Stage) -> None:
    assert stage.make().capabilities == Capabilities(tool_calls=True, tokens=True, cost=True, steps=True)


def test_json_stays_text(stage: Stage, talk: Talk) -> None:
    play(stage, '{"a": 1}')
    assert run(talk.ask(stage.agent())).output == '{"a": 1}'


def test_tools_are_called_until_there_is_an_answer(stage: Stage, talk: Talk) -> None:
    two = ModelAnswer(
        text="Let me look.",
        tool_uses=[
            ToolUse(id="1", name="tide", arguments={"place": "Bree"}),
            ToolUse(id="2", name="tide", arguments={"place": "nowhere"}),
        ],
    )
    model = play(stage, two, uses("tide", {"place": "Ost"}), "Done.")
    reply = run(talk.ask(stage.agent()))
    assert reply.output == "Done."
    assert [one.type for one in talk.events] == [
        "llm_request", "tool_call", "tool_call", "llm_request", "tool_call", "llm_request",
    ]  # fmt: skip
    first = talk.events[1].payload
    assert (first["tool"], first["input"], first["status"]) == ("tide", {"place": "Bree"}, "success")
    assert reply.usage == Usage(input_tokens=30, output_tokens=6, llm_calls=3, tool_calls=3, steps=3)
    assert model.asked[-1].messages[2:] == reply.messages[:-1]
    assert [(one["role"], one.get("tool_call_id")) for one in reply.messages] == [
        ("assistant", None), ("tool", "1"), ("tool", "2"), ("assistant", None), ("tool", "call-tide"),
        ("assistant", None),
    ]  # fmt: skip
    called = reply.messages[0]["tool_calls"][0]
    assert (called["id"], called["type"], called["function"]["name"]) == ("1", "function", "tide")
    assert json.loads(called["function"]["arguments"]) == {"place": "Bree"}


def test_a_conversation_goes_on(stage: Stage, talk: Talk) -> None:
    model = play(stage, uses("tide", {"place": "Bree"}), "High.", "As I said: high.")

    async def hold() -> Reply:
        adapter = talk.adapter(stage.agent())
        first = await adapter.turn(talk.request("Tide?"))
        said = [{"role": "user", "content": "Tide?"}, *first.messages, {"role": "user", "content": "Sure?"}]
        return await adapter.turn(talk.request("Sure?", messages=said, turn=2, state=first.state))

    assert run(hold()).output == "As I said: high."
    roles = [one["role"] for one in model.asked[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


def test_what_comes_with_a_task_is_told(stage: Stage, talk: Talk) -> None:
    model = play(stage, "ok")
    task = {"description": "Sum up", "input_data": {"n": [1]}, "expected_artifacts": ["a.md"]}
    run(talk.ask(stage.agent(), "Sum up", task=task))
    said = model.asked[0].messages[-1]["content"]
    assert said == 'Sum up\n\ninput_data: {"n":[1]}\n\nexpected_artifacts: ["a.md"]'


def test_pictures_are_read_from_beside_the_test(stage: Stage, talk: Talk) -> None:
    (stage.root / "sea.png").write_bytes(b"picture")
    model = play(stage, "Blue.")
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image", "source": "file://sea.png"}]
    run(talk.ask(stage.agent(), messages=[{"role": "user", "content": parts, "metadata": {"a": 1}}]))
    url = f"data:image/png;base64,{base64.b64encode(b'picture').decode()}"
    assert model.asked[0].messages[-1] == {
        "role": "user",
        "content": [parts[0], {"type": "image_url", "image_url": {"url": url}}],
    }


def test_a_picture_that_is_not_there(stage: Stage, talk: Talk) -> None:
    parts = [{"type": "image", "source": "file://no.png"}]
    error = run(talk.fail(stage.agent(), messages=[{"role": "user", "content": parts}]))
    assert error.blame == "environment"


def test_an_answer_that_was_cut_off_is_said(stage: Stage, talk: Talk) -> None:
    play(stage, ModelAnswer(text="High and", finish="length"))
    assert run(talk.ask(stage.agent())).output == "High and"
    assert "cut off" in talk.logs[0]


def test_a_model_that_never_stops_calling_tools(stage: Stage, talk: Talk) -> None:
    stage.write(**{"agents/x.md": AGENT.replace("---\nYou", "max_steps: 3\n---\nYou")})
    model = Scripted(behave=lambda ask: uses("tide", {"place": str(len(ask.messages))}))
    stage.models[None] = model
    error = run(talk.fail(stage.agent()))
    assert error.blame == "agent"
    assert str(error) == "agent error: still calling tools after 3 calls of the model in one turn (`max_steps`)"
    assert len(model.asked) == 3
    assert len([one for one in talk.events if one.type == "tool_call"]) == 2
    assert error.reply is not None
    assert error.reply.usage is not None
    assert error.reply.usage.input_tokens == 30


def test_twenty_calls_of_the_model_are_the_most_by_default(stage: Stage, talk: Talk) -> None:
    model = Scripted(behave=lambda ask: uses("tide", {"place": str(len(ask.messages))}))
    stage.models[None] = model
    assert "after 20 calls" in str(run(talk.fail(stage.agent())))
    assert len(model.asked) == 20


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_a_limit_stops_it_between_any_two_steps(stage: Stage, talk: Talk, most: int) -> None:
    model = Scripted(behave=lambda ask: uses("tide", {"place": str(len(ask.messages))}))
    stage.models[None] = model
    talk.most_events = most
    with pytest.raises(LimitPassed):
        run(talk.ask(stage.agent()))
    assert len(talk.events) == most + 1
    assert len(model.asked) == most // 2 + 1


def test_a_limit_stops_another_agent_at_work(stage: Stage, talk: Talk) -> None:
    inner = Scripted(behave=lambda ask: uses("tide", {"place": str(len(ask.messages))}))
    stage.models["inner"] = inner
    stage.write(
        **{
            "agents/inner.md": AGENT.replace("---\nYou", "model: inner\n---\nYou"),
            "agents/x.md": "---\nagents: [inner]\n---\n",
        }
    )
    play(stage, uses("inner", {"message": "Hi"}), "never said")
    talk.most_events = 3
    with pytest.raises(LimitPassed):
        run(talk.ask(stage.agent()))
    assert len(inner.asked) == 2


@pytest.mark.parametrize(("retryable", "after"), [(True, 2.5), (False, None)])
def test_a_model_that_cannot_answer_is_nobody_s_fault(
    stage: Stage, talk: Talk, retryable: bool, after: float | None
) -> None:
    play(stage, uses("tide", {"place": "a"}), ModelError("HTTP 503", retryable=retryable, retry_after=after))
    error = run(talk.fail(stage.agent()))
    assert (error.blame, error.retryable, error.retry_after) == ("environment", retryable, after)
    assert "HTTP 503" in str(error)
    assert error.reply is not None
    assert error.reply.usage is not None
    assert error.reply.usage.llm_calls == 1


@pytest.mark.parametrize(
    ("status", "blame"),
    [(400, "agent"), (413, "agent"), (401, "environment"), (404, "environment"), (429, "environment")],
)
def test_a_request_that_is_refused_for_its_content(stage: Stage, talk: Talk, status: int, blame: str) -> None:
    play(stage, ModelError("refused", status=status))
    assert run(talk.fail(stage.agent())).blame == blame


def test_which_connector(stage: Stage, talk: Talk) -> None:
    """The flag, then the case, then the suite, then the file, then the run's own."""
    named = {name: Scripted(behave=lambda ask, name=name: name) for name in ("flag", "case", "suite", "file")}  # type: ignore[misc]
    stage.models.update(named)

    def answer(path: str, context: dict[str, Any], options: dict[str, Any], **config: Any) -> Any:
        return run(talk.ask(stage.agent(path, **config), context=context, options=options)).output

    stage.write(**{"agents/own.md": "---\nmodel: file\n---\n"})
    assert answer("agents/own.md", {"connector": "flag"}, {"connector": "case"}, connector="suite") == "flag"
    assert answer("agents/own.md", {"connector": None}, {"connector": "case"}, connector="suite") == "case"
    assert answer("agents/own.md", {}, {}, connector="suite") == "suite"
    assert answer("agents/own.md", {}, {}) == "file"
    assert answer("agents/x.md", {}, {}) == "Hello"


def test_options_of_a_case_are_settings_of_the_model(stage: Stage, talk: Talk) -> None:
    stage.write(**{"agents/x.md": "---\ntemperature: 1\noptions: {top_p: 0.5}\n---\n"})
    model = play(stage, "ok")
    options = {"temperature": 0, "seed": 7, "mode": "chat", "metadata": {"a": 1}, "connector": None}
    run(talk.ask(stage.agent(), options=options))
    assert model.asked[0].settings == {"temperature": 0, "top_p": 0.5, "seed": 7}


def test_no_model(stage: Stage) -> None:
    stage.models.clear()
    with pytest.raises(ConfigurationError, match="there is no connector `None`") as raised:
        stage.make()
    assert raised.value.hint == "set one with -c"
    assert stage.asked_for == [(None, "agents/x.md:1:1: the agent `x`")]


def test_a_case_names_a_model_that_there_is_not(stage: Stage, talk: Talk) -> None:
    error = run(talk.fail(stage.agent(), options={"connector": "none"}))
    assert (error.blame, error.retryable) == ("environment", False)


def test_no_models_at_all(talk: Talk) -> None:
    stage = Stage(talk)
    from dataclasses import replace

    talk.around = replace(talk.around, services=None)
    assert "there are no models here" in stage.refuse("Hi")


def test_a_cancelled_turn_leaves_nothing(stage: Stage, talk: Talk) -> None:
    class Hanging(Scripted):
        ended = False

        async def ask(self, request: ModelRequest) -> ModelAnswer:
            try:
                await asyncio.sleep(30)
            finally:
                self.ended = True
            raise AssertionError

    model = Hanging()
    stage.models[None] = model

    async def hold() -> None:
        task = asyncio.create_task(talk.adapter(stage.agent()).turn(talk.request()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(hold())
    assert model.ended


def calls_of(stage: Stage) -> list[str]:
    import sys

    found = [one for name, one in sys.modules.items() if name.startswith("tools_") and hasattr(one, "CALLS")]
    module = next(one for one in found if Path(str(one.__file__)) == (stage.root / "agents/tools.py").resolve())
    return list(module.CALLS)


def test_calls_of_tools_are_recorded_and_played_back(stage: Stage, talk: Talk) -> None:
    stage.models["inner"] = Scripted("from inside")
    stage.write(
        **{
            "agents/inner.md": "---\nmodel: inner\n---\n",
            "agents/x.md": "---\ncommands: ['tools.py:tide']\nagents: [inner]\ntools: {look: {results: [1, 2]}}\n---\n",
        }
    )
    script = [
        uses("tide", {"place": "Bree"}),
        uses("tide", {"place": "Bree"}),
        uses("tide", {"place": "nowhere"}),
        uses("inner", {"message": "Hi"}),
        uses("look", {}),
        "Done.",
    ]

    def once(mode: Any) -> tuple[list[str], Reply, list[tuple[str, Any]]]:
        model = play(stage, *script)
        stage.cassette = Cassette(talk.folder / "cassette", mode)
        talk.events.clear()
        reply = run(talk.ask(stage.agent()))
        stage.cassette.close()
        return model.results, reply, [(one.type, one.payload.get("tool")) for one in talk.events]

    recorded = once("record")
    assert recorded[0] == [
        "high in Bree (1)", "high in Bree (2)", "error: ValueError: unknown", "from inside", "1",
    ]  # fmt: skip
    before = calls_of(stage)
    assert once("replay") == recorded
    assert calls_of(stage) == before
    boundaries = (talk.folder / "cassette" / "tool.jsonl").read_text().splitlines()
    assert len(boundaries) == 4


def test_a_question_that_was_not_recorded(stage: Stage, talk: Talk) -> None:
    play(stage, CassetteMiss("nothing is recorded for it"))
    error = run(talk.fail(stage.agent()))
    assert (str(error), error.blame, error.retryable) == ("nothing is recorded for it", "environment", False)


def test_a_call_that_was_not_recorded(stage: Stage, talk: Talk) -> None:
    play(stage, uses("tide", {"place": "Bree"}), "Done.")
    stage.cassette = Cassette(talk.folder / "cassette", "record")
    run(talk.ask(stage.agent()))
    stage.cassette.close()
    play(stage, uses("tide", {"place": "Ost"}), "Done.")
    stage.cassette = Cassette(talk.folder / "cassette", "replay")
    error = run(talk.fail(stage.agent()))
    stage.cassette.close()
    assert error.blame == "environment"
    assert "nothing is recorded" in str(error)
