"""A project with tests in Python: an agent that sells tea, two validators, and what comes of tests."""

from typing import Any

from tests.engine.support.project import Project

AGENT = """
    import json, time

    def answer(messages, context):
        said = messages[-1]["content"]
        print("heard", said)
        if "order" in said:
            call = {"name": "place_order", "arguments": {"cups": 2}, "result": 17}
            return {"output": "Please confirm order 17.", "tool_calls": [call], "usage": {"total_tokens": 5}}
        if said == "json":
            return {"cups": 2, "kind": "tea"}
        if said == "who":
            return [context["user"], context["agent"], context["metadata"], context["turn"]]
        if said == "boom":
            raise ValueError("no tea")
        if said == "hang":
            time.sleep(600)
        return f"Message {len(messages)}: tea?"

    def strict(messages):
        asked = json.loads(messages[-1]["content"])
        met = asked["criteria"] in asked["output"]
        return {"passed": met, "reason": f"looked for {asked['criteria']} after {asked['input']}"}

    def odd(messages):
        return "perhaps"
"""


def desk(project: Project) -> Project:
    """Write the agents."""
    project.write("atp.toml", "")
    project.write("desk.py", AGENT)
    return project


def results(project: Project, code: str, *arguments: str) -> dict[str, dict[str, Any]]:
    """Write tests, run them, and give the results by name."""
    project.write("scripts/tests/test_desk.py", code)
    return project.test("-i", "scripts:tests.test_desk", *arguments).results
