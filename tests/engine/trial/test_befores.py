"""Befores: replayed sequences, shared prefixes, equal starts, and what is blocked."""

import json
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran

AGENT = """
    import json, pathlib

    HERE = pathlib.Path(__file__).parent

    def run(prompt, messages, workspace, context):
        with (HERE / "calls.jsonl").open("a") as calls:
            said = [one["content"] for one in messages if one["role"] == "user"]
            calls.write(json.dumps({"said": said, "files": sorted(one.name for one in workspace.iterdir())}) + "\\n")
        if prompt.startswith("fail"):
            raise ValueError("no")
        name = prompt.replace(" ", "-")
        (workspace / f"{name}.txt").write_text(prompt)
        return {"output": f"did {prompt}", "tool_calls": [{"name": name.replace("-", "_"), "arguments": {}}],
                "state": [*(context.get("state") or []), prompt]}
"""


def calls(project: Project) -> list[dict[str, Any]]:
    path = project.folder / "calls.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def suite(*sections: str, iterations: int | None = None) -> str:
    head = "---\ntarget: agents/x.md\n" + (f"iterations: {iterations}\n" if iterations else "") + "---\n\n"
    return head + "\n\n".join(sections) + "\n"


def case(name: str, *prompts: str, expects: str | None = None, before: str = "") -> str:
    lines = [f"## {name}", ""]
    if before:
        lines += [f"**Before:** {before}", ""]
    if prompts:
        lines += ["**Prompts:**", "", *(f"- {prompt}" for prompt in prompts), ""]
    lines += ["**Expectations:**", "", f"- {expects or 'no errors'}"]
    return "\n".join(lines)


def run(project: Project, text: str, *flags: str, exit_code: int = 0) -> Ran:
    project.write("agent.py", AGENT)
    project.write("chain.test.md", text)
    ran = project.test("chain.test.md", "-n", "agent.py:run", *flags)
    assert ran.code == exit_code, ran.err
    return ran


def test_a_chain_of_five_runs_each_prefix_once(project: Project) -> None:
    names = ["a", "b", "c", "d", "e"]
    sections = [case(one, f"do {one}", before=names[i - 1] if i else "") for i, one in enumerate(names)]
    ran = run(project, suite(*sections))
    assert [one["said"] for one in calls(project)] == [[f"do {one}" for one in names[: n + 1]] for n in range(5)]
    assert ran.statuses == dict.fromkeys(names, "passed")


def test_those_who_share_a_prefix_share_its_snapshot_and_start_equal(project: Project) -> None:
    leaves = [case(f"leaf {n}", f"leaf {n}", f"leaf {n} again", before="root") for n in range(3)]
    run(project, suite(case("root", "make root"), *leaves), "--parallel", "4")
    made = calls(project)
    assert [one["said"] for one in made].count(["make root"]) == 1
    assert len(made) == 1 + 3 * 2
    assert all(one["files"] == ["make-root.txt"] for one in made if len(one["said"]) > 1)


def test_a_sequence_is_replayed_not_deduplicated(project: Project) -> None:
    run(
        project,
        suite(
            case("zero", "do zero"),
            case("one", "do one"),
            case("two", "do two"),
            case("three", "do three", before="zero"),
            case("last", "do last", before="\n\n- three\n- zero"),
        ),
    )
    assert ["do zero", "do three", "do zero", "do last"] in [one["said"] for one in calls(project)]


def test_a_failed_before_blocks_its_dependents_and_nothing_else(project: Project) -> None:
    ran = run(
        project,
        suite(
            case("bad", "fail now"),
            case("depends", "do depends", before="bad"),
            case("deeper", "do deeper", before="depends"),
            case("free", "do free"),
        ),
        exit_code=1,
    )
    assert ran.statuses == {
        "bad": "error",
        "depends": "blocked",
        "deeper": "blocked",
        "free": "passed",
    }
    assert "before `bad` did not pass" in ran.results["deeper"]["error"]
    assert [one["said"] for one in calls(project)] == [["fail now"], ["do free"]]


def test_a_before_that_no_filter_wants_is_run_for_those_who_need_it(project: Project) -> None:
    ran = run(project, suite(case("a", "do a"), case("b", "do b", before="a")), "--run", "^b$")
    assert ran.statuses == {"b": "passed"}
    assert [one["said"] for one in calls(project)] == [["do a"], ["do a", "do b"]]


def test_a_case_without_prompts_is_judged_by_what_it_inherits(project: Project) -> None:
    text = suite(
        case("a", "do a"),
        case("good", expects="the do_a function was called", before="a"),
        case("bad", expects="the do_z function was called", before="a"),
        case("file", expects="the file do-a.txt exists", before="a"),
    )
    ran = run(project, text, exit_code=1)
    assert ran.statuses == {"a": "passed", "good": "passed", "bad": "failed", "file": "passed"}


def test_what_befores_did_is_evidence_of_exact_checks(project: Project) -> None:
    text = suite(
        case("a", "do a"),
        case("called", "do b", expects="the do_a function was called once", before="a"),
        case("not called", "do b", expects="do_a was not called", before="a"),
        case("no tools", "do b", expects="no tools were called", before="a"),
        case("count", "do b", expects="2 tool calls were made", before="a"),
        case("order", "do b", expects="do_a was called before do_b", before="a"),
    )
    ran = run(project, text, exit_code=1)
    assert ran.statuses == {
        "a": "passed",
        "called": "passed",
        "not-called": "failed",
        "no-tools": "failed",
        "count": "passed",
        "order": "passed",
    }


@pytest.mark.parametrize("own", ["(turns: own)", "( Turns :OWN )", "(turns: own)."])
def test_an_expectation_may_be_about_the_cases_own_turns(project: Project, own: str) -> None:
    text = suite(
        case("a", "do a"),
        case("called", "do b", expects=f"the do_a function was called once {own}", before="a"),
        case("not called", "do b", expects=f"do_a was not called {own}", before="a"),
        case("count", "do b", expects=f"1 tool call was made {own}", before="a"),
        case("all", "do b", expects="do_a was not called (turns: all)", before="a"),
    )
    ran = run(project, text, exit_code=1)
    assert ran.statuses == {
        "a": "passed",
        "called": "failed",
        "not-called": "passed",
        "count": "passed",
        "all": "failed",
    }
    plan = project.test("chain.test.md", "-n", "agent.py:run", "--dry-run").out
    assert "not_tool_called do_a (own turns)" in plan


def test_what_was_told_in_a_before_was_seen(project: Project) -> None:
    text = suite(case("a", "do a"), case("b", "say nothing", expects="the do_a function was called once", before="a"))
    project.write(
        "agent.py",
        """
        def run(prompt):
            call = {"name": "do_a", "arguments": {}}
            return {"output": "ok", "tool_calls": [call]} if prompt == "do a" else "ok"
        """,
    )
    project.write("chain.test.md", text)
    ran = project.test("chain.test.md", "-n", "agent.py:run")
    assert ran.statuses == {"a": "passed", "b": "passed"}, ran.out
    assert not ran.results["b"].get("warnings")


def test_every_run_and_iteration_starts_from_the_same_snapshot(project: Project) -> None:
    text = suite(case("a", "do a"), case("b", "do b one", "do b two", before="a"))
    run(project, text, "--runs", "3")
    later = [one for one in calls(project) if len(one["said"]) == 2]
    assert len(later) == 6
    assert all(one["files"] == ["do-a.txt"] for one in later)


def test_a_skipped_before_blocks(project: Project) -> None:
    text = suite(case("a", "do a").replace("**Prompts", "**Skip:** true\n\n**Prompts"), case("b", "do b", before="a"))
    ran = run(project, text, exit_code=3)
    assert ran.results["b"]["error"] == "before `a` is skipped by its file"


def test_an_edited_before_runs_its_dependents_again(project: Project) -> None:
    text = suite(case("a", "do a"), case("b", "do b", before="a"), case("c", "do c"))
    run(project, text)
    (project.folder / "calls.jsonl").unlink()
    project.write("chain.test.md", text.replace("do a", "do more"))
    newest = sorted((project.folder / ".atp" / "runs").iterdir())[-1].name
    again = project.test("chain.test.md", "-n", "agent.py:run", "--resume-from", newest)
    assert again.code == 0, again.err
    assert [one["said"] for one in calls(project)] == [["do more"], ["do more", "do b"]]


def test_a_before_that_is_replayed_and_run_counts_once_for_the_budget(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return {'output': 'ok', 'usage': {'cost_usd': 0.1}}")
    project.write("chain.test.md", suite(case("b", "do b", before="a"), case("a", "do a")))
    ran = project.test("chain.test.md", "-n", "agent.py:run", "--budget-usd", "0.25")
    assert ran.statuses == {"b": "passed", "a": "passed"}
    assert ran.code == 0


def test_a_section_that_expects_nothing_is_no_test_of_its_own(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return 'hello'")
    project.write(
        "x.test.md",
        """\
        ---
        target: agents/x.md
        ---

        ## set up

        **Prompts:** begin

        ## test

        **Before:** set up

        **Prompts:** go on

        **Expectations:** no errors
        """,
    )
    ran = project.test("x.test.md", "-n", "agent.py:run")
    assert ran.statuses == {"test": "passed"}
