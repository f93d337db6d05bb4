"""Secrets of a run: no judge is told them, no cassette and no cache keeps them, and a replay works all the same."""

import json
from typing import Any

from tests.e2e.test_canaries import Outputs
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
    ran = project.atp("test", file, "-vv", "-o", "r.json", "-o", "r.jsonl", env={"API_KEY": "very-secret-key"})
    assert ran.code == 1
    journal = (project.runs()[-1] / "journal.jsonl").read_text()
    reports = [(project.folder / name).read_text() for name in ("r.json", "r.jsonl")]
    for text in (ran.out, ran.err, journal, *reports):
        assert "very-secret-key" not in text
    assert all("key ***" in text for text in (journal, *reports))


def test_a_number_that_is_a_secret_is_masked_among_what_the_agent_gave(project: Project) -> None:
    project.write(
        "agent.py",
        """
        def run(prompt):
            return {"output": {"pin": 842913577}, "tool_calls": [{"name": "x", "arguments": {"a": [842913577.0]}}]}
        """,
    )
    file = project.suite(
        [{"name": "told", "type": "custom", "config": {"entry": "agent.py:run"}}],
        [{"id": "a", "metadata": {"pin": 842913577}, "assertions": [{"type": "equals", "value": 842913577}]}],
    )
    reports = [part for ending in ("json", "jsonl", "html", "xml", "csv", "md") for part in ("-o", f"out/r.{ending}")]
    (project.folder / "out").mkdir()
    ran = project.atp("test", file, "-vv", *reports, env={"MY_PIN_KEY": "842913577"})
    assert ran.code == 1, ran.err
    outputs = Outputs({"stdout": ran.out, "stderr": ran.err})
    for part in ("out", ".atp"):
        outputs.add_files(project.folder / part)
    assert outputs.leaks("842913577") == []


def test_a_variable_that_a_hook_sets_is_masked(project: Project) -> None:
    project.write("hooks.py", "import os\ndef before(about):\n    os.environ['LATE_TOKEN'] = 'token-of-this-trial'\n")
    project.write("agent.py", "import os\ndef run(prompt):\n    return os.environ['LATE_TOKEN']\n")
    config = {"entry": "agent.py:run"}
    case = {"id": "a", "before_hook": "hooks.py:before", "assertions": [HELLO]}
    file = project.suite([{"name": "told", "type": "custom", "config": config}], [case])
    ran = project.atp("test", file, "-vv", "-o", "r.json")
    journal = (project.runs()[-1] / "journal.jsonl").read_text()
    texts = (ran.out, ran.err, journal, (project.folder / "r.json").read_text())
    assert [text for text in texts if "token-of-this-trial" in text] == []
    assert "***" in ran.out


def test_cases_whose_ids_have_secrets_are_resumed_and_found_again(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt\n")
    cases = [
        {"id": "a ${A_TOKEN}", "input": "bad", "expected": "good"},
        {"id": "a ${B_TOKEN}", "input": "good", "expected": "good"},
        {"id": "c ${B_TOKEN}", "input": "bad", "expected": "good"},
    ]
    file = project.suite([{"name": "told", "type": "custom", "config": {"entry": "agent.py:run"}}], cases)
    env = {"A_TOKEN": "the-first-secret", "B_TOKEN": "the-other-secret"}
    assert project.test(file, "--fail-fast", "--parallel", "1", env=env).code == 1
    resumed = project.test(file, "--resume", env=env)
    assert [one["id"] for one in resumed.events if one["type"] == "result"] == ["a ***", "a ***", "c ***"]
    again = project.test(file, "--only-failed", env=env)
    # Two cases have the same id without their secrets: both are run again.
    assert [one["id"] for one in again.events if one["type"] == "result"] == ["a ***", "a ***", "c ***"]


def test_a_secret_number_is_masked_as_json_writes_it_wherever_it_is_in_a_text(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return {'pin': 0x12345678, 'text': 'pin 305419896'}")
    cases = [{"id": "a", "input": "x", "expected": {"pin": 1}}, {"id": "b", "input": "x", "expected": "y"}]
    project.write("cases.jsonl", "\n".join(map(json.dumps, cases)))
    project.write("agents/own.md", "---\ntype: custom\nconfig: {entry: '../agent.py:run'}\n---\n")
    expects = '**Prompts:**\n\n- x\n\n**Expectations:**\n\n- the response contains "y"\n'
    project.write("t.test.md", f"---\ntarget: agents/own.md\n---\n# A\n\n{expects}")
    for given in (("cases.jsonl", "-n", "agent.py:run", "-o", "out.md", "-o", "out.csv"), ("t.test.md",)):
        ran = project.atp("test", *given, "-vv", env={"PIN_TOKEN": "0x12345678"})
        assert ran.code in (1, 3), ran.err
        assert "305419896" not in ran.out + ran.err
    written = [path for path in project.folder.rglob("*") if path.is_file() and path.name != "agent.py"]
    assert {"out.md", "out.csv", "t.tps.json", "journal.jsonl"} <= {path.name for path in written}
    assert [path for path in written if b"305419896" in path.read_bytes()] == []


BACKGROUND = f"""
    import asyncio, gc

    class Resource:
        def __del__(self):
            raise ValueError("{SECRET} in del")

    async def fail():
        raise ValueError("{SECRET} in task")

    KEPT = []

    async def run(prompt):
        KEPT.append((asyncio.ensure_future(fail()), Resource()))
        await asyncio.sleep(0)
        return prompt

    def after_all():
        KEPT.clear()
        gc.collect()
"""


def test_errors_that_belong_to_no_trial_are_masked(project: Project) -> None:
    project.write("agent.py", BACKGROUND)
    flags = ("-n", "agent.py:run", "--after-all", "agent.py:after_all")
    ran = project.atp("test", project.cases("a"), *flags, env={"MY_TOKEN": SECRET})
    assert "*** in task" in ran.err, ran.err
    assert "*** in del" in ran.err
    assert SECRET not in ran.out + ran.err


def test_secrets_of_an_agent_that_is_refused_are_masked(project: Project) -> None:
    config = {"endpoint": f"http://me:{SECRET}@127.0.0.1:9/", "api_key": {"a": SECRET}, "retry": SECRET}
    command = {"command": f"run --token {SECRET}", "timeout": SECRET}
    agents = [{"name": "a", "type": "http", "config": config}, {"name": "b", "type": "cli", "config": command}]
    tests = [{"id": "x", "name": "x", "input": "x", "assertions": [HELLO]}]
    project.write("suite.yaml", {"test_suite": "s", "agents": agents, "tests": tests})
    project.write("broken.yaml", f'agents:\n  - config: {{password: "a;{SECRET}}}}}\n    x: [\n')
    for words in (
        ("test",),
        ("test", "--dry-run"),
        ("agents", "check"),
        ("validate",),
        ("show",),
        ("validate", "--json"),
    ):
        for file in ("suite.yaml", "broken.yaml"):
            ran = project.atp(*words, file)
            assert ran.code == 2, (words, ran.out, ran.err)
            assert SECRET not in ran.out + ran.err, words


def test_a_secret_that_is_newer_than_the_journal_is_masked_in_its_reports(project: Project) -> None:
    project.write("agent.py", f"def run(prompt): return 'x {SECRET}'")
    project.atp("test", project.cases({"id": "a", "input": "x", "expected": SECRET}), "-n", "agent.py:run")
    project.write(".env", f"MY_TOKEN={SECRET}\n")
    for flags in ((), ("-vv",), ("-o", f"{SECRET}.md"), ("-r", "report.markdown"), ("-o", f"{SECRET}/x.md")):
        ran = project.atp("report", "last", *flags)
        assert Outputs({"printed": ran.out + ran.err}).leaks(SECRET) == [], flags
    assert Outputs({"report": (project.folder / f"{SECRET}.md").read_text()}).leaks(SECRET) == []
