"""What documents 4 and 5 print, from end to end: every command line, and every assertion of their tables.

Their cases are run in tests/engine/test_documents.py, against agents of all kinds.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran
from tests.models.mock_server import Heard, MockModels

PRINTED = Path(__file__).parents[1] / "documents" / "jsonl" / "assertions"
DEEPSEEK = """
    [connectors."deepseek.v3"]
    type = "openai"
    model = "deepseek-v3"
    host = "$ENV.OPENAI_BASE_URL"
    key = "$ENV.OPENAI_API_KEY"
"""
PROMPTS = {
    "keyword": "You find keywords.",
    "keyword/agent": "You find keywords, too.",
    "chat": "You chat.",
    "expense": "You file expenses.",
    "my/agent": "You are mine.",
    "workers/test/generator": "You invent test cases.",
    "workers/test/user-simulator": "You simulate a user.",
    "workers/test/validator": "You validate answers.",
    "report/beautiful": "You write beautiful reports.",
    "report/slack": "You write summaries for Slack.",
}
LINES = ["I want to submit an expense", "Business travel to Beijing, $3500"]


def world(heard: Heard) -> Any:
    """All agents of the project, told apart by their prompts."""
    if "invent" in heard.system:
        count = json.loads(heard.prompt)["count"]
        return {"cases": [{"id": f"made-{number}", "input": f"Expense {number}"} for number in range(count)]}
    if "simulate" in heard.system:
        turn = json.loads(heard.prompt)["turn_number"]
        return {"input": LINES[turn - 1], "goal_achieved": False}
    if "validate" in heard.system:
        asked = json.loads(heard.prompt)
        return {"passed": "happy to help" in asked["output"], "reason": f"judged by: {asked['criteria']}"}
    if "reports" in heard.system or "summaries" in heard.system:
        told = json.loads(heard.prompt)
        return f"<p>{told['report']['summary']['passed']} passed, as {told['format']}</p>"
    if "travel" in heard.prompt:
        return "It is submitted."
    return "What type of expense?" if "expense" in heard.prompt else f"keywords of: {heard.prompt}"


@pytest.fixture
def documents(project: Project) -> Project:
    """The project that the documents' commands are given in."""
    project.write("atp.toml", DEEPSEEK)
    for place, prompt in PROMPTS.items():
        project.write(f"assistants/{place}/package.yao", {"name": place, "connector": "openai.own"})
        project.write(f"assistants/{place}/prompts.yml", [{"role": "system", "content": prompt}])
    inputs = [{"id": f"T00{number}", "input": text} for number, text in enumerate(["AI", "cloud"], 1)]
    checked = [{**one, "assert": {"type": "contains", "value": one["input"]}} for one in inputs]
    project.cases(*checked, name="assistants/keyword/tests/inputs.jsonl")
    ask = {"id": "ask", "input": "I have an expense", "assertions": [{"type": "contains", "value": "type"}]}
    project.cases(ask, name="assistants/expense/tests/expense.jsonl")
    points = [
        {"id": "ask_type", "assertion": {"type": "contains", "value": "type"}},
        {"id": "confirm", "after": ["ask_type"], "assertion": {"type": "contains", "value": "submitted"}},
    ]
    talk = {"id": "talk", "simulator": {"options": {"metadata": {"goal": "a trip"}}}, "checkpoints": points}
    project.cases(talk, name="assistants/expense/tests/dynamic.jsonl")
    return project


def carry_out(project: Project, command: str, server: MockModels) -> Ran:
    """A command as it is printed, after `yao agent test`; `cd x && …` where the document goes there first."""
    place, _, flags = command.rpartition(" && ")
    folder = project.folder / place.removeprefix("cd ")
    ran = project.atp("test", *shlex.split(flags), cwd=folder, env=server.env)
    assert "Traceback" not in ran.err, ran.err
    return ran


def models(server: MockModels) -> set[str]:
    return {str(one.body["model"]) for one in server.requests}


KEYWORD = "cd assistants/keyword && "
EXPENSE = "cd assistants/expense && "
FULL = (
    "-i tests/inputs.jsonl -n keyword.agent -c deepseek.v3 -u test-user -t test-team --runs 3 --timeout 10m "
    "--parallel 4 -r report.html -o report.html"
)
COMMANDS: dict[str, tuple[int, str]] = {
    # Document 4: how often the agent is called, and what its prompt is
    f'{KEYWORD}-i "hello world"': (1, "keyword"),
    '-i "hello world" -n keyword.agent': (1, "keyword/agent"),
    "-i assistants/keyword/tests/inputs.jsonl": (2, "keyword"),
    "-i assistants/keyword/tests/inputs.jsonl --runs 5": (10, "keyword"),
    f"{KEYWORD}-i tests/inputs.jsonl": (2, "keyword"),
    f"{KEYWORD}-i tests/inputs.jsonl -n my.agent": (2, "my/agent"),
    f"{KEYWORD}-i tests/inputs.jsonl -u test-user -t test-team": (2, "keyword"),
    f"{KEYWORD}-i tests/inputs.jsonl --timeout 10m": (2, "keyword"),
    f"{KEYWORD}-i tests/inputs.jsonl --parallel 8 --timeout 2m": (2, "keyword"),
    f'{KEYWORD}-i "Extract keywords from this text"': (1, "keyword"),
    # Document 5
    '-i "Hello, how are you?" -n assistants.chat': (1, "chat"),
    '-i "agents:workers.test.generator?count=10" -n assistants.expense': (10, "expense"),
    f"{EXPENSE}-i ./tests/expense.jsonl": (1, "expense"),
    f"{EXPENSE}-i ./tests/expense.jsonl --parallel 5": (1, "expense"),
    f"{EXPENSE}-i ./tests/expense.jsonl -v": (1, "expense"),
    f"{EXPENSE}-i ./tests/dynamic.jsonl --simulator workers.test.user-simulator": (2, "expense"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_as_printed(documents: Project, command: str) -> None:
    calls, agent = COMMANDS[command]
    with MockModels(world) as server:
        ran = carry_out(documents, command, server)
    assert ran.code == 0, ran.out + ran.err
    others = {PROMPTS["workers/test/generator"], PROMPTS["workers/test/user-simulator"]}
    asked = [one.system.strip() for one in server.requests if one.system.strip() not in others]
    assert asked == [PROMPTS[agent]] * calls
    if ".jsonl" in command:
        place = "keyword" if "keyword" in command else "expense"
        (output,) = (documents.folder / f"assistants/{place}/tests").glob("output-*.jsonl")
        assert re.fullmatch(r"output-\d{14}\.jsonl", output.name)
        events = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
        assert events[0]["type"] == "start"
        assert {one["status"] for one in events[1:-1]} == {"passed"}
        assert events[-1]["type"] == "summary"
        assert [one["connector"] for one in (events[0], events[-1])] == ["openai.own", "openai.own"]


@pytest.mark.parametrize(
    "command",
    [
        f"{KEYWORD}-i tests/inputs.jsonl -c openai.gpt4",
        '-i "你好世界" -n keyword.agent -c deepseek.v3',
        f"{KEYWORD}{FULL}",
    ],
)
def test_a_command_with_another_connector(documents: Project, command: str) -> None:
    with MockModels(world) as server:
        ran = carry_out(documents, command, server)
    assert ran.code == 0, ran.out + ran.err
    assert models(server) == {"gpt4" if "gpt4" in command else "deepseek-v3"}
    assert documents.journal()[0]["connector"] == ("openai.gpt4" if "gpt4" in command else "deepseek.v3")
    if "report.html" in command:
        report = (documents.folder / "assistants/keyword/report.html").read_text("utf-8")
        assert report.startswith("<!doctype html>")
        assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("reporter", "file", "begins"),
    [
        ("report.html", "report.html", "<!doctype html>"),
        ("report.markdown", "report.md", "# Agent Test Report"),
        ("report.beautiful", "report.html", "<p>2 passed, as html</p>"),
        ("report.slack", "summary.txt", "<p>2 passed, as text</p>"),
    ],
)
def test_a_reporter_as_printed(documents: Project, reporter: str, file: str, begins: str) -> None:
    with MockModels(world) as server:
        ran = carry_out(documents, f"{KEYWORD}-i tests/inputs.jsonl -r {reporter} -o {file}", server)
    assert ran.code == 0, ran.out + ran.err
    assert (documents.folder / "assistants/keyword" / file).read_text("utf-8").startswith(begins)


def test_document_4s_check_of_stability(documents: Project) -> None:
    flags = "-i assistants/keyword/tests/inputs.jsonl -u ci-user -t ci-team --runs 3 -o report.json"
    asked = {"AI": 0, "cloud": 0}

    def flaky(heard: Heard) -> str:
        asked[heard.prompt] += 1
        return "no idea" if (heard.prompt, asked[heard.prompt]) == ("cloud", 2) else f"keywords of: {heard.prompt}"

    with MockModels(flaky) as server:
        ran = carry_out(documents, flags, server)
    assert ran.code == 1, ran.out + ran.err
    report = json.loads((documents.folder / "report.json").read_bytes())
    assert {"user_id": "ci-user", "team_id": "ci-team"}.items() <= report["environment"].items()
    stable = [(one["id"], one["runs"], one["pass_rate"], one["consistency"]) for one in report["results"]]
    assert stable == [("T001", 3, 100.0, 1.0), ("T002", 3, 66.7, 0.67)]


CALL = {"output": "Filed.", "tool_calls": [{"name": "create_expense", "arguments": {}}]}
ANSWERS: list[tuple[str, Any, Any]] = [
    # an assertion's first line, an answer that keeps to it, one that doesn't
    ('{"type": "equals", "value": {"need_search": false}}', {"need_search": False}, {"need_search": True}),
    ('{"type": "contains", "value": "keyword"}', "one keyword", "one word"),
    ('{"type": "not_contains", "value": "error"}', "all is well", "an error"),
    ('{"type": "json_path", "path": "$.need_search", "value": false}', {"need_search": False}, {"need_search": 0}),
    ('{"type": "regex", "value": "\\\\d{3}-\\\\d{4}"}', "call 555-1234", "call 555-12"),
    ('{"type": "type", "value": "object"}', {"a": 1}, [1]),
    ('{"type": "script", "script": "scripts.test.Assert"}', "fine", "poor"),
    ('{"type": "agent", "use": "agents:workers.test.validator"', "I am happy to help.", "No."),
    ('{"type": "script", "use": "scripts:tests.validate-expense"', {"amount": 3500}, {"amount": 50}),
    ('{"type": "contains", "value": "success"}', "a success", "a failure"),
    ('{"type": "equals", "value": "OK"}', "OK", "ok"),
    ('{"type": "regex", "pattern": "order-\\\\d+"}', "order-17", "order-x"),
    ('{"type": "json_path", "path": "$.status", "value": "ok"}', {"status": "ok"}, {"state": "ok"}),
    ('{"type": "tool_called", "name": "create_expense"}', CALL, "I filed it."),
    ('{"type": "type", "path": "$.count", "value": "number"}', {"count": 3}, {"count": "3"}),
]


def printed_assertions() -> list[dict[str, Any]]:
    """All assertions that the documents print by themselves, file after file."""
    found, decoder = [], json.JSONDecoder()
    for path in sorted(PRINTED.iterdir()):
        text = path.read_text("utf-8").strip()
        while text:
            one, end = decoder.raw_decode(text)
            found.append(one)
            text = text[end:].strip()
    return found


def test_every_assertion_of_the_tables_can_pass_and_fail(documents: Project) -> None:
    printed = printed_assertions()
    assert len(printed) == len(ANSWERS)
    cases: list[dict[str, Any]] = []
    for number, (assertion, (begins, good, bad)) in enumerate(zip(printed, ANSWERS, strict=True)):
        assert json.dumps(assertion).startswith(begins.rstrip("}"))
        for name, answer in (("good", good), ("bad", bad)):
            cases.append({"id": f"{name}-{number}", "input": json.dumps(answer), "assertions": [assertion]})
    documents.cases(*cases, name="tests/table.jsonl")
    documents.write("says.py", "import json\n\ndef back(prompt):\n    return json.loads(prompt)\n")
    documents.write("tests/scripts/test.py", "def Assert(output, input, expected):\n    return output == 'fine'\n")
    documents.write(
        "tests/scripts/tests.py",
        """
        def validate_expense(output, input, expected, context):
            asked = context["metadata"]
            fits = asked["min_amount"] <= output["amount"] <= asked["max_amount"]
            return {"pass": fits, "message": f"{output['amount']} against {asked['min_amount']}"}
        """,
    )
    with MockModels(world) as server:
        ran = documents.test("tests/table.jsonl", "-n", "says.py:back", "--parallel", "4", env=server.env)
    assert ran.code == 1, ran.err
    assert ran.statuses == {one["id"]: "passed" if one["id"].startswith("good") else "failed" for one in cases}
    validated = [json.loads(one.prompt) for one in server.requests]
    assert {one["tone"] for one in validated} == {"professional and friendly"}
    assert ran.results["bad-8"]["assertions"][0]["message"] == "50 against 100"
