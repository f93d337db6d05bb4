"""`atp agents`, as a process: what it lists, and what it finds when it contacts the agents of a suite."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.docker_engine import TestEngine, engine
from tests.agents.support.docker_images import PYTHON
from tests.agents.support.mcp_stage import SERVER
from tests.engine.support.project import Project
from tests.models.mock_server import MockModels

__all__ = ["engine"]  # a fixture; the daemon starts when a test first asks for it
FUNCTION = "def answer(prompt):\n    return prompt\n"
PLUGIN = '''
from atp.agents.adapter import Adapter, Reply
from atp.suite.agent import AGENTS, AgentConfig

print("a plugin that is loud")

@AGENTS.register
class ParrotAdapter(Adapter):
    type = "parrot"

    class Config(AgentConfig):
        """A bird."""

    async def start(self):
        if "fly" in __import__("os").environ:
            raise OSError("it flew away")
    async def turn(self, request):
        return Reply(output=request.prompt)
'''


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    made.write("atp.toml", '[agents.shout]\ntype = "cli"\nconfig = { command = ["tr", "a-z", "A-Z"] }\n')
    made.write("agent.py", FUNCTION)
    yield made
    made.end()


def plugin(project: Project, name: str, code: str) -> dict[str, str]:
    """A package with an entry point, and the environment in which it counts as installed."""
    project.write(f"{name}.py", code)
    project.write(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    project.write(f"{name}-1.0.dist-info/entry_points.txt", f"[atp.agents]\n{name} = {name}\n")
    return {"PYTHONPATH": str(project.folder)}


def check(project: Project, *arguments: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    """What a check finds, by the names of the agents."""
    ran = project.atp("agents", "check", *arguments, "--json", env=env)
    assert ran.code in (0, 3), ran.err
    told = json.loads(ran.out)
    assert told["ok"] == all(one["ok"] for one in told["agents"]) == (ran.code == 0)
    return {one["name"]: one for one in told["agents"]}


def one(found: dict[str, Any]) -> tuple[bool, str, str]:
    (finding,) = found["findings"]
    return finding["ok"], finding["what"], finding["detail"]


def test_kinds_and_agents_are_listed(project: Project) -> None:
    project.write("agents/fleet/ocean.md", "---\ndescription: Knows the sea\n---\nHi")
    project.write("agents/ocean.test.md", "---\ntarget: fleet/ocean\n---\n# X\n")
    project.write("agents/server.md", "---\ntype: http\nconfig: {endpoint: 'http://127.0.0.1:1/'}\n---\n")
    project.write("assistants/lake/package.yao", "{}")
    project.write("assistants/lake/prompts.yml", "[]")
    env = plugin(project, "parrots", PLUGIN)
    plugin(project, "broken", "raise RuntimeError('no bird')")
    ran = project.atp("agents", "--json", env=env)
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert [(one["name"], one["type"], one["place"]) for one in told["agents"]] == [
        ("shout", "cli", "atp.toml"),
        ("fleet.ocean", "prompt", "agents/fleet/ocean.md"),
        ("server", "http", "agents/server.md"),
        ("lake", "prompt", "assistants/lake/package.yao"),
    ]
    assert told["agents"][1]["description"] == "Knows the sea"
    kinds = {one["name"]: one for one in told["kinds"]}
    assert {"http", "docker", "cli", "langgraph", "crewai", "custom", "prompt", "parrot", "broken"} == kinds.keys()
    assert (kinds["parrot"]["source"], kinds["parrot"]["about"]) == ("parrots", "A bird.")
    assert "RuntimeError: no bird" in kinds["broken"]["needs"][0]["detail"]
    needs = {need["what"]: need["ok"] for need in kinds["docker"]["needs"]}
    assert needs["package aiodocker"]
    assert "a plugin that is loud" in ran.err
    shown = project.atp("agents", env=env)
    assert "  parrot     A bird. (from parrots)\n" in shown.out
    assert "  shout        cli     atp.toml\n" in shown.out


def test_a_file_that_can_not_be_read_is_told(project: Project) -> None:
    project.write("agents/x.md", "---\ntype: htp\n---\n")
    ran = project.atp("agents")
    assert ran.code == 2
    assert "did you mean `http`?" in ran.err
    assert "shout" in ran.out


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("agents/x.md", b"---\nfoo: [\n---\nHi", "agent `x`: agents/x.md:3:1: not YAML"),
        ("agents/x.md", b"\xff\xfe", "agent `x`: agents/x.md:1:1: not UTF-8: byte 0xff"),
        ("agents/x.md", b"", "agent `x`: agents/x.md:1:1: there is nothing in this file"),
        ("assistants/x/package.yao", b"{bad", "assistants/x/package.yao:1:2: not JSON"),
    ],
)
def test_a_prompt_that_can_not_be_read_is_told(project: Project, file: str, content: bytes, told: str) -> None:
    project.write(file, "")
    (project.folder / file).write_bytes(content)
    ran = project.atp("agents")
    assert ran.code == 2
    assert told in ran.err
    assert "shout" in ran.out
    assert file not in ran.out


def test_an_agent_s_place_is_shown(project: Project) -> None:
    """What only its adapter finds is told where the suite describes the agent."""
    project.write("sub/note", "no Dockerfile")
    project.write(
        "s.yaml",
        """test_suite: s
agents:
  - {name: one, type: cli, config: {command: cat, protocol: text}}
  - name: two
    type: docker
    config: {build: sub}
tests:
  - {id: t, name: T, input: hello, agents: [one]}
""",
    )
    ran = project.atp("test", "s.yaml")
    assert ran.code == 2
    assert "error[agent-configuration]: agent `two`: `build`: there is no Dockerfile in " in ran.err
    assert "  --> s.yaml:4:5\n4 |   - name: two\n" in ran.err


def test_every_kind_is_contacted(project: Project) -> None:
    """All well, and all wrong; no test is run."""
    with MockModels() as models:
        server = {"command": sys.executable, "args": [str(SERVER)], "tools": ["add"]}
        project.write("agents/good.md", f"---\nconnector: openai.x\nmcp: {json.dumps({'ex': server})}\n---\nHi")
        project.write("agents/bad.md", "---\nconnector: openai.x\nmcp: {ex: {command: no-such-server}}\n---\nHi")
        project.write("agents/unset.md", "---\nconnector: nobody\n---\nHi")
        agents = [
            {"name": "http", "type": "http", "config": {"endpoint": models.openai}},
            {"name": "away", "type": "http", "config": {"endpoint": "http://127.0.0.1:1/"}},
            {
                "name": "ill",
                "type": "http",
                "config": {"endpoint": models.openai, "health_endpoint": f"{models.url}/no"},
            },
            {"name": "cli", "type": "cli", "config": {"command": ["tr", "a", "b"], "working_dir": "."}},
            {"name": "nowhere", "type": "cli", "config": {"command": "no-such-program", "working_dir": "agents"}},
            {"name": "custom", "type": "custom", "config": {"entry": "agent.py:answer"}},
            {"name": "typo", "type": "custom", "config": {"entry": "agent.py:anser"}},
            {"name": "good", "type": "prompt", "config": {"path": "agents/good.md"}},
            {"name": "bad", "type": "prompt", "config": {"path": "agents/bad.md"}},
            {"name": "unset", "type": "prompt", "config": {"path": "agents/unset.md"}},
        ]
        suite = project.suite(agents, [{"id": "t", "input": "x"}])
        found = check(project, suite, env=models.env)
        assert models.requests == []
    assert {name for name, told in found.items() if told["ok"]} == {"http", "cli", "custom", "good"}
    assert one(found["http"])[:2] == (True, "connection")
    assert one(found["away"])[:2] == (False, "connection")
    assert one(found["ill"])[:2] == (False, "health")
    assert found["cli"]["findings"][0]["detail"].endswith("/tr")
    assert "`no-such-program` is not there" in one(found["nowhere"])[2]
    assert one(found["custom"])[:2] == (True, "import")
    assert one(found["typo"])[:2] == (False, "configuration")
    assert found["typo"]["findings"][0]["hint"] == "did you mean `answer`?"
    assert [finding["detail"] for finding in found["good"]["findings"]] == [
        "x (openai.x), not asked",
        "1 tool: add",
    ]
    assert "`no-such-server` can't be started" in found["bad"]["findings"][1]["detail"]
    assert one(found["unset"])[:2] == (False, "configuration")


class Refuses(BaseHTTPRequestHandler):
    """Takes one key."""

    def do_HEAD(self) -> None:
        self.send_response(405 if self.headers.get("Authorization") == "Bearer right-key" else 401)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def test_credentials_that_are_refused(project: Project) -> None:
    with HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        agents = [
            {"name": key, "type": "http", "config": {"endpoint": url, "api_key": key}} for key in ("right-key", "wrong")
        ]
        found = check(project, project.suite(agents, [{"id": "t", "input": "x"}]))
        server.shutdown()
    assert one(found["right-key"])[:2] == (True, "connection")
    assert one(found["wrong"])[:2] == (False, "credentials")


def test_one_agent_by_its_name(project: Project) -> None:
    agents = [
        {"name": "a", "type": "cli", "config": {"command": "no-such-program"}},
        {"name": "b", "type": "cli", "config": {"command": "tr"}},
    ]
    suite = project.suite(agents, [{"id": "t", "input": "x"}])
    assert list(check(project, suite, "-n", "b")) == ["b"]
    assert list(check(project, suite, "-n", "agent.py:answer", "-n", "shout")) == ["agent.py:answer", "shout"]
    shown = project.atp("agents", "check", suite)
    assert shown.code == 3
    assert shown.out == (
        "✗ a (cli)\n    ✗ program: `no-such-program` is not there, or can't be run\n"
        "        install it, or give its path relative to the suite's file\n"
        f"✓ b (cli)\n    ✓ program: {shown.out.rpartition('program: ')[2]}"
    )


def test_a_plugin_s_agent(project: Project) -> None:
    env = plugin(project, "parrots", PLUGIN)
    suite = project.suite([{"name": "polly", "type": "parrot", "config": {}}], [{"id": "t", "input": "x"}])
    assert one(check(project, suite, env=env)["polly"]) == (True, "start", "it starts")
    told = one(check(project, suite, env={**env, "fly": "1"})["polly"])
    assert told == (False, "check", "OSError: it flew away")


def test_secrets_are_not_shown(project: Project) -> None:
    config = {"endpoint": "http://127.0.0.1:1/${MY_TOKEN}"}
    suite = project.suite([{"name": "a", "type": "http", "config": config}], [{"id": "t", "input": "x"}])
    ran = project.atp("agents", "check", suite, env={"MY_TOKEN": "s3cret-value"})
    assert "http://127.0.0.1:1/***" in ran.out
    assert "s3cret-value" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("check",), "Missing argument 'SUITE...'"),
        (("check", "no-such-file.yaml"), "no-such-file.yaml"),
        (("check", "empty.jsonl"), "no agent to test"),
        (("check", "empty.jsonl", "-n", "nobody"), "there is no agent `nobody`"),
        (("--json", "check", "empty.jsonl"), "after the name of the command"),
        (("check", "empty.jsonl", "--timeout", "0"), "0 is no time that an agent may take"),
        (("check", "empty.jsonl", "--timeout", "-1"), "-1 is no time that an agent may take"),
        (("check", "empty.jsonl", "--timeout", "nan"), "nan is no time that an agent may take"),
        (("chek",), "No such command 'chek'"),
    ],
)
def test_bad_usage(project: Project, arguments: tuple[str, ...], told: str) -> None:
    project.cases({"id": "a", "input": "x"}, name="empty.jsonl")
    ran = project.atp("agents", *arguments)
    assert (ran.code, told in ran.err) == (2, True), ran.err


def test_code_in_an_environment_of_its_own(project: Project) -> None:
    agents = [
        {"name": "a", "type": "custom", "config": {"entry": "agent.py:answer", "python": sys.executable}},
        {"name": "b", "type": "custom", "config": {"entry": "agent.py:anser", "python": sys.executable}},
    ]
    found = check(project, project.suite(agents, [{"id": "t", "input": "x"}]))
    assert one(found["a"])[:2] == (True, "import")
    assert one(found["b"])[:2] == (False, "import")
    assert "answer" in one(found["b"])[2]


def test_one_agent_does_not_end_another(project: Project) -> None:
    """A check is over sooner for a command than for a worker, which is still loading its agent then."""
    project.write("slow.py", "import time\ntime.sleep(1)\n\n\ndef main(): ...\n")
    agents = [
        {"name": "slow", "type": "custom", "config": {"entry": "slow.py:main", "python": sys.executable}},
        {"name": "quick", "type": "cli", "config": {"command": ["cat"], "protocol": "text"}},
    ]
    ran = project.atp("agents", "check", project.suite(agents, [{"id": "a"}]))
    assert ran.code == 0, ran.out


def test_containers(project: Project, engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine.url)
    agents = [
        {"name": "there", "type": "docker", "config": {"image": PYTHON}},
        {"name": "gone", "type": "docker", "config": {"image": "nobody/has-it:3"}},
    ]
    suite = project.suite(agents, [{"id": "t", "input": "x"}])
    found = check(project, suite)
    assert [(one["what"], one["ok"]) for one in found["there"]["findings"]] == [("engine", True), ("image", True)]
    assert [(one["what"], one["ok"]) for one in found["gone"]["findings"]] == [("engine", True), ("image", False)]
    monkeypatch.setenv("DOCKER_HOST", f"unix://{project.folder}/nobody.sock")
    assert one(check(project, suite, "-n", "there")["there"])[:2] == (False, "engine")
