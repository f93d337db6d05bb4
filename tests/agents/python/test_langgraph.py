"""Agents that are LangGraph graphs, in our process and in an environment of their own."""

import asyncio
import secrets
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.talk import HERE, LimitPassed, Talk, make_agent, run
from tests.engine.support.project import Project

from atp.agents.adapter import Adapter, Reply
from atp.base.errors import ConfigurationError
from atp.engine.trial.conversation import LimitExceeded as EngineLimit
from atp.engine.trial.conversation import Watch
from atp.suite.agent import Agent
from atp.suite.capabilities import Capabilities
from atp.suite.case import Limits
from atp.suite.meter import Meter
from atp.suite.result import Transcript

GRAPHS = HERE / "graphs.py"
NAME_IT = "name it: `graph_path: file.py:name`"


def graph(name: str, **config: Any) -> Agent:
    """A graph of `graphs.py`."""
    place = {} if "module" in config or "graph_path" in config else {"graph_path": f"{GRAPHS}:{name}"}
    return make_agent({"name": "g", "type": "langgraph", "config": {**place, **config}})


@pytest.fixture(params=["here", "elsewhere"])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    """In our process, or in a worker: the same must come of both."""
    return {} if request.param == "here" else {"python": sys.executable}


async def converse(talk: Talk, adapter: Adapter, *prompts: str, session: str | None = None) -> list[Reply]:
    """A conversation, as the engine leads it: each has a session of its own."""
    session = session or secrets.token_hex(8)
    messages: list[dict[str, Any]] = []
    replies: list[Reply] = []
    for turn, prompt in enumerate(prompts, 1):
        messages.append({"role": "user", "content": prompt})
        state = replies[-1].state if replies else None
        context = {"session_id": session, "turn": turn}
        reply = await adapter.turn(
            talk.request(prompt, messages=list(messages), turn=turn, state=state, context=context)
        )
        messages.append({"role": "assistant", "content": reply.output})
        replies.append(reply)
    return replies


def outputs(talk: Talk, agent: Agent, *prompts: str) -> list[Any]:
    async def scene() -> list[Any]:
        adapter = talk.adapter(agent)
        try:
            await adapter.start()
            return [reply.output for reply in await converse(talk, adapter, *prompts)]
        finally:
            await adapter.close()

    return run(scene())


def told(talk: Talk, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
    return [(one.type, {**one.payload}) for one in talk.events if one.type in kinds]


def test_a_graph_with_tools(talk: Talk, where: dict[str, Any]) -> None:
    reply = run(talk.ask(graph("stateless", **where), "weather Paris"))
    assert reply.output == 'The tool said: {"city": "Paris", "sky": "clear"}'
    assert [event.type for event in talk.events] == [
        *("progress", "llm_request", "progress", "tool_call", "progress", "llm_request"),
    ]
    (call,) = [event.payload for event in talk.events if event.type == "tool_call"]
    assert call.pop("duration_ms") >= 0
    assert call == {
        "tool": "weather",
        "input": {"city": "Paris"},
        "output": {"city": "Paris", "sky": "clear"},
        "status": "success",
    }
    assert told(talk, "progress") == [
        ("progress", {"current_step": 1, "message": "chat"}),
        ("progress", {"current_step": 2, "message": "tools"}),
        ("progress", {"current_step": 3, "message": "chat"}),
    ]
    models = [event.payload for event in talk.events if event.type == "llm_request"]
    assert [(one["model"], one["input_tokens"], one["output_tokens"]) for one in models] == [
        ("scripted-1", 1, 2),
        ("scripted-1", 3, 2),
    ]
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.llm_calls) == (4, 4, 2)
    assert reply.tool_calls == []
    assert talk.logs == ["looking up Paris"]
    assert talk.alive() == []


@pytest.mark.parametrize("name", ["draft", "stateless", "remembering", "make_graph", "make_draft"])
def test_all_that_can_be_a_graph(talk: Talk, name: str) -> None:
    assert outputs(talk, graph(name), "Hi") == ["I heard: Hi (1 messages)"]


def test_a_factory_that_takes_time_and_the_configuration(talk: Talk, where: dict[str, Any]) -> None:
    agent = graph("make_graph_later", model="m-1", temperature=0.5, **where)
    assert outputs(talk, agent, "Hi", "again") == ["made for {'model': 'm-1', 'temperature': 0.5}"] * 2


def test_a_factory_that_makes_something_else(talk: Talk) -> None:
    error = run(talk.fail(graph("make_no_graph")))
    assert str(error) == "agent error: TypeError: `make_no_graph` made an int, which is not a graph"


def test_a_function_that_can_make_nothing(talk: Talk) -> None:
    with pytest.raises(ConfigurationError) as caught:
        talk.adapter(graph("one_node_of"))
    assert str(caught.value).endswith("`one_node_of` makes no graph: it takes `node`, `shape`")
    assert caught.value.hint is not None
    assert "a function that takes nothing or the configuration" in caught.value.hint


def test_a_graph_that_says_nothing(talk: Talk, where: dict[str, Any]) -> None:
    assert run(talk.ask(graph("mute", **where))).output is None
    assert talk.logs == ["the graph added no message; its state has: messages, mood"]


@pytest.mark.parametrize(
    ("name", "python"),
    [
        ("draft", None),
        ("stateless", None),
        ("remembering", None),
        ("without_asyncio", None),
        ("stateless", sys.executable),
        ("remembering", sys.executable),
    ],
)
def test_a_conversation(talk: Talk, name: str, python: str | None) -> None:
    """With a checkpointer only what is new is sent, without one all of it: the graph sees the same."""
    assert outputs(talk, graph(name, python=python), "a", "b", "c") == [
        "I heard: a (1 messages)",
        "I heard: a | b (3 messages)",
        "I heard: a | b | c (5 messages)",
    ]


def test_state_beside_the_messages_is_kept_in_a_conversation_and_not_between_two(talk: Talk) -> None:
    async def scene() -> list[Any]:
        adapter = talk.adapter(graph("counting"))
        first = await converse(talk, adapter, "a", "b", session="one")
        second = await converse(talk, adapter, "a", session="two")
        return [reply.output for reply in (*first, *second)]

    assert run(scene()) == ["turn 1, 1 messages", "turn 2, 3 messages", "turn 1, 1 messages"]


def test_a_conversation_that_goes_on_from_another(talk: Talk) -> None:
    """After befores the history and the state come from another session, whose thread is not this one's."""

    async def scene() -> Any:
        adapter = talk.adapter(graph("remembering"))
        (before,) = await converse(talk, adapter, "a", session="before")
        messages = [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": before.output},
            {"role": "user", "content": "b"},
        ]
        context = {"session_id": "after", "turn": 2}
        return (await adapter.turn(talk.request("b", messages=messages, context=context, state=before.state))).output

    assert run(scene()) == "I heard: a | b (3 messages)"


def test_messages_of_all_roles(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(b"cat")
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi", "metadata": {"x": 1}},
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "3", "tool_call_id": "1"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "source": "file://cat.png"}]},
    ]
    output = run(talk.ask(graph("telling"), "a", messages=messages)).output
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,Y2F0"}}
    expected = [
        ["system", "Be brief."],
        ["human", "Hi"],
        ["ai", ""],
        ["tool", "3"],
        ["human", [{"type": "text", "text": "a"}, image]],
    ]
    assert output == str(expected)


def test_settings_go_to_the_configurable_below_the_options_of_the_case(talk: Talk, where: dict[str, Any]) -> None:
    agent = graph("configured", model="gpt-4", temperature=0.7, style="dry", parallel=2, **where)
    given = {"model": "gpt-4", "temperature": 1, "style": "dry", "thread_id": "s-1", "workspace": str(talk.workspace)}
    assert run(talk.ask(agent, options={"temperature": 1})).output == str(sorted(given.items()))


def test_settings_go_to_the_context_of_a_graph_that_has_one(talk: Talk) -> None:
    assert run(talk.ask(graph("styled", style="dry", temperature=1))).output == "in dry"


def test_a_tool_that_is_given_more_than_the_model_asked_for(talk: Talk) -> None:
    run(talk.ask(graph("injected")))
    (call,) = [payload for _, payload in told(talk, "tool_call")]
    assert (call["tool"], call["input"], call["output"]) == ("remember", {"word": "x"}, "kept x of 2")


def test_a_tool_that_a_node_calls(talk: Talk) -> None:
    run(talk.ask(graph("direct")))
    (call,) = [payload for _, payload in told(talk, "tool_call")]
    assert (call["tool"], call["input"], call["output"]["sky"]) == ("weather", {"city": "Oslo"}, "clear")


def test_a_state_without_messages(talk: Talk) -> None:
    assert run(talk.ask(graph("summing"), "four")).output == {"question": "four", "total": 4, "seen": ["four"]}


def test_data_of_the_task_goes_into_the_state(talk: Talk) -> None:
    task = {"description": "add", "input_data": {"amount": 3, "colour": "red"}}
    assert run(talk.ask(graph("silent"), "add", task=task)).output == {"amount": 4}
    assert talk.logs == ["the graph takes no colour: left out of the `input_data`"]


def test_what_a_graph_puts_out(talk: Talk) -> None:
    assert run(talk.ask(graph("discreet"), "four")).output == {"total": 4}


def test_a_state_that_takes_no_prompt(talk: Talk) -> None:
    error = run(talk.fail(graph("silent")))
    assert "the graph's state has no `messages` and nothing else that takes the prompt: it has amount" in str(error)


def test_errors_of_tools_are_told(talk: Talk, where: dict[str, Any]) -> None:
    reply = run(talk.ask(graph("stateless", **where), "weather Atlantis"))
    assert "no such city" in reply.output
    (call,) = [event.payload for event in talk.events if event.type == "tool_call"]
    assert (call["tool"], call["input"], call["status"]) == ("weather", {"city": "Atlantis"}, "error")
    assert "no such city" in call["output"]


def test_a_tool_that_does_not_exist(talk: Talk) -> None:
    run(talk.ask(graph("stateless"), "misname"))
    (call,) = [event.payload for event in talk.events if event.type == "tool_call"]
    assert (call["tool"], call["status"]) == ("wether", "error")
    assert "not a valid tool" in call["output"]


def test_several_calls_at_once(talk: Talk) -> None:
    run(talk.ask(graph("stateless"), "weather Rome Oslo"))
    calls = [event.payload for event in talk.events if event.type == "tool_call"]
    assert sorted(call["input"]["city"] for call in calls) == ["Oslo", "Rome"]


def test_calls_past_langchains_tools(talk: Talk) -> None:
    reply = run(talk.ask(graph("by_hand")))
    assert told(talk, "tool_call") == [
        ("tool_call", {"tool": "add", "input": {"a": 1}, "output": [1, 2], "status": "success"})
    ]
    assert (reply.output, reply.tool_calls) == ("done", [])


def test_calls_that_the_user_is_to_carry_out(talk: Talk) -> None:
    reply = run(talk.ask(graph("calls_only")))
    assert [(call.name, call.arguments, call.result) for call in reply.tool_calls] == [("open_door", {"door": 2}, None)]


def test_a_graph_in_a_graph(talk: Talk) -> None:
    run(talk.ask(graph("nested")))
    steps = [
        (event.payload["current_step"], event.payload["message"]) for event in talk.events if event.type == "progress"
    ]
    assert steps == [(1, "node"), (1, "node/node")]


def test_an_error_in_a_node(talk: Talk, where: dict[str, Any]) -> None:
    error = run(talk.fail(graph("failing", **where)))
    assert str(error).startswith("agent error: LookupError: the node broke")
    assert error.blame == "agent"
    assert any("graphs.py" in line for line in talk.logs)


def test_an_exit_in_a_node_is_no_exit(talk: Talk) -> None:
    async def scene() -> list[str]:
        adapter = talk.adapter(graph("exiting", python=sys.executable))
        found = []
        try:
            for _ in range(2):
                try:
                    await adapter.turn(talk.request())
                except Exception as error:
                    found.append(str(error))
        finally:
            await adapter.close()
        return found

    assert run(scene()) == ["agent error: SystemExit: 0"] * 2


def test_what_a_graph_did_before_its_process_died_is_known(talk: Talk) -> None:
    error = run(talk.fail(graph("dying", python=sys.executable)))
    assert str(error) == "agent error: its process ended: exit code 3: looking up Oslo"
    assert [event.type for event in talk.events] == ["progress", "tool_call"]


def test_what_goes_on_after_a_turn_belongs_to_no_other(talk: Talk) -> None:
    for name in ("going_on", "forking"):
        talk.events.clear()
        assert outputs(talk, graph(name, python=sys.executable), "a", "b") == ["done", "done"]
        assert [event.type for event in talk.events] == ["progress", "progress"]


@pytest.mark.parametrize(
    ("which", "output"),
    [
        ("model", "<Opaque>|thing=<object"),
        ("bytes", "thing=b'"),
        ("ring", "{'ring': {...}}"),
        ("mute", "<Mute>"),
        ("nested", {"fine": 1, "inner": {"odd": "<Mute>"}}),
        ("half", "half ?"),
        ("error", "Speechless: <Speechless>"),
        ("half error", "RuntimeError: half ?"),
        ("own message", "half ?"),
    ],
)
def test_to_tell_of_a_tool_does_not_break_its_graph(talk: Talk, where: dict[str, Any], which: str, output: Any) -> None:
    assert run(talk.ask(graph("is_odd", **where), which)).output == "well"
    (call,) = [payload for _, payload in told(talk, "tool_call")]
    if isinstance(output, str):
        assert any(one in str(call["output"]) for one in output.split("|"))
    else:
        assert call["output"] == output


def test_a_draft_whose_state_cannot_be_written_down(talk: Talk) -> None:
    assert outputs(talk, graph("draft_with_artifacts"), "a", "b") == ["well", "well"]


def test_an_event_that_is_not_json(talk: Talk, where: dict[str, Any]) -> None:
    error = run(talk.fail(graph("hands_over_what_is_no_json", **where)))
    assert str(error) == "agent error: returned a set at `artifacts[0]`, which is not JSON"
    assert [event.type for event in talk.events] == ["progress"]


def test_a_graph_that_asks_a_person(talk: Talk, where: dict[str, Any]) -> None:
    error = run(talk.fail(graph("asking", **where)))
    assert str(error) == "agent error: Interrupted: the graph waits for a person: may I?, and there is none"


def test_the_recursion_limit_of_langgraph(talk: Talk) -> None:
    error = run(talk.fail(graph("short_loop")))
    assert "GraphRecursionError: Recursion limit of 5 reached" in str(error)


@pytest.mark.parametrize(
    ("limit", "passed", "python"),
    [(31, False, None), (30, False, None), (29, True, None), (2, True, None), (29, True, sys.executable)],
)
def test_max_steps_is_the_limit(talk: Talk, limit: int, passed: bool, python: str | None) -> None:
    """The loop takes 30 steps. One that takes just as many as are allowed is well."""
    watch = Watch(Limits(max_steps=limit), Transcript())
    ask = talk.ask(graph("loop", python=python), constraints={"max_steps": limit}, emit=watch.event)
    if passed:
        with pytest.raises(EngineLimit, match=f"max_steps exceeded: {limit + 1} of {limit} steps"):
            run(ask)
    else:
        run(ask)
    steps = [event.payload["current_step"] for event in watch.transcript.events]
    assert steps == list(range(1, min(30, limit + 1) + 1))


def test_steps_count_on_over_the_turns(talk: Talk) -> None:
    async def scene() -> None:
        await converse(talk, talk.adapter(graph("remembering")), "a", "weather Paris")

    run(scene())
    assert [event.payload["current_step"] for event in talk.events if event.type == "progress"] == [1, 2, 3, 4]
    meter = Meter()
    for event in talk.events:
        meter.event(event)
    assert (meter.steps, meter.tokens) == (4, 1 + 3 + 5 + 3 * 2)


def test_a_limit_stops_it_midway(talk: Talk, where: dict[str, Any]) -> None:
    talk.most_events = 3
    with pytest.raises(LimitPassed):
        run(talk.ask(graph("stateless", **where), "weather Paris"))
    assert [event.type for event in talk.events] == ["progress", "llm_request", "progress", "tool_call"]
    assert talk.alive() == []


def test_ten_megabytes(talk: Talk, where: dict[str, Any]) -> None:
    assert run(talk.ask(graph("large", **where))).output == "ä🙂" * 1_700_000


def test_cancelled(talk: Talk, where: dict[str, Any]) -> None:
    async def scene() -> None:
        adapter = talk.adapter(graph("waiting", **where))
        began = asyncio.Event()
        try:
            turn = asyncio.ensure_future(adapter.turn(talk.request(emit=lambda _event: began.set())))
            await began.wait()
            turn.cancel()
            await asyncio.wait({turn})
            assert turn.cancelled()
        finally:
            await adapter.close()

    run(scene())
    assert talk.alive() == []


def copied(folder: Path, text: str) -> str:
    (folder / "my_graph.py").write_text(f"import sys\nsys.path.insert(0, {str(HERE)!r})\nimport graphs\n{text}\n")
    return "my_graph.py"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.parametrize(
    "text",
    [
        "graph = graphs.stateless",
        "builder = graphs.make_draft()\ngraph = builder.compile()\napp = graph",
        "builder = graphs.make_draft()",
        "def make_graph():\n    return graphs.stateless\ndef other(): ...",
    ],
)
def test_the_only_graph_of_a_file(talk: Talk, tmp_path: Path, text: str) -> None:
    agent = graph("", graph_path=f"./{copied(tmp_path, text)}")
    assert outputs(talk, agent, "Hi") == ["I heard: Hi (1 messages)"]


def test_a_module_and_a_name(talk: Talk, tmp_path: Path) -> None:
    shutil.copy(GRAPHS, tmp_path / "shop_graphs.py")
    agent = graph("", module="shop_graphs", graph="stateless")
    assert outputs(talk, agent, "Hi") == ["I heard: Hi (1 messages)"]
    sys.modules.pop("shop_graphs")


@pytest.mark.parametrize(
    ("text", "name", "message", "hint"),
    [
        (
            "",
            "",
            "there is no graph in my_graph.py",
            "name it: `graph_path: file.py:name`, or the function that makes it",
        ),
        (
            "b = graphs.stateless\na = graphs.loop",
            "",
            "there are 2 graphs in my_graph.py: a, b",
            NAME_IT,
        ),
        (
            "weather_graph = graphs.stateless",
            ":weather_grap",
            "there is no `weather_grap` in",
            "did you mean `weather_graph`?",
        ),
        ("amount = 3", ":amount", "`amount` is not a graph", "it is of type int"),
        (
            "import nothing_like_it",
            "",
            "ModuleNotFoundError: No module named 'nothing_like_it'",
            f"install what has `nothing_like_it` for {sys.executable}",
        ),
        ("x = 1 / 0", "", "ZeroDivisionError: division by zero (", None),
    ],
)
def test_graphs_that_are_not_there(
    talk: Talk, tmp_path: Path, text: str, name: str, message: str, hint: str | None
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        talk.adapter(graph("", graph_path=copied(tmp_path, text) + name))
    assert message in str(caught.value)
    assert caught.value.hint == hint


def test_a_file_that_is_not_there(talk: Talk, where: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"the file ./agents/x.py is not there"):
        talk.adapter(graph("", graph_path="./agents/x.py", **where))


def test_langgraph_is_not_installed(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.pregel", None)
    with pytest.raises(ConfigurationError, match="LangGraph is not installed in this environment") as caught:
        talk.adapter(graph("stateless"))
    assert "`python:`" in (caught.value.hint or "")


def test_a_workspace_of_the_users_own(talk: Talk) -> None:
    """A setting of that name was there before the trial's folder was."""
    assert "('workspace', 'mine')" in run(talk.ask(graph("configured", workspace="mine"))).output


def test_the_workspace_goes_to_the_context_of_a_graph_that_asks_for_it(talk: Talk, where: dict[str, Any]) -> None:
    assert run(talk.ask(graph("placed", **where))).output == f"in {talk.workspace}"
    assert talk.workspace.is_dir()


def test_what_a_graph_hands_over(talk: Talk, where: dict[str, Any]) -> None:
    """Artifacts, and what models cost, by events of its own, also from a graph in a node; the rest is for others."""
    reply = run(talk.ask(graph("handing_over", **where)))
    assert [(one.name, one.text, one.data) for one in reply.artifacts] == [
        ("report.txt", "all well ✓", None),
        ("summary", None, {"well": True}),
    ]
    assert (talk.workspace / "report.txt").read_text("utf-8") == "all well ✓"
    assert reply.usage is not None
    assert (reply.usage.cost_usd, reply.usage.llm_calls) == (0.75, 0)
    assert reply.output == "done"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("misnaming", "the event `atp` takes `artifacts` and `usage`; it has artefacts"),
        ("misshaping", "the event `atp` takes `artifacts` and `usage`; it is 'done'"),
        ("mispricing", "`usage.cost_usd` is not a number from 0"),
    ],
)
def test_what_a_graph_hands_over_amiss(talk: Talk, where: dict[str, Any], name: str, message: str) -> None:
    error = run(talk.fail(graph(name, **where)))
    assert message in str(error)
    assert error.blame == "agent"


def test_there_is_nothing_that_it_can_not_report(talk: Talk) -> None:
    assert talk.adapter(graph("stateless")).capabilities == Capabilities()


def test_from_the_command_line(tmp_path: Path) -> None:
    """Checks see the tools, chains are conversations, limits hold, and what a node does wrong stays in its trial."""
    project = Project(tmp_path)
    names = {"weather": "remembering", "loop": "loop", "exit": "exiting", "ask": "asking", "wait": "waiting"}
    agents = [
        {"name": name, "type": "langgraph", "config": {"graph_path": f"{GRAPHS}:{found}"}}
        for name, found in names.items()
    ]
    checks = [
        {"type": "tool_called", "name": "weather", "arguments": {"city": "Paris"}, "times": 1},
        {"type": "tool_result", "name": "weather", "value": {"city": "Paris", "sky": "clear"}},
        {"type": "not_tool_called", "name": "search"},
    ]
    tests: list[dict[str, Any]] = [
        {"id": "tools", "agents": ["weather"], "input": "weather Paris", "assertions": checks},
        {"id": "loops", "agents": ["loop"], "constraints": {"max_steps": 5}},
        {"id": "exits", "agents": ["exit"]},
        {"id": "asks", "agents": ["ask"]},
        {"id": "waits", "agents": ["wait"], "constraints": {"timeout_seconds": 3}},
    ]
    ran = project.test(project.suite(agents, tests))
    assert {name: (one["status"], one["error"]) for name, one in ran.results.items()} == {
        "tools": ("passed", None),
        "loops": ("failed", "max_steps exceeded: 6 of 5 steps, 1 too many"),
        "exits": ("error", "agent error: SystemExit: 0"),
        "asks": ("error", "agent error: Interrupted: the graph waits for a person: may I?, and there is none"),
        "waits": ("timeout", "timeout after 3s"),
    }
    assert ran.code == 1


def test_a_chain_of_prompts_in_markdown(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("agents/talker.md", f"---\ntype: langgraph\nconfig:\n  graph_path: {GRAPHS}:remembering\n---\n")
    project.write(
        "tests/talk.test.md",
        """
        ---
        target: agents/talker.md
        ---
        # Talk
        ## Remembers
        **Prompts:**
        - Chain:
          1. one
          2. two

        **Expectations:**
        - The output contains "one | two"
        """,
    )
    ran = project.test("tests/talk.test.md")
    assert [one["status"] for one in ran.results.values()] == ["passed"], ran.out


def test_a_graph_whose_state_is_a_plain_typed_dict(project: Project) -> None:
    project.write(
        "graph.py",
        """
        from typing import Annotated, TypedDict

        from langgraph.graph import END, START, StateGraph, add_messages

        class State(TypedDict):
            messages: Annotated[list, add_messages]

        def answer(state):
            return {"messages": [{"role": "assistant", "content": "hello " + state["messages"][-1].content}]}

        builder = StateGraph(State)
        builder.add_node("answer", answer)
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        graph = builder.compile()
        """,
    )
    agent = {"name": "graph", "type": "langgraph", "config": {"graph_path": "graph.py:graph"}}
    ran = project.test(project.suite([agent], [{"id": "a", "assertions": [{"type": "equals", "value": "hello a"}]}]))
    assert ran.statuses == {"a": "passed"}


def test_usage_of_messages_that_a_node_makes_itself_is_counted_once(talk: Talk, where: dict[str, Any]) -> None:
    reply = run(talk.ask(graph("by_another_library", **where), "x"))
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.llm_calls) == (10, 6, 2)
