"""Microseconds a check, on an output of 1 kB: the price of judging must not show beside that of a trial."""

import asyncio
import json
import time

from atp.checks.evidence import Evidence
from atp.checks.run_check import run_check
from atp.suite.assertion import ASSERTIONS, Assertion
from atp.suite.case import Case
from atp.suite.result import ToolCall, Transcript, Turn

ROUNDS = 2_000
REPEATS = 7
"""The best of so many counts: on a shared machine the others are noise."""
WORDS = "The expense was submitted for approval, the reference is EXP-2025-001. "
TEXT = (WORDS * 15)[:1000]
DATA = {"status": "ok", "items": [{"id": number, "name": f"item {number}"} for number in range(25)], "note": TEXT[:200]}
CALLS = [ToolCall(name=f"tool_{number}", arguments={"amount": number, "currency": "EUR"}) for number in range(10)]
TARGETS = {"contains": 5.0, "tool_called": 15.0}
"""Microseconds."""


def evidence(output: object, case: Case) -> Evidence:
    return Evidence(
        case=case,
        transcript=Transcript(turns=[Turn(turn=1, input="hello", output=output)], tool_calls=CALLS),
    )


def assertion(**given: object) -> Assertion:
    kind = ASSERTIONS.find(str(given["type"]))
    assert kind is not None
    return kind.model_validate(given)


CHECKS: list[tuple[str, Assertion, object]] = [
    ("contains, text", assertion(type="contains", value="EXP-2025-001"), TEXT),
    ("contains, not there", assertion(type="contains", value="rejected"), TEXT),
    ("contains, JSON", assertion(type="contains", value="item 24"), DATA),
    ("equals, text", assertion(type="equals", value=TEXT), TEXT),
    ("equals, JSON", assertion(type="equals", value=DATA), DATA),
    ("regex", assertion(type="regex", pattern=r"EXP-\d{4}-\d+"), TEXT),
    ("json_path, JSON", assertion(type="json_path", path="$.items[3].name", value="item 3"), DATA),
    ("json_path, text", assertion(type="json_path", path="$.items[3].name", value="item 3"), json.dumps(DATA)),
    ("json_path, many", assertion(type="json_path", path="$.items[*].id", value={"$length": 25}), DATA),
    ("type", assertion(type="type", value="object"), DATA),
    ("tool_called", assertion(type="tool_called", name="tool_5", arguments={"amount": {"$gt": 4}}), TEXT),
    ("not_tool_called", assertion(type="not_tool_called", name="shell"), TEXT),
    ("behavior", assertion(type="behavior", check="no_repeated_actions"), TEXT),
    (
        "all_of 2",
        assertion(
            type="all_of", assertions=[{"type": "contains", "value": "ok"}, {"type": "not_contains", "value": "error"}]
        ),
        DATA,
    ),
]


async def measure(check: Assertion, output: object, fresh: bool) -> float:
    case = Case(id="bench")
    seen = evidence(output, case)
    await run_check(check, seen)
    best = float("inf")
    for _ in range(REPEATS):
        began = time.process_time()
        for _ in range(ROUNDS):
            await run_check(check, evidence(output, case) if fresh else seen)
        best = min(best, time.process_time() - began)
    return best / ROUNDS * 1e6


def main() -> None:
    print(f"{'check':<22}{'same evidence':>16}{'fresh evidence':>16}   µs of CPU each")
    for name, check, output in CHECKS:
        again = asyncio.run(measure(check, output, fresh=False))
        first = asyncio.run(measure(check, output, fresh=True))
        target = TARGETS.get(name.partition(",")[0])
        note = "" if target is None else f"   target ≤ {target:g}: {'ok' if again <= target else 'MISSED'}"
        print(f"{name:<22}{again:>16.2f}{first:>16.2f}{note}")


if __name__ == "__main__":
    main()
