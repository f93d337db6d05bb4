"""`atp compare` and `atp test --baseline`: real regressions are found, null differences are not."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran
from tests.report.support.page import Read

from atp.base.secrets import Secrets, hider
from atp.history import baselines
from atp.history.figures import run_figures
from atp.journal.find import find_run

AGENT = """
    import hashlib
    import os

    VERSION = os.environ.get("VERSION", "1")
    BROKEN = int(os.environ.get("BROKEN", "0"))

    def answer(prompt, context):
        \"\"\"Answers 9 of 10 times rightly, by a chance that is the same each time.\"\"\"
        number = int(prompt)
        if number < BROKEN:
            return "I can't help with <b>number</b> " + prompt
        key = f"{VERSION} {prompt} {context['run']}"
        right = number < 5 or hashlib.sha256(key.encode()).digest()[0] < 230
        return f"The answer is {number}" if right else "The answer is unknown"

    def sure(prompt):
        return f"The answer is {'unknown' if int(prompt) < BROKEN else prompt}"

    def rarely(prompt, context):
        return f"The answer is {'unknown' if int(prompt) < BROKEN and context['run'] > 2 else prompt}"
"""
CASES = 30


@pytest.fixture(autouse=True)
def cases(project: Project) -> None:
    """30 cases, in a project."""
    project.write("agent.py", AGENT)
    project.write("atp.toml", "")
    project.cases(*map(case, range(CASES)))


def case(number: int) -> dict[str, Any]:
    wanted = {"type": "regex", "value": f"is {number}$"}
    return {"id": f"case-{number}", "input": str(number), "assert": wanted}


def run(project: Project, *flags: str, agent: str = "answer", runs: int = 5, **env: str) -> Ran:
    given = ("cases.jsonl", "-n", f"agent.py:{agent}", "--runs", str(runs), "-q", "-o", "out.json", *flags)
    return project.atp("test", *given, env=env)


def compare(project: Project, *arguments: str) -> tuple[Ran, dict[str, Any]]:
    ran = project.atp("compare", *arguments, "--json")
    assert "Traceback" not in ran.err, ran.err
    return ran, json.loads(ran.out) if ran.out else {}


def by_class(found: dict[str, Any], kind: str) -> list[str]:
    return [one["id"] for one in found["cases"] if one["class"] == kind]


def test_a_real_regression_is_found_case_by_case(project: Project) -> None:
    run(project)
    run(project, VERSION="2", BROKEN="4")
    ran, found = compare(project, "last~1", "last", "--fail-on-regression")
    assert ran.code == 1
    assert by_class(found, "regressed") == [f"case-{number}" for number in range(4)]
    assert (found["regressed"], found["improved"]) == (4, 0)
    first = found["cases"][0]
    assert first.keys() >= {"id", "agent", "class", "observed", "difference", "p_value"}
    assert (first["agent"], first["observed"], first["difference"]) == ("agent.py:answer", "worse", -100)
    overall = found["overall"]
    assert overall.keys() >= {"class", "observed", "difference", "interval", "p_value"}
    assert overall["interval"][0] < overall["difference"] < overall["interval"][1]
    shown = project.atp("compare", "last~1", "last")
    assert shown.code == 0
    assert shown.out.startswith("  4 cases got worse: case-0, case-1, case-2, case-3. In the long run, ")
    assert "    case-0  5/5 → 0/5  -100 points  p = 0.0079" in shown.out


def test_a_small_regression_of_every_case_is_found_overall(project: Project) -> None:
    """No single case is sure, but all together are; with single runs, too."""
    run(project, agent="sure", runs=1)
    run(project, agent="sure", runs=1, BROKEN="8")
    ran, found = compare(project, "last~1", "last", "--fail-on-regression")
    assert (ran.code, found["overall"]["class"], found["regressed"]) == (1, "regressed", 0)
    assert found["overall"]["p_value"] == pytest.approx(2 / 2**8)  # McNemar's exact test
    assert {one["class"] for one in found["cases"]} == {"inconclusive", "same"}


def test_a_null_difference_is_not_a_regression(project: Project) -> None:
    run(project)
    run(project, VERSION="2")
    ran, found = compare(project, "last~1", "last", "--fail-on-regression")
    assert (ran.code, found["overall"]["class"], found["regressed"], found["improved"]) == (0, "inconclusive", 0, 0)
    assert by_class(found, "inconclusive") != []
    ran, found = compare(project, "last", "last", "--fail-on-regression", "--fail-on", "observed")
    assert (ran.code, found["overall"]["class"], found["overall"]["observed"]) == (0, "same", "equal")


def test_a_margin_must_be_shown(project: Project) -> None:
    run(project)
    run(project, VERSION="2")
    ran, found = compare(project, "last~1", "last", "--fail-on-regression", "--margin", "0.3")
    assert (ran.code, found["overall"]["class"], found["overall"]["non_inferior"]) == (0, "same", True)
    ran, found = compare(project, "last~1", "last", "--fail-on-regression", "--margin", "0.01")
    assert (ran.code, found["overall"]["non_inferior"], found["margin"]) == (4, False, 1)
    assert (
        "It is not shown that B is less than 1 point worse than A."
        in project.atp("compare", "last~1", "last", "--margin", "0.01").out
    )


def test_a_baseline_is_committed_cloned_and_compared_with(project: Project, tmp_path: Path) -> None:
    def git(*words: str, cwd: Path) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *words], cwd=cwd, check=True, capture_output=True)

    project.write(".gitignore", ".atp/\nout.json\n__pycache__/\n")
    run(project)
    project.atp("baseline", "save", "main")
    git("init", "-q", cwd=project.folder)
    git("add", "-A", cwd=project.folder)
    git("commit", "-qm", "tests", cwd=project.folder)
    clone = tmp_path / "elsewhere" / "clone"
    git("clone", "-q", str(project.folder), str(clone), cwd=project.folder)
    other = Project(clone)
    assert not (clone / ".atp").exists()
    good = run(other, "--baseline", "main", "--fail-on-regression", VERSION="1")
    assert good.code == 1  # some runs fail, as before
    assert "B passes as often as A: the 30 cases that both ran came to the same." in good.out
    bad = run(other, "--baseline", "main", "--fail-on-regression", "-o", "out.md", VERSION="1", BROKEN="4")
    assert "4 cases got worse: " in bad.out
    assert "### Got worse (4)" in (clone / "out.md").read_text("utf-8")
    assert json.loads((clone / "out.json").read_text("utf-8"))["comparison"]["regressed"] == 4
    for name in ("main", "baselines/main.json.gz"):
        ran, found = compare(other, name, "last", "--fail-on-regression")
        assert (ran.code, found["regressed"], found["a"]["name"]) == (1, 4, name)


def test_a_run_fails_by_its_comparison_alone(project: Project) -> None:
    """Cases that pass 2 of 10 times, which their `pass_rate` allows, passed always before."""
    project.cases(*({**case(number), "pass_rate": 0.1} for number in range(CASES)))
    assert run(project, agent="rarely", runs=10).code == 0
    project.atp("baseline", "save", "main")
    assert run(project, "--baseline", "main", agent="rarely", runs=10, BROKEN="2").code == 0
    failed = run(project, "--baseline", "main", "--fail-on-regression", agent="rarely", runs=10, BROKEN="2")
    assert failed.code == 1
    assert json.loads((project.folder / "out.json").read_text("utf-8"))["summary"]["exit_code"] == 1
    few = run(project, "--baseline", "main", "--fail-on-regression", agent="rarely", runs=3, BROKEN="2")
    assert few.code == 0
    assert "no single case can be called worse" in few.out
    observed = run(project, "--baseline", "main", "--fail-on", "observed", agent="rarely", runs=3, BROKEN="2")
    assert observed.code == 1


def test_a_baseline_with_a_margin_asks_for_more_than_no_regression(project: Project) -> None:
    project.cases(*({**case(number), "pass_rate": 0.1} for number in range(CASES)))
    run(project, agent="rarely", runs=3)
    project.atp("baseline", "save", "main")
    flags = ("--baseline", "main", "--fail-on-regression", "--baseline-margin")
    wide = run(project, *flags, "0.9", agent="rarely", runs=3)
    assert wide.code == 0
    narrow = run(project, *flags, "0.001", agent="rarely", runs=3)
    assert narrow.code == 4
    assert run(project, *flags, "1.5").code == 2
    alone = run(project, "--baseline-margin", "0.1")
    assert (alone.code, "--baseline-margin is given without a baseline" in alone.err) == (2, True)


def test_a_later_report_repeats_the_comparison_with_the_baseline(project: Project) -> None:
    run(project)
    project.atp("baseline", "save", "main")
    run(project, "--baseline", "main", VERSION="1", BROKEN="4")
    (project.folder / "baselines/main.json.gz").unlink()  # the journal has all that it takes
    again = project.atp("report", "last", "-o", "later.md", "-o", "later.html", "-o", "later.json")
    assert again.code == 0
    assert "### Got worse (4)" in (project.folder / "later.md").read_text("utf-8")
    assert json.loads((project.folder / "later.json").read_text("utf-8"))["comparison"]["regressed"] == 4
    assert "4 cases got worse: " in json.dumps(Read(project.folder / "later.html").run)
    assert "4 cases got worse: " in project.atp("report", "last").out


def test_a_missing_baseline_is_found_before_anything_runs(project: Project) -> None:
    ran = run(project, "--baseline", "main")
    assert (ran.code, "there is no baseline `main`" in ran.err) == (2, True)
    ran = run(project, "--fail-on-regression")
    assert (ran.code, "--fail-on-regression is given without a baseline" in ran.err) == (2, True)
    assert not (project.folder / ".atp/runs").exists()


def test_two_agents_of_one_run(project: Project) -> None:
    both = ("test", "cases.jsonl", "-n", "agent.py:answer", "-n", "agent.py:sure", "--runs", "5", "-q", "-o", "o.json")
    project.atp(*both, env={"BROKEN": "0"})
    ran, found = compare(project, "last", "--agents", "agent.py:answer", "agent.py:sure", "--fail-on-regression")
    assert (ran.code, found["overall"]["observed"], found["overall"]["cases"]) == (0, "better", CASES)
    assert (found["a"]["agent"], found["b"]["agent"]) == ("agent.py:answer", "agent.py:sure")
    assert {one["name"] for one in found["figures"]} >= {"duration_ms", "score"}
    ran = project.atp("compare", "last", "--agents", "agent.py:answer", "agent.py:sur")
    assert (ran.code, "did you mean `agent.py:sure`?" in ran.err) == (2, True)
    # Compared with itself, each case is paired twice: once for each agent.
    assert compare(project, "last", "last")[1]["overall"]["cases"] == 2 * CASES


def test_runs_of_one_agent_each_are_compared_with_a_note(project: Project) -> None:
    run(project)
    run(project, agent="sure")
    _, found = compare(project, "last~1", "last")
    assert found["overall"]["cases"] == CASES
    assert "each run has one agent, so agent.py:answer is compared with agent.py:sure" in found["notes"]


def test_changed_and_missing_cases_are_not_compared(project: Project) -> None:
    run(project, agent="sure", runs=1)
    changed = {**case(1), "assert": {"type": "contains", "value": "answer"}}
    project.cases(case(0), changed, case(CASES))
    run(project, agent="sure", runs=1)
    ran, found = compare(project, "last~1", "last", "--fail-on-regression")
    assert (ran.code, found["overall"]["cases"]) == (0, 1)
    assert by_class(found, "changed") == ["case-1"]
    assert by_class(found, "only in B") == [f"case-{CASES}"]
    assert len(by_class(found, "only in A")) == CASES - 2
    shown = project.atp("compare", "last~1", "last").out
    assert "  Not compared: changed since A (1):\n    case-1  1/1 → 1/1  the case changed\n" in shown
    project.cases(changed)
    run(project, agent="sure", runs=1)
    ran, found = compare(project, "last~2", "last")
    assert (ran.code, found["overall"]["cases"], found["overall"]["p_value"]) == (2, 0, None)
    assert project.atp("compare", "last~2", "last").out.startswith("  Nothing could be compared: ")


def test_cases_in_another_file_are_paired_by_their_id(project: Project) -> None:
    run(project, agent="sure", runs=1)
    shutil.move(project.folder / "cases.jsonl", project.folder / "moved.jsonl")
    project.atp("test", "moved.jsonl", "-n", "agent.py:sure", "-q", "-o", "out.json")
    _, found = compare(project, "last~1", "last")
    assert found["overall"]["cases"] == CASES
    assert found["notes"] == [f"{CASES} cases in another file than before"]


def test_cases_in_error_are_listed_and_are_exit_code_3(project: Project) -> None:
    run(project, agent="sure")
    figures = run_figures(find_run(project.folder, "last"), hider(Secrets()))
    figures.cases[3].errors = 2
    baselines.save(project.folder, "shaky", figures)
    ran, found = compare(project, "shaky", "last", "--fail-on-regression")
    assert (ran.code, found["cases"][3]["a"]["errors"]) == (3, 2)
    assert "  Runs without a verdict (1):\n    case-3  2 runs in A\n" in project.atp("compare", "shaky", "last").out
    again = run(project, "--baseline", "shaky", "--fail-on-regression", agent="sure")
    assert again.code == 3


def test_a_run_that_reached_nothing_can_not_be_compared(project: Project) -> None:
    run(project, agent="sure", runs=1)
    project.atp("baseline", "save", "main")
    server = ("cases.jsonl", "-n", "http://127.0.0.1:9", "--retries", "0", "-q", "-o", "out.json")
    ran = project.atp("test", *server, "--baseline", "main", "--fail-on-regression")
    assert ran.code == 3  # the run's own: nothing was reached
    assert "Nothing could be compared: " in ran.out
    ran, found = compare(project, "main", "last", "--fail-on-regression")
    assert (ran.code, {one["class"] for one in found["cases"]}) == (2, {"inconclusive"})
    assert found["cases"][0]["observed"] is None


def test_deterministic_agents_fail_on_what_was_observed(project: Project) -> None:
    run(project, agent="sure", runs=1)
    run(project, agent="sure", runs=1, BROKEN="1")
    ran, found = compare(project, "last~1", "last", "--fail-on-regression")
    assert (ran.code, found["overall"]["class"], found["overall"]["observed"]) == (0, "inconclusive", "worse")
    ran, found = compare(project, "last~1", "last", "--fail-on", "observed")
    assert ran.code == 1
    ran, found = compare(project, "last", "last~1", "--fail-on", "observed")
    assert ran.code == 0


def test_the_page_shows_answers_side_by_side_and_escaped(project: Project) -> None:
    run(project)
    project.atp("baseline", "save", "main", "--with-answers")
    run(project, VERSION="2", BROKEN="1")
    done = project.atp("compare", "main", "last", "-o", "c.html", "-o", "c.md", "-o", "c.json")
    assert done.code == 0
    assert "Report: c.html" in done.out
    page = (project.folder / "c.html").read_text("utf-8")
    assert "I can&#39;t help with &lt;b&gt;number&lt;/b&gt; 0" in page
    assert "<del>" in page
    assert "<b>number" not in page
    assert "<script" not in page
    assert json.loads((project.folder / "c.json").read_text("utf-8"))["regressed"] == 1
    assert "| `case-0` | 5/5 | 0/5 | -100   | p = 0.0079 |" in (project.folder / "c.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["last"], "Give two runs"),
        (["last", "nothing"], "there is no such run"),
        (["last", "last", "--margin", "5"], "error[bad-margin]"),
        (["last", "last", "-o", "x.pdf"], "error[unknown-report-format]"),
        (["last", "last", "-o", "nowhere/x.md"], "error[unwritable-report]"),
        (["last", "last", "-o", "tests.json"], "it is a test file of A or B"),
        (["last", "last", "--fail-on", "nothing"], "--fail-on"),
    ],
)
def test_what_can_not_be_done_is_exit_code_2(project: Project, arguments: list[str], why: str) -> None:
    (project.folder / "tests.json").write_text(json.dumps([case(0)]))
    project.atp("test", "tests.json", "-n", "agent.py:sure", "-q", "-o", "out.json")
    ran = project.atp("compare", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert "Traceback" not in ran.err


def test_a_case_in_quarantine_does_not_fail_the_comparison(project: Project) -> None:
    run(project, agent="sure")
    project.atp("baseline", "save", "main")
    worse = ("--baseline", "main", "--fail-on-regression")
    project.write("quarantine.yaml", [{"case": "case-0", "owner": "ada", "reason": "known", "expires": "2999-01-01"}])
    ran = run(project, *worse, agent="sure", BROKEN="1")
    assert ran.code == 0, ran.out
    assert "  Not compared: 1 case in quarantine.\n" in ran.out
    assert "    case-0  5/5 → 0/5  it is in quarantine\n" in ran.out
    found = json.loads((project.folder / "out.json").read_text("utf-8"))["comparison"]
    assert (found["overall"]["cases"], found["regressed"]) == (CASES - 1, 0)
    assert by_class(found, "quarantined") == ["case-0"]
    assert run(project, *worse, agent="sure", BROKEN="2").code == 1  # the other one is not excused
    (project.folder / "quarantine.yaml").unlink()
    assert run(project, *worse, agent="sure", BROKEN="1").code == 1
