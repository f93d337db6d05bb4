"""Files that a trial starts with, and files that an agent hands over."""

import sys
from pathlib import Path

from tests.engine.support.project import Project

ECHO = """
    def run(prompt):
        return f"you said {prompt}"
"""


def test_an_artifacts_path_never_leaves_the_workspace(project: Project) -> None:
    project.write("mine.txt", "mine")
    project.write(
        "agent.py",
        """
        import json, os, sys
        request = json.load(sys.stdin)
        os.symlink(os.environ["OUT"], "link")
        made = {"type": "file", "path": os.environ["TO"], "content": "overwritten"}
        print(json.dumps({"task_id": request["task_id"], "status": "completed", "artifacts": [made]}))
        """,
    )
    agents = []
    for path in ("../../../../../mine.txt", f"/tmp/../{project.folder}/mine.txt", "link/mine.txt"):
        environment = {"OUT": str(project.folder), "TO": path}
        config = {"command": [sys.executable, "agent.py"], "environment": environment}
        agents.append({"name": path, "type": "cli", "config": config})
    ran = project.test(project.suite(agents, [{"id": "a"}]), "--parallel", "3")
    assert [(one["status"], one["blame"]) for one in ran.events[1:-1]] == [("error", "agent")] * 3
    assert (project.folder / "mine.txt").read_text() == "mine"


def test_files_are_where_the_tests_say(project: Project) -> None:
    """A trap of our own: a path in a file starts at that file, wherever `atp` is called from."""
    project.write("sub/agent.py", ECHO)
    file = project.suite(
        [{"name": "echo", "type": "custom", "config": {"entry": "agent.py:run"}}], [{"id": "a"}], file="sub/suite.yaml"
    )
    elsewhere = project.folder / "elsewhere"
    elsewhere.mkdir()
    assert project.test(str(Path("..") / file), cwd=elsewhere).code == 0
