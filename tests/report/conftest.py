"""A run to tell reporters about, with nothing in it that changes from one day to the next."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from atp.journal.listeners import Listener, RunEnd
from atp.journal.records import RunInfo
from atp.stats.summary import Summary
from atp.suite.case import Case
from atp.suite.result import (
    Artifact,
    CaseResult,
    CheckpointResult,
    ToolCall,
    Transcript,
    TrialResult,
    Turn,
    Usage,
    Verdict,
)

TEN_O_CLOCK = 1734429600.0
"""2024-12-17T10:00:00Z."""


def counts(**given: Any) -> dict[str, Any]:
    """The counts of a run with one trial a case, in the shape the engine gives them."""
    summary = Summary()
    for name, number in given.items():
        setattr(summary, name, number)
    summary.variations = summary.variations or summary.ran
    summary.runs = summary.runs or summary.ran
    summary.passed_runs = summary.passed_runs or summary.passed
    if summary.runs > summary.ran:
        summary.repeated = summary.repeated or summary.ran
    return summary.counts()


class Story:
    """Makes what a run tells its listeners."""

    def info(self, **given: Any) -> RunInfo:
        standard: dict[str, Any] = {
            "id": "20241217-100000-ab12",
            "folder": ".atp/runs/20241217-100000-ab12",
            "input": ["./tests/expense.jsonl"],
            "identity": ["/home/ada/tests/expense.jsonl"],
            "agents": ["assistants.expense"],
            "cases": 3,
            "trials": 3,
            "runs": 1,
            "at": TEN_O_CLOCK,
            "version": "0.1.0",
            "environment": {"user": "test-user", "team": "test-team", "locale": "en-us"},
        }
        return RunInfo(**standard | given)

    def counts(self, **given: Any) -> dict[str, Any]:
        return counts(**given)

    def end(self, info: RunInfo | None = None, **given: Any) -> RunEnd:
        standard: dict[str, Any] = {
            "info": info or self.info(),
            "counts": counts(passed=3),
            "ended_at": TEN_O_CLOCK + 5.1,
            "duration_ms": 5100.4,
            "reason": None,
            "exit_code": 0,
        }
        return RunEnd(**standard | given)

    def trial(self, output: Any = "What type?", said: Any = "Help me file an expense", **given: Any) -> TrialResult:
        history = said if isinstance(said, list) else [{"role": "user", "content": said}]
        answer = {"role": "assistant", "content": output if isinstance(output, str) else "…"}
        turns = [Turn(turn=1, input=history[-1]["content"], output=output, duration_ms=1190.2)]
        standard: dict[str, Any] = {
            "key": "k",
            "agent": "assistants.expense",
            "case": "c",
            "duration_ms": 1200.4,
            "transcript": Transcript(messages=[*history, answer], turns=turns),
            "verdicts": [Verdict(type="contains", outcome="passed", expected="type", name="type")],
        }
        return TrialResult(**standard | given)

    def case(self, ident: str = "c", *trials: TrialResult, **given: Any) -> CaseResult:
        all_trials = list(trials) or [self.trial()]
        standard: dict[str, Any] = {
            "agent": "assistants.expense",
            "case": ident,
            "name": ident,
            "file": "tests/expense.jsonl",
            "line": 1,
            "input": "Help me file an expense",
            "status": all_trials[0].status,
            "trials": all_trials,
        }
        return CaseResult(**standard | given)

    def skipped(self, name: str = "later") -> Case:
        return Case.model_validate({"id": name, "input": "hi", "skip": True})

    def tell(self, listeners: Sequence[Listener], cases: Sequence[CaseResult], end: RunEnd) -> None:
        for listener in listeners:
            listener.start(end.info)
        for case in cases:
            for listener in listeners:
                listener.case(case)
        for listener in listeners:
            listener.end(end)


@pytest.fixture
def story() -> Story:
    return Story()


def _talk(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]


@pytest.fixture
def document(story: Story) -> list[CaseResult]:
    """The run that document 5 prints."""
    talk = _talk("Help me file an expense", "What type?", "Dinner, $250", "Confirm?", "Yes")
    submitted = Verdict(type="contains", outcome="passed", expected="submitted")
    called = Verdict(type="tool_called", outcome="passed", name="create_expense")
    said = "Expense submitted. Reference: EXP-2025-001"
    return [
        story.case("expense-turn1", story.trial(), name="First turn - ask type"),
        story.case(
            "expense-turn2",
            story.trial("Confirm?", talk[:3], duration_ms=2100, verdicts=[called]),
            name="Second turn - create expense",
            input=talk[:3],
            index=1,
            line=2,
        ),
        story.case(
            "expense-turn3",
            story.trial(said, talk, duration_ms=1800, verdicts=[submitted]),
            name="Final turn - confirm",
            input=talk,
            index=2,
            line=3,
        ),
    ]


@pytest.fixture
def troubles(story: Story) -> list[CaseResult]:
    """One case for each way to end that isn't well."""
    wrong = Verdict(
        type="contains",
        outcome="failed",
        message='the output does not contain "submitted"',
        expected="submitted",
        found="What type?",
        where="turn 1",
    )
    group = Verdict(type="any_of", outcome="failed", message="none of 1 holds", parts=[wrong])
    unjudged = Verdict(type="llm_eval", outcome="unjudged", message="the judge gave no JSON", judged=True)
    seen = Transcript(
        messages=_talk("Help me", "Done"),
        turns=[Turn(turn=1, input="Help me", output={"keywords": ["AI", "ML"]}, duration_ms=12)],
        tool_calls=[
            ToolCall(name="search", arguments={"q": "x"}, result={"hits": 3}, duration_ms=4.6),
            ToolCall(name="save", arguments={"to": "/"}, error="denied"),
        ],
        artifacts=[Artifact(name="report.txt", text="content", size_bytes=7, sha256="ab" * 32)],
        usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.0015),
        logs=["loading"],
    )
    nothing = Transcript()
    dialogue = Transcript(
        messages=_talk("Help", "What type?", "Dinner", "Bye"),
        turns=[Turn(turn=1, input="Help", output="What type?"), Turn(turn=2, input="Dinner", output="Bye")],
    )
    points = [
        CheckpointResult(id="ask_type", reached_at_turn=1),
        CheckpointResult(id="call_create"),
        CheckpointResult(id="thanks", required=False),
    ]
    trial, case = story.trial, story.case
    return [
        case(
            "wrong",
            trial(status="failed", error=wrong.message, verdicts=[wrong, group], score=0.0, dimensions={"quality": 0}),
            name="Says the wrong thing",
            tags=["smoke"],
        ),
        case("slow", trial(status="timeout", error="timeout after 30s", verdicts=[], transcript=nothing)),
        case(
            "boom",
            trial(
                status="error", blame="agent", error="agent error: ValueError: boom", verdicts=[], transcript=nothing
            ),
        ),
        case(
            "gone",
            trial(
                status="error",
                blame="environment",
                error="connection refused",
                verdicts=[],
                transcript=nothing,
                attempt=3,
                retries=["connection reset", "connection refused"],
            ),
        ),
        case("unjudged", trial(status="error", blame="judge", error="the judge gave no JSON", verdicts=[unjudged])),
        case("blocked", trial(status="blocked", error="case `login` did not pass", verdicts=[], transcript=nothing)),
        case("cancelled", trial(status="cancelled", error="cancelled", verdicts=[], transcript=nothing)),
        case(
            "unchecked",
            trial(verdicts=[], warnings=["no assertions", "the agent did not report its tokens"], transcript=seen),
            expected={"keywords": []},
        ),
        case(
            "dialogue",
            trial(
                status="failed",
                error="missing checkpoints: call_create",
                verdicts=[],
                checkpoints=points,
                transcript=dialogue,
            ),
        ),
    ]


@pytest.fixture
def repeated(story: Story) -> list[CaseResult]:
    """Cases that ran three times."""
    trial = story.trial
    wrong = Verdict(type="contains", outcome="failed", message="no type", expected="type", found="Hm?")
    failed: dict[str, Any] = {"status": "failed", "error": "no type", "verdicts": [wrong]}
    return [
        story.case("T001", trial(run=1, duration_ms=234), trial(run=2, duration_ms=210), trial(run=3, duration_ms=256)),
        story.case("T002", trial(run=1), trial("Hm?", run=2, **failed), trial(run=3), status="failed", index=1),
        story.case("T003", trial(run=1), trial("Hm?", run=2, **failed), trial(run=3), required_rate=0.6, index=2),
    ]


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compares a text with a file in `golden/`; with `ATP_UPDATE_GOLDEN=1` in the environment, writes it."""
    folder = Path(__file__).parent / "golden"

    def compare(name: str, found: str) -> None:
        file = folder / name
        if os.environ.get("ATP_UPDATE_GOLDEN"):
            file.write_text(found, encoding="utf-8", newline="\n")
        assert found == file.read_text(encoding="utf-8")

    return compare
