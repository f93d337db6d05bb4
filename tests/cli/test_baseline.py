"""`atp baseline`: a run is saved, listed, shown and dropped, and what is wrong is said with exit code 2."""

import gzip
import json
from typing import Any

import pytest
from tests.engine.support.project import Project

AGENT = """
    def answer(prompt):
        return {"output": prompt, "usage": {"cost_usd": 0.01, "total_tokens": 100}}

    def other(prompt):
        return "s3cret-token-value" if prompt == "b" else prompt
"""


@pytest.fixture(autouse=True)
def tested(project: Project) -> None:
    """A run of three cases, of which one fails."""
    project.write("agent.py", AGENT)
    project.write("atp.toml", "")
    cases = [{"id": one, "input": one, "expected": "b" if one == "c" else one} for one in "abc"]
    project.cases(*cases)
    project.test("cases.jsonl", "-n", "agent.py:answer", "--runs", "2", "-o", "out.jsonl")


def saved(project: Project, name: str = "main") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((project.folder / f"baselines/{name}.json.gz").read_bytes()))
    return found


def test_a_run_is_saved_shown_and_dropped(project: Project) -> None:
    done = project.atp("baseline", "save", "main")
    assert (done.code, done.err) == (0, "")
    assert "baselines/main.json.gz (run 2" in done.out
    assert "2 of 3 cases passed, 6 runs)" in done.out
    first, _, last = saved(project)["cases"]
    assert (first["id"], first["agent"], first["file"]) == ("a", "agent.py:answer", "cases.jsonl")
    assert (first["passed"], first["judged"], first["rate"]) == (2, 2, 1.0)
    assert first["figures"]["cost_usd"] == {"median": 0.01, "runs": 2}
    assert len(first["case_digest"]) == 32
    assert "answers" not in first
    assert (last["status"], last["rate"]) == ("failed", 0.0)
    assert "main  run 2" in project.atp("baseline", "list").out
    shown = project.atp("baseline", "show", "main").out
    assert "c  failed  0/2 passed" in shown
    assert "cost_usd $0.0100" in shown
    assert json.loads(project.atp("baseline", "show", "main", "--json").out)["cases"] == saved(project)["cases"]
    (row,) = json.loads(project.atp("baseline", "list", "--json").out)
    assert (row["name"], row["cases"], row["passed"], row["runs"], row["answers"]) == ("main", 3, 2, 6, False)
    assert "Deleted: " in project.atp("baseline", "drop", "main").out
    assert "No baselines yet" in project.atp("baseline", "list").out


def test_answers_are_kept_on_request_and_without_secrets(project: Project) -> None:
    env = {"API_TOKEN": "s3cret-token-value"}
    project.test("cases.jsonl", "-n", "agent.py:other", "-o", "out.jsonl")  # the variable is not known to this run
    assert project.atp("baseline", "save", "main", "--with-answers", env=env).code == 0
    answers = [case["answers"] for case in saved(project)["cases"]]
    assert answers[0] == {"passed": {"outputs": ["a"]}}
    assert answers[1]["failed"]["outputs"] == ["***"]
    assert "with answers" in project.atp("baseline", "list").out


def test_an_earlier_run_is_saved_from_another_folder(project: Project) -> None:
    project.test("cases.jsonl", "-n", "agent.py:answer", "--run", "^a$", "-o", "out.jsonl")
    done = project.atp("baseline", "save", "main", "last~1", "--project", ".", cwd=project.folder)
    assert (done.code, len(saved(project)["cases"])) == (0, 3)
    below = project.folder / "below"
    below.mkdir()
    assert project.atp("baseline", "save", "newest", cwd=below).code == 0
    assert [case["file"] for case in saved(project, "newest")["cases"]] == ["cases.jsonl"]


def test_a_run_that_is_a_poor_baseline_is_saved_with_a_warning(project: Project) -> None:
    project.test("cases.jsonl", "-n", "agent.py:answer", "--budget-usd", "0.005", "--runs", "2", "-o", "out.jsonl")
    done = project.atp("baseline", "save", "main")
    assert done.code == 0
    assert "the run was not finished: " in done.err
    assert "1 case of it ended in an error, or did not run to the end" in done.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["save", "../x"], "can't be the name of a baseline"),
        (["save", "x", "1999"], "there is no such run"),
        (["show", "x"], "there is no baseline `x`"),
        (["drop", "x"], "there is no baseline `x`"),
    ],
)
def test_what_can_not_be_done_is_exit_code_2(project: Project, arguments: list[str], why: str) -> None:
    done = project.atp("baseline", *arguments)
    assert done.code == 2
    assert why in done.err
    assert "help: " in done.err


def test_a_baseline_that_can_not_be_read_is_listed_as_such(project: Project) -> None:
    project.write("baselines/broken.json.gz", b"x")
    project.atp("baseline", "save", "main")
    done = project.atp("baseline", "list")
    assert done.code == 2
    assert "broken  unreadable\nmain  run 2" in done.out
    assert "error[bad-baseline]" in done.err
