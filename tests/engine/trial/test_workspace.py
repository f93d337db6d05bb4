"""The folder of a trial: what it starts with, what the agent made of it, and what the agent put in its place."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project

from atp.engine import seed_files
from atp.engine.seed_files import why_unusable
from atp.engine.trial import workspace as workspace_module
from atp.engine.trial.workspace import WorkFolder, Workspace, WorkspaceError, WorkspaceReplaced

ECHO = """
    def run(prompt):
        return f"you said {prompt}"
"""


def test_files_that_take_longer_to_copy_than_the_trial_may_are_no_fault_of_the_agent(project: Project) -> None:
    for number in range(2000):
        project.write(f"seed/{number}.txt", "x")
    project.write("agent.py", "def run(prompt, workspace):\n    open('asked', 'w').close()\n    return 'done'\n")
    case = {"id": "a", "input": "a", "workspace": "seed", "timeout": "50ms"}
    (result,) = project.test(project.cases(case), "-n", "agent.py:run").results.values()
    assert (result["status"], result["blame"]) == ("error", "environment")
    assert result["error"] == (
        "the workspace could not be made: the trial's time was up before all its files were copied"
    )
    assert not (project.folder / "asked").exists()
    assert project.workspaces() == []


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


def test_a_link_in_the_place_of_the_workspace_is_an_error_of_the_agent(project: Project) -> None:
    (project.folder / "elsewhere").mkdir()
    project.write("elsewhere/mine.txt", "mine")
    project.write(
        "agent.py",
        """
        import json, os, sys
        request = json.load(sys.stdin)
        here = os.getcwd()
        os.rmdir(here)
        os.symlink(os.environ["OUT"], here)
        made = [{"type": "file", "path": "evil.txt", "content": "x"}] if os.environ["TO"] else []
        print(json.dumps({"task_id": request["task_id"], "status": "completed", "artifacts": made}))
        """,
    )
    agents = [
        {
            "name": name,
            "type": "cli",
            "config": {
                "command": [sys.executable, "agent.py"],
                "environment": {"OUT": str(project.folder / "elsewhere"), "TO": to},
            },
        }
        for name, to in (("quiet", ""), ("writes", "evil.txt"))
    ]
    exists = {"type": "artifact_exists", "path": "mine.txt"}
    tests = [{"id": "a", "assertions": [exists, {**exists, "path": "other.txt", "negate": True}]}]
    ran = project.test(project.suite(agents, tests))
    assert [(one["status"], one["blame"]) for one in ran.events[1:-1]] == [("error", "agent")] * 2
    assert "replaced its workspace folder by a link" in ran.events[1]["error"]
    assert [one.name for one in (project.folder / "elsewhere").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("levels", [1, 2])
def test_a_link_in_the_place_of_a_folder_above_the_workspace_costs_nobody_a_file(project: Project, levels: int) -> None:
    for number in range(1, 4):
        project.write(f"precious/{number}/keep.txt", "mine")
        project.write(f"precious/work/{number}/keep.txt", "mine")
    project.write(
        "agent.py",
        """
        import json, os, pathlib, sys
        request = json.load(sys.stdin)
        above = pathlib.Path.cwd().parents[int(os.environ["LEVELS"]) - 1]
        os.chdir("/")
        if not above.is_symlink():
            os.rename(above, f"{above}-old")
            os.symlink(os.environ["PRECIOUS"], above)
        print(json.dumps({"task_id": request["task_id"], "status": "completed", "output": "x"}))
        """,
    )
    environment = {"PRECIOUS": str(project.folder / "precious"), "LEVELS": str(levels)}
    command = {"command": [sys.executable, "agent.py"], "environment": environment}
    tests = [{"id": name, "assertions": [{"type": "artifact_exists", "path": "x"}]} for name in "abc"]
    ran = project.test(project.suite([{"name": "bad", "type": "cli", "config": command}], tests))
    assert ran.code in (1, 3)
    assert [path.read_text() for path in sorted((project.folder / "precious").rglob("keep.txt"))] == ["mine"] * 6


def test_a_workspace_that_is_the_machine_is_refused_before_anything_runs(project: Project) -> None:
    project.write("agent.py", ECHO)
    agents = [{"name": "echo", "type": "custom", "config": {"entry": "agent.py:run"}}]
    ran = project.test(project.suite(agents, [{"id": "a", "workspace": "/"}]))
    assert ran.code == 2
    assert "unusable-folder" in ran.err
    assert "contains the whole project" in ran.err


def test_files_are_not_copied_for_an_agent_that_does_not_use_them(project: Project) -> None:
    project.write("fixtures/data.csv", "data")
    project.write(
        "agent.py", f"{ECHO}\n    def looks(prompt, workspace):\n        return sorted(map(str, workspace.iterdir()))"
    )
    for name, folders in (("run", 0), ("looks", 1)):
        project.test(project.cases({"id": name, "input": "a"}), "-n", f"agent.py:{name}", "--keep-workspaces")
        assert len(list(project.folder.glob(".atp/runs/*/work/*/fixtures/data.csv"))) == folders


MakeWorkspace = Callable[..., Workspace]


@pytest.fixture
def new(tmp_path: Path) -> MakeWorkspace:
    """A workspace of a project whose root is `tmp_path / "project"`."""
    (tmp_path / "project").mkdir()
    return lambda **more: Workspace(WorkFolder(tmp_path / "work"), "1", root=tmp_path / "project", **more)


def seed(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "seed"
    folder.mkdir()
    return folder


def replaced_by_a_link(folder: Path, elsewhere: Path) -> None:
    os.rmdir(folder)
    os.symlink(elsewhere, folder)


def parent_replaced_by_a_link(folder: Path, elsewhere: Path) -> None:
    (elsewhere / folder.name).mkdir()
    os.rename(folder.parent, folder.parent.with_name("moved"))
    os.symlink(elsewhere, folder.parent)


def replaced_by_a_file(folder: Path, elsewhere: Path) -> None:
    os.rmdir(folder)
    folder.write_text("")


def taken_away(folder: Path, elsewhere: Path) -> None:
    os.rmdir(folder)


@pytest.mark.parametrize("act", [replaced_by_a_link, parent_replaced_by_a_link, replaced_by_a_file, taken_away])
def test_a_workspace_that_the_agent_replaced_is_not_used(
    new: MakeWorkspace, tmp_path: Path, act: Callable[[Path, Path], None]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.txt").write_text("mine")
    workspace = new()
    act(workspace.path(), elsewhere)
    for use in (workspace.path, workspace.changed_files, lambda: asyncio.run(workspace.copy_to(tmp_path / "kept"))):
        with pytest.raises(WorkspaceReplaced, match="the agent"):
            use()
    workspace.remove()
    assert (elsewhere / "mine.txt").read_text() == "mine"
    assert not os.path.lexists(tmp_path / "work" / "1") or act is parent_replaced_by_a_link


class HeldCopy:
    """Copies no file until it is told to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        original = seed_files.copy_file

        def copy_file(*args: Any) -> str:
            self.begun.set()
            assert self.go_on.wait(60), "the event loop waits for the copy"
            return original(*args)

        for module in (seed_files, workspace_module):
            monkeypatch.setattr(module, "copy_file", copy_file)

    async def has_begun(self) -> None:
        await asyncio.to_thread(self.begun.wait)


Copying = Callable[[Workspace, Path], Coroutine[Any, Any, Any]]
COPYING: dict[str, Copying] = {
    "made": lambda workspace, folder: workspace.prepare(),
    "copied": lambda workspace, folder: workspace.copy_to(folder),
}


def made_for(what: str, new: MakeWorkspace, tmp_path: Path) -> Workspace:
    folder = seed(tmp_path)
    for number in range(3):
        (folder / f"{number}.txt").write_text("x")
    workspace = new(seed=folder)
    if what == "copied":
        workspace.path()
    return workspace


@pytest.mark.parametrize("what", COPYING)
def test_the_event_loop_goes_on_while_files_are_copied(
    what: str, new: MakeWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = made_for(what, new, tmp_path)

    async def run() -> None:
        held = HeldCopy(monkeypatch)
        copying = asyncio.ensure_future(COPYING[what](workspace, tmp_path / "work" / "kept"))
        await held.has_begun()
        held.go_on.set()
        await copying

    asyncio.run(run())
    folder = workspace.path() if what == "made" else tmp_path / "work" / "kept"
    assert sorted(one.name for one in folder.iterdir()) == ["0.txt", "1.txt", "2.txt"]
    assert workspace.changed_files() == {}


@pytest.mark.parametrize("what", COPYING)
def test_a_copy_that_is_cancelled_leaves_nothing_behind(
    what: str, new: MakeWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = made_for(what, new, tmp_path)

    async def run() -> None:
        held = HeldCopy(monkeypatch)
        copying = asyncio.ensure_future(COPYING[what](workspace, tmp_path / "work" / "kept"))
        await held.has_begun()
        copying.cancel()
        asyncio.get_running_loop().call_soon(held.go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await copying

    monkeypatch.setattr(workspace_module, "STOP_LIMIT", 60)
    asyncio.run(run())
    why = f"the workspace could not be {what}: the trial's time was up before all its files were copied"
    assert str(workspace.cut_short) == why
    left = [] if what == "made" else ["1"]  # the folder that was to be copied, which the trial removes
    assert [one.name for one in (tmp_path / "work").iterdir()] == left


def test_a_copy_of_what_a_before_left_stops_when_time_is_up(new: MakeWorkspace, tmp_path: Path) -> None:
    workspace = made_for("copied", new, tmp_path)
    workspace.time_is_up = lambda: True
    with pytest.raises(WorkspaceError, match="could not be copied: the trial's time was up"):
        asyncio.run(workspace.copy_to(tmp_path / "work" / "kept"))
    assert [one.name for one in (tmp_path / "work").iterdir()] == ["1"]


def test_a_workspace_that_the_agent_made_anew_is_its_workspace(new: MakeWorkspace) -> None:
    workspace = new()
    folder = workspace.path()
    os.rmdir(folder)
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    assert list(workspace.changed_files()) == ["a.txt"]


def test_a_file_whose_time_was_set_back_is_changed_all_the_same(new: MakeWorkspace, tmp_path: Path) -> None:
    folder = seed(tmp_path)
    (folder / "a.txt").write_text("good")
    workspace = new(seed=folder)
    file = workspace.path() / "a.txt"
    about = file.stat()
    assert list(workspace.changed_files()) == []
    file.write_text("evil")
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert list(workspace.changed_files().values()) == [file]


def test_permissions_are_restored_below_the_workspace_only(new: MakeWorkspace, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "inner"
    elsewhere.mkdir(parents=True)
    elsewhere.chmod(0o755)
    workspace = new()
    replaced_by_a_link(workspace.path(), elsewhere.parent)
    workspace.remove()
    assert elsewhere.stat().st_mode & 0o777 == 0o755


def test_links_of_the_user_are_copied_as_what_they_point_to(new: MakeWorkspace, tmp_path: Path) -> None:
    folder, shared = seed(tmp_path), tmp_path / "project" / "shared"
    (shared / "deep").mkdir(parents=True)
    (shared / "data.txt").write_text("data")
    (shared / "deep" / "more.txt").write_text("more")
    (folder / "relative.txt").symlink_to("../shared/data.txt")
    (folder / "absolute.txt").symlink_to(shared / "data.txt")
    (folder / "folder").symlink_to("../shared")
    workspace = new(seed=folder, fixtures=folder)
    there = workspace.path()
    for name in ("relative.txt", "absolute.txt", "folder/data.txt", "fixtures/relative.txt"):
        assert not (there / name).is_symlink()
        assert (there / name).read_text() == "data"
    assert (there / "folder/deep/more.txt").read_text() == "more"
    assert workspace.changed_files() == {}
    (there / "absolute.txt").write_text("overwritten")
    assert (shared / "data.txt").read_text() == "data"
    assert list(workspace.changed_files()) == ["absolute.txt"]


def outside(folder: Path) -> None:
    (folder / "link").symlink_to("/etc")


def dangling(folder: Path) -> None:
    (folder / "link").symlink_to("nowhere")


def circle(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    (folder / "a" / "to_b").symlink_to("../b")
    (folder / "b" / "to_a").symlink_to("../a")


def itself(folder: Path) -> None:
    (folder / "link").symlink_to("link")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (outside, "leads out of the project"),
        (dangling, "leads nowhere"),
        (circle, "contains the link"),
        (itself, "leads nowhere"),
        (lambda folder: os.mkfifo(folder / "pipe"), "neither a file nor a folder"),
        (lambda folder: [(folder / name).write_text("x") for name in "abcd"], "more than 3 files"),
    ],
)
def test_a_seed_that_is_refused(
    new: MakeWorkspace,
    tmp_path: Path,
    make: Callable[[Path], None],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seed_files, "MOST_FILES", 3)
    folder = seed(tmp_path)
    make(folder)
    assert words in (why_unusable(folder, tmp_path / "project") or "")
    with pytest.raises(WorkspaceError, match=words):
        new(seed=folder).path()


def test_a_folder_that_contains_the_project_is_not_copied(tmp_path: Path) -> None:
    for folder in (Path("/"), tmp_path.parent, tmp_path):
        assert "contains the whole project" in (why_unusable(folder, tmp_path / "project") or "")


def test_the_project_itself_is_copied_without_its_runs(new: MakeWorkspace, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".atp" / "runs").mkdir(parents=True)
    (project / "a.txt").write_text("a")
    there = new(seed=project).path()
    assert [one.name for one in there.iterdir()] == ["a.txt"]
