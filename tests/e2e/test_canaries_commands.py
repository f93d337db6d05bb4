"""No command shows a secret: canaries come from commands, hooks, tools, models, scripts and wrong values."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.docker_engine import TestEngine
from tests.agents.support.docker_images import BUSYBOX
from tests.e2e.test_canaries import SECRETS, Outputs
from tests.engine.support.judge import judge
from tests.engine.support.project import clean_environment
from tests.models.mock_server import Heard, MockModels, Says, calls, fails
from tests.starting import run_atp

READ = "import json, pathlib, sys\nSECRET = (pathlib.Path(__file__).parent.parent / 'secret.txt').read_text()\n"
AGENT = """
def answer(prompt):
    if prompt == "chained":
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            after = RuntimeError("after that")
            after.add_note(SECRET)
            raise after from error
    if prompt == "exits":
        raise SystemExit(SECRET)
    if prompt == "lines":
        for begin in range(0, len(SECRET), 7):
            print(SECRET[begin : begin + 7])
        return "\\n".join(SECRET[begin : begin + 7] for begin in range(0, len(SECRET), 7))
    if prompt == "keys":
        return {"output": {SECRET: {SECRET: [SECRET]}}, "tool_calls": [{"name": SECRET, "arguments": {SECRET: SECRET}}]}
    if prompt == "odd":
        return {"output": "x", "tool_calls": SECRET}
    return SECRET

def user(prompt=None):
    raise ValueError(SECRET)
"""
COMMAND = """
way, pieces = sys.argv[1], [SECRET[begin : begin + 6] for begin in range(0, len(SECRET), 6)]
if way == "fails":
    print(SECRET[:5])
    sys.stderr.write("x" * 498 + SECRET)
    sys.exit(3)
for piece in pieces:
    if way == "lines":
        print(piece)
        print(piece, file=sys.stderr)
    else:
        event = {"event_type": "message", "payload": {"delta": {"text": piece}}}
        print(json.dumps(event), file=sys.stderr)
if way == "events":
    print(json.dumps({"status": "completed", "output": "x"}))
"""
HOOKS = """
def prints(context=None):
    print(SECRET)

def fails(context=None):
    raise ValueError(SECRET)
"""
CHECKS = """
def check(*_):
    print(SECRET)
    return {"pass": False, "message": SECRET}

def odd(*_):
    return SECRET
"""
SCRIPTS = """
def test_fails(t, ctx):
    print(SECRET)
    t.assert_.contains(ctx.agent("agent.py:answer").send("hello"), f"more than {SECRET}")

def test_raises(t, ctx):
    raise ValueError(SECRET)
"""
DESK = "---\nconnector: openai.any\ncommands: ['desk.py:leak', 'desk.py:fail']\n---\nThe key is $ENV.MY_API_KEY.\n"
TOOLS = """
def leak(a: str) -> str:
    print(SECRET)
    return SECRET

def fail(a: str) -> str:
    raise ValueError(SECRET)
"""
MCP = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("told", log_level="CRITICAL")

@server.tool()
def tell(a: str) -> str:
    print(SECRET, file=sys.stderr)
    return SECRET

print(SECRET, file=sys.stderr)
if "crash" in sys.argv:
    sys.exit(SECRET)
server.run()
"""
MODEL_WAYS = ("401", "500", "no JSON", "error", "tools")


class _Project:
    """A project in which everything tells the secret, and what its commands print."""

    def __init__(self, folder: Path, secret: str, env: dict[str, str]) -> None:
        self.folder, self.secret, self.outputs = folder, secret, Outputs()
        self._env = {**clean_environment(), **env}

    def write(self, name: str, content: Any) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def atp(self, *arguments: str, code: int, said: str | None = None) -> None:
        ran = run_atp(*arguments, cwd=self.folder, env=self._env, input=said)
        assert ran.returncode == code, (arguments, ran.stdout, ran.stderr)
        self.outputs.texts[f"{len(self.outputs.texts)}: {arguments}"] = ran.stdout + ran.stderr

    def leaks(self) -> list[str]:
        for part in ("out", ".atp"):
            self.outputs.add_files(self.folder / part)
        self.outputs.texts["names"] = "\n".join(str(path) for path in (self.folder / ".atp").rglob("*"))
        return self.outputs.leaks(self.secret)


def _model(secret: str, heard: Heard) -> Any:
    if "Expectation 1:" in heard.prompt:
        assert secret not in json.dumps(heard.body, ensure_ascii=False)
        return judge(lambda _asked, record: "***" in record)(heard)
    match heard.prompt:
        case "401":
            return fails(401, f"{'x' * 180}{secret}")
        case "500":
            return fails(500, f"{'x' * 280}{secret}", retry_after=0.01)
        case "no JSON":
            return Says(raw=f'{{"choices": [{{"message": {{"content": "{secret}'.encode())
        case "error":
            return Says(raw=json.dumps({"error": {"message": secret, secret: secret}}).encode())
    told = (("leak", {"a": secret}), ("fail", {secret: secret}), (secret, secret), ("told__tell", {"a": secret}))
    return calls(*told) if heard.prompt == "tools" and not heard.tool_results else secret


def _suite(folder: Path) -> dict[str, Any]:
    command = [sys.executable, str(folder / "command.py")]
    agents: list[dict[str, Any]] = [{"name": "own", "type": "custom", "config": {"entry": "agent.py:answer"}}]
    for way in ("fails", "lines", "events"):
        config = {"command": [*command, way], "protocol": "atp" if way == "events" else "text"}
        agents.append({"name": way, "type": "cli", "config": config})
    gone = {"command": ["no-such-program", "--token", "${PLAIN_NAME}"], "protocol": "text"}
    agents.append({"name": "gone", "type": "cli", "config": gone})
    agents.append({"name": "away", "type": "http", "config": {"endpoint": "http://127.0.0.1:9/?token=${PLAIN_NAME}"}})
    ways = ["chained", "exits", "lines", "keys", "odd"]
    tests: list[dict[str, Any]] = [{"id": way, "name": way, "input": way, "agents": ["own"]} for way in ways]
    tests += [{"id": f"by {one['name']}", "name": "x", "input": "x", "agents": [one["name"]]} for one in agents[1:]]
    checks = [{"type": "script", "use": f"scripts:checks.{name}"} for name in ("check", "odd")]
    hooked = {"name": "x", "input": "x", "agents": ["own"]}
    tests += [
        {"id": "before", **hooked, "before_hook": "hooks.py:prints", "after_hook": "hooks.py:fails"},
        {"id": "checked", **hooked, "assertions": checks},
        {"id": "id-${MY_API_KEY}", **hooked, "tags": ["${MY_API_KEY}"], "expectations": ["it says ${MY_API_KEY}"]},
        {"id": "simulated", "name": "x", "agents": ["own"], "simulator": {"use": "agent.py:user"}, "checkpoints": [
            {"id": "${MY_API_KEY}", "description": "${MY_API_KEY}", "assertion": {"type": "contains", "value": "z"}}
        ]},
    ]  # fmt: skip
    for one in tests:
        one.setdefault("assertions", [{"type": "equals", "value": "y"}] if "simulator" not in one else [])
    return {"test_suite": "s ${MY_API_KEY}", "agents": agents, "tests": tests}


def _write(project: _Project) -> None:
    secret = project.secret
    for name, code in {
        "agent.py": AGENT, "command.py": COMMAND, "hooks.py": HOOKS, "agents/desk.py": TOOLS, "agents/told.py": MCP,
        "scripts/checks.py": CHECKS, "scripts/tests/test_told.py": SCRIPTS,
    }.items():  # fmt: skip
        up = ".parent" * (name.count("/") + 1)
        project.write(name, READ.replace(".parent.parent", f"{up}.parent") + code)
    project.write("suite.yaml", _suite(project.folder))
    project.write("agents/desk.md", DESK)
    mcp = f"mcp:\n  told:\n    command: {sys.executable}\n    args: [told.py]\n---\n"
    project.write("agents/asks.md", DESK.replace("---\nThe", f"{mcp}The"))
    project.write("agents/crash.md", DESK.replace("---\nThe", f"{mcp.replace('told.py', 'told.py, crash')}The"))
    ways = [{"id": way, "input": way, "assertions": [{"type": "equals", "value": "y"}]} for way in MODEL_WAYS]
    project.write("models.jsonl", "\n".join(map(json.dumps, ways)))
    checks = [{"type": "${MY_API_KEY}"}, {"type": "equals", "valeu": secret}, {"type": "regex", "value": f"({secret}"}]
    bad = {"id": "x", "name": secret, "timeout": "${MY_API_KEY}", "assertions": checks, secret: 1, "agents": [secret]}
    agent = {"name": "b", "type": "http", "config": {"endpoint": secret, "api_key": f"{secret}2", "hedders": secret}}
    project.write("bad.yaml", {"test_suite": secret, "version": secret, "agents": [agent], "tests": [bad, secret]})
    text = f"---\ntarget: agents/desk.md\ntokn: {json.dumps(secret)}\n---\n# A\n\n**Prompts:**\n\n- {secret.strip()}\n"
    project.write("told.test.md", f"{text}\n**Expectations:**\n\n- the response contains {json.dumps(secret)}\n")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "quoted" else pytest.mark.fuzz) for name in SECRETS]
)
def test_no_command_shows_a_secret(name: str, tmp_path: Path) -> None:
    secret, folder = SECRETS[name], tmp_path / "project"
    (folder / "out").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text(secret)
    with MockModels(lambda heard: _model(secret, heard)) as models:
        project = _Project(folder, secret, {**models.env, "MY_API_KEY": secret, "PLAIN_NAME": secret})
        _write(project)
        reports = [part for ending in ("json", "html", "xml", "csv") for part in ("-o", f"out/r.{ending}")]
        flags = ("--role-connector", "openai.any", "--retries", "0")
        hooks = ("--before-all", "hooks.py:prints", "--after-all", "hooks.py:fails")
        project.atp("test", "suite.yaml", "-vv", "--keep-failed", *flags, *hooks, *reports, code=1)
        project.atp("test", "suite.yaml", "--json", "--only-failed", *flags, code=1)
        project.atp("test", "suite.yaml", "--dry-run", "-vv", *flags, code=0)
        project.atp("test", "models.jsonl", "-n", "desk", "-vv", "--record", "out/cassette", code=1)
        project.atp("test", "-i", "scripts:tests.test_told", "-vv", code=1)
        project.atp("report", "-vv", code=0)
        project.atp("agents", "check", "suite.yaml", "--json", code=3)
        talk = "keys\nchained\nlines\n/quit\n"
        project.atp("chat", "agent.py:answer", "-s", "out/c.jsonl", "--name", secret, code=0, said=talk)
        project.atp("chat", "desk", "--save", "out/c.test.md", code=0, said="tools\n401\n/quit\n")
        for file in ("bad.yaml", "told.test.md"):
            project.atp("validate", file, "--strict", code=2)
            project.atp("validate", file, "--strict", "--json", code=2)
            project.atp("show", file, "--json", code=0 if file == "told.test.md" else 2)
        project.atp("show", "told.test.md", "--lines", code=0)
        project.atp("convert", "told.test.md", "-o", "out/told.yaml", code=0)
        project.atp("convert", "told.test.md", "-o", "out/told.jsonl", code=0)
        for words in (("test", "suite.yaml", "--runs", secret), ("report", secret), ("init", secret), (secret,)):
            project.atp(*words, code=2)
        if name != "quoted":
            project.atp("test", "models.jsonl", "-n", "asks", "-vv", *reports, code=1)
            project.atp("test", "-i", "hello", "-n", "crash", code=3)
    assert os.listdir(folder / ".atp" / "runs")
    assert project.leaks()[:5] == []


IN_CONTAINERS = {
    "says": 'printf "%s" "$LIT_TOKEN"',
    "prints": 'printf "%s" "$LIT_TOKEN" >&2; echo done',
    "fails": 'printf "%s" "$LIT_TOKEN"; printf "%0490d%s" 0 "$LIT_TOKEN" >&2; exit 3',
    "breaks the protocol": """printf '{"status": "%s"}' "$LIT_TOKEN"; printf "%s" "$LIT_TOKEN" >&2""",
}


@pytest.mark.fuzz
@pytest.mark.parametrize("name", SECRETS)
def test_no_container_shows_a_secret_of_its_environment(name: str, tmp_path: Path, engine: TestEngine) -> None:
    secret = SECRETS[name]
    project = _Project(tmp_path, secret, {"DOCKER_HOST": engine.url})
    commands = {way: ["/bin/sh", "-c", code] for way, code in IN_CONTAINERS.items()}
    commands["can't be started"] = [f"/bin/{secret}"]  # the engine quotes it in its error
    agents: list[dict[str, Any]] = []
    for way, command in commands.items():
        config = {"image": BUSYBOX, "command": command, "environment": {"LIT_TOKEN": secret}}
        protocol = "atp" if way == "breaks the protocol" else "text"
        agents.append({"name": way, "type": "docker", "config": {**config, "protocol": protocol}})
    check = {"type": "equals", "value": "y"}
    tests = [{"id": way, "name": way, "input": "x", "agents": [way], "assertions": [check]} for way in commands]
    project.write("suite.yaml", {"test_suite": "s", "agents": agents, "tests": tests})
    reports = [part for ending in ("json", "html", "xml", "csv") for part in ("-o", f"out/r.{ending}")]
    (tmp_path / "out").mkdir()
    project.atp("test", "suite.yaml", "-vv", "--retries", "0", *reports, code=1)
    project.atp("report", "-vv", code=0)
    results = json.loads((tmp_path / "out/r.json").read_text())["results"]
    assert {one["id"] for one in results if "***" in one["error"]} == commands.keys() - {"prints"}
    assert project.leaks()[:5] == []
