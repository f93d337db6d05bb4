"""Judges and simulators are resolved before anything runs, and a missing key is named."""

from tests.engine.support.project import Project

ECHO = """
    def run(prompt):
        return f"you said {prompt}"
"""

PROMPT = "---\nconnector: {}\n---\n\nYou are kind.\n"
SPEAK = "def speak(said):\n    return {'input': 'hello?'}\n"
IN_WORDS = """\
    ---
    target: agents/kind.md
    ---
    # Case
    **Prompts:**
    - hello
    **Expectations:**
    - it was kind
    """


def test_a_plan_needs_no_key(project: Project) -> None:
    project.write("agents/kind.md", PROMPT.format("openai.gpt-4o-mini"))
    file = project.cases("a")
    ran = project.atp("test", file, "-n", "kind", "--dry-run")
    assert ran.code == 0
    assert "kind × a " in ran.out
    assert ran.err.startswith("warning[no-key]: the agent `kind` needs a model: ")
    assert "help: set OPENAI_API_KEY" in ran.err
    assert project.atp("test", file, "-n", "kind").code == 2


def test_a_plan_with_a_slip_in_a_connector_is_refused(project: Project) -> None:
    project.write("agents/kind.md", PROMPT.format("opnai.gpt-4o-mini"))
    ran = project.atp("test", project.cases("a"), "-n", "kind", "--dry-run")
    assert ran.code == 2
    assert "there is no connector `opnai.gpt-4o-mini`" in ran.err


def test_a_judge_without_its_key(project: Project) -> None:
    project.write("agent.py", "def answer(prompt): return 'hello'")
    project.write("words.test.md", IN_WORDS)
    call = ("test", "words.test.md", "-n", "agent.py:answer")
    keyless = project.atp(*call, "--assessor", "openai.gpt-4o")
    assert keyless.code == 2
    assert "help: set OPENAI_API_KEY" in keyless.err
    assert "module:function" not in keyless.err
    planned = project.atp(*call, "--assessor", "openai.gpt-4o", "--dry-run")
    assert (planned.code, "warning[no-key]: the judge needs" in planned.err) == (0, True)
    nobody = project.atp(*call)
    assert (nobody.code, "--assessor scripts:file.function" in nobody.err) == (2, True)


def test_a_simulator_in_a_script_needs_no_key(project: Project) -> None:
    project.write("agent.py", "def answer(prompt): return 'hello'")
    project.write("scripts/buyer.py", SPEAK)
    checkpoints = [{"id": "greeted", "assert": {"type": "contains", "value": "hello"}}]
    case = {"id": "a", "simulator": {"use": "scripts.buyer.speak"}, "checkpoints": checkpoints}
    ran = project.test(project.cases(case), "-n", "agent.py:answer")
    assert ran.statuses == {"a": "passed"}
    keyless = project.test(project.cases({**case, "simulator": {"use": "openai.gpt-4o"}}), "-n", "agent.py:answer")
    assert (keyless.code, "help: set OPENAI_API_KEY" in keyless.err) == (2, True)


def test_without_a_judge_nothing_is_run_that_needs_one(project: Project) -> None:
    project.write("agent.py", ECHO)
    file = project.suite(
        [{"name": "echo", "type": "custom", "config": {"entry": "agent.py:run"}}],
        [{"id": "judged", "assertions": [{"type": "llm_eval", "criteria": "completeness"}]}],
    )
    ran = project.test(file)
    assert ran.code == 2
    assert "no model is set for the judge" in ran.err
    assert "--role-connector" in ran.err
