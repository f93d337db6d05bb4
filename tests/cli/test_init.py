"""`atp init`: a suite that loads as it is, with what it needs."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml
from jsonschema import Draft202012Validator

from atp.loader.load import load_path

Run = Callable[..., CompletedProcess[str]]
FILES = {
    "yaml": ["suite.yaml", "agent.py", "suite.schema.json"],
    "md": ["first.test.md", "agents/greeter.md", "agents/greeter.py", "agents/assessor.md"],
    "jsonl": ["cases.jsonl", "agent.py"],
}
NEXT = {
    "yaml": "atp test suite.yaml",
    "md": "atp test first.test.md",
    "jsonl": "atp test cases.jsonl -n agent.py:answer",
}


@pytest.fixture(autouse=True)
def in_an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def written(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", FILES)
def test_it_writes_a_suite_that_loads_without_diagnostics(run: Run, tmp_path: Path, kind: str) -> None:
    done = run("init", kind)
    assert (done.returncode, done.stderr) == (0, "")
    assert written(tmp_path) == set(FILES[kind])
    assert done.stdout == "".join(f"wrote {name}\n" for name in FILES[kind]) + f"\nNext: {NEXT[kind]}\n"
    loaded = load_path(tmp_path / FILES[kind][0])
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    assert len(loaded.suite.cases) >= 2


def test_without_a_format_it_is_yaml_and_dir_says_where(run: Run, tmp_path: Path) -> None:
    done = run("init", "--dir", "deep/down")
    assert done.returncode == 0
    assert written(tmp_path / "deep/down") == set(FILES["yaml"])
    assert done.stdout.endswith("Next: atp test deep/down/suite.yaml\n")


@pytest.mark.parametrize("folder", [".", "deep/a b"])
@pytest.mark.parametrize("kind", FILES)
def test_the_next_command_passes_without_a_key(
    run: Run, monkeypatch: pytest.MonkeyPatch, kind: str, folder: str
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    command = run("init", kind, "--dir", folder).stdout.rpartition("Next: ")[2]
    done = run(*shlex.split(command)[1:], "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["passed"] == summary["total"] >= 2
    assert "unobserved" not in done.stdout, "a first run should warn of nothing"


def test_a_file_that_is_the_same_is_no_conflict(run: Run, tmp_path: Path) -> None:
    run("init", "yaml")
    done = run("init", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("wrote cases.jsonl\nkept agent.py: it is the same already\n")
    assert written(tmp_path) == {*FILES["yaml"], *FILES["jsonl"]}


def test_all_that_is_in_the_way_is_named(run: Run, tmp_path: Path) -> None:
    for name in ("suite.yaml", "agent.py"):
        (tmp_path / name).write_text("mine")
    done = run("init")
    assert done.returncode == 2
    assert "suite.yaml, agent.py are there already. Nothing was written." in done.stderr


def test_editors_find_the_schema_and_the_suite_fits_it(run: Run, tmp_path: Path) -> None:
    run("init")
    text = (tmp_path / "suite.yaml").read_text()
    told = text.partition("\n")[0].removeprefix("# yaml-language-server: $schema=")
    schema = json.loads((tmp_path / told).read_text())
    assert list(Draft202012Validator(schema).iter_errors(yaml.safe_load(text))) == []


@pytest.mark.parametrize("taken", FILES["yaml"])
def test_nothing_is_overwritten_and_nothing_written(run: Run, tmp_path: Path, taken: str) -> None:
    path = tmp_path / taken
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    done = run("init")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{taken} is there already. Nothing was written." in done.stderr
    assert written(tmp_path) == {taken}
    assert path.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "agents").write_text("a file")
    done = run("init", "md")
    assert (done.returncode, done.stdout) == (2, "")
    assert "agents cannot be written" in done.stderr
    assert written(tmp_path) == {"agents"}


def test_a_folder_that_cannot_be_written_to_is_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "locked").symlink_to("/proc/self")  # locked for root, too
    done = run("init", "jsonl", "--dir", "locked")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Error: locked/cases.jsonl cannot be written: " in done.stderr


def test_the_agent_does_what_the_cases_expect(run: Run, tmp_path: Path) -> None:
    run("init")
    code = "from agent import reply\nfor text in ('Say hello.', 'How much is 17 + 25?'):\n"
    code += "    print(reply([{'role': 'user', 'content': text}]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == 'Hello! What can I do for you?\n{"sum": 42}\n'
