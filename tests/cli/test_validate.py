"""`atp validate`: diagnostics for people and for programs, and exit codes."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran
from tests.waiting import WAIT_LIMIT

Atp = Callable[..., CompletedProcess[str]]

GOOD = "test_suite: s\nagents: [{name: a, type: custom, config: {entry: 'a.py:f'}}]\n"
GOOD += "tests: [{id: t, name: T, input: Hello}]\n"
BAD = """\
test_suite: clerk
agents:
  - name: clerk
    type: http
    config:
      endpoint: http://127.0.0.1:8000
tests:
  - id: note
    name: Write a note
    task:
      description: Write "buy bread" to note.txt
    constraints:
      max_steps: many
    assertion:
      - type: artifact_exists
        path: note.txt
    max_turns: 3
"""
UNSEEN = "The agents were not looked at; this does it: atp agents check good.yaml\n"
JSONL = '{"id": "a", "input": "Hello"}\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**files: str) -> None:
    for name, text in files.items():
        path = Path(name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.usefixtures("here")
class TestForPeople:
    def test_nothing_wrong(self, atp: Atp) -> None:
        write(good_yaml=GOOD, cases_jsonl=JSONL)
        done = atp("validate", "good.yaml", "cases.jsonl")
        assert (done.returncode, done.stdout, done.stderr) == (
            0,
            f"2 files, 2 cases, 0 errors, 0 warnings\n{UNSEEN}",
            "",
        )

    def test_mistakes_with_source_line_and_caret(self, atp: Atp) -> None:
        write(clerk_yaml=BAD)
        done = atp("validate", "clerk.yaml")
        assert (done.returncode, done.stderr) == (2, "")
        assert done.stdout == (
            """\
error[wrong-type]: `max_steps` must be a whole number, found the text 'many'
  --> clerk.yaml:13:18
13 |       max_steps: many
   |                  ^
  help: write a whole number, for example 3

error[unknown-key]: unknown key `assertion`
  --> clerk.yaml:14:5
14 |     assertion:
   |     ^
  help: did you mean `assertions`?

warning[max-turns-unused]: `max_turns` has no meaning without a simulator
  --> clerk.yaml:17:5
17 |     max_turns: 3
   |     ^
  help: remove it

1 file, 1 case, 2 errors, 1 warning
"""
        )

    def test_slips_inside_of_what_has_a_slip_itself(self, atp: Atp) -> None:
        write(
            slips_yaml="""\
tets:
  - id: t
    name: T
    input: Hello
    asertions:
      - {type: contains, valeu: x}
test_suite: s
agnets: [{name: a, type: custom, config: {entri: a.py:run}}]
"""
        )
        done = atp("validate", "slips.yaml", "--json")
        found = json.loads(done.stdout)["diagnostics"]
        assert {(one["message"], one["line"], one["column"]) for one in found} == {
            ("unknown key `tets`", 1, 1),
            ("unknown key `asertions`", 5, 5),
            ("unknown key `valeu`", 6, 26),
            ("unknown key `agnets`", 8, 1),
            ("unknown key `entri`", 8, 43),
        }

    def test_a_file_without_agents_may_be_given_one(self, atp: Atp) -> None:
        write(none_yaml="test_suite: s\ntests: [{id: t, name: T, input: Hello}]\n")
        assert "help: add `agents:`, or name one with -n\n" in atp("validate", "none.yaml").stdout
        assert atp("validate", "none.yaml", "-n", "x").returncode == 0

    def test_a_warning_alone_is_fine_unless_strict(self, atp: Atp) -> None:
        write(cases_jsonl='{"id": "a", "input": "x", "max_turns": 3}\n')
        relaxed, strict = atp("validate", "cases.jsonl"), atp("validate", "--strict", "cases.jsonl")
        assert (relaxed.returncode, strict.returncode) == (0, 2)
        assert relaxed.stdout.startswith("warning[max-turns-unused]")
        assert strict.stdout.startswith("error[max-turns-unused]")

    def test_the_caret_stands_below_wide_characters_and_after_tabs(self, atp: Atp) -> None:
        write(cases_jsonl='{"id": "日本é",\t"inptu": "x"}\n')
        lines = atp("validate", "cases.jsonl").stdout.splitlines()
        assert lines[2] == '1 | {"id": "日本é", "inptu": "x"}'
        assert lines[3] == "  |" + " " * 17 + "^"

    def test_of_a_long_line_only_the_part_around_is_shown(self, atp: Atp) -> None:
        write(cases_jsonl=f'{{"id": "{"a" * 300}", "inptu": "x", "name": "{"b" * 300}"}}\n')
        lines = atp("validate", "cases.jsonl").stdout.splitlines()
        assert len(lines[2]) < 110
        assert lines[2].startswith("1 | …a")
        assert lines[2].endswith("b…")
        assert lines[2][lines[3].index("^") :].startswith('"inptu"')

    def test_no_colour_when_it_is_not_a_terminal(self, atp: Atp) -> None:
        write(clerk_yaml=BAD)
        assert "\x1b" not in atp("validate", "clerk.yaml").stdout

    def test_colour_on_a_terminal(self) -> None:
        write(clerk_yaml=BAD)
        shown = on_a_terminal("validate", "clerk.yaml")
        assert "\x1b[31m" in shown
        assert "\x1b[33m" in shown

    def test_what_a_file_holds_cannot_steer_a_terminal(self, atp: Atp) -> None:
        evil = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\x7f"
        write(
            evil_yaml=GOOD + f'? "{evil.encode("unicode_escape").decode()}"\n: 1\n',
            evil_jsonl=f'{{"id": "a", "input": "x", "{json.dumps(evil)[1:-1]}": 1, "y": "\u202e\x9b"}}\n',
        )
        for arguments in (["validate"], ["show"], ["show", "--json"]):
            done = atp(*arguments, "evil.yaml", "evil.jsonl")
            assert done.returncode == 2
            assert not set(done.stdout + done.stderr) & set("\x1b\x07\x9b\u202e\x7f\r")

    def test_what_a_name_holds_cannot_either(self, atp: Atp) -> None:
        Path("a\x1b[31m.yaml").write_text(BAD)
        done = atp("validate", "a\x1b[31m.yaml")
        assert done.returncode == 2
        assert "\x1b" not in done.stdout

    def test_names_that_are_not_utf8(self, atp: Atp) -> None:
        name = os.fsdecode(b"\xff.yaml")
        Path(name).write_text(BAD)
        done = atp("validate", "--json", name)
        assert (done.returncode, done.stderr) == (2, "")

    def test_a_terminal_that_cannot_show_a_character(self, atp: Atp) -> None:
        write(cases_jsonl='{"id": "日本", "inptu": "…é😀"}\n')
        settings = {"env": {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}}
        for arguments in (["validate"], ["show", "--json"]):
            done = atp(*arguments, "cases.jsonl", **settings)
            assert done.returncode == 2
            assert "Traceback" not in done.stderr
            if "--json" in arguments:
                assert json.loads(done.stdout)


@pytest.mark.usefixtures("here")
class TestForPrograms:
    def test_json(self, atp: Atp) -> None:
        write(clerk_yaml=BAD)
        done = atp("validate", "--json", "clerk.yaml")
        assert done.returncode == 2
        found = json.loads(done.stdout)
        assert (found["files"], found["cases"]) == (1, 1)
        assert [one["code"] for one in found["diagnostics"]] == ["wrong-type", "unknown-key", "max-turns-unused"]
        assert found["diagnostics"][1] == {
            "code": "unknown-key",
            "severity": "error",
            "message": "unknown key `assertion`",
            "hint": "did you mean `assertions`?",
            "file": "clerk.yaml",
            "line": 14,
            "column": 5,
        }

    def test_json_of_good_files(self, atp: Atp) -> None:
        write(good_yaml=GOOD)
        assert json.loads(atp("validate", "--json", "good.yaml").stdout) == {"files": 1, "cases": 1, "diagnostics": []}


@pytest.mark.usefixtures("here")
class TestPaths:
    def test_files_folders_and_patterns_each_file_once(self, atp: Atp) -> None:
        write(a_yaml=GOOD, b__c_jsonl=JSONL, b__d_jsonl=JSONL, config_yaml="name: not a suite\n")
        done = atp("validate", "--json", "a.yaml", "b", "b/*.jsonl", ".")
        assert done.returncode == 0
        assert json.loads(done.stdout) == {"files": 3, "cases": 3, "diagnostics": []}

    def test_nothing_found(self, atp: Atp) -> None:
        Path("empty").mkdir()
        done = atp("validate", "--json", "empty", "*.yaml", "gone.yaml")
        assert done.returncode == 2
        found = json.loads(done.stdout)["diagnostics"]
        assert [one["code"] for one in found] == ["no-test-files", "no-test-files", "no-such-file"]

    def test_one_bad_file_among_good_ones(self, atp: Atp) -> None:
        write(a_yaml=GOOD, b_yaml=BAD, c_jsonl=JSONL)
        done = atp("validate", ".")
        assert done.returncode == 2
        assert done.stdout.endswith("3 files, 3 cases, 2 errors, 1 warning\n")

    def test_a_path_is_needed(self, atp: Atp) -> None:
        done = atp("validate")
        assert done.returncode == 2
        assert "Missing argument 'PATH...'" in done.stderr

    def test_what_the_command_line_names_a_file_need_not(self, atp: Atp) -> None:
        check = '{"type": "contains", "value": "x"}'
        write(
            agent_yaml="test_suite: s\ntests: [{id: t, name: T, input: Hello}]\n",
            simulator_jsonl=f'{{"id": "a", "checkpoints": [{{"id": "c", "assertion": {check}}}]}}\n',
        )
        found = json.loads(atp("validate", "--json", ".").stdout)["diagnostics"]
        assert [one["code"] for one in found] == ["missing-key", "no-simulator"]
        assert atp("validate", "-n", "my.agent", "--simulator", "openai.any", ".").returncode == 0


def on_a_terminal(*arguments: str) -> str:
    """What `atp` prints when its output is a terminal."""
    screen, terminal = pty.openpty()
    command = [sys.executable, "-m", "atp", *arguments]
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, stdin=terminal) as child:
        os.close(terminal)
        shown = b""
        while True:
            try:
                piece = os.read(screen, 65536)
            except OSError:  # the child has closed its end
                break
            if not piece:
                break
            shown += piece
        child.wait(timeout=WAIT_LIMIT)
    os.close(screen)
    return shown.decode()


CUSTOM = {"name": "a", "type": "custom", "config": {"entry": "agent.py:run"}}
TEXT = {"name": "a", "type": "cli", "config": {"command": "cat", "protocol": "text"}}
PROMPT = {"name": "a", "type": "prompt", "config": {"path": "agents/p.md"}}
JUDGED = {"expectations": ["the answer is polite"]}
DIALOGUE = {"checkpoints": [{"id": "c", "assert": {"type": "contains", "value": "x"}}]}
HISTORY = {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}


def errors(ran: Ran) -> list[str]:
    return sorted(re.findall(r"^error\[([\w-]+)\]", ran.out + ran.err, re.MULTILINE))


@pytest.mark.parametrize(
    ("agent", "test", "settings", "code"),
    [
        ({**CUSTOM, "config": {"module": "x"}}, {}, "", "agent-configuration"),
        (TEXT, {"constraints": {"allowed_tools": ["a"]}}, "", "unobservable"),
        (TEXT, {"assertions": [{"type": "behavior", "check": "no_errors"}]}, "", "unobservable"),
        (TEXT, HISTORY, "", "no-history"),
        (CUSTOM, JUDGED, "", "no-judge"),
        (CUSTOM, JUDGED, "assessor = 'nobody'", "no-judge"),
        (CUSTOM, JUDGED, "assessor = 'scripts.none.judge'", "no-judge"),
        (CUSTOM, {"assertions": [{"type": "agent", "use": "agents:nobody"}]}, "", "no-judge"),
        (CUSTOM, {"assertions": [{"type": "llm_eval", "criteria": "x", "judge": "agents:nobody"}]}, "", "no-judge"),
        (CUSTOM, DIALOGUE, "", "no-simulator"),
        (CUSTOM, {**DIALOGUE, "simulator": {"use": "nobody"}}, "", "no-simulator"),
        (PROMPT, {"options": {"connector": "nowhere.x"}}, "connector = 'openai.x'", "no-connector"),
        (CUSTOM, {"before_hook": "hooks.py:none"}, "", "hook"),
        (CUSTOM, {"workspace": "none"}, "", "no-such-folder"),
        (CUSTOM, {"assertions": [{"type": "script", "script": "scripts.none.check"}]}, "", "unjudgeable"),
        (CUSTOM, {}, "paralel = 2", "unknown-key"),
    ],
)
def test_what_a_run_refuses_because_of_the_files_is_refused(
    project: Project, agent: dict[str, Any], test: dict[str, Any], settings: str, code: str
) -> None:
    project.write("agent.py", "open('imported', 'w')\ndef run(messages):\n    return 'x'\n")
    project.write("agents/p.md", "---\n---\nYou are polite.\n")
    project.write("atp.toml", settings)
    file = project.suite(
        [agent], [{"id": "one", "input": "x", **test} if "messages" not in test else {"id": "o", **test}]
    )
    key = {"OPENAI_API_KEY": "none"}
    validated = project.atp("validate", file, env=key)
    assert (validated.code, errors(validated)) == (2, [code]), validated
    assert not (project.folder / "imported").exists(), "validate loads no agent"
    for flags in (["--dry-run"], []):
        ran = project.atp("test", file, *flags, env=key)
        assert (ran.code, errors(ran)) == (2, [code]), ran


def test_an_expired_quarantine_is_refused(project: Project) -> None:
    project.write("agent.py", "def run(messages):\n    return 'x'\n")
    project.write("atp.toml", "")
    project.write("quarantine.yaml", [{"case": "one", "owner": "ada", "reason": "known", "expires": "2001-01-01"}])
    file = project.suite([CUSTOM], [{"id": "one", "input": "x"}])
    for command in ("validate", "test"):
        ran = project.atp(command, file)
        assert (ran.code, errors(ran)) == (2, ["quarantine-expired"]), ran


@pytest.mark.parametrize(
    ("test", "settings", "flags"),
    [
        (JUDGED, "assessor = 'scripts.roles.judge'", []),
        (JUDGED, "", ["--assessor", "scripts.roles.judge"]),
        (JUDGED, "role_connector = 'openai.any'", []),
        (DIALOGUE, "simulator = 'scripts.roles.user'", []),
        (DIALOGUE, "", ["--role-connector", "openai.any"]),
        ({**DIALOGUE, "simulator": {"use": "scripts.roles.user"}}, "", []),
    ],
)
def test_what_the_settings_name_a_file_need_not(
    project: Project, test: dict[str, Any], settings: str, flags: list[str]
) -> None:
    project.write("agent.py", "def run(messages):\n    return 'x'\n")
    project.write("scripts/roles.py", "open('imported', 'w')\ndef judge(given):\n    ...\ndef user(given):\n    ...\n")
    project.write("atp.toml", settings)
    file = project.suite([CUSTOM], [{"id": "one", "input": "x", **test}])
    ran = project.atp("validate", file, *flags)
    assert (ran.code, errors(ran)) == (0, []), ran.out
    assert not (project.folder / "imported").exists(), "validate loads no code"
    ran = project.atp("test", file, "--dry-run", *flags, env={"OPENAI_API_KEY": "none"})
    assert ran.code == 0, ran.err


def test_a_missing_judge_is_counted_by_case(project: Project) -> None:
    project.write("agent.py", "def run(messages):\n    return 'x'\n")
    checks = [{"type": "llm_eval", "criteria": "relevance"}, {"type": "llm_eval", "criteria": "accuracy"}]
    one, two = [{"id": name, "assertions": checks} for name in ("one", "two")]
    assert "case `one`: `llm_eval`" in project.atp("validate", project.suite([CUSTOM], [one])).out
    assert "case `one`, and 1 more case: `llm_eval`" in project.atp("validate", project.suite([CUSTOM], [one, two])).out
