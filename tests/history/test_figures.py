"""The figures of a run: which runs count, what they come to, and the same from a journal and while the run runs."""

import os
from pathlib import Path
from typing import Any

import pytest

from atp.history.figures import CaseFigures, Figure, case_figures, project_path
from atp.journal.records import RunInfo
from atp.suite.result import CaseResult, Event, Transcript, TrialResult, Turn, Usage


def trial(status: Any = "passed", **given: Any) -> TrialResult:
    return TrialResult(**{"key": "k", "agent": "a", "case": "c", "status": status, **given})


def figures(*trials: TrialResult, answers: bool = False, **given: Any) -> CaseFigures:
    return case_figures(CaseResult(agent="a", case="c", trials=list(trials), **given), "c.jsonl", answers=answers)


def test_only_runs_that_say_something_of_the_agent_are_judged() -> None:
    found = figures(
        *(trial(), trial("failed"), trial("timeout"), trial("error", blame="agent")),
        *(trial("error", blame="judge"), trial("error", blame="environment"), trial("cancelled"), trial("blocked")),
        planned=10,
    )
    assert (found.passed, found.judged, found.errors, found.missing) == (1, 4, 2, 4)
    assert found.rate == 0.25
    assert found.in_error


def test_a_rate_is_the_mean_over_variations() -> None:
    first = [trial(variation=0), trial(variation=0), trial(variation=0), trial("failed", variation=0)]
    assert figures(*first, trial("failed", variation=1)).rate == 0.375  # the mean of 3/4 and 0/1, not 3/5


def test_runs_whose_number_depends_on_their_results_are_marked() -> None:
    assert [figures(trial(), **given).sequential for given in ({}, {"min_runs": 5}, {"other_runs": True})] == (
        [False, True, True]
    )


def test_a_case_without_a_judged_run_has_no_rate() -> None:
    found = figures(trial("error", blame="environment"))
    assert (found.rate, found.judged, found.figures) == (None, 0, {})


def test_runs_below_the_score_that_their_case_missed_did_not_pass() -> None:
    found = figures(trial(score=90.0), trial(score=20.0), status="failed", min_score=80.0)
    assert (found.passed, found.judged) == (1, 2)


def test_digests_are_those_of_runs_that_were_begun() -> None:
    found = figures(trial("cancelled", case_digest="1"), trial(case_digest="1", judge_digest="2", simulator_digest="3"))
    assert (found.case_digest, found.judge_digest, found.simulator_digest) == ("1", "2", "3")


def test_figures_are_medians_over_judged_runs() -> None:
    def spent(tokens: int, usd: float) -> Transcript:
        return Transcript(usage=Usage(total_tokens=tokens, cost_usd=usd))

    found = figures(
        trial(duration_ms=10, transcript=spent(100, 0.5), score=100.0),
        trial("failed", duration_ms=40, transcript=spent(300, 0.1), score=0.0),
        trial(duration_ms=20, score=50.0),
        trial("error", blame="environment", duration_ms=90_000),
    )
    assert found.figures == {
        "duration_ms": Figure(median=20.0, runs=3),
        "tokens": Figure(median=200.0, runs=2),
        "cost_usd": Figure(median=0.3, runs=2),
        "score": Figure(median=50.0, runs=3),
    }


def test_a_figure_that_is_no_number_is_left_out() -> None:
    told = Transcript(events=[Event(type="llm_request", payload={"cost_usd": float("inf"), "input_tokens": 5})])
    assert figures(trial(transcript=told)).figures.keys() == {"duration_ms", "tokens", "tool_calls"}


def test_answers_are_kept_if_asked_for() -> None:
    def said(*outputs: str) -> Transcript:
        return Transcript(turns=[Turn(turn=number, input="", output=one) for number, one in enumerate(outputs, 1)])

    trials = [
        trial(transcript=said("one", "two")),
        trial("failed", error="no", transcript=said("three"), run=2),
        trial(transcript=said("four"), run=3),
    ]
    assert figures(*trials).answers == {}
    kept = figures(*trials, answers=True).answers
    assert {name: (one.outputs, one.error, one.run) for name, one in kept.items()} == {
        "passed": (["one", "two"], None, 1),
        "failed": (["three"], "no", 2),
    }


@pytest.mark.parametrize(
    ("directory", "file", "expected"),
    [
        (".", "tests/a.jsonl", "tests/a.jsonl"),
        ("tests", "a.jsonl", "tests/a.jsonl"),
        ("tests", "../b.jsonl", "b.jsonl"),
        (None, "tests/a.jsonl", "tests/a.jsonl"),
        (".", "{root}/tests/a.jsonl", "tests/a.jsonl"),
        (".", "/elsewhere/a.jsonl", "/elsewhere/a.jsonl"),
        (".", "", ""),
    ],
)
def test_a_file_has_the_same_path_wherever_the_run_was_started(
    tmp_path: Path, directory: str | None, file: str, expected: str
) -> None:
    folder = tmp_path / ".atp" / "runs" / "1"
    folder.mkdir(parents=True)
    info = RunInfo(id="1", at=1.0, version="1", identity=[], directory=directory, folder=os.fspath(folder))
    assert project_path(info, file.format(root=tmp_path.resolve())) == expected
