"""The check whose verdict is a Python function of the user's."""

import contextvars
import copy
import inspect
import traceback
from collections.abc import Callable
from typing import Any

import msgspec

from atp.base.errors import ConfigurationError
from atp.base.numbers import is_score
from atp.base.text import cut
from atp.checks.evidence import Evidence
from atp.checks.registry import check, said
from atp.checks.verdicts import failed, passed, show, unjudged
from atp.suite.assertion import ScriptAssertion
from atp.suite.result import Verdict
from atp.usercode.code_path import load_function
from atp.usercode.contain import contained
from atp.usercode.printed import CAPTURE, Printed
from atp.usercode.threads import Raised, Thread

OFFERED = ("output", "input", "expected", "context")
"""What a function is called with, as many of them as it takes."""
MOST_LINES = 20
"""Lines that a script printed and a verdict keeps."""


@check("script")
async def script(assertion: ScriptAssertion, evidence: Evidence) -> Verdict:
    """A function of the user's decides. Sync ones run in a thread, which nobody waits for if they hang."""
    printed = Printed()
    context = contextvars.copy_context()
    context.run(printed.catch)
    CAPTURE.begin()
    try:
        verdict = await _decided(assertion, evidence, context)
    finally:
        CAPTURE.end()
    verdict.evidence = [cut(line) for line in printed.finish()[:MOST_LINES]]
    return verdict


async def _decided(assertion: ScriptAssertion, evidence: Evidence, context: contextvars.Context) -> Verdict:
    name = assertion.script
    offered = _offered(assertion, evidence)

    def call() -> Any:
        function = load_function(name, evidence.folders)
        args, kwargs = arguments(function, offered)
        return function(*args, **kwargs)

    made = await Thread(context).call(call, last=True)
    if inspect.isawaitable(made):
        made = await contained(_awaited(made), context)
    if isinstance(made, Raised):
        return _raised(name, made.error)
    return read_answer(made, name)


async def _awaited(made: Any) -> Any:
    return await made


def _offered(assertion: ScriptAssertion, evidence: Evidence) -> dict[str, Any]:
    """What a script may see: copies, so that what it changes is its own."""
    expected = assertion.value if "value" in assertion.model_fields_set else evidence.case.expected
    return {
        "output": copy.deepcopy(evidence.output),
        "input": copy.deepcopy(evidence.input),
        "expected": copy.deepcopy(expected),
        "context": script_context(assertion, evidence),
    }


def script_context(assertion: ScriptAssertion, evidence: Evidence) -> dict[str, Any]:
    """The trial, as scripts see it."""
    options = assertion.options.model_dump(exclude_none=True) if assertion.options is not None else {}
    case, transcript, workspace = evidence.case, evidence.transcript, evidence.workspace
    context: dict[str, Any] = {
        **copy.deepcopy(dict(evidence.context)),
        "options": options,
        "metadata": dict(options.get("metadata") or {}),
        "conversation": copy.deepcopy(transcript.messages),
        "tool_calls": msgspec.to_builtins(evidence.tool_calls),
        "artifacts": msgspec.to_builtins(transcript.artifacts),
        "usage": msgspec.to_builtins(transcript.usage),
        "case": {"id": case.id, "name": case.name, "tags": list(case.tags), "metadata": copy.deepcopy(case.metadata)},
        "turn": evidence.turn,
        "workspace": str(workspace.path()) if workspace is not None and workspace.exists else None,
    }
    return context


def arguments(function: Callable[..., Any], offered: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """What to call a function with: by name if it names only what is offered, else by place.

    Raises `TypeError` if it can't do with that.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # some built-in functions don't say what they take
        return list(offered.values()), {}
    named = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY)]
    if len(named) == len(parameters) and all(one.name in offered for one in named):
        return [], {one.name: offered[one.name] for one in named}
    args: list[Any] = []
    rest = list(offered.values())
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL:
            args += rest
            break
        optional = one.default is not one.empty or one.kind is one.VAR_KEYWORD
        if optional and one.name not in offered:
            break
        if not rest or one.kind is one.KEYWORD_ONLY:
            raise TypeError(f"it takes `{one.name}`; a script is given {', '.join(offered)}")
        args.append(rest.pop(0))
    return args, {}


def read_answer(answer: Any, name: str) -> Verdict:
    """A function's answer as a verdict: a bool, or `{"pass", "message", "score"}`, and nothing else."""
    if isinstance(answer, bool):
        text = f"{name} says {'yes' if answer else 'no'}"
        return passed(text, where=name) if answer else failed(text, where=name)
    wrong = _wrong(answer)
    if wrong:
        return unjudged(f"{name} {wrong}, not a bool or an object with `pass`, `message`, `score`", where=name)
    message = answer.get("message") or f"{name} says {'yes' if answer['pass'] else 'no'}"
    score = None if answer.get("score") is None else float(answer["score"])
    verdict = passed if answer["pass"] else failed
    return verdict(cut(message), where=name, score=score)


def _wrong(answer: Any) -> str | None:
    """Why an answer is none."""
    if not isinstance(answer, dict):
        return f"returned {show(answer, 100)} ({type(answer).__name__})"
    if not isinstance(answer.get("pass"), bool):
        return f"returned {show(answer, 100)} without a bool in `pass`"
    if unknown := [str(key) for key in answer if key not in ("pass", "message", "score")]:
        return f"returned the unknown key `{unknown[0]}`"
    if not isinstance(answer.get("message"), str | None):
        return "returned a `message` that isn't text"
    score = answer.get("score")
    if score is not None and not is_score(score):
        return f"returned the score {show(score, 60)}, which is not between 0 and 1"
    return None


def _raised(name: str, error: BaseException) -> Verdict:
    if isinstance(error, ConfigurationError):
        hint = f" ({error.hint})" if error.hint else ""
        return unjudged(f"{error}{hint}", where=name)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return unjudged(f"{name} raised {said(error)}{place}", where=name)
