"""A disk that is full, or becomes read-only, while a run writes to it; and agents that take their workspace away."""

import re
import subprocess
import sys

import pytest
from tests.engine.support.project import Project, clean_environment
from tests.parts import missing, needs

CASES = [f"c{number}" for number in range(8)]
AGENT = """
    import os, subprocess

    def run(prompt):
        with open("asked", "a") as file:
            print(prompt, file=file)
        if prompt == "c3" and not os.path.exists("broken"):
            open("broken", "w").close()
            {breaks}
        return prompt * 500
"""
ON_A_DISK = """
mount -t tmpfs -o size={size} none .atp || exit 99
{before}
{atp} test cases.jsonl -n agent.py:run --quiet; echo "first $?"
rm -f .atp/x; mount -o remount,rw,size=20m .atp
{atp} test cases.jsonl -n agent.py:run --quiet {resume}; echo "second $?"
cp -r .atp kept
"""


def on_a_disk(project: Project, size: str, breaks: str = "pass", before: str = "", resume: str = "--resume") -> str:
    """Run on a disk of its own that breaks, and again when it has space. Returns all that was printed."""
    project.write("atp.toml", "")
    project.write("agent.py", AGENT.format(breaks=breaks))
    project.cases(*CASES)
    (project.folder / ".atp").mkdir()
    script = ON_A_DISK.format(size=size, before=before, resume=resume, atp=f"{sys.executable} -m atp")
    command, env = ["unshare", "-rm", "sh", "-c", script], clean_environment()
    needs("unshare")
    ran = subprocess.run(command, cwd=project.folder, env=env, capture_output=True, text=True, check=False)
    if ran.returncode == 99 or "unshare:" in ran.stderr:
        missing(f"no file system can be mounted here: {ran.stderr.strip()}")
    assert "Traceback" not in ran.stdout + ran.stderr
    kept = project.folder / "kept"
    assert not [*kept.glob("runs/*/work"), *kept.glob("runs/*/lock")]
    return ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("size", "breaks"),
    [("16k", "pass"), ("20m", "subprocess.run('head -c 30000000 /dev/zero > .atp/x', shell=True)")],
    ids=["too small", "filled by the agent"],
)
def test_a_disk_that_is_full_while_the_run_writes(project: Project, size: str, breaks: str) -> None:
    said = on_a_disk(project, size, breaks)
    assert "No space left on device" in said
    assert re.findall("^(?:first|second) .*", said, re.MULTILINE) == ["first 3", "second 0"]
    asked = project.lines("asked")
    assert set(asked) == set(CASES)
    assert len(asked) <= len(CASES) + 1  # the one whose line could not be written


def test_a_disk_that_is_read_only(project: Project) -> None:
    said = on_a_disk(project, "20m", before="mount -o remount,ro .atp", resume="")
    assert "error[no-journal]" in said
    assert "Read-only file system" in said
    assert re.findall("^(?:first|second) .*", said, re.MULTILINE) == ["first 2", "second 0"]
    assert project.lines("asked") == CASES


TAKES = """
    import os, pathlib, shutil, sys
    prompt = sys.stdin.read().strip()
    here = os.getcwd()
    if prompt != "stays":
        os.chdir("/")
        shutil.rmtree(here)
    if prompt == "link":
        os.symlink(pathlib.Path(__file__).parent / "outside", here)
    if prompt == "file":
        pathlib.Path(here).write_text("a file")
    print(prompt)
"""


def test_agents_that_take_their_workspace_away(project: Project) -> None:
    """Nothing is read or removed through a link, and no other trial suffers."""
    project.write("agent.py", TAKES)
    project.write("outside/mine.txt", "mine")
    agent = {"name": "a", "type": "cli", "config": {"command": [sys.executable, "agent.py"], "protocol": "text"}}
    checked = {"assertions": [{"type": "artifact_exists", "path": "mine.txt"}]}
    tests = [{"id": name, "input": name, **checked} for name in ("link", "file", "gone")]
    ran = project.test(project.suite([agent], [*tests, {"id": "stays", "input": "stays"}]), "--parallel", "4")
    assert ran.code == 1
    assert ran.statuses["stays"] == "passed"
    assert {ran.statuses[name] for name in ("link", "file", "gone")} <= {"failed", "error"}
    assert [path.name for path in (project.folder / "outside").iterdir()] == ["mine.txt"]
    assert project.workspaces() == []
