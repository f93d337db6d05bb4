"""Metrics that agents, checks and tests in Python give: kept with the trial, or blamed on whoever gave wrong ones."""

import asyncio
from typing import Any

import pytest
from tests.engine.support.desk import results
from tests.engine.support.project import Project

from atp.checks.run_check import run_check
from atp.plugins import Assertion, Evidence, passed
from atp.suite.case import Case
from atp.suite.result import Transcript

AGENT = """
def answer(prompt):
    return {"output": prompt, "metrics": {"confidence": 0.75, "chunks": 3}}

def bad(prompt):
    return {"output": prompt, "metrics": {"confidence": float("inf")}}

def reserved(prompt):
    return {"output": prompt, "metrics": {"tokens": 3}}

def pieces(prompt):
    yield "a"
    yield "b"
    yield {"metrics": {"chunks": 2}}
"""
CHECK = """
def measure(output):
    return {"pass": True, "metrics": {"length": len(output)}}

def wrong(output):
    return {"pass": True, "metrics": {"my length": len(output)}}
"""


def only_trial(project: Project, function: str, **case: Any) -> dict[str, Any]:
    project.write("bot.py", AGENT)
    project.write("scripts/checks.py", CHECK)
    project.cases({"id": "a", "input": "hello", **case})
    project.test("cases.jsonl", "-n", f"bot.py:{function}")
    (found,) = project.trials()
    return found


def test_metrics_of_a_function_and_of_a_check_are_kept_together(project: Project) -> None:
    found = only_trial(project, "answer", assertions=[{"type": "script", "script": "scripts:checks.measure"}])
    assert found["metrics"] == {"confidence": 0.75, "chunks": 3, "length": 5}
    assert found["transcript"]["metrics"] == {"confidence": 0.75, "chunks": 3}
    assert found["verdicts"][0]["metrics"] == {"length": 5}
    assert found.get("status", "passed") == "passed"


@pytest.mark.parametrize(("function", "why"), [("bad", "which is not JSON"), ("reserved", "ATP measures itself")])
def test_a_wrong_metric_is_the_agents_error(project: Project, function: str, why: str) -> None:
    found = only_trial(project, function)
    assert (found["status"], found["blame"]) == ("error", "agent")
    assert why in found["error"]


def test_a_wrong_metric_of_a_check_leaves_the_check_unjudged(project: Project) -> None:
    found = only_trial(project, "answer", assertions=[{"type": "script", "script": "scripts:checks.wrong"}])
    assert (found["status"], found["blame"]) == ("error", "judge")
    assert "the metric `my length` has no usable name" in found["error"]


def test_the_first_piece_of_an_answer_is_timed(project: Project) -> None:
    found = only_trial(project, "pieces")
    assert found["transcript"]["turns"][0]["output"] == "ab"
    assert found["metrics"].keys() == {"first_token_ms", "chunks"}
    assert 0 <= found["metrics"]["first_token_ms"] <= found["duration_ms"]


def test_a_test_in_python_gives_metrics_by_call_and_by_return(desk: Project) -> None:
    results(
        desk,
        """
        def TestGiven(t, ctx):
            t.metric("asked", 2)
            t.assert_.true(True)
            return {"metrics": {"found": 1.5}}

        def TestWrong(t, ctx):
            t.metric("asked", "twice")
        """,
    )
    given, wrong = sorted(desk.trials(), key=lambda one: str(one["case"]))
    assert given["metrics"] == {"asked": 2, "found": 1.5}
    assert not given.get("warnings")
    assert (wrong["status"], wrong["blame"]) == ("error", "environment")
    assert "the metric `asked` is 'twice', not a finite number" in wrong["error"]


def test_numbers_beyond_the_protocols_own_are_metrics(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import json, sys
        asked = json.load(sys.stdin)
        sent = {"total_tokens": 5, "recall": 0.5, "note": "fine", "bad name": 3, "score": 99}
        json.dump({"version": "1.0", "task_id": asked["task_id"], "status": "completed", "output": "x",
                   "metrics": sent}, sys.stdout)
        """,
    )
    agent = {"name": "bot", "type": "cli", "config": {"command": "python3", "args": ["agent.py"]}}
    project.test(project.suite([agent], [{"id": "a"}]))
    (found,) = project.trials()
    assert found["metrics"] == {"recall": 0.5}
    assert found["transcript"]["usage"] == {"total_tokens": 5}
    (log,) = found["transcript"]["logs"]
    assert all(name in log for name in ("note", "bad name", "score"))


def test_a_check_of_a_plugin_gives_metrics() -> None:
    class Measured(Assertion):
        value: Any = None

        def check(self, evidence: Evidence) -> Any:
            return passed(metrics={"found": self.value})

    evidence = Evidence(case=Case(id="a"), transcript=Transcript())
    good = asyncio.run(run_check(Measured(type="measured", value=3), evidence))
    assert (good.outcome, good.metrics) == ("passed", {"found": 3.0})
    bad = asyncio.run(run_check(Measured(type="measured", value="3"), evidence))
    assert (bad.outcome, bad.metrics) == ("unjudged", {})
    assert "metrics that can't be kept" in bad.message
