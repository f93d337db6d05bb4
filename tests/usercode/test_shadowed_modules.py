"""Modules of the user's that have the name of one that ATP needs (finding A4)."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.support.project import Project, clean_environment
from tests.waiting import WAIT_LIMIT

import atp

AGENT = "def run(prompt): return prompt\n"
FAILS = {"id": "a", "input": "hello", "assert": {"type": "regex", "value": "goodbye"}}
ENDS_US = "import sys\nsys.exit(0)\n"


@pytest.mark.parametrize(
    "name",
    [
        *("jinja2.py", "regex.py", "aiohttp/__init__.py", "multidict.py", "rich.py", "atp.py"),
        "brotli.py",  # aiohttp imports it if it is there
    ],
)
def test_a_module_that_atp_needs_is_refused_before_the_run(project: Project, name: str) -> None:
    project.write("agent.py", AGENT)
    project.write(name, ENDS_US)
    ran = project.atp("test", project.cases(FAILS), "-n", "agent.py:run", "-o", "r.html")
    assert ran.code == 2, ran.out + ran.err
    module = name.partition("/")[0].removesuffix(".py")
    assert f"error[shadowed-module]: `{module}` in {project.folder} has the name of a module" in ran.err
    assert not (project.folder / ".atp" / "runs").exists()


def test_a_module_of_the_entry_itself(project: Project) -> None:
    project.write("regex.py", AGENT)
    ran = project.atp("test", project.cases(FAILS), "-n", "regex:run")
    assert ran.code == 2
    assert "error[shadowed-module]" in ran.err


def test_a_module_beside_scripts(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write("scripts/checks.py", "def right(output): return True\n")
    project.write("scripts/yaml.py", ENDS_US)
    check = {"type": "script", "script": "scripts:checks.right"}
    ran = project.atp("test", project.cases({"id": "a", "input": "x", "assert": check}), "-n", "agent.py:run")
    assert ran.code == 2, ran.out
    assert f"`yaml` in {project.folder / 'scripts'}" in ran.err


def test_names_that_atp_does_not_need_are_the_users(project: Project) -> None:
    """Also those of installed packages: pytest's own helper here, and a folder that only holds data."""
    project.write("agent.py", "import pluggy, utils\ndef run(prompt): return pluggy.X + utils.X\n")
    project.write("pluggy.py", "X = 'mi'\n")
    project.write("utils.py", "X = 'ne'\n")
    project.write("jinja2/page.html", "")
    ran = project.test(project.cases({"id": "a", "input": "x", "expected": "mine"}), "-n", "agent.py:run")
    assert ran.statuses == {"a": "passed"}
    assert ran.code == 0


def test_an_agent_with_an_interpreter_of_its_own_may_have_any(project: Project) -> None:
    project.write("agent.py", "import regex\ndef run(prompt): return regex.X\n")
    project.write("regex.py", "X = 'mine'\n")
    agent = {"name": "a", "type": "custom", "config": {"entry": "agent.py:run", "python": sys.executable}}
    case = {"id": "a", "assertions": [{"type": "regex", "value": "^mine$"}]}
    ran = project.test(project.suite([agent], [case]))
    assert ran.statuses == {"a": "passed"}


@pytest.mark.parametrize(
    "check",
    [{"type": "regex", "value": "goodbye"}, {"type": "json_path", "path": "$.a"}],
    ids=["needed by the run", "needed to load the file"],
)
@pytest.mark.parametrize("way", ["pytest", "python"])
def test_pytest_and_python_refuse_it_too(project: Project, way: str, check: dict[str, str]) -> None:
    project.write("agents/agent.py", AGENT)
    project.write("regex.py", "raise SystemExit(0)\n")
    agent = {"name": "a", "type": "custom", "config": {"entry": "agents/agent.py:run"}}
    suite = project.suite([agent], [{"id": "a", "assertions": [check]}])
    project.write("program.py", f"import sys, atp\nsys.exit(atp.run_sync(atp.load({suite!r})).exit_code)\n")
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--atp", suite] if way == "pytest" else ["program.py"]
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=project.folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_LIMIT,
    )
    assert ran.returncode != 0
    assert "shadowed-module" in ran.stdout + ran.stderr


def test_the_test_loader_does_not_let_it_end_the_program(project: Project) -> None:
    project.write("regex.py", ENDS_US)
    file = project.cases({"id": "a", "input": "x", "assert": {"type": "json_path", "path": "$.a"}})
    project.write("program.py", f"from atp.loader import TestLoader\nTestLoader().load_file({file!r})\n")
    ran = subprocess.run(
        [sys.executable, "program.py"],
        cwd=project.folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_LIMIT,
    )
    assert ran.returncode == 1
    assert "would end the program: SystemExit: 0" in ran.stderr


def test_a_module_in_the_working_directory_is_not_ours_to_import(project: Project) -> None:
    """`python -m` puts the working directory on the path."""
    project.write("agents/agent.py", AGENT)
    project.write("jinja2.py", ENDS_US)
    ran = subprocess.run(
        [sys.executable, "-m", "atp", "test", project.cases(FAILS), "-n", "agents/agent.py:run", "-o", "r.html"],
        cwd=project.folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_LIMIT,
    )
    assert ran.returncode == 1, ran.stderr
    assert (project.folder / "r.html").exists()


@pytest.mark.parametrize(
    "entry", ["src", "agent.py", "loop", "__editable__.mine-1.0.finder.__path_hook__", Path("src")]
)
def test_a_path_entry_that_is_no_folder_is_skipped(
    project: Project, monkeypatch: pytest.MonkeyPatch, entry: str | Path
) -> None:
    """As Python skips it: `PYTHONPATH=src` in a project without `src`, and what setuptools adds for its finders."""
    project.write("agent.py", AGENT)
    (project.folder / "loop").symlink_to("loop")
    suite = project.suite([{"name": "a", "type": "custom", "config": {"entry": "agent.py:run"}}], [{"id": "a"}])
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(sys, "path", [project.folder / entry if isinstance(entry, Path) else entry, *sys.path])
    assert atp.run_sync(atp.load(suite)).exit_code == 0
