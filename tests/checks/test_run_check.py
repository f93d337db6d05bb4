"""What holds for every kind of check: negate, message, weight, critical, and nothing that goes wrong passes."""

import asyncio
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any, Literal, get_args

import pytest
from tests.checks.conftest import make_assertion

from atp.base.registry import PluginError
from atp.checks.evidence import Evidence
from atp.checks.run_check import run_check
from atp.checks.verdicts import passed
from atp.suite.assertion import ASSERTIONS, Assertion
from atp.suite.case import Case
from atp.suite.result import Transcript, Turn, Verdict

Judge = Callable[..., Verdict]


class Odd(Assertion):
    """A check of a plugin's."""

    type: Literal["odd"]
    """Always `odd`."""


class Found(Assertion):
    """A check that is found by its entry point."""

    type: Literal["found"]
    """Always `found`."""

    def check(self, evidence: Evidence) -> Verdict:
        return passed("found")


EVIDENCE = Evidence(case=Case(id="a"), transcript=Transcript(turns=[Turn(turn=1, input="x", output="hello")]))


def odd(function: Callable[..., Any], **given: Any) -> Verdict:
    """The verdict of a check whose method is this function."""
    kind = type("OddWithCheck", (Odd,), {"check": function, "__module__": __name__})
    return asyncio.run(run_check(kind(type="odd", **given), EVIDENCE))


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
def test_a_check_that_raises_is_unjudged(error: BaseException, raising: Callable[..., Any], negate: bool) -> None:
    verdict = odd(raising(error), negate=negate, message="custom")
    assert verdict.outcome == "unjudged"
    assert type(error).__name__ in verdict.message


@pytest.mark.parametrize("answer", [None, True, "passed", 1, {"outcome": "passed"}])
def test_a_check_that_gives_no_verdict_is_unjudged(answer: Any) -> None:
    assert odd(lambda _assertion, _evidence: answer).outcome == "unjudged"

    async def later(_assertion: Odd, _evidence: Evidence) -> Any:
        return answer

    assert odd(later).outcome == "unjudged"


def test_a_genuine_cancellation_gets_through() -> None:
    class Waiting(Odd):
        async def check(self, evidence: Evidence) -> Verdict:
            await asyncio.Event().wait()
            raise AssertionError

    async def cancel() -> None:
        task = asyncio.ensure_future(run_check(Waiting(type="odd"), EVIDENCE))
        await asyncio.sleep(0)
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


def test_a_kind_without_a_check_is_unjudged_and_can_not_be_registered() -> None:
    verdict = asyncio.run(run_check(Odd(type="odd"), EVIDENCE))
    assert verdict.outcome == "unjudged"
    assert "Odd has no method `check`" in verdict.message
    with pytest.raises(PluginError, match="Odd has no method `check`"):
        ASSERTIONS.register(Odd)


@pytest.mark.parametrize("kind", [Evidence, "odd", Assertion, None])
def test_what_is_no_kind_of_check_can_not_be_registered(kind: Any) -> None:
    with pytest.raises(PluginError):
        ASSERTIONS.register(kind)


def test_every_built_in_kind_is_listed_by_its_own_name_and_has_a_check() -> None:
    for name in ASSERTIONS.names:
        kind = ASSERTIONS.find(name)
        assert kind is not None
        assert get_args(kind.model_fields["type"].annotation) == (name,)
        assert kind.check is not Assertion.check


def test_a_plugin_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("found", f"{__name__}:Found", "atp.checks")
    monkeypatch.setattr("atp.base.registry.entry_points", lambda group: [entry])
    monkeypatch.setattr(ASSERTIONS, "_discovered", False)
    try:
        assert asyncio.run(run_check(make_assertion({"type": "found"}), EVIDENCE)).message == "found"
    finally:
        ASSERTIONS.unregister("found")


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
