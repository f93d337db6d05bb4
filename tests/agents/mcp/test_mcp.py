"""MCP servers as tools of prompt agents, over stdio: results, scopes, and every way a server can go wrong."""

import asyncio
import json
from typing import Any

import pytest
from tests.agents.support.mcp_stage import McpStage, ask, fail, started
from tests.agents.support.prompts import Says, uses
from tests.agents.support.talk import Talk, run
from tests.waiting import until_async

from atp.agents.mcp.tools import LARGEST_RESULT
from atp.models.cassettes.cassette import Cassette


def test_results_of_every_kind(talk: Talk) -> None:
    script = [
        uses("ex__add", {"a": 1, "b": 2}),
        uses("ex__forecast", {"city": "Zürich 🌤"}),
        uses("ex__greet", {"name": "Ольга"}),
        uses("ex__picture"),
        uses("ex__parcel"),
        uses("ex__na_ve_tool"),
        uses("ex__fail", {"why": "the sky fell"}),
        uses("ex__refuse"),
        uses("ex__add", {"a": "one"}),
        uses("ex__nothing"),
    ]
    stage = McpStage(talk, *script, "done")
    reply = run(ask(stage, stage.agent_with(ex=stage.stdio())))
    assert reply.output == "done"
    results = stage.results
    assert results[:4] == [
        3,
        {"city": "Zürich 🌤", "sky": "clear", "degrees": 21.5},
        "Hello, Ольга!",
        "[image: image/png, 40 bytes]",
    ]
    assert results[4] == (
        "Here it is.\n[audio: audio/wav, 4 bytes]\n[resource: memo://one]\nBuy milk\n"
        "[resource: memo://two, application/pdf, 4 bytes]\n[resource: https://example.com/x (The x)]"
    )
    assert results[5] == "odd"
    assert [one.payload["status"] for one in stage.calls] == ["success"] * 6 + ["error"] * 4
    assert results[6:8] == ["Error executing tool fail: the sky fell", "not today"]
    assert "there is no tool `ex__nothing`" in results[9]
    assert "error: not today" in stage.scripted.results
    add = stage.scripted.asked[0].tools[0]
    assert (add.name, add.description, add.parameters["required"]) == ("ex__add", "Adds two numbers.", ["a", "b"])
    assert reply.usage is not None
    assert reply.usage.tool_calls == 10
    assert (stage.count, stage.alive) == (1, [])


def test_only_the_tools_that_are_chosen(talk: Talk) -> None:
    stage = McpStage(talk, "done")
    chosen = stage.stdio(tools=["add", "f*"], exclude=["fail"])
    run(ask(stage, stage.agent_with("commands: []", one=chosen)))
    assert [one.name for one in stage.scripted.asked[0].tools] == ["one__add", "one__forecast"]


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({"tools": ["ad"]}, "`tools` of the MCP server `ex`: it has no tool `ad` (did you mean `add`?)"),
        ({"exclude": ["delete_*"]}, "`exclude` of the MCP server `ex`: it has no tool `delete_*` (there are: add,"),
    ],
)
def test_a_choice_that_fits_nothing(talk: Talk, choice: dict[str, Any], told: str) -> None:
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(ex=stage.stdio(**choice))))
    assert told in str(error)
    assert (error.blame, stage.alive) == ("environment", [])


def test_too_many_tools(talk: Talk) -> None:
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(ex=stage.stdio("many", "200"))))
    assert "the agent has 216 tools, and models take at most 128: choose with `tools`" in str(error)


def test_a_name_that_is_too_long(talk: Talk) -> None:
    stage = McpStage(talk)
    name = "s" * 32
    error = run(fail(stage, stage.agent_with("", **{name: stage.stdio("long", tools=["l*"])})))
    assert "has a name that is too long" in str(error)


def test_prepared_answers_stand_in_for_a_tool(talk: Talk) -> None:
    stage = McpStage(talk, uses("ex__add", {"a": 1, "b": 2}), uses("ex__add", {"a": "x"}), "done")
    run(ask(stage, stage.agent_with("tools: {ex__add: {result: 99}}", ex=stage.stdio(tools=["add"]))))
    assert stage.results[0] == 99
    assert "'x' is not of type 'integer'" in stage.results[1]
    assert stage.scripted.asked[0].tools[0].description == "Adds two numbers."


def test_one_server_for_the_run(talk: Talk) -> None:
    """Its state is shared; what it runs with is what was given, and nothing else."""
    stage = McpStage(talk, uses("ex__counted"), "one", uses("ex__counted"), "two", uses("ex__where"), "three")
    adapter = stage.agent_with(ex=stage.stdio(env={"API_TOKEN": "t"}))

    async def talks() -> None:
        async with started(adapter):
            for trial in ("trial-1", "trial-2", "trial-3"):
                await adapter.turn(talk.request(task_id=trial))
                adapter.end_trial(trial)
            assert len(stage.alive) == 1

    run(talks())
    assert stage.results == [1, 2, {"cwd": str(stage.root / "agents"), "run": talk.marker, "token": "t"}]
    assert (stage.count, stage.alive) == (1, [])


def test_one_server_for_each_trial(talk: Talk) -> None:
    """It keeps its state over the turns of a trial, works in the trial's workspace, and ends with it."""
    stage = McpStage(
        talk,
        *(uses("ex__counted"), "a", uses("ex__counted"), "b"),
        *(uses("ex__counted"), uses("ex__write", {"path": "x.txt", "text": "é"}), "c"),
    )
    adapter = stage.agent_with(ex=stage.stdio(scope="trial"))

    async def talks() -> None:
        async with started(adapter):
            assert stage.count == 0
            await adapter.turn(talk.request(task_id="trial-1"))
            await adapter.turn(talk.request(task_id="trial-1", turn=2))
            assert len(stage.alive) == 1
            adapter.end_trial("trial-1")
            await until_async(lambda: stage.alive == [])
            await adapter.turn(talk.request(task_id="trial-2"))

    run(talks())
    assert stage.results == [1, 2, 1, "wrote x.txt"]
    assert (talk.workspace / "x.txt").read_text(encoding="utf-8") == "é"
    assert (stage.count, stage.alive) == (2, [])


def test_a_program_that_is_not_there(talk: Talk) -> None:
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(ex={"command": "no-such-program-here"})))
    assert str(error) == (
        "the MCP server `ex` can't be started: `no-such-program-here` can't be started: No such file or directory"
    )
    assert (error.blame, error.retryable) == ("environment", False)


def test_a_server_that_ends_at_once(talk: Talk) -> None:
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(ex=stage.stdio("broken"))))
    assert str(error) == ("the MCP server `ex` can't be started: exit code 1; it wrote: no configuration found")
    assert (error.blame, stage.alive) == ("environment", [])


def test_a_server_that_never_answers(talk: Talk) -> None:
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(ex=stage.stdio("mute", ready_within="1s"))))
    assert str(error) == "the MCP server `ex` can't be started: it did not answer within 1s (`ready_within`)"
    assert stage.alive == []


def test_a_server_that_prints_to_its_stdout(talk: Talk) -> None:
    """Words between its messages are passed over, and told."""
    stage = McpStage(talk, uses("ex__add", {"a": 1, "b": 1}), "done")
    run(ask(stage, stage.agent_with(ex=stage.stdio("chatty"))))
    assert stage.results == [2]
    assert "ex: (on stdout, where only messages belong) Welcome to the server!" in talk.logs


def test_its_stderr_goes_to_the_log(talk: Talk) -> None:
    stage = McpStage(talk, uses("ex__mutter", {"text": "schön"}), "done")
    run(ask(stage, stage.agent_with(ex=stage.stdio())))
    assert talk.logs == ["ex: schön"]


def test_a_server_that_dies_is_started_again_once(talk: Talk) -> None:
    once = str(talk.folder / "once")
    stage = McpStage(talk, uses("ex__die", {"once": once}), uses("ex__counted"), "done")
    run(ask(stage, stage.agent_with(ex=stage.stdio())))
    assert stage.results == ["alive", 1]
    assert stage.count == 2
    assert "ex: going down" in talk.logs
    gone = "the MCP server `ex` is gone (exit code 7; it wrote: going down)"
    assert any(line.startswith(gone) for line in talk.logs)


def test_a_server_that_dies_again_is_the_environment_s_error(talk: Talk) -> None:
    stage = McpStage(talk, uses("ex__die"))
    error = run(fail(stage, stage.agent_with(ex=stage.stdio())))
    assert "the MCP server `ex` is gone, and was started again once: exit code 7" in str(error)
    assert (error.blame, stage.count, stage.alive) == ("environment", 2, [])
    assert error.reply is not None
    assert error.reply.usage is not None
    assert error.reply.usage.llm_calls == 1


def test_a_call_that_hangs(talk: Talk) -> None:
    stage = McpStage(talk, uses("ex__hang"), uses("ex__add", {"a": 2, "b": 2}), "done")
    run(ask(stage, stage.agent_with(ex=stage.stdio(timeout="1s"))))
    assert stage.results == ["no answer within 1s", 4]


def test_large_results(talk: Talk) -> None:
    script = [uses("ex__huge", {"size": 5_000_000}), uses("ex__huge", {"size": LARGEST_RESULT + 1}), "done"]
    stage = McpStage(talk, *script)
    run(ask(stage, stage.agent_with(ex=stage.stdio())))
    assert stage.results[0] == "é" * 5_000_000
    assert stage.results[1] == "the result is larger than 8 MB"


def test_cancelled_in_the_middle(talk: Talk) -> None:
    """During a call, and while the server starts: nothing is left, not even what the server started itself."""
    stage = McpStage(talk, uses("ex__litter"), uses("ex__hang"))
    adapter = stage.agent_with(ex=stage.stdio())

    async def talks() -> None:
        async with started(adapter):
            turn = asyncio.ensure_future(adapter.turn(talk.request()))
            await until_async(lambda: len(stage.scripted.asked) == 2)
            assert len(stage.alive) == 2
            turn.cancel()
            await asyncio.wait({turn})
            assert turn.cancelled()

    run(talks())
    assert stage.alive == []


def test_cancelled_while_it_starts(talk: Talk) -> None:
    stage = McpStage(talk)
    adapter = stage.agent_with(ex=stage.stdio("mute", scope="trial"))

    async def talks() -> None:
        async with started(adapter):
            turn = asyncio.ensure_future(adapter.turn(talk.request()))
            await until_async(lambda: stage.count)
            turn.cancel()
            await asyncio.wait({turn})
            assert stage.alive == []

    run(talks())


def test_closed_while_it_starts(talk: Talk) -> None:
    stage = McpStage(talk)
    adapter = stage.agent_with(ex=stage.stdio("mute"))

    async def talks() -> None:
        starting = asyncio.ensure_future(adapter.start())
        await until_async(lambda: stage.count)
        await adapter.close()
        await asyncio.wait({starting})
        assert "it was stopped" in str(starting.exception())

    run(talks())
    assert stage.alive == []


def test_several_trials_at_a_time(talk: Talk) -> None:
    stage = McpStage(talk)
    stage.scripted._behave = lambda ask: "done" if ask.messages[-1]["role"] == "tool" else uses("ex__counted")
    adapter = stage.agent_with(ex=stage.stdio())

    async def talks() -> None:
        async with started(adapter):
            await asyncio.gather(*(adapter.turn(talk.request(task_id=f"trial-{n}")) for n in range(20)))

    run(talks())
    assert sorted(stage.results) == list(range(1, 21))
    assert stage.count == 1


def test_an_agent_with_servers_as_a_tool(talk: Talk) -> None:
    """It is started when it is first asked; each call is a trial of its own to it."""
    stage = McpStage(
        talk,
        *(uses("inner", {"message": "go"}), uses("ex__counted"), "first"),
        *(uses("inner", {"message": "go"}), uses("ex__counted"), "second"),
        "done",
    )
    servers = json.dumps({"ex": stage.stdio(scope="trial")})
    stage.write(**{"agents/inner.md": f"---\nmcp: {servers}\n---\nInner"})
    adapter = stage.make("---\nagents: [inner]\n---\nHi")

    async def talks() -> None:
        async with started(adapter, *talk.beside):
            await adapter.turn(talk.request())
            await until_async(lambda: stage.alive == [])

    run(talks())
    assert [one.payload["tool"] for one in stage.calls] == ["inner__ex__counted", "inner"] * 2
    assert stage.results == [1, "first", 1, "second"]
    assert stage.count == 2


def test_recorded_and_played_back_without_a_server(talk: Talk) -> None:
    script: list[Says] = [uses("ex__add", {"a": 1, "b": 2}), uses("ex__fail", {"why": "no"}), "done"]
    stage = McpStage(talk, *script)
    folder = talk.folder / "cassette"
    stage.cassette = Cassette(folder, "record")
    run(ask(stage, stage.agent_with(ex=stage.stdio(tools=["add", "fail"]))))
    stage.cassette.close()
    recorded, live = stage.count, list(stage.results)
    shown = list(stage.scripted.asked[0].tools)

    stage.scripted._left = list(script)
    talk.events.clear()
    stage.cassette = Cassette(folder, "replay")
    run(ask(stage, stage.agent_with(ex=stage.stdio(tools=["add", "fail"]))))
    stage.cassette.close()
    assert (stage.results, stage.count) == (live, recorded)
    assert live == [3, "Error executing tool fail: no"]
    assert stage.scripted.asked[-1].tools == shown

    stage.cassette = Cassette(folder, "replay")
    error = run(fail(stage, stage.agent_with(other=stage.stdio())))
    stage.cassette.close()
    assert "nothing is recorded at the boundary `tool`" in str(error)
    assert error.blame == "environment"


def test_a_secret_is_known_as_one(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_TOKEN", "s3cret-token")
    stage = McpStage(talk)
    talk.around.environment["SEARCH_TOKEN"] = "s3cret-token"  # type: ignore[index]
    made = stage.agent_with(ex={"command": "x", "env": {"T": "$ENV.SEARCH_TOKEN"}})
    assert made.secrets == {"s3cret-token"}
    assert made.variables == {"SEARCH_TOKEN": "s3cret-token"}


def test_what_is_wrong_is_found_without_a_turn(talk: Talk) -> None:
    stage = McpStage(talk)
    adapter = stage.agent_with(
        good=stage.stdio(tools=["add", "greet"]), trial=stage.stdio("broken", scope="trial"), bad={"command": "nope-x"}
    )

    async def checks() -> list[Any]:
        try:
            return await adapter.check()
        finally:
            await adapter.close()

    found = {one.what: (one.ok, one.detail) for one in run(checks())}
    assert found["mcp server good"] == (True, "2 tools: add, greet")
    assert not found["mcp server trial"][0]
    assert "no configuration found" in found["mcp server trial"][1]
    assert "`nope-x` can't be started" in found["mcp server bad"][1]
    assert stage.alive == []
