"""The GitHub action and the set-ups on the CI page: what they name is there, and the action's script does its job."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.waiting import WAIT_LIMIT

ROOT = Path(__file__).parents[2]


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return found


def step(name: str) -> dict[str, Any]:
    (found,) = [one for one in action()["runs"]["steps"] if one["name"] == name]
    made: dict[str, Any] = found
    return made


def run_script(folder: Path, tests: str, args: str) -> tuple[int, str]:
    """The action's own script, as GitHub runs it: `python` and a file, the inputs in the environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ATP_", "GITHUB_"))}
    env = {
        **clean,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TESTS": tests,
        "ARGS": args,
        "REPORTS": "out",
        "GITHUB_OUTPUT": str(folder / "output"),
    }
    ours = step("Run the tests")
    assert ours["shell"] == "python"
    script = folder / "script.py"
    script.write_text(ours["run"], encoding="utf-8")
    done = subprocess.run(
        ["python", script], cwd=folder, env=env, capture_output=True, text=True, timeout=WAIT_LIMIT, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_script_of_the_action(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    (tmp_path / "a b.jsonl").write_text('{"id": "x", "input": "hi", "expected": "hi"}\n')
    code, said = run_script(tmp_path, "'a b.jsonl'", "-n agent.py:answer --runs 2 --user 'two words'")
    assert code == 0, said
    assert (tmp_path / "output").read_text() == "exit-code=0\n"
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["report.ctrf.json", "report.html", "report.json", "report.xml"]
    assert '"user_id":"two words"' in (tmp_path / "out/report.json").read_text()


def test_the_exit_code_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    (tmp_path / "a.jsonl").write_text('{"id": "x", "input": "hi", "expected": "ho"}\n')
    code, _ = run_script(tmp_path, "a.jsonl", "-n agent.py:answer")
    assert code == 1
    assert (tmp_path / "output").read_text() == "exit-code=1\n"


def test_the_action_runs_with_its_defaults(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "test_suite: own\n"
        "agents: [{name: cat, type: cli, config: {command: [cat], protocol: text}}]\n"
        "tests: [{id: a, name: A, input: hi, expected: hi}]\n"
    )
    inputs = action()["inputs"]
    code, said = run_script(tmp_path, "own.yaml", inputs["args"]["default"])
    assert code == 0, said
    assert (tmp_path / "out/report.json").exists()


@pytest.mark.parametrize(("tests", "args"), [("a.jsonl", "--runs 2 'x"), ("'a.jsonl", "")])
def test_an_unclosed_quote_is_an_error_not_a_run_without_flags(tmp_path: Path, tests: str, args: str) -> None:
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    (tmp_path / "atp.toml").write_text('name = "agent.py:answer"\n')
    (tmp_path / "a.jsonl").write_text('{"id": "x", "input": "hi", "expected": "hi"}\n')
    code, said = run_script(tmp_path, tests, args)
    assert code == 2
    assert f"::error::{'args' if args else 'tests'}: No closing quotation" in said
    assert "Traceback" not in said
    assert not (tmp_path / ".atp").exists()
    assert (tmp_path / "output").read_text() == "exit-code=2\n"


def test_inputs_give_the_shell_no_orders(tmp_path: Path) -> None:
    code, _ = run_script(tmp_path, "a.jsonl", "-n 'x' $(touch owned) `touch owned` ; touch owned")
    assert code == 2
    assert not (tmp_path / "owned").exists()


def test_a_run_that_is_resumed_writes_every_report_again() -> None:
    (script,) = re.findall(r"^#!/bin/sh\n.*?^```$", (ROOT / "docs/ci.md").read_text(encoding="utf-8"), re.M | re.S)
    first, again = [one for one in script.replace("\\\n", "").splitlines() if one.strip().startswith("atp test ")]
    assert "--resume" in again
    assert re.findall(r"-o \S+", again) == re.findall(r"-o \S+", first) != []


def test_every_input_of_the_action_is_used_and_documented() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    for name in action()["inputs"]:
        assert f"inputs.{name}" in text, name
        assert f"| `{name}` |" in page, name


def test_the_set_ups_are_yaml_and_name_known_inputs() -> None:
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(one) for one in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    assert len(blocks) == 3
    steps = [one for block in blocks for job in block.get("jobs", {}).values() for one in job["steps"]]
    (ours,) = [one for one in steps if "/atp@" in one.get("uses", "")]
    assert ours["with"].keys() <= action()["inputs"].keys()
    required = {name for name, about in action()["inputs"].items() if about.get("required")}
    assert required <= ours["with"].keys()
