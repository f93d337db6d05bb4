"""Gates by the command line: given in a suite, in atp.toml and with --gate; exit codes, the journal and all reports."""

import json
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.engine.support.project import Project, Ran

import atp

BOT = """
def answer(prompt):
    return {"output": prompt, "metrics": {"recall": len(prompt) / 10}, "usage": {"cost_usd": 0.01}}
"""
AGENT = {"name": "bot", "type": "custom", "config": {"entry": "bot.py:answer"}}


def some_cases(passed: int, of: int, **more: Any) -> list[dict[str, Any]]:
    """Cases of which the first ones pass; none of the others is needed to pass."""
    return [
        {
            "id": f"c{number}",
            "input": "good" if number < passed else "bad",
            "assertions": [{"type": "contains", "value": "o"}],
            **more,
        }
        for number in range(of)
    ]


def run(project: Project, *flags: str, passed: int = 6, of: int = 6, gates: Any = (), **more: Any) -> Ran:
    project.write("bot.py", BOT)
    extra = {"gates": list(gates)} if gates else {}
    return project.test(project.suite([AGENT], some_cases(passed, of, **more), **extra), *flags)


def outcomes(ran: Ran) -> dict[str, str]:
    return {one["gate"]: one["outcome"] for one in ran.summary["gates"]}


def test_gates_of_a_suite_of_flags_and_of_atp_toml_are_evaluated(project: Project) -> None:
    project.write("atp.toml", 'gates = ["pass_rate >= 0.9", { metric = "recall", statistic = "p95", at_most = 1 }]\n')
    by_file = run(project, gates=["pass^1 >= 0.9", {"metric": "cost_usd", "at_most": 0.05}])
    assert by_file.code == 0
    assert outcomes(by_file) == dict.fromkeys(
        ["pass_rate >= 0.9", "recall p95 <= 1", "pass^1 >= 0.9", "cost_usd <= 0.05"], "passed"
    )
    by_flag = run(project, "--gate", "pass_rate >= 100%", "--gate", "turns median <= 1", gates=["pass^1 >= 0.9"])
    assert outcomes(by_flag) == dict.fromkeys(["pass_rate >= 1", "turns median <= 1", "pass^1 >= 0.9"], "passed")


@pytest.mark.parametrize(
    ("gate", "passed", "code"),
    [
        ("cost_usd p95 <= 0.005", 6, 1),
        ("pass^2 >= 0.5", 6, 4),
        ("first_token_ms p95 <= 100", 6, 4),
        ("[nowhere] pass_rate >= 0.5", 6, 4),
        ("pass_rate >= 0.9 confidence 0.95", 6, 4),
        ("pass_rate >= 0.5 confidence 0.9", 6, 0),
        ("pass_rate >= 0.5", 5, 1),  # a gate never excuses a case that failed
    ],
)
def test_exit_codes(project: Project, gate: str, passed: int, code: int) -> None:
    assert run(project, "--gate", gate, passed=passed).code == code


def test_something_that_broke_goes_before_an_inconclusive_gate(project: Project) -> None:
    project.write("scripts/checks.py", "def broken(output):\n    raise ValueError\n")
    broken = {"type": "script", "script": "scripts:checks.broken"}
    ran = run(project, "--gate", "pass_rate >= 0.9", assertions=[broken])
    assert (ran.code, outcomes(ran)) == (3, {"pass_rate >= 0.9": "inconclusive"})


def test_the_journal_records_what_the_gates_came_to_and_reports_evaluate_them_again(project: Project) -> None:
    ran = run(project, gates=["pass_rate >= 0.9", "pass^3 >= 0.5"])
    assert ran.code == 4
    start, summary = project.journal()[0], project.journal()[-1]
    assert start["gates"] == [
        {"gate": "pass_rate >= 0.9", "of_suite": True, "file": "suite.yaml"},
        {"gate": "pass^3 >= 0.5", "of_suite": True, "file": "suite.yaml"},
    ]
    assert [one["outcome"] for one in summary["gates"]] == ["passed", "inconclusive"]
    project.atp("report", "-o", "again.json")
    again = json.loads((project.folder / "again.json").read_text())
    assert again["gates"] == ran.summary["gates"]
    elsewhere = project.folder / "deeper"
    elsewhere.mkdir()
    project.atp("report", "-o", "again.json", "--project", "..", cwd=elsewhere)
    moved = json.loads((elsewhere / "again.json").read_text())
    assert [one["outcome"] for one in moved["gates"]] == ["passed", "inconclusive"]


def test_every_report_has_the_gates(project: Project) -> None:
    flags = [word for name in ("r.json", "r.md", "r.xml", "r.html", "r.ctrf.json") for word in ("-o", name)]
    step = project.write("step.md", "")
    project.write("bot.py", BOT)
    gates = ["pass_rate >= 0.9", "pass^3 >= 0.5", "cost_usd mean <= 0.001"]
    suite = project.suite([AGENT], some_cases(6, 6), gates=gates)
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(step)}
    ran = project.atp("test", suite, *flags, env=github)
    assert ran.code == 1
    assert "Gates:   1 of 3 passed" in ran.out
    assert "✓ pass_rate >= 0.9  passed: 1 (0.4" in ran.out
    assert "? pass^3 >= 0.5  inconclusive: it needs 3 judged runs of every case, and one has 1" in ran.out
    assert "✗ cost_usd mean <= 0.001  failed: $0.0100" in ran.out
    assert "::error title=ATP gate::cost_usd mean <= 0.001: failed" in ran.out
    assert "::warning title=ATP gate::pass^3 >= 0.5: inconclusive" in ran.out
    report = json.loads((project.folder / "r.json").read_text())
    assert [one["outcome"] for one in report["gates"]] == ["passed", "inconclusive", "failed"]
    assert {"gate", "outcome", "value", "interval"} <= report["gates"][0].keys()
    for text in ((project.folder / "r.md").read_text(), step.read_text()):
        assert "❌ `cost_usd mean <= 0.001`" in text
    (suite_of_gates,) = ET.parse(project.folder / "r.xml").getroot().findall("testsuite[@name='gates']")
    assert [one.find("failure") is None for one in suite_of_gates] == [True, False, False]
    assert [one.get("type") for one in suite_of_gates.iter("failure")] == ["inconclusive", "gate"]
    page = (project.folder / "r.html").read_text()
    assert "1 of 3 gates failed" in page
    assert "<bdi>cost_usd mean &lt;= 0.001</bdi>" in page  # also for a reader without JavaScript
    assert len(json.loads((project.folder / "r.ctrf.json").read_text())["results"]["extra"]["gates"]) == 3


def test_metrics_and_rates_have_intervals_from_five_cases_on(project: Project) -> None:
    run(project, "--runs", "2", "-o", "r.json", passed=5, tags=["refund"])
    report = json.loads((project.folder / "r.json").read_text())
    low, high = report["summary"]["pass_rate_interval"]
    assert low < report["summary"]["pass_rate"] < high
    assert report["summary"]["se_runs"] == 0
    (tag,) = report["groups"]["tags"]
    assert (tag["name"], tag["cases"], tag["pass_rate_interval"]) == ("refund", 6, [low, high])
    recall = report["metrics"]["recall"]
    assert (recall["cases"], recall["runs"], recall["median"]) == (6, 12, 0.4)
    assert recall["mean_interval"][0] < recall["mean"] < recall["mean_interval"][1]
    assert recall["p95_interval"][1] is None  # too few to say
    assert report["results"][0]["metrics"]["recall"]["runs"] == 2
    run(project, "-o", "few.json", of=4, passed=4)
    few = json.loads((project.folder / "few.json").read_text())
    assert "pass_rate_interval" not in few["summary"]
    assert few["summary"]["pass_rate"] == 100


@pytest.mark.parametrize("command", [["validate"], ["show"], ["test", "--dry-run"]])
def test_a_bad_gate_is_found_before_anything_runs(project: Project, command: list[str]) -> None:
    project.write("bot.py", BOT)
    suite = project.suite([AGENT], some_cases(1, 1), gates=["pass_rat >= 0.9"])
    ran = project.atp(*command, suite)
    assert ran.code == 2
    assert "error[bad-gate]: `gates`: `pass_rat` is no figure of passed runs" in ran.out + ran.err
    assert "did you mean `pass_rate`?" in ran.out + ran.err


def test_a_bad_gate_of_a_flag_and_of_atp_toml_is_found(project: Project) -> None:
    ran = run(project, "--gate", "pass_rate > 0.9")
    assert ran.code == 2
    assert "`--gate`: the gate can't be read" in ran.err
    project.write("atp.toml", 'parallel = 2\ngates = ["cost_usd p95 <= 5%"]\n')
    ran = run(project)
    assert ran.code == 2
    assert "atp.toml:2:9" in ran.err


def test_a_dry_run_lists_the_gates(project: Project) -> None:
    project.write("bot.py", BOT)
    suite = project.suite([AGENT], some_cases(1, 1), gates=["pass_rate >= 0.9"])
    ran = project.atp("test", suite, "--dry-run", "--gate", "cost_usd p95 <= 1")
    assert "gate: cost_usd p95 <= 1\ngate: pass_rate >= 0.9 (suite.yaml)\n" in ran.out


def test_a_stopped_run_decides_no_gate(project: Project) -> None:
    ran = run(project, "--gate", "turns <= 5", "--fail-fast", passed=0)
    assert outcomes(ran) == {"turns <= 5": "inconclusive"}


def test_the_api_has_the_gates(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("bot.py", BOT)
    monkeypatch.chdir(project.folder)
    suite = atp.load(project.suite([AGENT], some_cases(6, 6)))
    gates: Any = ["recall mean <= 1", "recall mean <= 0.1"]  # pydantic reads the text
    report = atp.run_sync(suite, atp.Options(gates=gates))
    assert [(one.gate, one.outcome) for one in report.gates] == [
        ("recall mean <= 1", "passed"),
        ("recall mean <= 0.1", "failed"),
    ]
    assert report.exit_code == 1


def test_a_written_suite_keeps_its_gates(project: Project) -> None:
    project.write("bot.py", BOT)
    suite = project.suite([AGENT], some_cases(1, 1), gates=["[refund, agent:bot] cost_usd p95 <= 0.05 confidence 0.9"])
    ran = project.atp("convert", suite, "-o", "copy.yaml")
    assert ran.code == 0, ran.err
    assert "[refund, agent:bot] cost_usd p95 <= 0.05 confidence 0.9" in (project.folder / "copy.yaml").read_text()


def test_pytest_fails_for_a_gate_that_was_not_passed(project: Project) -> None:
    project.write("bot.py", BOT)
    suite = project.suite([AGENT], some_cases(2, 2), gates=["cost_usd mean <= 0.001"], file="test_suite.yaml")
    command = [sys.executable, "-m", "pytest", "--atp", "-q", "-p", "no:cacheprovider", suite]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "cost_usd mean <= 0.001: failed: $0.0100" in done.stdout
    assert "2 passed" in done.stdout


def test_the_name_of_an_agent_means_each_of_its_columns(project: Project) -> None:
    project.write("bot.py", "def answer(prompt, options):\n    return prompt * options['times']\n")
    other = {"name": "other", "type": "custom", "config": {"entry": "bot.py:answer", "times": 1}}
    agents = [{**AGENT, "matrix": {"times": [1, 2]}}, other]
    case = {"input": "o", "assertions": [{"type": "equals", "value": "oo"}], "pass_rate": 0.01}
    cases = [{"id": "a", **case}, {"id": "b", **case, "tags": ["rare"], "agents": ["other"]}]
    gates = ["--gate", "[agent:bot] pass_rate >= 1", "--gate", "[rare, agent:bot] pass_rate >= 1"]
    ran = project.test(project.suite(agents, cases), *gates)
    found = [(one["gate"], one["agent"], one["outcome"]) for one in ran.summary["gates"]]
    assert found == [
        ("[agent:bot] pass_rate >= 1", "bot [times=1]", "failed"),
        ("[agent:bot] pass_rate >= 1", "bot [times=2]", "passed"),
        ("[rare, agent:bot] pass_rate >= 1", "bot [times=1]", "inconclusive"),
        ("[rare, agent:bot] pass_rate >= 1", "bot [times=2]", "inconclusive"),
    ]
