"""Secrets of a run: no judge is told them, no cassette and no cache keeps them, and a replay works all the same."""

import json
from typing import Any

from tests.engine.support.judge import judge
from tests.engine.support.project import Project
from tests.models.mock_server import Heard, MockModels

HELLO = {"type": "contains", "value": "hello"}

SECRET = "tok-ABCDEF-123"
FLAGS = ("-n", "desk", "-c", "openai.any", "--role-connector", "openai.any")


def answer(heard: Heard) -> Any:
    if "Expectation 1:" in heard.prompt:
        return judge(lambda _asked, record: "token ***" in record)(heard)
    return f"My token is {SECRET}, and so is {heard.prompt}"


def test_what_is_secret_stays_out_of_the_roles_files(project: Project) -> None:
    project.write("agents/desk.md", "---\nconnector: openai.any\n---\n\nYour token is $ENV.DESK_TOKEN.\n")
    project.write(
        "suite.yaml",
        {
            "test_suite": "secrets",
            "tests": [
                {
                    "id": "one",
                    "name": "one",
                    "task": {"description": "token ${DESK_TOKEN}"},
                    "expectations": ["it is kind"],
                }
            ],
        },
    )
    with MockModels(answer) as server:
        env = {**server.env, "DESK_TOKEN": SECRET}
        live = project.test("suite.yaml", *FLAGS, "--record", "cassette", env=env)
        assert live.statuses == {"one": "passed"}, live.out
        agents, judges = server.requests
        assert SECRET in agents.prompt
        assert SECRET not in json.dumps(judges.body)
        again = project.test("suite.yaml", *FLAGS, env=env)
        assert again.statuses == {"one": "passed"}
        assert len(server.requests) == 3, "the judge's answer was not kept"
    replayed = project.test("suite.yaml", *FLAGS, "--replay", "cassette", env={"DESK_TOKEN": SECRET})
    assert replayed.statuses == {"one": "passed"}, replayed.out
    files = [path for path in project.folder.rglob("*") if path.is_file()]
    assert {"model.jsonl", "judge.jsonl", "000001.jsonl", "journal.jsonl"} <= {path.name for path in files}
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_secrets_are_masked_in_every_output(project: Project) -> None:
    project.write(
        "agent.py", "def run(options): print('key', options['api_key']); return f\"key {options['api_key']}\""
    )
    config = {"entry": "agent.py:run", "api_key": "${API_KEY}"}
    file = project.suite([{"name": "leaks", "type": "custom", "config": config}], [{"id": "a", "assertions": [HELLO]}])
    ran = project.atp("test", file, "-v", "-o", "r.json", "-o", "r.jsonl", env={"API_KEY": "very-secret-key"})
    assert ran.code == 1
    journal = (project.runs()[-1] / "journal.jsonl").read_text()
    reports = [(project.folder / name).read_text() for name in ("r.json", "r.jsonl")]
    for text in (ran.out, ran.err, journal, *reports):
        assert "very-secret-key" not in text
    assert all("key ***" in text for text in (journal, *reports))
