"""`atp chat --save`: what was said becomes a case that loads and passes."""

import json
import signal
import subprocess
import sys
from subprocess import PIPE
from typing import Any

from tests.engine.support.project import Project, clean_environment
from tests.models.mock_server import Heard, MockModels, calls
from tests.waiting import WAIT_LIMIT

PROMPT = """\
---
connector: openai.desk
commands: ["desk.py:tides"]
---

You are the tide desk.
"""
DESK = """
    def tides(place: str) -> str:
        return f"high water at {place}: 14:20"
"""


def desk(heard: Heard) -> Any:
    if "high water" in heard.prompt and not heard.tool_results:
        return calls(("tides", {"place": "Whitby"}))
    return "At 14:20." if heard.tool_results else f"You said {heard.prompt}"


def write(project: Project) -> None:
    project.write("agents/desk.md", PROMPT)
    project.write("agents/desk.py", DESK)


def test_jsonl_and_markdown_load_and_pass(project: Project) -> None:
    write(project)
    said = "good morning\n\nwhen is high water?\n/quit\nnever said\n"
    with MockModels(desk) as server:
        for file in ("case.jsonl", "case.test.md"):
            chat = project.atp("chat", "desk", "--save", file, "--name", "High water", input=said, env=server.env)
            assert chat.code == 0, chat.err
            assert chat.out == "You said good morning\nAt 14:20.\n"
            assert '· tides({"place": "Whitby"})' in chat.err
            assert f"Saved as case high-water in {file}" in chat.err
        written = json.loads((project.folder / "case.jsonl").read_text("utf-8"))
        assert written == {
            "id": "high-water",
            "name": "High water",
            "messages": [
                {"role": "user", "content": "good morning"},
                {"role": "assistant", "content": "You said good morning"},
                {"role": "user", "content": "when is high water?"},
            ],
            "assertions": [{"type": "tool_called", "name": "tides", "arguments": {"place": "Whitby"}}],
        }
        markdown = (project.folder / "case.test.md").read_text("utf-8")
        assert "target: agents/desk.md\n" in markdown
        assert 'the `tides` function was called with `{"place": "Whitby"}`' in markdown
        valid = project.atp("validate", "case.jsonl", "case.test.md")
        assert valid.code == 0, valid.err
        assert project.test("case.jsonl", "-n", "desk", env=server.env).statuses == {"high-water": "passed"}
        assert project.test("case.test.md", env=server.env).statuses == {"high-water": "passed"}


def test_more_is_added_to_a_file_and_gets_a_name_of_its_own(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt.upper()\n")
    for file in ("case.jsonl", "case.test.md"):
        for number in range(2):
            chat = project.atp("chat", "agent.py:run", "--save", file, input=f"hello {number}\n")
            assert (chat.code, chat.out) == (0, f"HELLO {number}\n"), chat.err
        ran = project.test(file, "-n", "agent.py:run")
        assert ran.statuses == {"chat": "passed", "chat-2": "passed"}, ran.err


def test_an_answer_that_fails_is_taken_back(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    if prompt == 'x': raise ValueError('no')\n    return 'fine'\n")
    chat = project.atp("chat", "agent.py:run", "--save", "case.jsonl", input="x\nhello\n")
    assert (chat.code, chat.out) == (0, "fine\n")
    assert "agent error: ValueError: no\n" in chat.err
    assert json.loads((project.folder / "case.jsonl").read_text("utf-8")) == {"id": "chat", "input": "hello"}
    nothing = project.atp("chat", "agent.py:run", "--save", "none.jsonl", input="x\n")
    assert "Nothing is saved: there was no answer." in nothing.err
    assert not (project.folder / "none.jsonl").exists()


def test_what_can_not_be_talked_to_is_said(project: Project) -> None:
    write(project)
    unknown = project.atp("chat", "nobody", input="x\n")
    assert unknown.code == 2
    assert "there is no agent `nobody`" in unknown.err
    keyless = project.atp("chat", "desk", input="x\n")
    assert keyless.code == 2
    assert "OPENAI_API_KEY is not set" in keyless.err
    wrong = project.atp("chat", "desk", "--save", "case.yaml", input="x\n")
    assert wrong.code == 2
    assert ".jsonl or .test.md" in wrong.err


def test_a_place_that_can_not_be_written_to_is_told_before_anything_is_said(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return 'fine'\n")
    project.write("taken.jsonl/x", "")
    project.write("odd.jsonl", b"\xff\n")
    for file, why in (
        ("no/such/case.jsonl", "its folder is not there"),
        ("taken.jsonl", "Is a directory"),
        ("odd.jsonl", "what is there is not UTF-8"),
    ):
        chat = project.atp("chat", "agent.py:run", "--save", file, input="hello\n")
        assert (chat.code, chat.out) == (2, "")
        assert f"--save {file}: {why}" in chat.err


def test_an_interrupted_conversation_is_saved(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return 'fine'\n")
    command = [sys.executable, "-m", "atp", "chat", "agent.py:run", "--save", "case.jsonl"]
    with subprocess.Popen(
        command, cwd=project.folder, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=clean_environment(), text=True
    ) as chat:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write("hello\n")
        chat.stdin.flush()
        assert chat.stdout.readline() == "fine\n"
        chat.send_signal(signal.SIGINT)
        _, err = chat.communicate(timeout=WAIT_LIMIT)
    assert (chat.returncode, "Saved as case chat in case.jsonl" in err) == (130, True), err
    assert json.loads((project.folder / "case.jsonl").read_text("utf-8")) == {"id": "chat", "input": "hello"}


def test_a_line_that_is_not_utf_8_is_not_the_agents_mistake(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return f'heard {prompt}'\n")
    command = [sys.executable, "-m", "atp", "chat", "agent.py:run"]
    chat = subprocess.run(
        command, cwd=project.folder, input=b"caf\xe9\n", capture_output=True, env=clean_environment(), check=False
    )
    assert (chat.returncode, chat.stdout.decode(), chat.stderr) == (0, "heard caf\ufffd\n", b"")


def test_a_chat_keeps_commands_to_itself(project: Project) -> None:
    project.write("agent.py", "def answer(prompt): return f'heard {prompt}'")
    ran = project.atp("chat", "agent.py:answer", input="/help\n/x y\n/etc/hosts?\n/quit\n")
    assert (ran.code, ran.out) == (0, "heard /etc/hosts?\n")
    assert ran.err.count("/quit, /exit, /q or Ctrl-D ends") == 2


def test_a_chat_with_nobody_does_not_end_well(project: Project) -> None:
    ran = project.atp("chat", "http://127.0.0.1:9/", input="hello\n")
    assert (ran.code, ran.out) == (3, "")
    assert "127.0.0.1:9 refused the connection" in ran.err


REFUND = """
    asked = []

    def answer(prompt):
        asked.append(prompt)
        if prompt != "yes":
            return "Sure?"
        return {"output": "Done.", "tool_calls": [{"name": "refund", "arguments": {"order": ORDER, "$note": 1}}]}
"""


def test_a_saved_case_fails_when_the_tool_gets_other_arguments(project: Project) -> None:
    project.write("agent.py", REFUND.replace("ORDER", "asked[0]"))
    for file in ("case.jsonl", "case.test.md"):
        assert project.atp("chat", "agent.py:answer", "--save", file, input="1002\nyes\n").code == 0
    ran = project.test("case.jsonl", "-n", "agent.py:answer")
    assert ran.code == 2, ran.out
    assert "error[no-history]: case `chat`: agent `agent.py:answer` is never given the earlier messages" in ran.err
    project.write("agent.py", REFUND.replace("ORDER", "'0000'").replace('"$note": 1', '"note": 1'))
    assert project.atp("chat", "agent.py:answer", "--save", "one.test.md", input="yes\n").code == 0
    assert project.test("one.test.md", "-n", "agent.py:answer").statuses == {"chat": "passed"}
    project.write("agent.py", REFUND.replace("ORDER", "'1111'").replace('"$note": 1', '"note": 1'))
    assert project.test("one.test.md", "-n", "agent.py:answer").statuses == {"chat": "failed"}


def test_saving_a_history_for_an_agent_that_never_gets_one_says_so(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt\n\ndef all(messages):\n    return 'x'\n")
    lost = "The agent is only given the newest message"
    assert lost in project.atp("chat", "agent.py:run", "--save", "a.jsonl", input="one\ntwo\n").err
    assert lost not in project.atp("chat", "agent.py:run", "--save", "b.jsonl", input="one\n").err
    assert lost not in project.atp("chat", "agent.py:run", "--save", "c.test.md", input="one\ntwo\n").err
    assert lost not in project.atp("chat", "agent.py:all", "--save", "d.jsonl", input="one\ntwo\n").err
