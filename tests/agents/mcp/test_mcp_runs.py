"""Agents with MCP servers through the command line: what checks see of the tools, scopes, cassettes, and kill -9."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.agents.support.mcp_stage import SERVER
from tests.engine.support.project import Project, alive, kill
from tests.models.mock_server import Answer, Heard, MockModels, calls
from tests.waiting import until

RAW = SERVER.with_name("mcp_raw.py")
SLOW_SDK = """\
import sys, time
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp":
            time.sleep(7)
sys.meta_path.insert(0, Finder())
"""
"""A `sitecustomize.py` by which the SDK takes longer to import than a server may take to answer."""


def behave(heard: Heard) -> Answer:
    """Calls the tool that the prompt names, with its arguments; says what came of it."""
    if heard.messages[-1]["role"] == "tool":
        return f"it said: {heard.tool_results[-1]}"
    name, _, arguments = heard.prompt.partition(" ")
    return calls((name, json.loads(arguments or "{}")))


@pytest.fixture
def models() -> Iterator[MockModels]:
    with MockModels(behave) as server:
        yield server


def server(project: Project, *mode: str, **more: Any) -> dict[str, Any]:
    env = {"MCP_STARTS": str(project.folder / f"starts-{more.get('scope', 'run')}"), **more.pop("env", {})}
    return {"command": sys.executable, "args": [str(SERVER), *mode], "env": env, **more}


def agent(project: Project, name: str, **servers: dict[str, Any]) -> None:
    project.write(f"agents/{name}.md", f"---\nconnector: openai.mock\nmcp: {json.dumps(servers)}\n---\nHelp.\n")


def case(prompt: str, *assertions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": prompt.partition(" ")[0], "input": prompt, "assert": list(assertions), **more}


def test_checks_see_the_tools(project: Project, models: MockModels) -> None:
    """A server for the run and one for each trial, in a package and in a file of its own; a secret stays one."""
    described = {"transport": "stdio", **server(project, env={"API_TOKEN": "$ENV.SHOP_TOKEN"})}
    project.write("mcps/ex.mcp.yao", f"// the server\n{json.dumps(described)}")
    own = server(project, scope="trial")
    package = {"connector": "openai.mock", "mcp": {"servers": ["ex", {"name": "own", **own}]}}
    project.write("assistants/shop/package.yao", package)
    project.write("assistants/shop/prompts.yml", "- {role: system, content: Help.}")
    cases = project.cases(
        case(
            'ex__add {"a": 19, "b": 23}',
            {"type": "tool_called", "name": "add", "arguments": {"a": 19}},
            {"type": "tool_result", "name": "ex__add", "value": 42},
            {"type": "not_tool_called", "name": "greet"},
            {"type": "contains", "value": "it said: 42"},
        ),
        case('ex__forecast {"city": "Łódź"}', {"type": "tool_result", "name": "forecast", "value": {"city": "Łódź"}}),
        case("ex__where", {"type": "tool_called", "name": "where"}),
        case('ex__fail {"why": "no"}', {"type": "behavior", "check": "no_errors"}),
        case(
            'own__write {"path": "out.txt", "text": "from the server"}',
            {"type": "artifact_exists", "path": "out.txt", "contains": "from the server"},
        ),
        {**case("own__counted", {"type": "tool_result", "name": "counted", "value": 1}), "runs": 3},
    )
    ran = project.test(cases, "-n", "shop", env={**models.env, "SHOP_TOKEN": "a-long-secret"})
    assert ran.code == 1, ran.err
    assert ran.statuses == {
        **dict.fromkeys(["ex__add", "ex__forecast", "ex__where", "own__write", "own__counted"], "passed"),
        "ex__fail": "failed",
    }
    trials = {one["case"]: one for one in project.trials()}
    (call,) = trials["ex__where"]["transcript"]["tool_calls"]
    assert call["result"]["token"] == "***"
    (call,) = trials["ex__fail"]["transcript"]["tool_calls"]
    assert call["error"] == "Error executing tool fail: no"
    assert "a-long-secret" not in (project.runs()[-1] / "journal.jsonl").read_text("utf-8")
    assert len(project.lines("starts-run")) == 1
    assert len(project.lines("starts-trial")) == 8
    assert not any(alive(int(pid)) for pid in project.lines("starts-run") + project.lines("starts-trial"))


def test_a_server_that_cannot_start(project: Project, models: MockModels) -> None:
    agent(project, "x", ex=server(project, "broken"))
    ran = project.test(project.cases("hello"), "-n", "x", env=models.env)
    assert ran.code == 3
    assert ran.results["hello"]["blame"] == "environment"
    assert "the MCP server `ex` can't be started" in ran.results["hello"]["error"]
    assert models.requests == []


def test_recorded_and_played_back(project: Project, models: MockModels) -> None:
    """The second run has no model, no server, and no program to start one with."""
    agent(project, "x", ex=server(project, tools=["add"]))
    cases = project.cases(case('ex__add {"a": 1, "b": 2}', {"type": "tool_result", "name": "add", "value": 3}))
    ran = project.test(cases, "-n", "x", "--record", "tape", env=models.env)
    assert ran.code == 0, ran.out
    asked = len(models.requests)
    again = project.test(cases, "-n", "x", "--replay", "tape", env={"PATH": "/nowhere"})
    assert again.code == 0, again.out
    assert (len(project.lines("starts-run")), len(models.requests)) == (1, asked)


def test_edited_servers_run_again(project: Project, models: MockModels) -> None:
    """What the agent's files say of its servers decides a trial; resuming goes by that."""
    project.write("agents/server.py", SERVER.read_text("utf-8"))
    agent(project, "x", ex={**server(project), "args": ["server.py"]})
    cases = project.cases(case('ex__add {"a": 1, "b": 2}'))
    keys = []
    for _ in range(2):
        assert project.test(cases, "-n", "x", env=models.env).code == 0
        keys.append(project.trials()[0]["key"])
        project.write("agents/server.py", SERVER.read_text("utf-8") + "\n")
    assert keys[0] != keys[1]


def test_nothing_is_left_after_a_kill(project: Project, models: MockModels, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server ends when nobody speaks to it any more; what it started is ended by the next run."""
    for name, value in models.env.items():
        monkeypatch.setenv(name, value)
    agent(project, "x", ex=server(project))
    models._behave = lambda heard: calls(("ex__hang" if heard.messages[-1]["role"] == "tool" else "ex__litter", {}))
    process = project.start("test", project.cases("hello"), "-n", "x")
    until(lambda: len(models.requests) == 2)
    (litter,) = [int(text) for text in models.requests[1].tool_results]
    kill(process)
    (pid,) = project.lines("starts-run")
    until(lambda: not alive(int(pid)))
    assert alive(litter)
    models._behave = lambda _: "done"
    assert project.test(project.cases("hello"), "-n", "x").code == 0
    assert not alive(litter)


def test_the_clock_starts_with_the_server(project: Project, models: MockModels) -> None:
    """To load the SDK takes long on a busy machine, which the server can't help."""
    project.write("slow/sitecustomize.py", SLOW_SDK)
    env = {"MCP_CALLS": str(project.folder / "calls.txt")}
    agent(project, "shop", s={"command": sys.executable, "args": [str(RAW), "none"], "env": env, "ready_within": "6s"})
    cases = project.cases(case("s__pay", {"type": "tool_result", "name": "pay", "value": "paid"}))
    ran = project.test(cases, "-n", "shop", env={**models.env, "PYTHONPATH": str(project.folder / "slow")})
    assert ran.statuses == {"s__pay": "passed"}, ran.out
    assert project.lines("calls.txt") == ["called"]
