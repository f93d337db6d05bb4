"""`--runs auto`: as many runs as a decision needs, in parallel, after a stop, with variations and befores."""

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran

AGENT = """
    import asyncio
    import random

    fast = 0
    none_is_fast = asyncio.Condition()


    def passes(prompt, context):
        "Whether a run passes: the prompt begins with the pass rate, and decides which runs pass."
        return random.Random(f"{prompt} {context['run']}").random() < float(prompt.split()[0])


    def answer(prompt, context):
        with open("asked", "a") as file:
            print(f"{prompt.split()[1]}.{context['run']}", file=file)
        return {"output": "yes" if passes(prompt, context) else "no", "usage": {"cost_usd": 1.0}}


    async def uneven(prompt, context):
        "Runs that fail answer only when no run that passes is under way."
        global fast
        if passes(prompt, context):
            fast += 1
            await asyncio.sleep(0)
            fast -= 1
            async with none_is_fast:
                none_is_fast.notify_all()
            return "yes"
        async with none_is_fast:
            await none_is_fast.wait_for(lambda: not fast)
        return "no"
"""
GATE = ("--runs", "auto", "--pass-rate", "0.9", "--margin", "0.1")
RATES = ("0.5 half", "0.8 low", "0.9 high", "0.99 good")


def auto(project: Project, *flags: str, agent: str = "answer", inputs: tuple[str, ...] = RATES, **keys: Any) -> Ran:
    project.write("agent.py", AGENT)
    project.cases(*({"id": one.split()[1], "input": one, "expected": "yes", **keys} for one in inputs))
    return project.test("cases.jsonl", "-n", f"agent.py:{agent}", *GATE, *flags)


def decisions(project: Project) -> dict[str, tuple[Any, ...]]:
    """What the newest run's journal says of each case since the run last went on."""
    lines = project.journal()
    last = max(number for number, line in enumerate(lines) if line["type"] == "start")
    closed = [line for line in lines[last:] if line["type"] == "case"]
    keys = ("decision", "stopped_by", "runs", "estimate", "interval")
    return {line["case"]: tuple(line.get(key) for key in keys) for line in closed}


def test_runs_end_when_the_gate_is_decided(project: Project) -> None:
    ran = auto(project)
    half, good = ran.results["half"], ran.results["good"]
    assert (half["status"], good["status"]) == ("failed", "passed")
    assert (half["stopped_by"], good["stopped_by"]) == ("decided", "decided")
    assert 5 <= half["runs"] < 40
    assert 5 <= good["runs"] < 60
    assert len(project.lines("asked")) == sum(one["runs"] for one in ran.results.values())
    for one in ran.results.values():
        assert one["estimate_interval"][0] <= one["estimate"] <= one["estimate_interval"][1]
        assert one["pass_rate_interval"][0] <= one["pass_rate"] <= one["pass_rate_interval"][1]
        assert one["judged_runs"] == one["runs"]
    estimates = [one["estimate"] for one in ran.results.values()]
    assert ran.summary["overall_pass_rate"] == pytest.approx(sum(estimates) / 4, abs=0.1)  # not pooled over runs
    assert ran.summary["runs_per_case"] is None


def test_a_report_on_it_later_says_the_same(project: Project) -> None:
    auto(project, "-o", "now.json")
    assert project.atp("report", "last", "-o", "later.json").code == 0
    now, later = (json.loads((project.folder / name).read_text()) for name in ("now.json", "later.json"))
    assert (later["results"], later["summary"]) == (now["results"], now["summary"])


def test_slow_runs_that_fail_more_often_change_no_decision(project: Project) -> None:
    inputs = tuple(f"{rate} case{number}-{rate}" for rate in (0.5, 0.8, 0.9) for number in range(4))
    auto(project, agent="uneven", inputs=inputs)
    one_at_a_time = decisions(project)
    ran = auto(project, "--parallel", "7", agent="uneven", inputs=inputs)
    assert decisions(project) == one_at_a_time
    assert len(one_at_a_time) == 12
    assert all(one["surplus_runs"] == 0 for one in ran.results.values())  # no run more than one at a time takes


def test_max_runs_leaves_a_case_inconclusive(project: Project) -> None:
    ran = auto(project, "--max-runs", "20", inputs=("0.85 near",))
    near = ran.results["near"]
    assert (ran.code, near["status"]) == (4, "inconclusive")
    assert near["stopped_by"] in ("max-runs", "futility")
    assert "did not decide; a greater --max-runs or a wider margin would help" in near["error"]


def test_a_budget_stops_cases_and_resume_comes_to_the_same_decisions(project: Project) -> None:
    auto(project)
    whole = decisions(project)
    (project.folder / "asked").unlink()
    stopped = auto(project, "--budget-usd", "30", "--parallel", "3")
    assert stopped.summary["stopped"] == "the budget is used up: $31 of $30"
    undecided = [one for one in stopped.results.values() if one["status"] == "inconclusive"]
    assert undecided
    assert {one["stopped_by"] for one in undecided} == {"budget"}
    assert all("--resume goes on" in one["error"] for one in undecided)
    resumed = auto(project, "--resume", "--parallel", "3")
    assert decisions(project) == whole
    assert resumed.summary["stopped"] is None
    asked = project.lines("asked")
    assert len(asked) == len(set(asked)), "a run that was done ran again"


def test_a_case_whose_agent_was_busy_when_the_run_stopped_has_not_begun(project: Project) -> None:
    project.write("agent.py", AGENT)
    config = {"entry": "agent.py:answer", "parallel": 1}
    tests = [{"id": name, "input": f"0.9 {name}", "expected": "yes"} for name in ("first", "second")]
    suite = project.suite([{"name": "busy", "type": "custom", "config": config}], tests)
    ran = project.test(suite, *GATE, "--parallel", "4", "--budget-usd", "2")
    assert ran.code == 3
    assert ran.statuses == {"first": "inconclusive"}
    assert ran.summary["not_run"] == 1
    assert project.test(suite, *GATE, "--parallel", "4", "--resume").summary["stopped"] is None


def test_a_closed_case_is_not_decided_again(project: Project) -> None:
    auto(project, "--max-errors", "1000")
    before, asked = decisions(project), len(project.lines("asked"))
    (run,) = project.runs()
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    (run / "journal.jsonl").write_text("".join(line for line in lines if '"type":"summary"' not in line))
    resumed = auto(project, "--resume")
    assert decisions(project) == before
    assert len(project.lines("asked")) == asked
    assert len(resumed.results) == 4
    wider = auto(project, "--resume-from", run.name, "--margin", "0.3")  # something else is asked: decided anew
    assert wider.results["half"]["runs"] <= resumed.results["half"]["runs"]
    assert project.atp("report", run.name, "-o", "r.json").code == 0


def test_a_run_that_was_killed_is_undecided_until_it_goes_on(project: Project) -> None:
    auto(project)
    whole = decisions(project)
    (run,) = project.runs()
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if '"type":"case"' in line and '"low"' in line)
    (run / "journal.jsonl").write_text("".join(lines[: cut - 3]))
    assert project.atp("report", run.name, "-o", "r.json").code == 0
    found = {one["id"]: one for one in json.loads((project.folder / "r.json").read_text())["results"]}
    assert (found["half"]["status"], found["low"]["status"]) == ("failed", "inconclusive")
    assert found["low"]["stopped_by"] == "interrupted"
    auto(project, "--resume")
    assert decisions(project) == whole


def test_fail_fast_stops_at_the_first_case_that_failed(project: Project) -> None:
    ran = auto(project, "--fail-fast", inputs=("0.95 fine", "0.3 bad", "0.9 never"))
    assert ran.statuses == {"fine": "passed", "bad": "failed"}
    ran = auto(project, "--fail-fast", "--parallel", "3", inputs=("0.3 bad", "0.85 open"))
    assert ran.statuses["bad"] == "failed"
    assert ran.results.get("open", {"stopped_by": "fail-fast"})["stopped_by"] == "fail-fast"
    assert ran.code == 1


def test_variations_are_looked_at_in_whole_rounds(project: Project) -> None:
    project.write("agent.py", AGENT)
    text = """
        ---
        assessor: agents/x.md
        ---
        # Two ways
        **Prompts:**
        - 1.0 easy
        - 0.98 harder

        **Expectations:**
        - The answer contains "yes"
    """
    project.write("two.test.md", text.lstrip("\n"))
    project.write("agents/x.md", "You judge.")
    flags = ("two.test.md", "-n", "agent.py:answer", *GATE, "--parallel", "3")
    (found,) = project.test(*flags).results.values()
    assert (found["status"], found["stopped_by"]) == ("passed", "decided")
    by_variation = [sum(one["variation"] == number for one in found["run_details"]) for number in (0, 1)]
    assert by_variation[0] == by_variation[1] == found["runs"] // 2


def test_a_blocked_case_is_not_run_again_and_again(project: Project) -> None:
    text = """
        ---
        assessor: agents/x.md
        ---
        # First
        **Prompts:**
        - 0.0 first

        **Expectations:**
        - The answer contains "yes"

        # Second
        **Before:**
        - First

        **Prompts:**
        - 1.0 second

        **Expectations:**
        - The answer contains "yes"
    """
    project.write("agent.py", AGENT)
    project.write("b.test.md", text.lstrip("\n"))
    project.write("agents/x.md", "You judge.")
    ran = project.test("b.test.md", "-n", "agent.py:answer", *GATE)
    assert ran.statuses == {"first": "failed", "second": "blocked"}
    assert ran.results["second"]["runs"] <= 5
    assert ran.results["second"]["stopped_by"] is None


def test_errors_that_are_not_the_agents_count_against_either_decision(project: Project) -> None:
    project.cases({"id": "gone", "input": "hi"})
    gate = ("--runs", "auto", "--pass-rate", "0.5", "--margin", "0.1", "--confidence", "0.9")
    few = ("--min-runs", "1", "--max-runs", "40", "--retries", "0", "--parallel", "30")
    ran = project.test("cases.jsonl", "-n", "http://127.0.0.1:9/", *gate, *few)
    gone = ran.results["gone"]
    assert (ran.code, gone["status"], gone["stopped_by"]) == (3, "error", "errors")
    assert gone["runs"] > 5  # those that ran at the same time as the first five count, too
    assert len(gone["run_details"]) == gone["runs"] + gone["surplus_runs"]


def test_a_server_that_is_gone_is_asked_five_times_and_again_by_resume(project: Project) -> None:
    project.cases({"id": "gone", "input": "hi"}, {"id": "too", "input": "hi"})
    asked = ("cases.jsonl", "-n", "http://127.0.0.1:9/", *GATE, "--retries", "0", "--parallel", "1")
    for flags in ((), ("--resume-from", "last")):
        ran = project.test(*asked, *flags)
        assert ran.code == 3
        found = [ran.results[name] for name in ("gone", "too")]
        assert [(one["stopped_by"], one["runs"], one["surplus_runs"]) for one in found] == [("errors", 5, 0)] * 2


def test_settings_make_runs_auto_where_a_case_says_nothing(project: Project) -> None:
    project.write("atp.toml", 'runs = "auto"\npass_rate = 0.9\nmargin = 0.1\nmax_runs = 50\n')
    project.write("agent.py", AGENT)
    project.cases(
        {"id": "own", "input": "1.0 own", "expected": "yes", "runs": 3},
        {"id": "good", "input": "1.0 good", "expected": "yes"},
    )
    ran = project.test("cases.jsonl", "-n", "agent.py:answer")
    assert ran.results["own"]["runs"] == 3
    assert "stopped_by" not in ran.results["own"]
    assert ran.results["good"]["stopped_by"] == "decided"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--runs", "auto"), "error[gate-without-rate]: case `c`: `--runs auto` means nothing without a `pass_rate`"),
        (("--runs", "often"), "`--runs` must be a whole number"),
        ((*GATE, "--min-runs", "9", "--max-runs", "8"), "--min-runs 9 is more than --max-runs 8"),
        ((*GATE, "--max-runs", "9", "--dry-run"), "warning[too-few-runs]: case `c`: 9 runs can't show"),
    ],
)
def test_what_can_not_be_is_said_before_anything_runs(project: Project, flags: tuple[str, ...], message: str) -> None:
    project.write("agent.py", AGENT)
    project.cases({"id": "c", "input": "1.0 c", "expected": "yes"})
    assert message in project.test("cases.jsonl", "-n", "agent.py:answer", *flags).err


def test_a_dry_run_counts_the_most_that_there_may_be(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.cases({"id": "c", "input": "1.0 c", "expected": "yes"})
    ran = project.atp("test", "cases.jsonl", "-n", "agent.py:answer", *GATE, "--max-runs", "50", "--dry-run")
    assert "agent.py:answer × c  variation 1, 5 to 50 runs, 1 turn, 1 check" in ran.out
    assert "1 case, at most 50 trials, 50 calls of agents, 1 at a time" in ran.out


def test_pytest_decides_as_atp_does(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write("atp.toml", 'runs = "auto"\npass_rate = 0.9\nmargin = 0.1\n')
    agents = [{"name": "a", "type": "custom", "config": {"entry": "agent.py:answer"}}]
    tests = [{"id": one.split()[1], "input": one, "expected": "yes"} for one in ("0.5 half", "0.99 good")]
    suite = project.suite(agents, tests)
    project.test(suite)
    expected = decisions(project)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--atp", suite],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert decisions(project) == expected
