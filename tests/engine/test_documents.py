"""The documents' own examples, run against real agents of every kind."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support import expense
from tests.engine.support.judge import judge
from tests.engine.support.project import Project, Ran
from tests.engine.support.server import Server
from tests.models.mock_server import MockModels

DOCUMENTS = Path(__file__).parents[1] / "documents"
EXPENSE = str(Path(expense.__file__))
DIALOGUE = "document-5-dynamic-mode.jsonl"


@pytest.fixture
def examples(project: Project) -> list[str]:
    """The JSONL examples of documents 4 and 5, in a project with the script they name."""
    shutil.copytree(DOCUMENTS / "jsonl" / "cases", project.folder / "tests")
    project.write("tests/fixtures/receipt.jpg", b"\xff\xd8 a picture")
    project.write(
        "tests/scripts/test.py",
        """
        def ValidateOutput(output, input, expected):
            return {"pass": input in output, "message": f"{output} holds {input}"}
        """,
    )
    command = json.dumps([sys.executable, EXPENSE])
    project.write("atp.toml", f"[agents.command]\ntype = 'cli'\nconfig.command = {command}\n")
    return sorted(str(path) for path in (project.folder / "tests").glob("*.jsonl") if path.name != DIALOGUE)


def test_jsonl_examples_against_every_kind_of_agent(project: Project, examples: list[str], server: Server) -> None:
    agents = [f"{EXPENSE}:sync", f"{EXPENSE}:asynchronous", f"{EXPENSE}:streaming", "command", server.url("stream")]
    flags = [flag for name in agents for flag in ("-n", name)]
    ran = project.test(*examples, *flags, "--parallel", "5")
    assert ran.code == 0, ran.out
    results = [event for event in ran.events if event["type"] == "result"]
    assert len(results) == 5 * 20
    by_agent: dict[str, dict[tuple[str, str], Any]] = {name: {} for name in agents}
    for one in results:
        tools = [(call["name"], call["arguments"]) for call in one["tool_calls"]]
        by_agent[one["agent_id"]][one["file"], one["id"]] = one["output"], tools, one["assertions"]
    first, *others = by_agent.values()
    assert all(other == first for other in others)


def test_an_agent_that_cannot_tell_of_its_tools_fails_only_where_they_count(
    project: Project, examples: list[str], server: Server
) -> None:
    ran = project.test(*examples, "-n", server.url("expense"), "--parallel", "4")
    failed = [(Path(one["file"]).name, one["id"]) for one in ran.events if one.get("status") == "failed"]
    assert sorted(failed) == [
        ("document-5-message-history.jsonl", "T002"),
        ("document-5-points-in-a-conversation.jsonl", "expense-turn2"),
    ]
    assert ran.summary["passed"] == 18


def test_identity_as_in_document_4(project: Project, server: Server) -> None:
    shutil.copy(DOCUMENTS / "jsonl/cases/document-4-environment-override.jsonl", project.folder / "cases.jsonl")
    call = ["cases.jsonl", "-n", server.url("whole")]
    plain, flags = project.tests(call, [*call, "-u", "admin", "-t", "prod-team"])

    def who(ran: Ran) -> dict[str, tuple[str, str]]:
        seen = {name: one["output"]["metadata"] for name, one in ran.results.items()}
        return {name: (one["user_id"], one["team_id"]) for name, one in seen.items()}

    assert who(plain) == {
        "T001": ("test-user", "test-team"),
        "T002": ("admin", "admin-team"),
        "T003": ("special-user", "test-team"),
    }
    assert set(who(flags).values()) == {("admin", "prod-team")}


def test_console_and_files_as_in_the_documents(project: Project, examples: list[str]) -> None:
    name = "document-5-points-in-a-conversation.jsonl"
    ran = project.atp("test", "-i", f"tests/{name}", "-n", f"{EXPENSE}:sync", "-v")
    assert ran.code == 0
    lines = [line for line in ran.out.splitlines() if line.strip()]
    shown = [line.partition(" (")[0] if line.startswith("✓") else line for line in lines]
    assert shown[:12] == [
        "═" * 63,
        "  Agent Test",
        "═" * 63,
        f"ℹ Agent: {EXPENSE}:sync",  # noqa: RUF001
        f"ℹ Input: tests/{name} (3 test cases)",  # noqa: RUF001
        "─" * 63,
        "  Running Tests",
        "─" * 63,
        "✓ [expense-turn1]",
        "  Messages: 1, Assertions: 1/1 passed",
        "✓ [expense-turn2]",
        "  Messages: 3, Assertions: 1/1 passed",
    ]
    total = shown.index("  Total:   3 tests")
    assert shown[total - 3 : total + 3] == [
        "─" * 63,
        "  Summary",
        "─" * 63,
        "  Total:   3 tests",
        "  Passed:  3",
        "  Failed:  0",
    ]
    (output,) = (project.folder / "tests").glob("output-*.jsonl")
    start, *results, summary = [json.loads(line) for line in output.read_text().splitlines()]
    assert {"type": "start", "total_cases": 3}.items() <= start.items()
    assert {"type": "summary", "total": 3, "passed": 3, "failed": 0}.items() <= summary.items()
    last = results[-1]
    wanted = {"id": "expense-turn3", "status": "passed", "messages_count": 5}
    assert wanted.items() <= last.items()
    assert last["response"] == "Expense submitted. Reference: EXP-2025-001"
    assert {"type": "contains", "value": "submitted", "passed": True}.items() <= last["assertions"][0].items()
    flags = ["--runs", "2", "-o", "report.json", "-c", "gpt"]
    assert project.atp("test", f"tests/{name}", "-n", f"{EXPENSE}:sync", *flags).code == 0
    report = json.loads((project.folder / "report.json").read_text())
    assert list(report)[:4] == ["format", "summary", "environment", "results"]
    assert {"user_id": "test-user", "team_id": "test-team", "locale": "en-us"}.items() <= report["environment"].items()
    expected = {"total": 3, "runs_per_case": 2, "overall_pass_rate": 100.0, "connector": "gpt", "skipped": 0}
    assert expected.items() <= report["summary"].items()
    assert all(one["pass_rate"] >= 80 for one in report["results"])
    assert {"started_at", "completed_at", "version"} <= report["metadata"].keys()


def test_the_dialogue_of_document_5(project: Project, examples: list[str]) -> None:
    dialogue = f"tests/{DIALOGUE}"
    unplayed = project.test(dialogue, "-n", f"{EXPENSE}:sync")
    assert unplayed.code == 2
    assert "workers.test.user-simulator" in unplayed.err
    prompt = "You are simulating a user. Answer with `input` and `goal_achieved`."
    project.write("assistants/workers/test/user-simulator/package.yao", {"name": "user", "connector": "openai.user"})
    project.write("assistants/workers/test/user-simulator/prompts.yml", [{"role": "system", "content": prompt}])
    lines = ["I want to submit an expense", "Business travel to Beijing, $3500", "Yes, confirm"]
    with MockModels([{"input": line, "goal_achieved": False} for line in lines]) as models:
        ran = project.test(dialogue, "-n", f"{EXPENSE}:sync", env=models.env)
    (result,) = ran.results.values()
    assert ran.code == 0, result["error"]
    assert [(one["id"], one["reached_at_turn"]) for one in result["checkpoints"]] == [
        ("ask_type", 1),
        ("call_create", 2),
        ("confirm", 3),
    ]
    first = json.loads(models.requests[0].prompt)
    assert first["goal"] == "Submit a $3500 travel expense"
    assert [one["conversation"][-1]["role"] for one in map(json.loads, (models.requests[1].prompt,))] == ["assistant"]
    assert examples


def yaml_suite(project: Project, name: str) -> str:
    shutil.copy(DOCUMENTS / "yaml" / "complete" / name, project.folder / name)
    return name


def test_the_minimal_suite_of_document_1(project: Project, server: Server) -> None:
    name = yaml_suite(project, "minimal-suite.yaml")
    path = project.folder / name
    path.write_text(path.read_text().replace("http://localhost:8000", server.url("echo")))
    ran = project.test(name)
    assert ran.code == 0
    assert ran.results["test-001"]["output"] == "echo: Echo 'hello'"
    assert ran.results["test-001"]["no_assertions"]


def test_the_smoke_suite_of_document_1(project: Project, server: Server) -> None:
    name = yaml_suite(project, "smoke-suite.yaml")
    ends = {"API_ENDPOINT": server.url("echo")}
    with MockModels(judge(lambda asked, record: 1.0 if "echo" in record else 0.1)) as models:
        ran = project.test(name, "--role-connector", "openai.judge", env={**ends, **models.env})
    assert ran.statuses == {"smoke-001": "passed", "smoke-002": "passed", "smoke-003": "passed"}
    judged = ran.results["smoke-003"]
    assert [(one["type"], one["passed"]) for one in judged["assertions"]] == [
        ("artifact_exists", True),
        ("llm_eval", True),
    ]
    assert ran.code == 0
    chosen = project.test("smoke-suite.yaml", "--tags", "!math", env={"API_ENDPOINT": server.url("echo")})
    assert chosen.code == 0


def test_the_comprehensive_suite_of_document_1(project: Project, server: Server) -> None:
    name = yaml_suite(project, "comprehensive-suite.yaml")
    for file in ("data.csv", "users.csv", "transactions.csv"):
        project.write(f"fixtures/{file}", "id,value\n1,2\n")
    ends = {"API_ENDPOINT": server.url("echo?who=data"), "BASELINE_ENDPOINT": server.url("echo?who=base")}
    before = len(server.requests)
    secret = {"API_KEY": "a-secret-key"}
    with MockModels(judge(lambda asked, record: 0.2)) as models:
        ran = project.test(
            name, "--parallel", "6", "--role-connector", "openai.judge", env={**ends, **models.env, **secret}
        )
    assert ran.code == 1
    results = {(one["agent_id"], one["id"]): one for one in ran.events if one["type"] == "result"}
    assert len(results) == 6
    assert {(one["status"], one["blame"], one["runs"]) for one in results.values()} == {("failed", None, 3)}
    for one in results.values():
        exact = [(check["type"], check["passed"]) for check in one["assertions"] if check["type"] != "llm_eval"]
        assert exact
        assert all(passed for _, passed in exact)
    requests = server.requests[before:]
    assert len(requests) == 18
    first = next(one for one in requests if one["metadata"]["test_id"] == "test-001")
    tools = ["file_read", "file_write", "python_repl", "web_search"]
    assert first["constraints"] == {
        "max_steps": 10,
        "max_tokens": 100000,
        "timeout_seconds": 120,
        "allowed_tools": tools,
        "budget_usd": 0.5,
    }
    assert first["task"]["input_data"] == {"csv_path": "fixtures/data.csv"}
    assert first["task"]["expected_artifacts"] == ["summary.json"]
    assert {one["metadata"]["run"] for one in requests} == {1, 2, 3}
    assert len({one["task_id"] for one in requests}) == 18
    assert {one["Authorization"] for one in server.headers[before:]} == {"Bearer a-secret-key"}
    assert "a-secret-key" not in ran.out + ran.err
    missing = project.test(name, env={"API_ENDPOINT": "http://127.0.0.1:9/"})
    assert missing.code == 2
    assert "BASELINE_ENDPOINT" in missing.err
    assert "API_KEY" in missing.err
