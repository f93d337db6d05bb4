"""The table of queries and answers that both implementations of the search language are tested with."""

import json
from pathlib import Path
from typing import Any

from atp.suite.case import Case
from atp.suite.result import CaseResult, ToolCall, Transcript, TrialResult, Turn, Usage

TABLE = json.loads(Path(__file__).parents[1].joinpath("search.json").read_text(encoding="utf-8"))
QUERIES: list[tuple[str, list[str]]] = [(query, ids) for query, ids in TABLE["queries"]]
PROBLEMS: list[tuple[str, str, str]] = [(query, message, hint) for query, message, hint in TABLE["problems"]]


def ran() -> list[CaseResult]:
    """The cases of the table that ran."""
    return [_case(index, one) for index, one in enumerate(TABLE["cases"]) if one["status"] != "skipped"]


def left_out() -> list[tuple[str, Case]]:
    """The cases of the table that did not run, each with its file."""
    return [
        (one["file"], Case.model_validate({"id": one["id"], "input": "x", "skip": True, "tags": one["tags"]}))
        for one in TABLE["cases"]
        if one["status"] == "skipped"
    ]


def _case(index: int, about: dict[str, Any]) -> CaseResult:
    answered = [Turn(turn=turn, input="x", output="y") for turn in range(1, about["turns"] + 1)]
    trial = TrialResult(
        key=str(index),
        agent=about["agent"],
        case=about["id"],
        status=about["status"],
        blame=about.get("blame"),
        error=about.get("error"),
        duration_ms=about["duration_ms"],
        score=about.get("score"),
        transcript=Transcript(
            turns=answered,
            tool_calls=[ToolCall(name=name) for name in about.get("tools", [])],
            usage=Usage(total_tokens=about.get("tokens"), cost_usd=about.get("cost")),
        ),
    )
    return CaseResult(
        agent=about["agent"],
        case=about["id"],
        name=about.get("name", about["id"]),
        file=about["file"],
        index=index,
        status=about["status"],
        tags=about.get("tags", []),
        trials=[trial],
    )
