"""Cases with a `pass_rate` and a `confidence`: passed, failed or inconclusive, in every report, and the exit code."""

import json
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran

AGENT = """
def by_run(prompt, context):
    "Fails in the runs that the prompt names."
    return "no" if str(context["run"]) in prompt.split() else "yes"

"""
REPORTS = ("r.json", "r.md", "r.xml", "r.ctrf.json", "r.html", "r.csv")


def case(name: str, fails: range | list[int] = range(0), **more: Any) -> dict[str, Any]:
    return {"id": name, "input": " ".join(map(str, fails)) or "-", "expected": "yes", **more}


def gated(project: Project, *cases: dict[str, Any], flags: tuple[str, ...] = ()) -> Ran:
    project.write("agent.py", AGENT)
    project.cases(*cases)
    return project.test("cases.jsonl", "-n", "agent.py:by_run", *flags)


def test_a_confidence_for_cases_without_a_rate_is_an_error(project: Project) -> None:
    ran = gated(project, case("c"), flags=("--confidence", "0.95"))
    assert ran.code == 2
    assert "error[gate-without-rate]: `--confidence` means nothing without a `pass_rate`" in ran.err


def test_the_three_outcomes(project: Project) -> None:
    asked: dict[str, Any] = {"pass_rate": 0.9, "confidence": 0.95, "runs": 30}
    cases = [case("good", **asked), case("bad", range(1, 10), **asked), case("unsure", [1, 2], **asked)]
    ran = gated(project, *cases)
    assert ran.statuses == {"good": "passed", "bad": "failed", "unsure": "inconclusive"}
    assert ran.code == 1
    assert (ran.summary["inconclusive"], ran.summary["total"], ran.summary["failed"]) == (1, 3, 1)
    unsure = ran.results["unsure"]
    assert (unsure["judged_runs"], unsure["pass_rate_interval"]) == (30, [78.7, 98.2])
    assert unsure["error"].startswith("passed 28 of 30; between 79% and 98% in the long run; about ")


@pytest.mark.parametrize(
    ("cases", "code"),
    [
        ([case("unsure", runs=5), case("good", runs=30)], 4),
        ([case("unsure", runs=5), case("bad", range(1, 30), runs=30)], 1),
        ([case("unsure", runs=5), case("easy", runs=5, pass_rate=0.5)], 4),
    ],
)
def test_an_inconclusive_case_is_exit_code_4_unless_something_is_worse(
    project: Project, cases: list[dict[str, Any]], code: int
) -> None:
    asked = [{"pass_rate": 0.9, "confidence": 0.95, **one} for one in cases]
    assert gated(project, *asked).code == code


def test_an_error_that_is_not_the_agents_goes_before_inconclusive(project: Project) -> None:
    asked: dict[str, Any] = {"pass_rate": 0.9, "confidence": 0.95, "runs": 3}
    project.cases(case("broken", **asked))
    ran = project.test("cases.jsonl", "-n", "http://127.0.0.1:9/", "--retries", "0")
    assert (ran.code, ran.statuses) == (3, {"broken": "error"})  # nothing was judged, so nothing is inconclusive


def test_without_a_confidence_the_observed_share_decides(project: Project) -> None:
    ran = gated(project, case("c", [1], pass_rate=0.8, runs=5))
    assert (ran.code, ran.statuses) == (0, {"c": "passed"})


def test_flags_go_before_cases_and_cases_before_settings(project: Project) -> None:
    project.write("atp.toml", "pass_rate = 0.5\nconfidence = 0.95\n")
    assert gated(project, case("c", runs=5)).code == 0
    assert gated(project, case("c", runs=5, pass_rate=0.9)).code == 4
    assert gated(project, case("c", runs=5, pass_rate=0.9), flags=("--pass-rate", "0.5")).code == 0
    assert gated(project, case("c", runs=5, pass_rate=0.9), flags=("--margin", "0.4")).code == 0


def test_every_report_knows_an_inconclusive_case(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.cases(case("c", [3], pass_rate=0.75, confidence=0.95, runs=10))
    outputs = [word for name in REPORTS for word in ("-o", name)]
    ran = project.atp("test", "cases.jsonl", "-n", "agent.py:by_run", *outputs)
    told = "passed 9 of 10; between 60% and 98% in the long run; about 19 more runs would tell"
    assert ran.code == 4
    assert "? [c] (inconclusive, " in ran.out
    assert f"  Rate: {told}\n" in ran.out
    assert "  Inconclusive: 1\n" in ran.out
    text = {name: (project.folder / name).read_text() for name in REPORTS}
    report = json.loads(text["r.json"])
    assert (report["summary"]["inconclusive"], report["results"][0]["error"]) == (1, told)
    assert f'<failure message="{told}" type="inconclusive">' in text["r.xml"]
    assert 'failures="1" errors="0"' in text["r.xml"]
    assert f"- Rate: {told}" in text["r.md"]
    assert "### ⚠️ c - Inconclusive" in text["r.md"]
    test = json.loads(text["r.ctrf.json"])["results"]["tests"][0]
    assert (test["status"], test["rawStatus"], test["message"]) == ("other", "inconclusive", told)
    assert "1 of 1 case inconclusive" in text["r.html"]
    assert "inconclusive" not in text["r.csv"]  # a row is a trial
    assert project.atp("report", "last", "-o", "later.json").code == 0
    assert json.loads((project.folder / "later.json").read_text())["results"] == report["results"]
    assert project.atp("test", "cases.jsonl", "-n", "agent.py:by_run", "--only-failed", "-q").code == 4


def test_github_annotates_an_inconclusive_case(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.folder / "summary.md"))
    project.write("agent.py", AGENT)
    project.cases(case("c", [3], pass_rate=0.75, confidence=0.95, runs=10))
    ran = project.atp("test", "cases.jsonl", "-n", "agent.py:by_run")
    why = "passed 9 of 10; between 60%25 and 98%25 in the long run; about "
    assert f"::error file=cases.jsonl,line=1,col=1,title=[c]::{why}" in ran.out
    assert "| Inconclusive | 1 " in (project.folder / "summary.md").read_text()


def test_a_case_that_a_stop_cut_short_can_not_pass(project: Project) -> None:
    project.write("agent.py", 'def dear(prompt):\n    return {"output": "yes", "usage": {"cost_usd": 1.0}}\n')
    project.cases(case("c", pass_rate=0.5, confidence=0.9, runs=20))
    ran = project.atp("test", "cases.jsonl", "-n", "agent.py:dear", "--budget-usd", "15", "--json")
    assert (ran.code, ran.statuses) == (3, {"c": "inconclusive"})
    ran = project.atp("test", "cases.jsonl", "-n", "agent.py:dear", "--resume", "--json")
    assert (ran.code, ran.statuses) == (0, {"c": "passed"})


def test_fail_fast_waits_for_the_decision(project: Project) -> None:
    asked: dict[str, Any] = {"pass_rate": 0.5, "confidence": 0.9, "runs": 20}
    cases = [case("good", [1, 2], **asked), case("bad", range(1, 20), **asked), case("never", **asked)]
    ran = gated(project, *cases, flags=("--fail-fast",))
    assert (ran.code, ran.statuses) == (1, {"good": "passed", "bad": "failed"})
    assert ran.summary["stopped"] == "first failure: bad"


def test_a_low_score_fails_a_case_whose_gate_is_passed(project: Project) -> None:
    asked: dict[str, Any] = {"pass_rate": 0.5, "confidence": 0.9, "runs": 20, "min_score": 99}
    ran = gated(project, case("c", [1, 2], **asked))
    assert ran.statuses == {"c": "failed"}
    assert "99" in ran.results["c"]["error"]


def test_too_few_runs_are_a_warning_that_names_the_number(project: Project) -> None:
    ran = gated(project, case("c", pass_rate=0.9, confidence=0.95, runs=28), flags=("--dry-run",))
    assert "warning[too-few-runs]: case `c`: 28 runs can't show a pass rate of 0.9, even if all pass" in ran.err
    assert "it takes 29 at least: give --runs 29, --runs auto, or a `margin`" in ran.err
    ran = gated(project, case("c", pass_rate=0.9, confidence=0.95, runs=29), flags=("--dry-run",))
    assert "too-few-runs" not in ran.err


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"pass_rate": 1, "confidence": 0.95}, "impossible-gate"),
        ({"pass_rate": 0.5, "margin": 0.5}, "impossible-gate"),
        ({"confidence": 0.95}, "gate-without-rate"),
        ({"margin": 0.1}, "gate-without-rate"),
        ({"pass_rate": 0.9, "confidence": 1}, "out-of-range"),
        ({"pass_rate": 0.9, "confidence": 0}, "out-of-range"),
        ({"pass_rate": 0.9, "margin": -0.1}, "out-of-range"),
    ],
)
def test_a_gate_that_can_not_be_decided_is_a_load_error(project: Project, given: dict[str, Any], code: str) -> None:
    ran = gated(project, case("c", **given))
    assert ran.code == 2
    assert f"error[{code}]" in ran.err
    assert "--> cases.jsonl:1:" in ran.err
    agents = [{"name": "a", "type": "custom", "config": {"entry": "agent.py:by_run"}}]
    suite = project.suite(agents, [{"id": "c", "input": "hi"}], defaults=given)
    assert f"error[{code}]" in project.atp("validate", suite).out
    front = "".join(f"{key}: {value}\n" for key, value in given.items())
    text = (
        f"---\ntarget: agents/x.md\nassessor: agents/x.md\n{front}---\n# C\n**Prompts:**\n- hi\n\n**Expectations:**\n"
    )
    project.write("c.test.md", f"{text}- says hi\n")
    assert f"error[{code}]" in project.atp("validate", "c.test.md").out


def test_a_margin_without_a_confidence_is_an_error_where_the_runs_are_fixed(project: Project) -> None:
    asked = case("c", runs=30, pass_rate=0.9, margin=0.1)
    message = "error[margin-without-confidence]: case `c`: `margin` 0.1 means nothing without a `confidence`"
    ran = gated(project, asked)
    assert ran.code == 2
    assert message in ran.err
    assert "--> cases.jsonl:1:" in ran.err
    assert message in project.atp("validate", "cases.jsonl").out
    ran = gated(project, case("c", runs=30, pass_rate=0.9), flags=("--margin", "0.1"))
    assert (ran.code, message in ran.err) == (2, True)
    assert gated(project, {**asked, "margin": 0}).code == 0
    assert gated(project, asked, flags=("--confidence", "0.95")).code == 0
    assert gated(project, case("c", pass_rate=0.9, margin=0.1), flags=("--runs", "auto")).code == 0
    assert project.atp("recheck", "last").code == 0  # the runs were not fixed
    project.cases(case("c"))
    assert project.atp("recheck", "last").code == 0  # nor is a rate needed for runs that are there
    project.write("atp.toml", "confidence = 0.95\n")
    assert gated(project, asked).code == 0


def test_gates_in_all_dialects(project: Project) -> None:
    project.write("agent.py", AGENT)
    agents = [{"name": "a", "type": "custom", "config": {"entry": "agent.py:by_run"}}]
    tests: list[dict[str, Any]] = [
        {"id": "yaml", "input": "-", "expected": "yes"},
        {"id": "own", "input": "-", "margin": 0.4},
    ]
    defaults = {"pass_rate": 0.9, "confidence": 0.95, "runs_per_test": 6}
    suite = project.suite(agents, tests, defaults=defaults)
    assert project.atp("test", suite, "--json").statuses == {"yaml": "inconclusive", "own": "passed"}
    text = """
        ---
        assessor: agents/x.md
        pass_rate: 0.9
        confidence: 0.95
        runs: 6
        ---
        # Front
        **Prompts:**
        - hi

        **Expectations:**
        - The answer contains "yes"

        # Own
        **Margin:** 0.4

        **Prompts:**
        - hi

        **Expectations:**
        - The answer contains "yes"
    """
    project.write("m.test.md", text.lstrip("\n"))
    project.write("agents/x.md", "You judge.")
    ran = project.atp("test", "m.test.md", "-n", "agent.py:by_run", "--json")
    assert ran.statuses == {"front": "inconclusive", "own": "passed"}


def test_more_runs_of_what_was_looked_at_are_decided_by_the_sequential_test(project: Project) -> None:
    asked: dict[str, Any] = {"pass_rate": 0.9, "confidence": 0.95}
    assert gated(project, case("c", **asked), flags=("--runs", "29")).statuses == {"c": "passed"}
    assert gated(project, case("c", **asked), flags=("--runs", "20")).statuses == {"c": "inconclusive"}
    for _ in range(2):  # nor does it help to go on once more with the same number
        more = gated(project, case("c", **asked), flags=("--runs", "29", "--resume"))
        assert (more.code, more.statuses) == (4, {"c": "inconclusive"})
    assert project.atp("report", "last", "-o", "later.json").code == 0
    assert json.loads((project.folder / "later.json").read_text())["results"][0]["status"] == "inconclusive"
    enough = gated(project, case("c", **asked), flags=("--runs", "60", "--resume"))
    assert (enough.code, enough.statuses) == (0, {"c": "passed"})
    assert enough.results["c"]["runs"] == 60


def test_a_stop_and_the_same_number_of_runs_leave_the_exact_test(project: Project) -> None:
    project.write("agent.py", 'def dear(prompt):\n    return {"output": "yes", "usage": {"cost_usd": 1.0}}\n')
    project.cases(case("c", pass_rate=0.9, confidence=0.95, runs=29))
    flags = ("cases.jsonl", "-n", "agent.py:dear")
    assert project.test(*flags, "--budget-usd", "15").statuses == {"c": "inconclusive"}
    assert project.test(*flags, "--resume").statuses == {"c": "passed"}


def test_adaptive_runs_after_a_fixed_number_and_the_other_way_round(project: Project) -> None:
    asked: dict[str, Any] = {"pass_rate": 0.9, "confidence": 0.95}
    gated(project, case("c", **asked), flags=("--runs", "20"))
    auto = gated(project, case("c", **asked), flags=("--runs", "auto", "--resume"))
    assert (auto.statuses, auto.results["c"]["stopped_by"]) == ({"c": "passed"}, "decided")
    assert auto.results["c"]["runs"] > 29
    run = project.runs()[-1].name
    fixed = gated(project, case("c", **asked), flags=("--runs", "29", "--resume-from", run))
    assert fixed.statuses == {"c": "inconclusive"}  # the first 29 of runs that were looked at one by one
