"""`script`: a Python function of the user's decides (rulings §4)."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atp.base.errors import ConfigurationError
from atp.checks.before_run import unjudgeable
from atp.checks.evidence import Evidence
from atp.checks.run_check import run_check
from atp.checks.script import ScriptAssertion
from atp.suite.case import Case
from atp.suite.result import ToolCall, Transcript, Turn, Verdict
from atp.usercode.code_path import find_script, load_function

Judge = Callable[..., Verdict]


@pytest.fixture
def script(tmp_path: Path, judge: Judge) -> Callable[..., Verdict]:
    """`script("def f(output): …", output)`: the verdict of the function `f`."""
    count = iter(range(1000))

    def run(code: str, output: Any = "hello", name: str = "f", **more: Any) -> Verdict:
        module = f"m{next(count)}"
        path = tmp_path / "scripts" / f"{module}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
        given = {"type": "script", "script": f"scripts:{module}.{name}", **more.pop("given", {})}
        return judge(given, output, folders=(tmp_path,), **more)

    return run


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("def f(output): return output == 'hello'", "passed"),
        ("def f(output): return output == 'bye'", "failed"),
        ("async def f(output): return True", "passed"),
        ("async def f(output): return False", "failed"),
        ("f = lambda output: True", "passed"),
        ("def f(output): return {'pass': True}", "passed"),
        ("def f(output): return {'pass': False, 'message': 'too short', 'score': 0.2}", "failed"),
        ("import functools\nf = functools.partial(lambda limit, output: len(output) > limit, 3)", "passed"),
        # Anything else is an error.
        ("def f(output): return None", "unjudged"),
        ("def f(output): return 'yes'", "unjudged"),
        ("def f(output): return 1", "unjudged"),
        ("from unittest.mock import MagicMock\ndef f(output): return MagicMock(spec=bool)", "unjudged"),
        ("from unittest.mock import MagicMock\ndef f(output): return {'pass': MagicMock(spec=bool)}", "unjudged"),
        ("from unittest.mock import MagicMock\ndef f(output): return MagicMock(spec=dict)", "unjudged"),
        ("def f(output): return []", "unjudged"),
        ("def f(output): return {}", "unjudged"),
        ("def f(output): return {'passed': True}", "unjudged"),
        ("def f(output): return {'pass': 1}", "unjudged"),
        ("def f(output): return {'pass': True, 'reason': 'x'}", "unjudged"),
        ("def f(output): return {'pass': True, 'message': 3}", "unjudged"),
        ("def f(output): return {'pass': True, 'score': 7}", "unjudged"),
        ("def f(output): return {'pass': True, 'score': True}", "unjudged"),
        ("def f(output): return {'pass': True, 'score': float('nan')}", "unjudged"),
        ("def f(output): return (x for x in [])", "unjudged"),
        # So is whatever it raises.
        ("def f(output): raise ValueError('no')", "unjudged"),
        ("def f(output): raise SystemExit(3)", "unjudged"),
        ("import asyncio\nasync def f(output): raise asyncio.CancelledError", "unjudged"),
        ("def f(output): raise KeyboardInterrupt", "unjudged"),
        ("async def f(output): raise SystemExit", "unjudged"),
        ("def f(output): return f(output)", "unjudged"),
        ("def f(output): return next(iter([]))", "unjudged"),
        ("raise RuntimeError('import')\ndef f(output): return True", "unjudged"),
        ("def f(output: return True", "unjudged"),
        ("def g(output): return True", "unjudged"),
        ("f = 3", "unjudged"),
        ("def f(a, b, c, d, e): return True", "unjudged"),
        ("def f(output, *, threshold): return True", "unjudged"),
    ],
)
def test_what_a_function_may_answer(script: Callable[..., Verdict], code: str, outcome: str) -> None:
    verdict = script(code)
    assert verdict.outcome == outcome, verdict.message
    assert script(code, given={"negate": True}).outcome == {"passed": "failed", "failed": "passed"}.get(
        outcome, "unjudged"
    )


def test_message_and_score_come_through(script: Callable[..., Verdict]) -> None:
    verdict = script("def f(output): return {'pass': False, 'message': 'too short', 'score': 0.25}")
    assert (verdict.message, verdict.score, verdict.judged) == ("too short", 0.25, True)


def test_an_exception_is_told_with_its_place(script: Callable[..., Verdict]) -> None:
    verdict = script("def f(output):\n    raise ValueError('bad weather')")
    assert "ValueError: bad weather" in verdict.message
    assert "line 2" in verdict.message


@pytest.mark.parametrize(
    "signature",
    [
        "()",
        "(output)",
        "(output, input)",
        "(output, input, expected)",
        "(output, input, expected, context)",
        "(*args)",
        "(a, b)",
        "(output, context)",
        "(*, expected, output)",
        "(a, *rest)",
        "(output, threshold=0.5)",
        "(output, /)",
        "(x, y, z, **more)",
        "(context, output)",
    ],
)
def test_it_is_called_with_as_many_as_it_takes(script: Callable[..., Verdict], signature: str) -> None:
    offered = {"output": "hello", "input": "hello?", "expected": 3}
    names = ["output", "input", "expected", "context"]
    code = f"""
def f{signature}:
    seen = dict(locals())
    by_place = list(seen.pop("args", ())) or [v for k, v in seen.items() if k in "abxyz"] + list(seen.get("rest", ()))
    named = {{k: v for k, v in seen.items() if k in {names!r}}}
    offered = {offered!r}
    for name, value in zip({names!r}, by_place):
        named[name] = value
    for name, value in named.items():
        assert name == "context" and value["case"]["id"] == "case" or offered[name] == value, (name, value)
    return seen.get("threshold", 0.5) == 0.5
"""
    case = {"messages": "hello?", "expected": 3, "assertions": [{"type": "contains", "value": "hello"}]}
    verdict = script(code, case=case)
    assert verdict.passed, verdict.message


def test_expected_is_the_assertions_value_else_the_cases(script: Callable[..., Verdict]) -> None:
    code = "def f(output, input, expected): return expected == [1]"
    assert script(code, given={"value": [1]}, case={"expected": 3}).passed
    assert script(code, case={"expected": [1]}).passed
    assert script("def f(output, input, expected): return expected is None", given={"value": None}).passed


def test_context_holds_the_trial(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "see.py").write_text(
        "seen = []\ndef f(output, input, expected, context):\n    seen.append(context)\n    return True"
    )
    transcript = Transcript(
        messages=[{"role": "user", "content": "hi"}],
        turns=[Turn(turn=1, input="hi", output={"a": [1]})],
        tool_calls=[ToolCall(name="t", arguments={"x": 1})],
    )
    evidence = Evidence(
        case=Case(id="c1", messages="hi", metadata={"k": "v"}),  # type: ignore[arg-type]
        transcript=transcript,
        folders=[tmp_path],
        context={"user": "bob"},
    )
    options = {"mode": "strict", "metadata": {"min_amount": 100}}
    assertion = ScriptAssertion.model_validate({"type": "script", "use": "scripts:see.f", "options": options})
    assert asyncio.run(run_check(assertion, evidence)).passed
    context = load_function("scripts:see.f", [tmp_path]).__globals__["seen"][0]
    assert context["metadata"] == {"min_amount": 100}
    assert context["options"] == options
    assert context["conversation"] == transcript.messages
    assert context["tool_calls"] == [{"name": "t", "arguments": {"x": 1}}]
    assert context["user"] == "bob"
    assert context["workspace"] is None
    assert context["case"]["metadata"] == {"k": "v"}


def test_what_a_script_changes_is_its_own(script: Callable[..., Verdict]) -> None:
    code = "def f(output, input, expected, context):\n    output.clear(); context['conversation'].clear(); return True"
    output = {"a": 1}
    messages = [{"role": "user", "content": "hi"}]
    assert script(code, output, messages=messages).passed
    assert output == {"a": 1}
    assert messages


def test_what_a_script_prints_is_kept_and_does_not_reach_our_output(
    script: Callable[..., Verdict], capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = script("def f(output):\n    print('looking'); print('found'); return True")
    assert verdict.evidence == ["looking", "found"]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "reference", ["scripts:tests.validate-expense", "scripts.tests.validate_expense", "scripts:tests.Validate_Expense"]
)
def test_spellings_of_a_reference(tmp_path: Path, reference: str) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "tests.py").write_text("def validate_expense(output): return True")
    assert load_function(reference, [tmp_path])("x") is True


def test_folders_are_searched_in_order_and_below(tmp_path: Path) -> None:
    for place, answer in (
        ("agent/scripts/deep/a_b.py", 1),
        ("suite/scripts/deep/a_b.py", 2),
        ("suite/scripts/c.py", 3),
    ):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"def F(): return {answer}\ndef G(): return 0\ndef g(): return 4")
    folders = [tmp_path / "none", tmp_path / "agent", tmp_path / "suite"]
    assert load_function("scripts:deep.a-b.F", folders)() == 1
    assert load_function("scripts.c.f", folders)() == 3
    assert load_function("scripts.c.g", folders)() == 4
    assert load_function("scripts.c.G", folders)() == 0
    with pytest.raises(ConfigurationError, match=r"no scripts/deep\.py"):
        load_function("scripts:deep.a", folders)


def test_two_functions_that_may_be_meant_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "a.py").write_text("def Check(): ...\ndef CHECK(): ...\ndef chek(): ...")
    with pytest.raises(ConfigurationError, match="any of Check, CHECK"):
        find_script("scripts:a.check", [tmp_path])
    with pytest.raises(ConfigurationError) as caught:
        find_script("scripts:a.check_", [tmp_path])
    assert caught.value.hint is not None
    assert "did you mean" in caught.value.hint


def test_hooks_are_found_in_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("def before(): return 5")
    assert load_function("hooks.py:before", [tmp_path])() == 5


def test_a_missing_script_is_known_before_a_run(tmp_path: Path) -> None:
    missing = {"type": "any_of", "assertions": [{"type": "script", "script": "scripts:no.where"}]}
    case = Case.model_validate(
        {"id": "a", "messages": "x", "assertions": [missing, {"type": "contains", "value": "x"}]}
    )
    (problem,) = unjudgeable(case, [tmp_path])
    assert "there is no scripts/no.py" in problem


def test_a_script_that_hangs_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "slow.py").write_text("import time\ndef f(output):\n    time.sleep(3600)\n    return True")
    assertion = ScriptAssertion.model_validate({"type": "script", "script": "scripts:slow.f"})
    evidence = Evidence(case=Case(id="a"), transcript=Transcript(), folders=[tmp_path])

    async def impatient() -> None:
        await asyncio.wait_for(run_check(assertion, evidence), 0.3)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    assert all(thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread())
