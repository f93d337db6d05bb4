"""The tools of prompt agents: functions, other agents, prepared answers, and all that can go wrong with them."""

import asyncio
from typing import Any

import pytest
from tests.agents.support.prompts import Scripted, Stage, uses
from tests.agents.support.talk import Talk, custom, run
from tests.waiting import until_async

from atp.agents.adapter import Adapter, AgentError, Reply, TurnRequest
from atp.agents.prompt.signature import read_docstring
from atp.models.model import ModelError
from atp.suite.result import Event, ToolCall, Usage

TOOLS = '''
import asyncio, dataclasses, datetime, sys, threading
from pathlib import Path
from typing import Annotated, Any, Literal
from pydantic import BaseModel, Field

SEEN = []
GO_ON = threading.Event()

def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Really.

    Args:
        a: The first.
        b (int): The second,
            if there is one.

    Returns:
        The sum.
    """
    return a + b

async def slow_add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b

class Place(BaseModel):
    name: str
    depth: Annotated[float, Field(ge=0)] = 0

def survey(places: list[Place], unit: Literal["m", "ft"] = "m") -> dict:
    return {"deepest": max(places, key=lambda one: one.depth), "unit": unit}

def note(text: str, *, context: dict, workspace: Path) -> str:
    context["user"] += "!"
    (workspace / "note.txt").write_text(text + context["user"])
    return "noted"

def shadows(json: str, copy: int, /, schema: Any = None) -> list:
    return [json, copy, schema]

def anything(**given: Any) -> dict:
    return given

def untyped(a, b=2):
    return [a, b]

def fails(): raise ValueError("no tide today")
async def fails_later(): raise RuntimeError("later")
def leaves(): sys.exit(3)
def odd(): return object()
def not_a_number(): return float("nan")
def nothing(): return None
def dated(): return {"at": datetime.date(2024, 1, 2), "tags": {"x"}}
def prints(): print("out"); print("err", file=sys.stderr); return "printed"
def add_two(a: int): return a + 2

def wait_for_ever():
    SEEN.append("began")
    GO_ON.wait(60)
    SEEN.append("ended")

async def sleep_for_ever():
    SEEN.append("began")
    try:
        await asyncio.sleep(30)
    finally:
        SEEN.append("cleaned")

def broken_hint(a: "NoSuchType"): ...
def unsayable(a: sys.__class__): ...
class Thing: ...
VALUE = 5
'''


@pytest.fixture
def stage(talk: Talk) -> Stage:
    made = Stage(talk, Scripted())
    made.tools(TOOLS)
    return made


def agent(stage: Stage, talk: Talk, frontmatter: str, *script: Any) -> Scripted:
    """An agent with these tools and a model with this script."""
    model = Scripted(*script)
    stage.models[None] = model
    stage.write(**{"agents/x.md": f"---\n{frontmatter}\n---\nHi"})
    return model


def call(stage: Stage, talk: Talk, tool: str, arguments: Any = None) -> tuple[str, dict[str, Any]]:
    """What the model is told of one call of a function, and the event that was told."""
    model = agent(stage, talk, f"commands: ['tools.py:{tool}']", uses(tool, arguments), "done")
    context = {"user": "ann", "run": 1}
    assert run(talk.ask(stage.agent(), context=context)).output == "done"
    event = next(one for one in talk.events if one.type == "tool_call")
    assert event.payload.pop("duration_ms") >= 0
    return model.results[0], event.payload


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("add", {"a": 1}, "2"),
        ("add", {"a": "1", "b": 4}, "5"),
        ("slow_add", {"a": 1, "b": 2}, "3"),
        (
            "survey",
            {"places": [{"name": "x", "depth": 3}, {"name": "y"}]},
            '{"deepest":{"name":"x","depth":3.0},"unit":"m"}',
        ),
        ("note", {"text": "hi "}, "noted"),
        ("shadows", {"json": "a", "copy": 1}, '["a",1,null]'),
        ("anything", {"b": [1]}, '{"b":[1]}'),
        ("untyped", {"a": {"x": None}}, '[{"x":null},2]'),
        ("nothing", None, "null"),
        ("dated", {}, '{"at":"2024-01-02","tags":["x"]}'),
        ("prints", {}, "printed"),
    ],
)
def test_functions(stage: Stage, talk: Talk, tool: str, arguments: Any, told: str) -> None:
    text, event = call(stage, talk, tool, arguments)
    assert text == told
    assert (event["tool"], event["input"], event["status"]) == (tool, arguments, "success")


def test_what_is_ours_is_given_by_us(stage: Stage, talk: Talk) -> None:
    call(stage, talk, "note", {"text": "hi "})
    assert (talk.workspace / "note.txt").read_text() == "hi ann!"


def test_what_tools_print_goes_to_the_log(stage: Stage, talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    call(stage, talk, "prints")
    assert talk.logs == ["out", "err"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("fails", {}, "ValueError: no tide today"),
        ("fails_later", {}, "RuntimeError: later"),
        ("leaves", {}, "SystemExit: 3"),
        ("odd", {}, "it gave back a value of type object, which is not JSON"),
        ("not_a_number", {}, "it gave back nan, which is not JSON"),
        ("add", {}, "wrong arguments: `a`: Field required"),
        ("add", {"a": "x"}, "wrong arguments: `a`: Input should be a valid integer"),
        ("add", {"a": 1, "c": 2}, "wrong arguments: `c`: Extra inputs are not permitted"),
        ("survey", {"places": [{"name": "x", "depth": -1}]}, "`places.0.depth`: Input should be greater than"),
        ("survey", {"places": [], "unit": "km"}, "`unit`: Input should be 'm' or 'ft'"),
        ("note", {"text": "x", "workspace": "/"}, "`workspace` is not a parameter"),
        ("add", "{not json", "the arguments are not a JSON object"),
    ],
)
def test_what_goes_wrong_in_a_function_is_told_to_the_model(
    stage: Stage, talk: Talk, tool: str, arguments: Any, told: str
) -> None:
    text, event = call(stage, talk, tool, arguments)
    assert text.startswith("error: ")
    assert told in text
    assert (event["status"], event["output"]) == ("error", text.removeprefix("error: "))


def test_a_model_is_told_what_a_function_takes(stage: Stage, talk: Talk) -> None:
    names = ("add", "note", "survey", "anything")
    model = agent(stage, talk, f"commands: [{', '.join(f'tools.py:{name}' for name in names)}]", "done")
    run(talk.ask(stage.agent()))
    add, note, survey, anything = model.asked[0].tools
    assert (add.name, add.description) == ("add", "Add two numbers.\n\nReally.")
    assert add.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first."},
            "b": {"type": "integer", "description": "The second, if there is one."},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert list(note.parameters["properties"]) == ["text"]
    assert survey.parameters["properties"]["unit"]["enum"] == ["m", "ft"]
    assert anything.parameters["additionalProperties"] is True


@pytest.mark.parametrize(
    ("text", "said", "about"),
    [
        ("", "", {}),
        ("One line.", "One line.", {}),
        (
            "A.\n\n:param x: the x\n:param int y: the y\n  and more\n:returns: z",
            "A.",
            {"x": "the x", "y": "the y and more"},
        ),
        ("A.\n\nArgs:\n    x: the x\n\nRaises:\n    y: no parameter", "A.", {"x": "the x"}),
        (
            "A: b\n\nParameters:\n    x (str, optional): the x: really\n    y:\n        the y",
            "A: b",
            {"x": "the x: really", "y": "the y"},
        ),
    ],
)
def test_docstrings(text: str, said: str, about: dict[str, str]) -> None:
    assert read_docstring(text) == (said, about)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("tools.py:ad", "did you mean `add`?"),
        ("nowhere.py:add", "the file nowhere.py is not there"),
        ("tools.py:VALUE", "is not a function"),
        ("tools.py:Thing", "`Thing` is a class"),
        ("tools.py:broken_hint", "its type hints can't be read: NameError"),
        ("tools.py:unsayable", "its parameters can't be described to a model"),
    ],
)
def test_functions_that_are_no_tools(stage: Stage, entry: str, told: str) -> None:
    assert told in stage.refuse(f"---\ncommands: ['{entry}']\n---\n")


def test_two_tools_of_one_name(stage: Stage) -> None:
    stage.write(**{"agents/more/tools.py": "def add(): ..."})
    told = stage.refuse("---\ncommands: ['tools.py:add', 'more/tools.py:add']\n---\n")
    assert "x.md:2:28: two tools are called `add`" in told


def test_a_function_of_a_module_of_the_project(stage: Stage, talk: Talk) -> None:
    stage.write(**{"my_tide_tools.py": "def tide():\n    return 'high'\n"})
    model = agent(stage, talk, "commands: ['my_tide_tools:tide']", uses("tide"), "done")
    run(talk.ask(stage.agent()))
    assert model.results == ["high"]


def test_a_tool_that_there_is_not(stage: Stage, talk: Talk) -> None:
    model = agent(stage, talk, "commands: ['tools.py:add']", uses("ad", {}), uses("rm", {}), "sorry")
    assert run(talk.ask(stage.agent())).output == "sorry"
    assert model.results == [
        "error: there is no tool `ad` (did you mean `add`?)",
        "error: there is no tool `rm` (there are: add)",
    ]
    assert [one.payload["status"] for one in talk.events if one.type == "tool_call"] == ["error", "error"]


CANNED = """
tools:
  weather:
    description: The weather
    when:
      - {arguments: {city: Oslo, days: [1]}, result: snow}
      - {arguments: {city: Rome}, error: no data for Rome}
      - {arguments: {opts: {deep: true}}, results: [a, b]}
    result: {sky: clear}
  flaky:
    results: [{error: busy}, {result: {error: none}}, [1]]
  strict:
    parameters: {type: object, properties: {n: {type: integer}}, required: [n]}
    result: ok
  table:
    when: [{arguments: {a: 1}, result: null}]
"""


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("weather", {"city": "Oslo", "days": [1], "more": 1}, "snow"),
        ("weather", {"city": "Oslo", "days": [1, 2]}, '{"sky":"clear"}'),
        ("weather", {"city": "Rome"}, "error: no data for Rome"),
        ("weather", {"opts": {"deep": True, "x": 1}}, "a"),
        ("weather", {"opts": {"deep": 1}}, '{"sky":"clear"}'),
        ("weather", None, '{"sky":"clear"}'),
        ("strict", {"n": 1}, "ok"),
        ("strict", {}, "error: 'n' is a required property"),
        ("strict", {"n": "x"}, "error: `n`: 'x' is not of type 'integer'"),
        ("table", {"a": 1}, "null"),
        ("table", {"a": 2}, "error: no answer is prepared for these arguments (`tools` of the agent's file)"),
    ],
)
def test_prepared_answers(stage: Stage, talk: Talk, tool: str, arguments: Any, told: str) -> None:
    model = agent(stage, talk, CANNED, uses(tool, arguments), "done")
    run(talk.ask(stage.agent()))
    assert model.results == [told]


def test_prepared_answers_one_after_the_other_also_over_turns(stage: Stage, talk: Talk) -> None:
    model = agent(stage, talk, CANNED, uses("flaky"), uses("flaky"), "first", uses("flaky"), uses("flaky"), "second")

    async def hold() -> list[str]:
        adapter = talk.adapter(stage.agent())
        first = await adapter.turn(talk.request("a"))
        results = model.results
        again = talk.request("b", messages=[*talk.request("a").messages, *first.messages], state=first.state)
        await adapter.turn(again)
        other = Scripted(uses("flaky"), "done")
        stage.models[None] = other
        await adapter.turn(talk.request("c"))
        assert other.results == ["error: busy"]
        return [*results, *model.results[2:]]

    told = run(hold())
    assert told[:3] == ["error: busy", '{"error":"none"}', "[1]"]
    assert told[3].startswith("error: no answer is left: 3 are prepared")


def test_a_prepared_answer_stands_in_for_a_function(stage: Stage, talk: Talk) -> None:
    model = agent(
        stage,
        talk,
        "commands: ['tools.py:add', 'tools.py:leaves']\ntools: {add: {result: 42}}",
        uses("add", {"a": 1}),
        uses("add", {"a": "x"}),
        "done",
    )
    run(talk.ask(stage.agent()))
    assert model.results[0] == "42"
    assert "is not of type 'integer'" in model.results[1]
    assert [one.description for one in model.asked[0].tools if one.name == "add"] == ["Add two numbers.\n\nReally."]


def test_another_agent_as_a_tool(stage: Stage, talk: Talk) -> None:
    helper = Scripted(uses("look", {}), "It is high.", "Again.")
    stage.models["h"] = helper
    stage.write(
        **{
            "agents/sea/helper.md": "---\ndescription: Knows tides\nmodel: h\ntools: {look: {result: 5}}\n---\n"
            "You are $CTX.AGENT"
        }
    )
    model = agent(stage, talk, "agents: [sea.helper]", uses("sea_helper", {"message": "Tide?"}), "High, I hear.")
    context = {"connector": None, "user": "ann", "run": 2}
    reply = run(talk.ask(stage.agent(), context=context))
    assert reply.output == "High, I hear."
    assert model.asked[0].tools[0].description == "Knows tides"
    assert model.results == ["It is high."]
    assert helper.asked[0].messages == [
        {"role": "system", "content": "You are sea.helper"},
        {"role": "user", "content": "Tide?"},
    ]
    assert helper.asked[0].run == 2
    assert [one.payload.get("tool") for one in talk.events] == [
        None,
        None,
        "sea_helper__look",
        None,
        "sea_helper",
        None,
    ]
    assert reply.usage == Usage(input_tokens=40, output_tokens=8, llm_calls=4, tool_calls=2, steps=2)


def test_an_agent_of_another_kind_as_a_tool(stage: Stage, talk: Talk) -> None:
    stage.others["py"] = talk.adapter(custom("echo"))
    model = agent(stage, talk, "agents: [py]", uses("py", {"message": "Hi"}), uses("py", {"message": ""}), "done")
    run(talk.ask(stage.agent()))
    assert model.results[0] == "You said: Hi"
    assert model.results[1].startswith("error: wrong arguments: it takes a `message`")


class Playing(Adapter):
    """Replies, or raises."""

    def __init__(self, outcome: Reply | AgentError) -> None:
        self._outcome = outcome

    async def turn(self, request: TurnRequest) -> Reply:
        if isinstance(self._outcome, AgentError):
            raise self._outcome
        return self._outcome


def test_what_another_agent_tells_only_with_its_answer_counts(stage: Stage, talk: Talk) -> None:
    stage.others["other"] = Playing(
        Reply(
            output={"a": 1},
            tool_calls=[ToolCall(name="rm", arguments={"f": 1}, error="no"), ToolCall(name="ls", result=["x"])],
            usage=Usage(input_tokens=100, output_tokens=1, cost_usd=0.5, tool_calls=2),
        )
    )
    model = agent(stage, talk, "agents: [other]", uses("other", {"message": "x"}), "done")
    reply = run(talk.ask(stage.agent()))
    assert model.results == ['{"a":1}']
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.cost_usd, reply.usage.tool_calls) == (120, 0.5, 3)
    calls = [one.payload["tool"] for one in talk.events if one.type == "tool_call"]
    assert calls == ["other__rm", "other__ls", "other"]
    assert sum(one.payload.get("input_tokens", 0) for one in talk.events) == 120


def test_another_agent_that_fails(stage: Stage, talk: Talk) -> None:
    used = Reply(usage=Usage(input_tokens=5, llm_calls=1))
    stage.others["other"] = Playing(AgentError("agent error: broke", reply=used))
    model = agent(stage, talk, "agents: [other]", uses("other", {"message": "x"}), "sorry")
    reply = run(talk.ask(stage.agent()))
    assert reply.output == "sorry"
    assert model.results == ["error: agent error: broke"]
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.llm_calls) == (25, 3)


def test_another_agent_that_cannot_be_reached(stage: Stage, talk: Talk) -> None:
    stage.others["other"] = Playing(AgentError("no route", "environment", retryable=True))
    agent(stage, talk, "agents: [other]", uses("other", {"message": "x"}), "sorry")
    error = run(talk.fail(stage.agent()))
    assert (str(error), error.blame, error.retryable) == ("no route", "environment", True)
    assert error.reply is not None
    assert error.reply.usage is not None
    assert error.reply.usage.llm_calls == 1


def test_the_model_of_another_agent_that_cannot_be_reached(stage: Stage, talk: Talk) -> None:
    stage.models["h"] = Scripted(ModelError("down", retryable=True))
    stage.write(**{"agents/helper.md": "---\nmodel: h\n---\n"})
    agent(stage, talk, "agents: [helper]", uses("helper", {"message": "x"}), "sorry")
    assert run(talk.fail(stage.agent())).blame == "environment"


def test_agents_that_have_each_other_as_tools(stage: Stage) -> None:
    stage.write(**{"agents/a.md": "---\nagents: [b]\n---\n", "agents/b.md": "---\nagents: [a]\n---\n"})
    told = stage.refuse("---\nagents: [a]\n---\n")
    assert "agents have each other as tools: a.md → b.md → a.md" in told


def test_a_function_that_hangs_does_not_hold_up_a_cancelled_turn(stage: Stage, talk: Talk) -> None:
    agent(stage, talk, "commands: ['tools.py:wait_for_ever']", uses("wait_for_ever"), "done")
    assert _cancel(stage, talk) == ["began"]


def test_a_coroutine_is_cancelled_with_its_turn(stage: Stage, talk: Talk) -> None:
    agent(stage, talk, "commands: ['tools.py:sleep_for_ever']", uses("sleep_for_ever"), "done")
    assert _cancel(stage, talk) == ["began", "cleaned"]


def _cancel(stage: Stage, talk: Talk) -> list[str]:
    """Cancel a turn in the middle of a tool. Returns what the tool had written down when the turn was over."""
    from atp.usercode.code_path import load_function

    async def hold() -> list[str]:
        adapter = talk.adapter(stage.agent())
        tools = load_function(f"{stage.root}/agents/tools.py:wait_for_ever", (talk.around.base,)).__globals__
        seen: list[str] = tools["SEEN"]
        task = asyncio.create_task(adapter.turn(talk.request()))
        await until_async(lambda: "began" in seen)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        then = list(seen)
        tools["GO_ON"].set()
        return then

    return run(hold())


def test_events_of_other_agents_do_not_count_as_our_own_steps(stage: Stage, talk: Talk) -> None:
    class Telling(Adapter):
        def __init__(self) -> None:
            pass

        async def turn(self, request: TurnRequest) -> Reply:
            request.emit(Event(type="progress", payload={"current_step": 99, "message": "far"}))
            return Reply(output="x")

    stage.others["other"] = Telling()
    agent(stage, talk, "agents: [other]", uses("other", {"message": "x"}), "done")
    run(talk.ask(stage.agent()))
    assert [one.payload for one in talk.events if one.type == "progress"] == [{"message": "far"}]
