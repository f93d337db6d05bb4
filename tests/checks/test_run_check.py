"""What holds for every kind of check: negate, message, weight, critical, and nothing that goes wrong passes."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from atp.checks import Evidence, check, passed, run_check
from atp.checks import run_check as registry_module
from atp.suite import kinds
from atp.suite.assertion import ASSERTIONS, Assertion
from atp.suite.case import Case
from atp.suite.result import Transcript, Turn, Verdict

Judge = Callable[..., Verdict]


class Odd(Assertion):
    """A check of a plugin's."""

    type: Literal["odd"]
    """Always `odd`."""


EVIDENCE = Evidence(case=Case(id="a"), transcript=Transcript(turns=[Turn(turn=1, input="x", output="hello")]))


@pytest.fixture
def plugin() -> Iterator[Callable[[Any], Verdict]]:
    """`plugin(function)`: the verdict of a check that is this function."""

    def run(function: Any, **given: Any) -> Verdict:
        check("odd")(function)
        return asyncio.run(run_check(Odd(type="odd", **given), EVIDENCE))

    yield run
    registry_module._CHECKS.pop("odd", None)


def _raise(error: BaseException) -> Callable[..., Any]:
    def function(_assertion: Odd, _evidence: Evidence) -> Any:
        raise error

    return function


def _raise_later(error: BaseException) -> Callable[..., Any]:
    async def function(_assertion: Odd, _evidence: Evidence) -> Any:
        await asyncio.sleep(0)
        raise error

    return function


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("raising", [_raise, _raise_later])
@pytest.mark.parametrize(
    "error",
    [
        ValueError("no such thing"),
        RecursionError("too deep"),
        MemoryError(),
        SystemExit(0),
        asyncio.CancelledError(),
        StopAsyncIteration(),
        AssertionError(),
    ],
)
def test_a_check_that_raises_is_unjudged(
    plugin: Callable[..., Verdict], error: BaseException, raising: Callable[..., Any], negate: bool
) -> None:
    verdict = plugin(raising(error), negate=negate, message="custom")
    assert verdict.outcome == "unjudged"
    assert type(error).__name__ in verdict.message


@pytest.mark.parametrize("answer", [None, True, "passed", 1, {"outcome": "passed"}])
def test_a_check_that_gives_no_verdict_is_unjudged(plugin: Callable[..., Verdict], answer: Any) -> None:
    assert plugin(lambda _assertion, _evidence: answer).outcome == "unjudged"

    async def later(_assertion: Odd, _evidence: Evidence) -> Any:
        return answer

    assert plugin(later).outcome == "unjudged"


def test_a_genuine_cancellation_gets_through(plugin: Callable[..., Verdict]) -> None:
    began = asyncio.Event()

    async def wait(_assertion: Odd, _evidence: Evidence) -> Any:
        began.set()
        await asyncio.sleep(3600)

    check("odd")(wait)

    async def cancel() -> None:
        task = asyncio.ensure_future(run_check(Odd(type="odd"), EVIDENCE))
        await began.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


@pytest.mark.parametrize(
    "given",
    [
        {"type": "llm_eval", "criteria": "helpful"},
        {"type": "agent", "use": "agents:my.validator"},
        {"type": "all_of", "assertions": [{"type": "llm_eval", "criteria": "helpful"}]},
    ],
)
@pytest.mark.parametrize("negate", [False, True])
def test_what_needs_a_model_is_unjudged_without_one(judge: Judge, given: dict[str, Any], negate: bool) -> None:
    verdict = judge({**given, "negate": negate}, "hello")
    assert verdict.outcome == "unjudged"
    assert "` needs " in verdict.message


def test_a_kind_without_a_check_is_unjudged() -> None:
    verdict = asyncio.run(run_check(Odd(type="odd"), EVIDENCE))
    assert verdict.outcome == "unjudged"
    assert "nothing is installed that checks `odd`" in verdict.message


def test_every_kind_that_a_file_can_name_has_a_check() -> None:
    missing = {kind for kind in ASSERTIONS.shapes if registry_module.find_check(kind) is None}
    assert missing == set()


def test_a_plugin_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        def load(self) -> None:
            check("odd")(lambda _assertion, _evidence: passed("found"))

    monkeypatch.setattr(kinds, "entry_points", lambda group: [Entry()] if group == "atp.checks" else [])
    monkeypatch.setattr(ASSERTIONS, "_discovered", False)
    try:
        assert asyncio.run(run_check(Odd(type="odd"), EVIDENCE)).message == "found"
    finally:
        registry_module._CHECKS.pop("odd", None)


def test_negate(judge: Judge) -> None:
    held = judge({"type": "contains", "value": "ell", "negate": True}, "hello")
    assert held.outcome == "failed"
    assert "should not hold" in held.message
    assert judge({"type": "contains", "value": "x", "negate": True}, "hello").passed
    assert judge({"type": "not_contains", "value": "x", "negate": True}, "hello").outcome == "failed"


def test_message_replaces_the_text_of_a_failure_only(judge: Judge) -> None:
    given = {"type": "contains", "value": "x", "message": "say x"}
    assert judge(given, "hello").message == "say x"
    assert judge(given, "hello").found == "hello"
    assert judge(given, "x").message != "say x"
    assert judge({**given, "negate": True}, "x").message == "say x"


def test_weight_critical_and_name_are_carried_over(judge: Judge) -> None:
    verdict = judge({"type": "contains", "value": "x", "weight": 3, "critical": True}, "hello")
    assert (verdict.type, verdict.name, verdict.weight, verdict.critical) == ("contains", "x", 3, True)
    assert judge({"type": "json_path", "path": "$.a", "value": 1}, {}).name == "$.a"
    assert judge({"type": "type", "value": "object"}, {}).name == "object"
    assert judge({"type": "equals", "value": {"a": 1}}, {}).name == '{"a": 1}'


def test_a_score_is_turned_round_too(judge: Judge) -> None:
    calls = ["a", "a", "b", "c"]
    given = {"type": "behavior", "check": "efficient_tool_use"}
    assert judge(given, calls=calls).score == 0.75
    assert judge({**given, "negate": True}, calls=calls).score == 0.25
