"""Which model an agent that plays a role runs on, and whose judgements are kept for later runs."""

from typing import Any

import pytest
from tests.engine.support.judge import judge
from tests.engine.support.project import Project
from tests.models.mock_server import Heard, MockModels

SUITE = """\
---
target: agents/agent.md
assessor: agents/judge.md
---

# Greeting

**Prompts:**

- good morning

**Expectations:**

- the answer is friendly
"""


def write(project: Project, judge_head: str = "temperature: 0") -> None:
    project.write("agents/agent.md", "You greet people.\n")
    project.write("agents/judge.md", f"---\n{judge_head}\n---\n\nYou are the judge of the house.\n")
    project.write("greeting.test.md", SUITE)


def world(heard: Heard) -> Any:
    return judge(lambda asked, record: True)(heard) if "judge of the house" in heard.system else "Good morning to you."


def judged_by(server: MockModels) -> list[str]:
    return [f"{one.format}.{one.body['model']}" for one in server.requests if "judge of the house" in one.system]


def test_the_roles_own_connector_goes_before_the_agents(project: Project) -> None:
    write(project)
    with MockModels(world) as server:
        flags = ("greeting.test.md", "-c", "openai.small")
        alone = project.test(*flags, env=server.env)
        assert judged_by(server) == ["openai.small"]
        assert any("the agent's own model" in one for one in alone.results["greeting"]["warnings"])
        both = project.test(*flags, "--role-connector", "anthropic.large", env=server.env)
        # Judged again, although nothing else has changed: another model judges now.
        assert judged_by(server) == ["openai.small", "anthropic.large"]
        assert both.results["greeting"].get("warnings", []) == []
        project.test(*flags, "--role-connector", "anthropic.large", env=server.env)
        assert judged_by(server) == ["openai.small", "anthropic.large"]
    assert alone.statuses == both.statuses == {"greeting": "passed"}


def test_its_own_connector_goes_before_both(project: Project) -> None:
    write(project, "connector: anthropic.own")
    with MockModels(world) as server:
        ran = project.test("greeting.test.md", "-c", "openai.small", "--role-connector", "openai.other", env=server.env)
        assert judged_by(server) == ["anthropic.own"]
    assert ran.statuses == {"greeting": "passed"}


def test_a_changed_setting_of_the_connector_is_judged_again(project: Project) -> None:
    write(project)
    table = (
        '[connectors.house]\ntype = "openai"\nmodel = "m"\nhost = "$ENV.OPENAI_BASE_URL"\nkey = "$ENV.OPENAI_API_KEY"\n'
    )
    with MockModels(world) as server:
        for setting in ("seed = 1\n", "seed = 1\n", "seed = 2\n"):
            project.write("atp.toml", table + setting)
            project.test("greeting.test.md", "-c", "openai.small", "--role-connector", "house", env=server.env)
        assert len(judged_by(server)) == 2


JUDGE_IN_PYTHON = """
    import json, re
    import rules

    def verdicts(text):
        return {"verdicts": [{"number": 1, "met": rules.ok, "reason": "by the rules", "evidence": [text]}]}

    def judge(asked):
        return verdicts(asked["record"][-1]["text"])

    def agent(prompt):
        mark = re.findall(r'"mark": "(\\w+)"', prompt)[-1]
        return json.dumps({"mark": mark, **verdicts("Good morning to you.")})

    def greet(prompt):
        return "Good morning to you."
"""


@pytest.mark.parametrize("assessor", ["scripts:house.judge", "scripts/house.py:agent"])
def test_a_judge_in_python_is_asked_in_each_run_since_its_code_may_import_what_has_changed(
    project: Project, assessor: str
) -> None:
    project.write("scripts/house.py", JUDGE_IN_PYTHON)
    cases = project.cases({"id": "greeting", "input": "good morning", "expectations": ["the answer is friendly"]})
    found = []
    for ok in (True, False):
        project.write("scripts/rules.py", f"ok = {ok}\n")
        found.append(project.test(cases, "-n", "scripts/house.py:greet", "--assessor", assessor).statuses)
    assert found == [{"greeting": "passed"}, {"greeting": "failed"}]
    assert not (project.folder / ".atp" / "judge-cache").exists()


def test_a_prompt_that_judges_with_tools_is_asked_in_each_run(project: Project) -> None:
    project.write("tools.py", "def look_up(what: str) -> str:\n    return what\n")
    with MockModels(world) as server:
        for head in ("temperature: 0", "commands: [tools.py:look_up]"):
            write(project, head)
            for _ in range(2):
                project.test("greeting.test.md", "-c", "openai.small", env=server.env)
        assert len(judged_by(server)) == 1 + 2
