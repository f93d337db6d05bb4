"""What somebody meets who has just begun: no key yet, half a name, a server that isn't there."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from tests.engine.support.project import Project

PROMPT = "---\nconnector: {}\n---\n\nYou are kind.\n"
SPEAK = "def speak(said):\n    return {'input': 'hello?'}\n"
IN_WORDS = """\
    ---
    target: agents/kind.md
    ---
    # Case
    **Prompts:**
    - hello
    **Expectations:**
    - it was kind
    """


def test_a_plan_needs_no_key(project: Project) -> None:
    project.write("agents/kind.md", PROMPT.format("openai.gpt-4o-mini"))
    file = project.cases("a")
    ran = project.atp("test", file, "-n", "kind", "--dry-run")
    assert ran.code == 0
    assert "kind × a " in ran.out
    assert ran.err.startswith("warning[no-key]: the agent `kind` needs a model: ")
    assert "help: set OPENAI_API_KEY" in ran.err
    assert project.atp("test", file, "-n", "kind").code == 2


def test_a_plan_with_a_slip_in_a_connector_is_refused(project: Project) -> None:
    project.write("agents/kind.md", PROMPT.format("opnai.gpt-4o-mini"))
    ran = project.atp("test", project.cases("a"), "-n", "kind", "--dry-run")
    assert ran.code == 2
    assert "there is no connector `opnai.gpt-4o-mini`" in ran.err


def test_a_judge_without_its_key(project: Project) -> None:
    project.write("agent.py", "def answer(prompt): return 'hello'")
    project.write("words.test.md", IN_WORDS)
    call = ("test", "words.test.md", "-n", "agent.py:answer")
    keyless = project.atp(*call, "--assessor", "openai.gpt-4o")
    assert keyless.code == 2
    assert "help: set OPENAI_API_KEY" in keyless.err
    assert "module:function" not in keyless.err
    planned = project.atp(*call, "--assessor", "openai.gpt-4o", "--dry-run")
    assert (planned.code, "warning[no-key]: the judge needs" in planned.err) == (0, True)
    nobody = project.atp(*call)
    assert (nobody.code, "--assessor scripts:file.function" in nobody.err) == (2, True)


def test_a_simulator_in_a_script_needs_no_key(project: Project) -> None:
    project.write("agent.py", "def answer(prompt): return 'hello'")
    project.write("scripts/buyer.py", SPEAK)
    checkpoints = [{"id": "greeted", "assert": {"type": "contains", "value": "hello"}}]
    case = {"id": "a", "simulator": {"use": "scripts.buyer.speak"}, "checkpoints": checkpoints}
    ran = project.test(project.cases(case), "-n", "agent.py:answer")
    assert ran.statuses == {"a": "passed"}
    keyless = project.test(project.cases({**case, "simulator": {"use": "openai.gpt-4o"}}), "-n", "agent.py:answer")
    assert (keyless.code, "help: set OPENAI_API_KEY" in keyless.err) == (2, True)


def test_a_file_without_its_function(project: Project) -> None:
    project.write("agent.py", "def _own(x): ...\ndef setup(): ...\nasync def answer(prompt): return 'hello'\n")
    project.write("empty.py", "")
    file = project.cases("a")
    assert "help: did you mean `agent.py:answer`?" in project.atp("test", file, "-n", "agent.py").err
    assert "help: use a name of the suite, module:function" in project.atp("test", file, "-n", "empty.py").err
    nobody = project.atp("test", file).err
    assert "`-n my_agent.py:answer`" in nobody
    assert "`name` in atp.toml" in nobody


class Own(BaseHTTPRequestHandler):
    """A server with JSON of its own."""

    def do_POST(self) -> None:
        body = b'{"reply": "hello"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def own_json() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Own) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_a_server_with_json_of_its_own(project: Project, own_json: str) -> None:
    ran = project.test(project.cases("a"), "-n", own_json)
    (result,) = ran.results.values()
    assert "write an agent with `protocol: json`" in result["error"]


def test_a_server_that_is_not_there(project: Project) -> None:
    ran = project.test(project.cases("a"), "-n", "http://127.0.0.1:9/", "--retries", "0")
    (result,) = ran.results.values()
    assert result["error"] == "the agent can't be reached: 127.0.0.1:9 refused the connection"


def test_a_run_of_a_project_further_down_is_found_by_what_is_printed(project: Project) -> None:
    project.write("atp.toml", "")
    project.write("examples/atp.toml", "")
    project.write("examples/agent.py", "def answer(prompt): return 'bye'")
    agents = [{"name": "a", "type": "custom", "config": {"entry": "agent.py:answer"}}]
    task = {"description": "count", "input_data": {"log": "one two"}}
    test = {"id": "t", "task": task, "assertions": [{"type": "contains", "value": "hello"}]}
    ran = project.atp("test", project.suite(agents, [test], file="examples/s.yaml"), "-v")
    assert (ran.code, 'input data: {"log":"one two"}' in ran.out) == (1, True)
    (line,) = [one for one in ran.out.splitlines() if "All about it: " in one]
    named = line.partition("atp report ")[2].split()[0]
    assert named.startswith("examples/.atp/runs/")
    again = project.atp("report", named, "-o", "report.html")
    assert (again.code, (project.folder / "report.html").is_file()) == (0, True)
    journal = (project.folder / named / "journal.jsonl").read_text("utf-8").splitlines()
    (about,) = [one["about"] for one in map(json.loads, journal) if one["type"] == "trial"]
    assert about["input_data"] == {"log": "one two"}
    assert project.atp("runs").out == f"No runs yet in {project.folder / '.atp/runs'}.\n"


def test_a_chat_keeps_commands_to_itself(project: Project) -> None:
    project.write("agent.py", "def answer(prompt): return f'heard {prompt}'")
    ran = project.atp("chat", "agent.py:answer", input="/help\n/x y\n/etc/hosts?\n/quit\n")
    assert (ran.code, ran.out) == (0, "heard /etc/hosts?\n")
    assert ran.err.count("/quit, /exit, /q or Ctrl-D ends") == 2


def test_a_chat_with_nobody_does_not_end_well(project: Project) -> None:
    ran = project.atp("chat", "http://127.0.0.1:9/", input="hello\n")
    assert (ran.code, ran.out) == (3, "")
    assert "127.0.0.1:9 refused the connection" in ran.err
