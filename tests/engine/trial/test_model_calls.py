"""The requests that ATP sends to models while a trial runs: noted in the journal, each with its answer."""

from typing import Any

from tests.engine.support.judge import judge, marked
from tests.engine.support.project import Project
from tests.models.mock_server import Answer, Heard, MockModels, calls, fails

TOOLS = """
    def tide(place: str) -> dict:
        "The tide."
        return {"place": place, "tide": "high"}
"""


def prompt_agent(project: Project) -> None:
    package = '{"connector": "openai.sea", "commands": ["tools.py:tide"], "options": {"temperature": 0}}'
    project.write("assistants/bot/package.yao", package)
    project.write("assistants/bot/prompts.yml", "- role: system\n  content: You know the sea.\n")
    project.write("assistants/bot/tools.py", TOOLS)


class World:
    """The models of an agent, its judge and a simulated user. Each complains once before it answers."""

    def __init__(self, *, refuse: bool = False) -> None:
        self.refuse = refuse

    def __call__(self, heard: Heard) -> Answer:
        if self.refuse:
            self.refuse = False
            return fails(429, "too fast", retry_after=0.01)
        if "Expectation 1:" in heard.prompt:
            answer: Answer = judge(lambda asked, record: True)(heard)
            return answer
        if "play a human user" in heard.system:
            done = "High in Bree" in heard.prompt
            return marked(heard, {"reasoning": "I fish", "input": "" if done else "Tide?", "goal_achieved": done})
        return "High in Bree." if heard.tool_results else calls(("tide", {"place": "Bree"}))


def trial(project: Project, world: Any, case: dict[str, Any], *flags: str) -> dict[str, Any]:
    prompt_agent(project)
    with MockModels(world) as server:
        ran = project.test(project.cases(case), "-n", "bot", *flags, env=server.env)
        assert ran.code == 0, ran.out + ran.err
        assert server.key not in (project.runs()[-1] / "journal.jsonl").read_text()
    (found,) = project.trials()
    return found


def test_requests_and_answers_of_agent_and_judge_are_noted(project: Project) -> None:
    case = {"id": "c", "input": "Tide?", "expectations": ["it is kind"]}
    found = trial(project, World(refuse=True), case, "--role-connector", "anthropic.judge")
    first, second, judged = found["model_calls"]
    assert [one.get("role", "agent") for one in (first, second, judged)] == ["agent", "agent", "judge"]
    assert first["connector"] == "openai.sea"
    assert first["request"]["temperature"] == 0
    assert [one["content"] for one in first["request"]["messages"]] == ["You know the sea.", "Tide?"]
    assert first["request"]["tools"][0]["function"]["name"] == "tide"
    assert first["answer"]["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "tide"
    assert first["usage"]["input_tokens"] > 0
    assert len(first["retries"]) == 1
    assert "too fast" in first["retries"][0]
    assert first["duration_ms"] >= first["waited_ms"] >= 5
    assert second["repeated"] == 2
    assert [one["role"] for one in second["request"]["messages"]] == ["assistant", "tool"]
    assert second["at_ms"] >= first["at_ms"] + first["duration_ms"] - 1
    assert "it is kind" in judged["request"]["messages"][0]["content"][0]["text"]
    assert judged["answer"]["content"]


def test_a_simulated_user_asks_in_the_turn_that_its_message_begins(project: Project) -> None:
    simulator = {"options": {"metadata": {"persona": "a fisher", "goal": "the tide"}}}
    points = [{"id": "tells", "description": "tells the tide", "assertion": {"type": "contains", "value": "High"}}]
    case = {"id": "c", "simulator": simulator, "checkpoints": points}
    found = trial(project, World(), case, "--role-connector", "openai.roles")
    asked = [(one.get("role", "agent"), one.get("turn", 1)) for one in found["model_calls"]]
    assert asked[:3] == [("simulator", 1), ("agent", 1), ("agent", 1)]
    assert found["checkpoints"][0]["assertion"] == {"type": "contains", "value": "High"}
    assert found["checkpoints"][0]["description"] == "tells the tide"


def test_an_agent_that_asks_no_model_leaves_nothing(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt\n")
    project.test(project.cases("hi"), "-n", "agent.py:run")
    (found,) = project.trials()
    assert "model_calls" not in found


def test_only_the_calls_of_the_last_attempt_are_kept(project: Project) -> None:
    answers = iter([fails(500)] * 2)
    prompt_agent(project)
    with MockModels(lambda heard: next(answers, "High.")) as server:
        table = {"type": "openai", "model": "sea", "host": server.openai, "key": server.key, "retries": 0}
        project.write("connectors/sea.conn.json", table)
        flags = ("-n", "bot", "-c", "sea", "--retries", "3")
        ran = project.test(project.cases({"id": "c", "input": "Tide?"}), *flags)
    assert ran.code == 0, ran.out + ran.err
    (found,) = project.trials()
    assert found["attempt"] == 3
    assert len(found["retries"]) == 2
    assert len(found["model_calls"]) == 1


def test_a_recheck_keeps_the_agents_calls_and_notes_the_judges_own(project: Project) -> None:
    prompt_agent(project)
    case = {"id": "c", "input": "Tide?", "expectations": ["it is kind"]}
    with MockModels(World()) as server:
        project.test(project.cases(case), "-n", "bot", "--role-connector", "openai.one", env=server.env)
        (before,) = project.trials()
        ran = project.atp("recheck", "last", "--role-connector", "openai.two", env=server.env)
    assert ran.code == 0, ran.out + ran.err
    (after,) = project.trials()
    assert after["model_calls"][:2] == before["model_calls"][:2]
    judges = [
        [one["connector"] for one in found["model_calls"] if one.get("role") == "judge"] for found in (before, after)
    ]
    assert judges == [["openai.one"], ["openai.two"]]
