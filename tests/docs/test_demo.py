"""`git clone` and `make demo`, as the README has them, and what of it stands on other pages.

`make` finds an environment that is up to date, so it installs nothing.
"""

import re
import shlex
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, run_by
from tests.docs.newcomer import have_installed, plain_environment, shell

import atp

PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def clone(repository: Path, tmp_path: Path) -> Path:
    """Where the README's first command leads."""
    ((first, *_),) = [commands for page, commands in run_by(__file__) if page == "README.md"]
    command = first.replace("<this repository>", shlex.quote(str(repository)))
    ended = shell([command, "pwd"], tmp_path, plain_environment(PROGRAMS))
    assert ended.returncode == 0, ended.stderr
    made = Path(ended.stdout.strip())
    assert made.is_relative_to(tmp_path)
    have_installed(made)
    return made


def test_every_block_is_run_here() -> None:
    assert [page for page, _ in run_by(__file__)] == ["README.md", "docs/index.md", "docs/models.md"]


def test_every_make_command_of_the_readme_is_there_and_says_what_it_does() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    targets = dict(re.findall(r"^([\w-]+):.*## (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([\w-]+)", readme))
    assert {"demo", "test"} <= named <= targets.keys()
    assert "`make test` sets everything up and runs ATP's own tests" in readme
    assert "tests" in targets["test"]


def test_demo_shows_a_failure_and_goes_well(clone: Path) -> None:
    ((_, *rest),) = [commands for page, commands in run_by(__file__) if page == "README.md"]
    assert rest == ["make demo"]
    ran = shell(rest, clone, plain_environment(PROGRAMS))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "fails on purpose" in ran.stdout
    commands = [line for line in ran.stdout.splitlines() if line.startswith("$ ")]
    assert commands[0] == "$ cd examples", "the commands that follow work there only"
    assert "✗ [count-002]" in ran.stdout
    assert "Passed:  1" in ran.stdout
    said = ran.stdout.rpartition("# Reports: ")[2].partition("\n# Journals:")[0]
    reports = [Path(one) for one in said.replace("\n#", "").replace(",", "").split()]
    examples = clone / "examples"
    assert len(reports) == 5
    assert all(one.is_file() and one.is_relative_to(examples) for one in reports)
    assert len(list(examples.glob(".atp/runs/*/journal.jsonl"))) == 5
    assert "Traceback" not in ran.stderr, ran.stderr  # a crash ends with 1 as well, as if something had failed
    before, _, after = ran.stdout.partition("Played back")
    flaky = [re.findall(r"Trials:  20 \(.*", text) for text in (before, after)]
    assert flaky[0][-1:] == flaky[1] != [], ran.stdout + ran.stderr
    (same,) = [commands for page, commands in run_by(__file__) if page == "docs/models.md"]
    for command in same:
        assert f"$ {command.replace(' examples/', ' ')}" in ran.stdout, "the demo no longer does what the page shows"
    changed = shell(["git status --short"], clone, plain_environment(PROGRAMS))
    assert changed.stdout == "", "the demo leaves files that git would take up"


def test_installation_on_the_front_page(clone: Path) -> None:
    (commands,) = [commands for page, commands in run_by(__file__) if page == "docs/index.md"]
    ran = shell(commands, clone, plain_environment(PROGRAMS))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == f"atp {atp.__version__}"
