"""`script`: a Python function of the user decides."""

import copy
import traceback
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import msgspec
from pydantic import AliasChoices, Field

from atp.base.errors import ConfigurationError, with_hint
from atp.base.numbers import is_score
from atp.base.text import cut
from atp.checks.evidence import Evidence, NotKept
from atp.checks.verdicts import failed, passed, show, show_foreign, unjudged
from atp.suite.assertion import Assertion, each_assertion
from atp.suite.metrics import read_metrics
from atp.suite.options import Options
from atp.suite.record import Json
from atp.suite.reference import Script
from atp.suite.result import Verdict
from atp.usercode.call import Raised, call
from atp.usercode.code_path import load_function
from atp.usercode.json_values import plain, refusal
from atp.usercode.load import UnusableCode
from atp.usercode.signature import match_in_order

OFFERED = ("output", "input", "expected", "context")
"""The names of the values that a function may take."""
MOST_LINES = 20
"""Printed lines that a verdict keeps."""
_KEYS = ("pass", "message", "score", "metrics")
_KEYS_TEXT = ", ".join(f"`{key}`" for key in _KEYS)


class ScriptAssertion(Assertion):
    """A Python function of the user's decides."""

    judged: ClassVar[bool] = True

    type: Literal["script"]
    """Always `script`."""
    script: Script = Field(validation_alias=AliasChoices("script", "use"))
    """`scripts:a.b` or `scripts.a.b`: function `b` of `scripts/a.py`."""
    options: Options | None = None
    """Handed to the function in its context."""
    value: Json = None
    """The expected value; left out: the case's `expected`."""

    async def check(self, evidence: Evidence) -> Verdict:
        # A sync function runs in a thread, which nobody waits for if it hangs.
        name = self.script
        offered = _offered(self, evidence)
        lines: list[str] = []

        def decide() -> Any:
            function = load_function(name, evidence.folders)
            args, kwargs = match_in_order(function, OFFERED, "a script").arguments(offered)
            return function(*args, **kwargs)

        try:
            verdict = read_answer(await call(decide, log=lines.append), name)
        except Raised as raised:
            verdict = _raised(name, raised)
        verdict.evidence = [cut(line) for line in lines[:MOST_LINES]]
        return verdict


def named_scripts(assertions: Iterable[Assertion]) -> list[str]:
    """The scripts that assertions name, those in groups included."""
    judged = [one for one in assertions if one.needs_judge]  # scripts are, and so are groups with a script
    if not judged:
        return []
    return [one.script for one in each_assertion(judged) if isinstance(one, ScriptAssertion)]


def _offered(assertion: ScriptAssertion, evidence: Evidence) -> dict[str, Any]:
    """The values for a script. They are copies, so that a script can't change the evidence."""
    expected = assertion.value if "value" in assertion.model_fields_set else evidence.case.expected
    return {
        "output": copy.deepcopy(evidence.output),
        "input": copy.deepcopy(evidence.input),
        "expected": copy.deepcopy(expected),
        "context": script_context(assertion, evidence),
    }


def script_context(assertion: ScriptAssertion, evidence: Evidence) -> dict[str, Any]:
    """The `context` of a script: the trial as plain data."""
    options = assertion.options.model_dump(exclude_none=True) if assertion.options is not None else {}
    case = evidence.case
    context: dict[str, Any] = {
        **copy.deepcopy(dict(evidence.context)),
        "options": options,
        "metadata": dict(options.get("metadata") or {}),
        "conversation": copy.deepcopy(evidence.messages),
        "tool_calls": msgspec.to_builtins(evidence.tool_calls),
        "artifacts": msgspec.to_builtins(evidence.artifacts),
        "usage": msgspec.to_builtins(evidence.transcript.usage),
        "case": {"id": case.id, "name": case.name, "tags": list(case.tags), "metadata": copy.deepcopy(case.metadata)},
        "turn": evidence.turn,
    }
    workspace = evidence.workspace
    try:
        context["workspace"] = str(workspace.path()) if workspace is not None and workspace.exists else None
    except NotKept as error:
        return _WithoutWorkspace(context, error)
    return context


class _WithoutWorkspace(dict[str, Any]):
    """The context of a script whose workspace was not kept: a script that asks for the folder can't decide."""

    def __init__(self, context: Mapping[str, Any], why: NotKept) -> None:
        super().__init__(context)
        self._why = why

    def __missing__(self, key: str) -> Any:
        raise self._why if key == "workspace" else KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        return self[key] if key in self or key == "workspace" else default


def read_answer(answer: Any, name: str) -> Verdict:
    """The verdict that a function returned: a bool, or an object with `pass` and perhaps more (`_KEYS`)."""
    # Not `isinstance`: what an object says of its class may be wrong, as with `unittest.mock.Mock(spec=bool)`.
    if type(answer) is bool:
        text = f"{name} says {'yes' if answer else 'no'}"
        return passed(text, where=name) if answer else failed(text, where=name)
    if issubclass(type(answer), dict):
        try:
            answer = plain(answer)
        except BaseException as error:  # of a class of the user's, which may raise anything
            return unjudged(f"{name} {refusal(error)}", where=name)
    wrong = _wrong(answer)
    if wrong:
        return unjudged(f"{name} {wrong}, not a bool or an object with {_KEYS_TEXT}", where=name)
    message = answer.get("message") or f"{name} says {'yes' if answer['pass'] else 'no'}"
    score = None if answer.get("score") is None else float(answer["score"])
    verdict = passed if answer["pass"] else failed
    return verdict(cut(message), where=name, score=score, metrics=answer.get("metrics"))


def _wrong(answer: Any) -> str | None:
    """Why what a function returned is no verdict, or None."""
    if type(answer) is not dict:
        return f"returned {show_foreign(answer, 100)} ({type(answer).__name__})"
    if type(answer.get("pass")) is not bool:
        return f"returned {show(answer, 100)} without a bool in `pass`"
    if unknown := [str(key) for key in answer if key not in _KEYS]:
        return f"returned the unknown key `{unknown[0]}`"
    if not isinstance(answer.get("message"), str | None):
        return "returned a `message` that isn't text"
    score = answer.get("score")
    if score is not None and not is_score(score):
        return f"returned the score {show(score, 60)}, which is not between 0 and 1"
    try:
        read_metrics(answer.get("metrics"))
    except ValueError as error:
        return f"returned metrics that can't be kept ({error})"
    return None


def _raised(name: str, raised: Raised) -> Verdict:
    error: Any = raised.error
    if raised.is_a(NotKept):
        return unjudged(str(error), where=name)
    if raised.is_a((ConfigurationError, UnusableCode)):
        where = "" if raised.is_a(ConfigurationError) else f"{name}: "
        return unjudged(f"{where}{with_hint(str(error), error.hint)}", where=name)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return unjudged(f"{name} raised {cut(str(raised))}{place}", where=name)
