"""Keys of trials: the same for the same project wherever it is, another one for whatever decides a result."""

import fnmatch
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.engine.support.project import Project

from atp.engine.prepare.prepare import prepare
from atp.engine.prepare.sources import Input

SCRIPT = """
    import helper

    def TestGreets(t, ctx):
        t.assert_.equal(ctx.agent("polite").send("hi").output, "hi")
"""


@pytest.fixture
def whole(project: Project) -> Project:
    """A project with a case for each kind of thing that a key is made of."""
    one = Project(project.folder / "one")
    one.write("atp.toml", "")
    one.write("agent.py", "def run(prompt):\n    return prompt\n")
    one.write("tools/talk.py", "print('hi')\n")
    one.write("seed/deep/a.txt", "a")
    one.write("fixtures/b.txt", "b")
    one.write("picture.png", b"\x89PNG")
    one.write("a map.png", b"\x89PNG")
    one.write("hooks.py", "def begin(): ...\n")
    one.write("scripts/hooks.py", "def end(): ...\n")
    one.write("scripts/checks.py", "def holds(output): return True\n")
    one.write("scripts/helper.py", "")
    one.write("scripts/test_greets.py", SCRIPT)
    one.write("agents/polite.md", "---\nconnector: local\n---\n[rules](rules.md)\n")
    one.write("agents/rules.md", "Be polite.\n")
    one.write(
        "talk.test.md", "---\ntarget: agents/polite.md\n---\n# Hi\n**Prompt:** hi\n**Expectations:**\n- no errors\n"
    )
    root = "${PROJECT}"
    agents = [
        {"name": "custom", "type": "custom", "config": {"entry": f"{root}/agent.py:run", "note": f"in {root}/seed."}},
        {
            "name": "cli",
            "type": "cli",
            "config": {
                "command": [sys.executable, f"{root}/tools/talk.py", f"--folder={root}"],
                "environment": {"LOG": "${PROJECT}/agent.log"},
            },
        },
    ]
    parts = [
        {"type": "image", "source": "file://picture.png"},
        {"type": "image_url", "image_url": {"url": "file://a%20map.png"}},
    ]
    tests: list[dict[str, Any]] = [
        {"id": "plain"},
        {"id": "seeded", "workspace": "seed", "before_hook": "hooks.py:begin", "after_hook": "scripts:hooks.end"},
        {"id": "judged", "assertions": [{"type": "script", "script": "scripts.checks.holds"}]},
        {"id": "seen", "messages": [{"role": "user", "content": [{"type": "text", "text": "see"}, *parts]}]},
    ]
    one.suite(agents, tests)
    return one


class Keys(NamedTuple):
    """The hashes of a trial."""

    key: str
    case: str


def keys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Keys]:
    """The hashes of all trials, by agent and case, when everything in the folder is planned."""
    monkeypatch.setenv("PROJECT", str(folder))
    monkeypatch.chdir(folder)
    run = prepare(Input(("scripts:test_greets",), ("suite.yaml", "talk.test.md")), {"dry_run": True})
    return {f"{one.agent} {one.case.id}": Keys(one.key, one.case_digest) for one in run.plan.trials()}


def test_the_same_project_in_another_folder_has_the_same_keys(whole: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(whole.folder, monkeypatch)
    assert len(before) == 2 * 4 + 2
    other = whole.folder.parent / "a longer path" / "two"
    shutil.copytree(whole.folder, other)
    shutil.move(whole.folder, whole.folder.parent / "gone")
    assert keys(other, monkeypatch) == before


def append(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes() + b"\n")


OF_AGENT: dict[str, tuple[Callable[[Path], object], str]] = {
    "its code": (append("agent.py"), "custom *"),
    "a program's argument": (append("tools/talk.py"), "cli *"),
    "a linked file": (append("agents/rules.md"), "polite *"),
}
OF_CASE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a workspace": (append("seed/deep/a.txt"), "* seeded"),
    "a name in a workspace": (lambda folder: (folder / "seed/deep").rename(folder / "seed/deeper"), "* seeded"),
    "a hook": (append("hooks.py"), "* seeded"),
    "a hook among the scripts": (append("scripts/hooks.py"), "* seeded"),
    "a script": (append("scripts/checks.py"), "* judged"),
    "an attachment": (append("picture.png"), "* seen"),
    "a picture by its address": (append("a map.png"), "* seen"),
    "fixtures": (append("fixtures/b.txt"), "[cp]* [!T]*"),
    "a module of a script test": (append("scripts/helper.py"), "* TestGreets"),
}


@pytest.mark.parametrize("change", [*OF_AGENT, *OF_CASE])
def test_what_decides_a_result_changes_its_key(whole: Project, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    before = keys(whole.folder, monkeypatch)
    act, which = {**OF_AGENT, **OF_CASE}[change]
    act(whole.folder)
    after = keys(whole.folder, monkeypatch)
    expected = set(fnmatch.filter(before, which))
    called = {"a linked file": {name for name in before if name.endswith("TestGreets")}}.get(change, set())
    assert {name for name in before if before[name].key != after[name].key} == expected | called
    of_case = (expected if change in OF_CASE else set()) | called  # what a test in Python calls is part of the test
    assert {name for name in before if before[name].case != after[name].case} == of_case


@pytest.mark.parametrize(
    "gate", [{"runs": 3}, {"pass_rate": 0.5}, {"pass_rate": 0.9, "confidence": 0.95, "margin": 0.1}]
)
def test_how_runs_are_decided_on_is_no_part_of_a_key(
    project: Project, monkeypatch: pytest.MonkeyPatch, gate: dict[str, Any]
) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt\n")
    agents = [{"name": "a", "type": "custom", "config": {"entry": "agent.py:run"}}]
    found = []
    for keys_of_case in ({}, gate):
        project.suite(agents, [{"id": "one", "input": "hi", **keys_of_case}])
        monkeypatch.chdir(project.folder)
        run = prepare(Input((), ("suite.yaml",)), {"dry_run": True})
        trial = next(iter(run.plan.trials()))
        found.append(Keys(trial.key, trial.case_digest))
    assert found[0] == found[1]
