"""MCP servers that answer what they should not, or in ways that the SDK's own never do."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.mcp_stage import McpStage, ask, fail
from tests.agents.support.prompts import uses
from tests.agents.support.talk import Talk, run

RAW = Path(__file__).parents[1] / "support/mcp_raw.py"


def raw(stage: McpStage, mode: str, **more: Any) -> dict[str, Any]:
    env = {"MCP_CALLS": str(stage.talk.folder / "calls.txt")}
    return {"command": sys.executable, "args": [str(RAW), mode], "env": env, **more}


def calls(stage: McpStage) -> int:
    return len((stage.talk.folder / "calls.txt").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    ("code", "said"), [("-32000", "the card was declined"), ("-32001", "the card is not known"), ("none", "paid")]
)
def test_an_error_is_the_tool_s_answer(talk: Talk, code: str, said: str) -> None:
    """Also one with a code that the SDK itself has for a connection that is closed, or an answer that is late."""
    stage = McpStage(talk, uses("s__pay"), "done")
    reply = run(ask(stage, stage.agent_with(s=raw(stage, code))))
    assert reply.output == "done"
    assert (stage.results, calls(stage)) == ([said], 1)


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("error at first", "it answered with the error -1: go away"),
        ("error and end", "it answered with the error -1: go away; it wrote: no licence"),
        ("other version", "Unsupported protocol version from the server: 1999-01-01"),
        ("junk at first", "its answer is not one of MCP's, `serverInfo`: field required"),
    ],
)
def test_a_greeting_that_is_none(talk: Talk, mode: str, told: str) -> None:
    """It was alive, and what it said is the reason; not that we ended it."""
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(s=raw(stage, mode))))
    assert str(error) == f"the MCP server `s` can't be started: {told}"
    assert (error.blame, stage.alive) == ("environment", [])


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("no schema", "the tool `bare` is not described as MCP has it, `inputSchema`: field required"),
        ("bad schema", "the tool `pay` is not described as MCP has it, `inputSchema.type`: input should be 'object'"),
        ("text schema", "the tool `pay` is not described as MCP has it, `inputSchema`: input should be"),
        ("no list", "its answer is not one of MCP's, `tools`: input should be a valid list"),
    ],
)
def test_a_tool_that_is_none(talk: Talk, mode: str, told: str) -> None:
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(s=raw(stage, mode))))
    assert str(error).startswith(f"the MCP server `s` can't be used: {told}")
    assert error.blame == "environment"


def test_a_tool_that_is_listed_twice(talk: Talk) -> None:
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(s=raw(stage, "twice"))))
    assert str(error) == "the MCP server `s` lists the tool `pay` twice"
    assert error.blame == "environment"


def test_a_long_name_leaves_room_for_the_way_out(talk: Talk) -> None:
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(s=raw(stage, "long name"))))
    assert f"the tool `{'x' * 39}…` of the MCP server `s`" in str(error)
    assert str(error).endswith("or leave the tool out with `exclude`")
    assert len(str(error)) < 300


def test_what_it_does_not_know_costs_little_time(talk: Talk) -> None:
    """The SDK first asks for something that old servers have never heard of; some don't answer it at all."""
    stage = McpStage(talk, uses("s__pay"), "done")
    run(ask(stage, stage.agent_with(s=raw(stage, "ignores", ready_within="8s"))))
    assert stage.results == ["paid"]


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ({"one": ["many", "200"]}, "the agent has 216 tools, and models take at most 128"),
        ({"one": ["many", "100"], "two": ["many", "50"]}, "the agent has 182 tools, and models take at most 128"),
    ],
)
def test_a_check_says_what_a_run_says(talk: Talk, servers: dict[str, list[str]], told: str) -> None:
    stage = McpStage(talk)
    adapter = stage.agent_with(**{name: stage.stdio(*mode) for name, mode in servers.items()})

    async def checks() -> list[Any]:
        try:
            return await adapter.check()
        finally:
            await adapter.close()

    *_, last = found = run(checks())
    assert (last.ok, last.what) == (False, "tools")
    assert last.detail.startswith(told)
    listed = [one for one in found if one.what.startswith("mcp server")]
    assert [one.ok for one in listed] == [True] * len(servers)
    assert all(" more" in one.detail and len(one.detail) < 400 for one in listed)
