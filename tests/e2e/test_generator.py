"""Document 5's generators: an agent or a script makes the cases, and they are run like any others."""

import json
from typing import Any

from tests.engine.support.project import Project
from tests.models.mock_server import Heard, MockModels

REFERENCE = "agents:workers.test.generator?count=10&focus=edge-cases"


def world(heard: Heard) -> Any:
    """The generator, which gives six cases at a time, and the agent, which files everything but nothing."""
    if "You invent test cases" in heard.system:
        told = json.loads(heard.prompt)
        first = len(told.get("existing", []))
        return {
            "cases": [
                {
                    "id": f"{told['focus']}-{number}",
                    "input": f"File {number} dollars",
                    "assertions": [{"type": "contains", "value": f"{number} dollars"}],
                }
                for number in range(first, first + min(told["count"], 6))
            ]
        }
    return f"Filed: {heard.prompt}" if "File 0 dollars" not in heard.prompt else "Nothing to file."


def write(project: Project) -> None:
    project.write("agents/workers/test/generator.md", "---\nconnector: openai.gen\n---\n\nYou invent test cases.\n")
    project.write("agents/expense.md", "---\nconnector: anthropic.expense\n---\n\nYou file expenses.\n")


def test_an_agent_makes_ten_cases_with_a_focus(project: Project) -> None:
    write(project)
    with MockModels(world) as server:
        ran = project.test("-i", REFERENCE, "-n", "expense", "--parallel", "4", env=server.env)
    assert ran.code == 1, ran.err
    expected = {f"edge-cases-{number}": "passed" if number else "failed" for number in range(10)}
    assert ran.statuses == expected
    first, second = (json.loads(one.prompt) for one in server.requests if one.format == "openai")
    assert first == {"test_mode": "generator", "focus": "edge-cases", "target_agent": "expense", "count": 10}
    assert (second["count"], second["existing"]) == (4, [f"edge-cases-{number}" for number in range(6)])
    # What was made is kept as a file that can be run again by itself.
    (kept,) = (project.folder / ".atp/generated").iterdir()
    with MockModels(world) as server:
        again = project.test(str(kept), "-n", "expense", env=server.env)
    assert again.statuses == expected
    assert [one.format for one in server.requests] == ["anthropic"] * 10


def test_a_plan_can_be_shown_without_running_it(project: Project) -> None:
    write(project)
    with MockModels(world) as server:
        ran = project.atp("test", "-i", REFERENCE, "-n", "expense", "--dry-run", env=server.env)
    assert ran.code == 0, ran.err
    assert "10 cases, 10 trials, 10 calls of agents" in ran.out
    assert {one.format for one in server.requests} == {"openai"}


def test_a_script_makes_cases(project: Project) -> None:
    write(project)
    project.write(
        "scripts/make.py",
        """
        def expenses(count, target_agent, focus="plain"):
            for number in range(1, count + 1):
                yield {"input": f"File {number} dollars", "name": f"{focus} {number} for {target_agent}"}
        """,
    )
    with MockModels(world) as server:
        ran = project.test("-i", "scripts:make.expenses?count=3&focus=big", "-n", "expense", env=server.env)
    assert ran.code == 0, ran.err
    assert [one["name"] for one in ran.results.values()] == [f"big {number} for expense" for number in (1, 2, 3)]
    assert len(server.requests) == 3


def test_cases_that_can_not_be_used_stop_the_run_with_their_mistakes(project: Project) -> None:
    write(project)
    project.write("scripts/make.py", "def wrong():\n    return [{'id': 'a', 'inputt': 'x'}]\n")
    ran = project.atp("test", "-i", "scripts:make.wrong", "-n", "expense", env={"ANTHROPIC_API_KEY": "x" * 10})
    assert ran.code == 2
    assert "generated case `a`: unknown key `inputt`" in ran.err


def test_recorded_cases_come_back_without_a_server(project: Project) -> None:
    write(project)
    flags = ("-i", REFERENCE, "-n", "expense")
    with MockModels(world) as server:
        first = project.test(*flags, "--record", "tape", env=server.env)
    again = project.test(*flags, "--replay", "tape")
    assert (first.code, again.code) == (1, 1), again.err
    assert again.statuses == first.statuses
    other = project.test("-i", REFERENCE.replace("10", "9"), "-n", "expense", "--replay", "tape")
    assert other.code == 2
    assert "nothing is recorded at the boundary `generator`" in other.err
    assert "`asked.count`: 10 recorded, 9 now" in other.err


def test_a_bare_model_generates_and_is_recorded_too(project: Project) -> None:
    write(project)

    def bare(heard: Heard) -> Any:
        made = {"id": "one", "input": "File 1 dollars", "assertions": [{"type": "contains", "value": "1"}]}
        return {"cases": [made]} if "You write test cases" in heard.system else world(heard)

    flags = ("-i", "agents:openai.gen?count=1", "-n", "expense")
    with MockModels(bare) as server:
        first = project.test(*flags, "--record", "tape", env=server.env)
    again = project.test(*flags, "--replay", "tape")
    assert first.statuses == again.statuses == {"one": "passed"}, again.err
