"""Mistakes that are found before the first trial: checks, scripts, plugins and agents that can't work."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.engine.support.project import Project, together

AGENT = ["-n", "agent.py:run"]


@pytest.fixture(autouse=True)
def agent(project: Project) -> None:
    project.write("agent.py", 'def run(prompt):\n    print(prompt, file=open("asked", "a"))\n    return prompt\n')


def test_scripts_that_are_not_there(project: Project) -> None:
    project.write("scripts/mine.py", "def check(output):\n    return True\n")

    def case(name: str, script: str) -> dict[str, object]:
        check = {"type": "script", "script": script}
        return {"id": name, "input": "x", "assert": {"type": "any_of", "assertions": [check]}}

    good, cases = case("good", "scripts.mine.check"), [case("no file", "scripts.yours.check")]
    cases += [case("no function", "scripts.mine.chekc"), case("the same", "scripts.yours.check")]
    fine = project.cases(good, name="fine.jsonl")
    right, wrong, chosen = together(
        lambda: project.test(fine, *AGENT),
        lambda: project.test(project.cases(good, *cases), *AGENT),
        lambda: project.test(project.cases(good, *cases, name="same.jsonl"), *AGENT, "--run", "good"),
    )
    assert (right.code, wrong.code, chosen.code) == (0, 2, 0)
    assert wrong.err.count("error[unjudgeable]") == 2
    assert "case `no file`: `scripts.yours.check`: there is no scripts/yours.py" in wrong.err
    assert "case `no function`: there is no `chekc` in" in wrong.err
    assert "did you mean `check`?" in wrong.err
    assert project.lines("asked") == ["x", "x"]


def test_dry_run_counts_all_checks(project: Project) -> None:
    tests: list[dict[str, Any]] = [
        {"id": "expected", "input": "x", "expected": "y"},
        {"id": "none", "input": "x"},
        {"id": "files", "task": {"description": "x", "expected_artifacts": ["a", "b"]}},
    ]
    file = project.suite([{"name": "a", "type": "custom", "config": {"entry": "agent.py:run"}}], tests)
    plan = project.test(file, "--dry-run").events
    assert [one["assertions"] for one in plan if one["type"] == "trial"] == [1, 0, 2]


def test_a_plugin_that_breaks_is_not_a_failed_test(project: Project) -> None:
    project.write("plugins/broken.py", "raise RuntimeError('broken plugin')\n")
    project.write("plugins/broken-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    project.write("plugins/broken-1.0.dist-info/entry_points.txt", "[atp.reporters]\nbroken = broken\n")
    env = {"PYTHONPATH": str(project.folder / "plugins")}
    ran = project.atp("test", project.cases("a"), *AGENT, "-r", "report.broken", env=env)
    assert ran.code == 3
    assert "RuntimeError: broken plugin" in ran.err
    assert project.lines("asked") == []


class Ill(ThreadingHTTPServer):
    """An agent that says it is ill until somebody heals it."""

    healed = False


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Ill)
        self.send_response(200 if self.server.healed else 500)
        self.end_headers()

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"version": "1.0", "task_id": request["task_id"], "status": "completed", "output": "well"}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Nobody wants to know."""


@pytest.fixture
def ill() -> Iterator[Ill]:
    with Ill(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_agent_that_was_not_ready_is_asked_again(project: Project, ill: Ill) -> None:
    at = f"http://127.0.0.1:{ill.server_port}"
    config = {"endpoint": at, "health_endpoint": f"{at}/health"}
    tests = [{"id": name, "input": "x", "expected": "well"} for name in ("early", "late")]
    file = project.suite([{"name": "a", "type": "http", "config": config}], tests)
    process = project.start("test", file, "--json")
    assert process.stdout is not None
    early = next(event for event in map(json.loads, process.stdout) if event["type"] == "result")
    ill.healed = True
    assert (early["id"], early["status"], early["blame"]) == ("early", "error", "environment")
    late = next(event for event in map(json.loads, process.stdout) if event["type"] == "result")
    assert (late["id"], late["status"]) == ("late", "passed")
    assert project.finish(process).code == 3


def test_a_check_counts_only_for_the_agents_a_test_names(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return 'hello'")
    agents = [
        {"name": "seen", "type": "custom", "config": {"entry": "agent.py:run"}},
        {"name": "text", "type": "cli", "config": {"command": "cat", "protocol": "text"}},
    ]
    tools = {"id": "tools", "agents": ["seen"], "assertions": [{"type": "not_tool_called", "name": "x"}]}
    ran = project.test(project.suite(agents, [tools]))
    assert ran.code == 0, ran.err
    refused = project.test(project.suite(agents, [{**tools, "agents": ["text"]}]))
    assert refused.code == 2
    assert "unobservable" in refused.err


def test_unknown_assertion_type_or_key_is_refused(project: Project) -> None:
    project.write("agent.py", "def run(): open('called', 'w')")
    checks: list[tuple[dict[str, Any], str]] = [
        ({"type": "contians", "value": "x"}, "contains"),
        ({"type": "contains", "value": "x", "negat": True}, "negate"),
        ({"type": "contains", "vlaue": "x"}, "value"),
    ]
    file = project.cases(*({"id": said, "input": "x", "assert": check} for check, said in checks))
    ran = project.test(file, "-n", "agent.py:run")
    assert ran.code == 2
    assert all(f"did you mean `{said}`?" in ran.err for _, said in checks)
    assert not (project.folder / "called").exists()


def test_a_file_without_its_function(project: Project) -> None:
    project.write("agent.py", "def _own(x): ...\ndef setup(): ...\nasync def answer(prompt): return 'hello'\n")
    project.write("empty.py", "")
    file = project.cases("a")
    assert "help: did you mean `agent.py:answer`?" in project.atp("test", file, "-n", "agent.py").err
    assert "help: use a name of the suite, module:function" in project.atp("test", file, "-n", "empty.py").err
    project.write("two.py", "def answer(prompt): ...\ndef refund(prompt): ...\n")
    listed = "help: did you mean `two.py:answer`? Functions of the file: answer, refund\n"
    assert listed in project.atp("test", file, "-n", "two.py").err
    assert "help: write one colon: `two.py:answer`\n" in project.atp("test", file, "-n", "two.py::answer").err
    nobody = project.atp("test", file).err
    assert "`-n my_agent.py:answer`" in nobody
    assert "`name` in atp.toml" in nobody


HISTORY = [
    {"role": "user", "content": "order 1002"},
    {"role": "assistant", "content": "Sure?"},
    {"role": "user", "content": "yes"},
]
TAKES = """
    def prompt(prompt):
        return prompt

    def text(text, *, context=None):
        return text

    def messages(messages):
        return messages[0]["content"]

    def task(task):
        return task["input_data"]["messages"][0]["content"]

    def anything(**given):
        return given["messages"][0]["content"]
"""


def _of(kind: str, **config: Any) -> dict[str, Any]:
    return {"name": "a", "type": kind, "config": config}


@pytest.mark.parametrize(
    "agent",
    [
        *(_of("custom", entry=f"takes.py:{name}") for name in ("prompt", "text")),
        _of("cli", command="cat", protocol="text"),
        _of("http", endpoint="http://127.0.0.1:9/", protocol="json", body={"say": "{{prompt}}"}),
    ],
    ids=str,
)
def test_earlier_messages_for_an_agent_that_never_gets_them(project: Project, agent: dict[str, Any]) -> None:
    project.write("takes.py", TAKES)
    file = project.suite([agent], [{"id": "one", "messages": HISTORY}, {"id": "two", "input": "hi"}])
    refused = project.test(file)
    assert refused.code == 2
    assert refused.err.count("error[no-history]") == 1
    assert "case `one`: agent `a` is never given the earlier messages of the conversation" in refused.err
    assert "history: ignored" in refused.err
    assert project.test(file, "--run", "two", "--dry-run").code == 0
    agent["config"]["history"] = "ignored"
    assert project.test(project.suite([agent], [{"id": "one", "messages": HISTORY}]), "--dry-run").code == 0


@pytest.mark.parametrize("name", ["messages", "task", "anything"])
def test_earlier_messages_reach_the_agent(project: Project, name: str) -> None:
    project.write("takes.py", TAKES)
    check = {"type": "equals", "value": "order 1002"}
    file = project.suite(
        [_of("custom", entry=f"takes.py:{name}")], [{"id": "one", "messages": HISTORY, "assertions": [check]}]
    )
    assert project.test(file).statuses == {"one": "passed"}


def test_earlier_messages_for_a_worker_that_never_gets_them_are_an_error(project: Project) -> None:
    project.write("takes.py", TAKES)
    agent = _of("custom", entry="takes.py:prompt", python=sys.executable)
    ran = project.test(project.suite([agent], [{"id": "one", "messages": HISTORY}]))
    assert (ran.code, ran.statuses) == (3, {"one": "error"})
    assert "is never given the earlier messages" in ran.out + ran.err


def test_turns_that_are_played_need_no_history(project: Project) -> None:
    project.write("chain.test.md", "---\n---\n# A\n\n- Chain:\n  - one\n  - two\n\n**Expectations:**\n\n- no errors\n")
    assert project.test("chain.test.md", *AGENT).statuses == {"a": "passed"}


HOOK = "open('imported', 'a').write('x ')\n\ndef go():\n    pass\n"


@pytest.mark.parametrize("hook", ["hooks.py:go", "hooks:go", "scripts.hooks.go", "scripts:hooks.go"])
def test_a_dry_run_imports_no_hook(project: Project, hook: str) -> None:
    project.write("hooks.py", HOOK)
    project.write("scripts/hooks.py", HOOK)
    case = {"id": "a", "input": "x", "before_hook": hook}
    file = project.cases(case)
    assert project.test(file, *AGENT, "--dry-run", "--after-all", hook).code == 0
    assert project.lines("imported") == []
    missing = project.test(project.cases({**case, "before_hook": f"{hook}ne"}, name="b.jsonl"), *AGENT, "--dry-run")
    if hook != "hooks:go":  # what a module has is only known once it is imported
        assert missing.code == 2
        assert f"hook `{hook}ne`: there is no `gone` in" in missing.err
    assert project.lines("imported") == []
    assert project.test(file, *AGENT).code == 0
    assert project.lines("imported") == ["x"]


def test_a_hook_outside_of_the_project_is_an_error(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "evil.py"
    outside.write_text("open('imported', 'a').write('x ')\n\ndef go():\n    pass\n")
    project.write("atp.toml", "")
    for hook in (f"{outside}:go", f"{os.path.relpath(outside, project.folder)}:go"):
        for more in ([], ["--dry-run"]):
            ran = project.test(project.cases({"id": "a", "input": "x", "after_hook": hook}), *AGENT, *more)
            assert ran.code == 2
            assert f"hook `{hook}`: {outside} is outside of the project" in ran.err
    assert project.lines("imported") == []
    # Whoever gives the command may run anything.
    assert project.test(project.cases("a"), *AGENT, "--before-all", f"{outside}:go").code == 0
    assert project.lines("imported") == ["x"]


def test_files_outside_of_the_project_are_a_warning(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("elsewhere")
    (outside / "a.txt").write_text("x")
    (project.folder / "inside").mkdir()
    project.write("atp.toml", "")
    part = {"type": "file", "source": f"file://{outside}/a.txt"}
    cases: list[dict[str, Any]] = [
        {"id": "a", "input": "x", "workspace": str(outside)},
        {"id": "b", "input": "x", "workspace": os.path.relpath(outside, project.folder)},
        {"id": "c", "messages": [{"role": "user", "content": [part]}]},
        {"id": "d", "input": "x", "workspace": "inside"},
    ]
    ran = project.test(project.cases(*cases), *AGENT, "--dry-run")
    assert ran.code == 0
    assert ran.err.count("warning[outside-project]") == 3
    assert "case `b`: its workspace ../" in ran.err
    assert "case `c`: its attachment" in ran.err
    assert project.test(project.cases(*cases), *AGENT, "--dry-run", "--strict").code == 2
