"""`--order`: which cases run first, by earlier journals of the same input."""

import json

import pytest
from tests.engine.support.project import Project

AGENT = """
    import time

    def run(prompt, context):
        with open("asked", "a") as file:
            print(prompt, file=file)
        name, _, what = prompt.partition("-")
        if what == "slow":
            time.sleep(0.2)
        if what == "fails" or (what == "wavers" and context["run"] % 2):
            raise RuntimeError("no")
        return prompt
"""
FLAGS = ["-n", "agent.py:run"]


def asked(project: Project) -> list[str]:
    """The cases in the order in which the agent was last asked."""
    found = project.lines("asked")
    (project.folder / "asked").unlink(missing_ok=True)
    return found


def prepared(project: Project, *names: str) -> str:
    project.write("agent.py", AGENT)
    return project.cases(*names)


def test_what_failed_runs_first_then_what_never_ran(project: Project) -> None:
    file = prepared(project, "a", "b-fails", "c", "d-fails")
    project.test(file, *FLAGS)
    assert asked(project) == ["a", "b-fails", "c", "d-fails"]
    prepared(project, "a", "b-fails", "new", "c", "d-fails")
    ran = project.test(file, *FLAGS, "--order", "failed-first")
    assert asked(project) == ["b-fails", "d-fails", "new", "a", "c"]
    assert ran.summary["total"] == 5


def test_an_order_by_runs_that_left_cases_out_looks_further_back(project: Project) -> None:
    file = prepared(project, "a", "b-fails", "c")
    project.test(file, *FLAGS)
    project.test(file, *FLAGS, "--run", "^a$")
    asked(project)
    project.test(file, *FLAGS, "--order", "failed-first")
    assert asked(project) == ["b-fails", "a", "c"]


def test_what_was_slow_runs_first(project: Project) -> None:
    file = prepared(project, "a", "b", "c-slow")
    project.test(file, *FLAGS)
    asked(project)
    project.test(file, *FLAGS, "--order", "slowest-first")
    assert asked(project)[0] == "c-slow"


def test_what_is_in_doubt_runs_first(project: Project) -> None:
    file = prepared(project, "a", "b-wavers", "c-fails")
    for _ in range(2):
        project.test(file, *FLAGS, "--runs", "4")
    asked(project)
    project.test(file, *FLAGS, "--order", "uncertain-first")
    assert asked(project) == ["b-wavers", "a", "c-fails"]
    prepared(project, "a", "b-wavers", "c-fails", "new")
    project.test(file, *FLAGS, "--order", "uncertain-first")
    assert asked(project)[:2] == ["new", "b-wavers"]


def test_without_earlier_runs_the_order_is_that_of_the_file(project: Project) -> None:
    file = prepared(project, "b", "a")
    assert project.test(file, *FLAGS, "--order", "failed-first").code == 0
    assert asked(project) == ["b", "a"]


def test_a_damaged_journal_is_passed_over(project: Project) -> None:
    file = prepared(project, "a", "b-fails")
    project.test(file, *FLAGS)
    (project.runs()[-1] / "journal.jsonl").write_text("{\n", "utf-8")
    asked(project)
    project.test(file, *FLAGS, "--order", "failed-first")
    assert sorted(asked(project)) == ["a", "b-fails"]


def test_keys_don_t_depend_on_the_order_and_resuming_works(project: Project) -> None:
    project.write("agent.py", AGENT)
    file = project.cases("a", {"id": "b", "input": "b", "assert": [{"type": "contains", "value": "never"}]}, "c")
    project.test(file, *FLAGS)
    keys = {one["key"] for one in project.trials()}
    project.test(file, *FLAGS, "--order", "failed-first", "--fail-fast")
    assert [one["case"] for one in project.trials() if one.get("status") != "cancelled"] == ["b"]
    asked(project)
    ran = project.test(file, *FLAGS, "--order", "slowest-first", "--resume")
    assert sorted(asked(project)) == ["a", "c"]
    assert ran.summary["total"] == 3
    assert len(project.runs()) == 2
    assert {one["key"] for one in project.trials()} == keys


def test_a_before_runs_once_and_before_what_goes_on_from_it(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write(
        "talk.test.md",
        """\
        ---
        ---

        # Desk

        ## Other

        **Prompts:**

        - other

        **Expectations:**

        - the response contains "other"

        ## Opens

        **Prompts:**

        - opens

        **Expectations:**

        - the response contains "opens"

        ## Asks

        **Before:** Opens

        **Prompts:**

        - asks-fails

        **Expectations:**

        - the response contains "asks-fails"
        """,
    )
    assert project.test("talk.test.md", *FLAGS).code == 1
    assert asked(project) == ["other", "opens", "asks-fails"]
    ran = project.test("talk.test.md", *FLAGS, "--order", "failed-first")
    assert asked(project) == ["opens", "asks-fails", "other"]
    assert ran.summary["total"] == 3


def test_each_agent_has_its_own_order(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write(
        "other.py",
        "def run(prompt):\n    open('other', 'a').write(prompt + ' ')\n    assert prompt != 'a'\n    return prompt\n",
    )
    agents = [{"name": name, "type": "custom", "config": {"entry": f"{name}.py:run"}} for name in ("agent", "other")]
    file = project.suite(agents, [{"id": name, "input": name} for name in ("b", "a-fails", "a")])
    project.test(file)
    for name in ("asked", "other"):
        (project.folder / name).unlink()
    project.test(file, "--order", "failed-first")
    assert asked(project) == ["a-fails", "b", "a"]
    assert project.lines("other") == ["a", "b", "a-fails"]


@pytest.mark.parametrize("given", ["random", ""])
def test_an_unknown_order_is_refused(project: Project, given: str) -> None:
    ran = project.atp("test", prepared(project, "a"), *FLAGS, "--order", given)
    assert ran.code == 2
    assert "--order" in ran.err
    assert "failed-first" in ran.err


def test_the_plan_shows_the_order(project: Project) -> None:
    file = prepared(project, "a", "b-fails")
    project.test(file, *FLAGS)
    shown = project.atp("test", file, *FLAGS, "--order", "failed-first", "--dry-run", "--json").out
    ids = [json.loads(line).get("id") or json.loads(line).get("case") for line in shown.splitlines()]
    assert [one for one in ids if one in ("a", "b-fails")] == ["b-fails", "a"]
