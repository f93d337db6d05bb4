"""Reports keep to the schemas that others published, and what doesn't is found by them: so the tests can fail."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import xmlschema
from jsonschema import Draft7Validator, Draft202012Validator
from tests.engine.support.project import Project
from tests.parts import needs
from tests.report.schemas.published import ctrf_schema, junit_schema
from tests.report.test_hostile import NASTY, hostile_case

from atp.report.formats.ctrf import CtrfReport
from atp.report.formats.junit import JunitReport
from atp.report.records.report import report_schema
from atp.suite.result import Blame, CaseResult

AGENT = f"""
    NASTY = {NASTY!a}

    def run(prompt, context, workspace):
        if prompt == "raises":
            raise RuntimeError("no ]]> \\x1b[2J \\ud83d")
        if prompt == "flaky":
            return "HELLO" if context["run"] == 2 else "half a pair: \\ud83d"
        return NASTY.get(prompt, prompt)

    other = run
"""
CHAIN = """
    ---
    target: agents/x.md
    ---

    ## first

    **Prompts:**

    - raises

    **Expectations:**

    - no errors

    ## second

    **Before:** first

    **Prompts:**

    - hello

    **Expectations:**

    - no errors
"""
CHECKS = "def explodes(output):\n    raise KeyError('gone')\n"
RECIPE = "jq -e '.results | all(.pass_rate >= 80)' report.json"
"""As document 4 prints it."""


@pytest.fixture(scope="module")
def junit() -> xmlschema.XMLSchema:
    return junit_schema()


@pytest.fixture(scope="module")
def ctrf() -> Draft7Validator:
    return ctrf_schema()


@pytest.fixture
def told(tmp_path: Path, story: Any) -> Callable[..., tuple[Path, dict[str, Any]]]:
    """Both reports of a run of these cases, which ended early."""

    def tell(*cases: CaseResult) -> tuple[Path, dict[str, Any]]:
        reports = JunitReport(tmp_path / "report.xml"), CtrfReport(tmp_path / "report.ctrf.json")
        end = story.end(story.info(agents=["one", "two"]), reason="interrupted")
        for report in reports:
            report.start(end.info)
            report.skipped("tests/expense.jsonl", story.skipped())
            for case in cases:
                report.case(case)
            report.end(end)
            assert list(report.problems) == []
        return tmp_path / "report.xml", json.loads((tmp_path / "report.ctrf.json").read_bytes())

    return tell


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports of a real run: two agents, several runs, all that can become of a case."""
    project = Project(tmp_path_factory.mktemp("real"))
    project.write("agent.py", AGENT)
    project.write("scripts/checks.py", CHECKS)
    project.write("hooks.py", CHECKS)
    file = project.cases(
        {"id": "passes", "name": "Says it", "input": "hello", "tags": ["smoke", "<&>"], "expected": "hello"},
        {"id": "fails", "input": "hello", "expected": "bye"},
        {"id": "flaky", "input": "flaky", "expected": "HELLO", "pass_rate": 0.2},
        {"id": "raises", "input": "raises"},
        {"id": "unjudged", "input": "hello", "assert": {"type": "script", "script": "scripts.checks.explodes"}},
        {"id": "nowhere", "input": "hello", "before_hook": "hooks.py:explodes"},
        {"id": "later", "input": "hello", "skip": True},
        *({"id": f"hostile {name}", "input": name, "expected": "x"} for name in NASTY),
    )
    project.write("chain.test.md", CHAIN.lstrip("\n"))
    reports = [word for ending in ("xml", "ctrf.json", "json") for word in ("-o", f"report.{ending}")]
    agents = ["-n", "agent.py:run", "-n", "agent.py:other"]
    ran = project.atp("test", file, "chain.test.md", *agents, "--runs", "3", "--parallel", "3", *reports)
    assert (ran.code, "Traceback" in ran.err) == (1, False), ran.err
    return project.folder


@pytest.mark.parametrize("name", ["troubles", "repeated", "document"])
def test_all_that_can_become_of_a_case(
    junit: xmlschema.XMLSchema, ctrf: Draft7Validator, told: Any, name: str, request: pytest.FixtureRequest
) -> None:
    xml, found = told(*request.getfixturevalue(name))
    junit.validate(str(xml))
    ctrf.validate(found)


@pytest.mark.parametrize("blame", get_args(Blame))
def test_whoever_is_to_blame(
    junit: xmlschema.XMLSchema, ctrf: Draft7Validator, told: Any, story: Any, blame: Blame
) -> None:
    broken = story.trial(status="error", blame=blame, error="it broke", verdicts=[])
    xml, found = told(story.case("a", broken), story.case("a", broken, agent="two"))
    junit.validate(str(xml))
    ctrf.validate(found)


@pytest.mark.parametrize("name", NASTY)
def test_whatever_agents_say(junit: xmlschema.XMLSchema, ctrf: Draft7Validator, told: Any, name: str) -> None:
    xml, found = told(hostile_case(NASTY[name]), hostile_case(NASTY[name], "error"))
    junit.validate(str(xml))
    ctrf.validate(found)


def test_a_real_run(real: Path, junit: xmlschema.XMLSchema, ctrf: Draft7Validator) -> None:
    junit.validate(str(real / "report.xml"))
    ctrf.validate(json.loads((real / "report.ctrf.json").read_bytes()))
    report = json.loads((real / "report.json").read_bytes())
    Draft202012Validator(report_schema()).validate(report)
    ended = {one["id"]: (one["status"], one["blame"]) for one in report["results"] if "hostile" not in one["id"]}
    assert ended == {
        "passes": ("passed", None),
        "fails": ("failed", None),
        "flaky": ("passed", None),
        "raises": ("error", "agent"),
        "unjudged": ("error", "judge"),
        "nowhere": ("error", "environment"),
        "first": ("error", "agent"),
        "second": ("blocked", None),
    }
    assert {one["agent_id"] for one in report["results"]} == {"agent.py:run", "agent.py:other"}
    assert [one["id"] for one in report["skipped"]] == ["later"]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('<testcase name="wrong', '<testcase line="1" name="wrong'),
        (' name="wrong: Says the wrong thing"', ""),
        ("<failure", "<properties/><failure"),
        ("<skipped/>", "<ignored/>"),
        (' failures="4"', ""),
        ('time="5.100"', 'time="5.1s"'),
    ],
)
def test_a_broken_junit_report_is_found(
    junit: xmlschema.XMLSchema, told: Any, troubles: list[CaseResult], good: str, bad: str
) -> None:
    xml, _ = told(*troubles)
    text = xml.read_text(encoding="utf-8")
    assert good in text
    assert junit.is_valid(text)
    assert not junit.is_valid(text.replace(good, bad))


@pytest.mark.parametrize(
    ("part", "name", "bad"),
    [
        ("report", "reportFormat", "ctrf"),
        ("report", "specVersion", "1"),
        ("report", "reportId", "20241217-100000-ab12"),
        ("report", "timestamp", "yesterday"),
        ("summary", "pending", None),
        ("summary", "stop", 0.5),
        ("test", "status", "error"),
        ("test", "blame", "agent"),
        ("test", "suite", []),
        ("environment", "agent", "one"),
    ],
)
def test_a_broken_ctrf_report_is_found(
    ctrf: Draft7Validator, told: Any, troubles: list[CaseResult], part: str, name: str, bad: Any
) -> None:
    _, found = told(*troubles)
    assert ctrf.is_valid(found)
    results = found["results"]
    parts = {"report": found, "test": results["tests"][0]}
    (parts.get(part) or results[part])[name] = bad
    assert not ctrf.is_valid(found)


def test_the_documents_recipe_runs_as_printed(real: Path) -> None:
    needs("jq")
    judged = subprocess.run(["bash", "-c", RECIPE], cwd=real, capture_output=True, text=True, check=False)
    assert (judged.returncode, judged.stdout, judged.stderr) == (1, "false\n", "")
    rates = [one["pass_rate"] for one in json.loads((real / "report.json").read_bytes())["results"]]
    assert {0, 100} < set(rates)
