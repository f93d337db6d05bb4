"""The start record says where a run was and what it depended on; trials and cases say what they were."""

import platform
import shutil
import sys
from typing import Any

import pytest
from tests.engine.support.project import Project
from tests.parts import needs
from tests.repository import git

from atp import __version__
from atp.engine.run_info import _ci_job

ECHO = "def run(prompt):\n    return prompt\n"
AGENT = ["-n", "agent.py:run"]


def test_the_start_record_says_where_the_run_was(project: Project) -> None:
    needs("git")
    project.write("agent.py", ECHO)
    file = project.cases("a")
    git(project.folder, "init", "-q")
    git(project.folder, "add", "agent.py")
    git(project.folder, "commit", "-q", "-m", "one")
    project.write("agent.py", f"{ECHO}\n")
    ran = project.test(file, *AGENT, env={"CI_JOB_URL": "https://ci.example/jobs/7"})
    assert ran.code == 0
    start = project.journal()[0]
    assert start["commit"] == git(project.folder, "rev-parse", "HEAD")
    assert (start["branch"], start["dirty"]) == ("main", True)
    assert start["host"] == platform.node()
    assert start["pid"] > 0
    assert start["ci_job"] == "https://ci.example/jobs/7"
    assert (start["version"], start["python"]) == (__version__, platform.python_version())
    assert start["platform"] == f"{sys.platform}-{platform.machine()}"
    assert start["command"] == ["atp", "test", file, *AGENT, "--json"]
    assert start["input"] == ["cases.jsonl"]


def test_without_a_repository_there_is_no_commit(project: Project) -> None:
    project.write("agent.py", ECHO)
    project.test(project.cases("a"), *AGENT)
    assert not project.journal()[0].keys() & {"commit", "branch", "dirty"}


@pytest.mark.parametrize(
    ("env", "job"),
    [
        ({}, None),
        (
            {"GITHUB_SERVER_URL": "https://g", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "7"},
            "https://g/a/b/actions/runs/7",
        ),
        ({"BUILD_URL": "", "BUILD_BUILDID": "12"}, "12"),
    ],
)
def test_the_job_of_a_ci_service(env: dict[str, str], job: str | None) -> None:
    assert _ci_job(env) == job


ROLES = """
    def run(prompt):
        return prompt

    def judge(prompt):
        return {"passed": True}

    def user(payload):
        return {"input": "", "goal_achieved": True}
"""


def test_digests_tell_who_was_tested_judged_and_simulated(project: Project) -> None:
    project.write("atp.toml", '[agents.judge]\ntype = "custom"\nconfig = { entry = "scripts/roles.py:judge" }\n')
    project.write("scripts/roles.py", ROLES)
    own = {"user": "eve", "team": "blue", "metadata": {"ticket": 7}}
    point = {"id": "answered", "assertion": {"type": "contains", "value": "x"}}
    file = project.cases(
        "plain",
        {"id": "judged", "input": "x", "assert": {"type": "agent", "use": "agents:judge", "value": "polite"}},
        {"id": "dialogue", "input": "x", "simulator": {"use": "scripts.roles.user"}, "checkpoints": [point], **own},
    )
    ran = project.test(file, "-n", "scripts/roles.py:run")
    assert ran.statuses == dict.fromkeys(["plain", "judged", "dialogue"], "passed"), ran.err
    trials = {one["case"]: one for one in project.trials()}
    assert {name: sorted(digests(one)) for name, one in trials.items()} == {
        "plain": ["agent", "case"],
        "judged": ["agent", "case", "judge"],
        "dialogue": ["agent", "case", "simulator"],
    }
    assert len({one["agent_digest"] for one in trials.values()}) == 1
    assert len({one["case_digest"] for one in trials.values()}) == 3
    about = {line["result"]["case"]: line["about"] for line in project.journal() if line["type"] == "trial"}
    assert {key: about["dialogue"][key] for key in own} == own
    assert not about["plain"].keys() & own.keys()


def digests(trial: dict[str, Any]) -> list[str]:
    return [key.removesuffix("_digest") for key in trial if key.endswith("_digest")]


NAMES_A_LOG = {
    "name": "cli",
    "type": "cli",
    "config": {
        "command": [sys.executable, "agent.py"],
        "protocol": "text",
        "environment": {"LOG": "agent.log"},
    },
}
WRITES_A_LOG = """
    import os, pathlib, signal, sys
    here = pathlib.Path(__file__).parent
    prompt = sys.stdin.read().strip()
    with open(here / os.environ["LOG"], "a") as log:
        print(prompt, file=log)
    if prompt == "c" and not (here / "killed").exists():
        (here / "killed").touch()
        os.kill(os.getppid(), signal.SIGKILL)
    print(prompt)
"""


@pytest.mark.parametrize("quiet", [False, True])
def test_a_file_that_makes_a_resumed_run_begin_again_is_named(project: Project, quiet: bool) -> None:
    project.write("agent.py", WRITES_A_LOG)
    project.write("agent.log", "")
    file = project.suite([NAMES_A_LOG], [{"id": name} for name in "abc"])
    assert project.atp("test", file).code == -9
    ran = project.atp("test", file, "--resume", *(["--quiet"] if quiet else []))
    assert ran.code == 0
    said = "the file agent.log, which `config.environment.LOG` names, has changed, so that its trials run again"
    assert said in " ".join((ran.err if quiet else ran.out).split())
    assert project.lines("agent.log") == ["a", "b", "c", "a", "b", "c"]
    assert project.atp("report", "last").err == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("agent", "agent `agent.py:run`: the file agent.py, which `config.entry` names, has changed"),
        ("cases", "2 finished trials will run again: the cases, the files that these name,"),
        ("nothing", ""),
    ],
)
def test_what_runs_again_is_told(project: Project, change: str, said: str) -> None:
    kills = "import os, signal\ndef run(prompt):\n    if prompt == 'c' and not os.path.exists('killed'):\n"
    kills += "        open('killed', 'w').close()\n        os.kill(os.getpid(), signal.SIGKILL)\n    return prompt\n"
    project.write("agent.py", kills)
    file = project.cases("a", "b", "c")
    assert project.atp("test", file, *AGENT).code == -9
    if change == "agent":
        project.write("agent.py", f"{kills}\n")
    elif change == "cases":
        project.cases(*({"id": name, "input": name, "tags": ["x"]} for name in "abc"))
    assert project.test(file, *AGENT, "--resume").code == 0
    notes = [note for line in project.journal() if line["type"] == "start" for note in line.get("notes", [])]
    assert len(notes) == bool(said)
    assert all(said in note for note in notes)


def test_a_run_goes_on_in_another_folder(project: Project) -> None:
    """As where a CI service keeps `.atp/` between two jobs: nothing that is done is done again."""
    first = Project(project.folder / "first")
    kills = "import os, signal\ndef run(prompt):\n    print(prompt, file=open('asked', 'a'))\n    if prompt == 'c':\n"
    kills += "        if not os.path.exists('killed'):\n            open('killed', 'w').close()\n"
    kills += "            os.kill(os.getpid(), signal.SIGKILL)\n    return prompt\n"
    first.write("atp.toml", "")
    first.write("agent.py", kills)
    file = first.cases("a", "b", "c")
    assert first.atp("test", file, *AGENT).code == -9
    second = Project(project.folder / "somewhere" / "else")
    second.folder.parent.mkdir()
    shutil.move(first.folder, second.folder)
    assert second.test(file, *AGENT, "--resume").code == 0
    assert second.lines("asked") == ["a", "b", "c", "c"]
