"""The wire protocol of `http`, `cli` and `docker` agents (ATP protocol 1.0): requests and responses."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Literal, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType

from atp.agents.adapter import AgentError, Reply, TurnRequest
from atp.agents.artifacts import Artifacts, take_in, unknown_fields
from atp.agents.reply import read_usage
from atp.agents.wire import RAW_LENGTH, ProtocolError, broken, json_text, read_json, write_json
from atp.base.text import cut, words
from atp.suite.metrics import MOST as MOST_METRICS
from atp.suite.metrics import metric_problem
from atp.suite.result import Artifact

VERSION = "1.0"
LONGEST_DESCRIPTION = 100_000

_RENAMED_KEYS = {"test_id": "case_id", "test_name": "case_name", "user_id": "user", "team_id": "team"}
_SENT_KEYS = (
    "run",
    "iteration",
    "session_id",
    "locale",
    "client_type",
    "client_ip",
    "referer",
    "accept",
    "connector",
)


def build_request(request: TurnRequest, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the request object of a turn."""
    return {
        "version": VERSION,
        "task_id": request.task_id,
        "task": _task(request),
        "constraints": {name: value for name, value in request.constraints.items() if value is not None},
        "context": {
            "workspace_path": str(request.workspace()),
            "tools_endpoint": None,
            "environment": dict(environment or {}),
        },
        "metadata": _metadata(request),
    }


def encode_request(request: TurnRequest, environment: Mapping[str, str] | None = None) -> bytes:
    """Return the request of a turn as bytes."""
    return write_json(build_request(request, environment))


def _task(request: TurnRequest) -> dict[str, Any]:
    task = request.task_with_messages
    description = task.get("description") or "(the newest message has no words: see input_data.messages)"
    if len(description) > LONGEST_DESCRIPTION:
        raise AgentError(
            f"the prompt has {len(description)} characters; the protocol carries {LONGEST_DESCRIPTION}", "environment"
        )
    return {
        "description": description,
        "input_data": task.get("input_data"),
        "expected_artifacts": task.get("expected_artifacts"),
    }


def _metadata(request: TurnRequest) -> dict[str, Any]:
    context = request.context
    given = {name: context.get(source) for name, source in _RENAMED_KEYS.items()}
    given |= {name: context.get(name) for name in _SENT_KEYS}
    given |= {"turn": request.turn, "options": request.options}
    own: dict[str, Any] = context.get("metadata") or {}
    return {**own, **{name: value for name, value in given.items() if value is not None}}


_Status = Literal["completed", "failed", "timeout", "cancelled", "partial"]


class _Response(Struct):
    task_id: str
    status: _Status
    version: Literal["1.0"] | None = None
    artifacts: Artifacts | None = None
    metrics: dict[str, Any] | None = None
    error: Any = None
    output: Any | UnsetType = UNSET


_KNOWN = frozenset(_Response.__struct_fields__)
_RULES = {
    "task_id": "copy it from the request",
    "status": f"it is one of {', '.join(f'`{one}`' for one in get_args(_Status))}",
    "version": f'it is the text "{VERSION}", or left out',
}
"""The rules that authors of agents break most often."""
_NO_RESPONSE = (
    "if it prints plain text, set `protocol: text`; if it prints something beside the JSON: stdout must contain only "
    "the response, log to stderr"
)


def read_response(raw: bytes, request: TurnRequest) -> Reply:
    """Read the reply from stdout. Raises `AgentError` if the agent failed or broke the protocol."""
    try:
        return take_response(_object(raw), request)
    except ProtocolError as error:
        raise broken(error, raw) from error


def _object(raw: bytes) -> dict[str, Any]:
    """Read the JSON object on stdout. Anything else is most likely plain text or a log, and the message says so."""
    try:
        message = read_json(raw, "the response")
        if isinstance(message, dict):
            return message
        why = "the response is not an object"
    except ProtocolError as error:
        if not raw.strip():
            raise
        why = str(error)
    beginning = cut(words(cut(raw, 2000)), 100)
    raise ProtocolError(f"{why}. stdout begins with `{beginning}`: {_NO_RESPONSE}")


def take_response(message: Any, request: TurnRequest) -> Reply:
    """Read the reply from a decoded message. Raises `ProtocolError`, or `AgentError` if the agent failed."""
    try:
        response = msgspec.convert(message, _Response)
    except msgspec.ValidationError as error:
        raise ProtocolError(_broken_rule(message, str(error))) from error
    if response.task_id != request.task_id:
        other = cut(response.task_id, 150)
        raise ProtocolError(
            f"the response is about the task `{other}`, not `{request.task_id}`: copy `task_id` from the request"
        )
    artifacts = take_in(response.artifacts or (), request.workspace)
    usage, more = read_usage(response.metrics, "metrics") if response.metrics is not None else (None, {})
    metrics, more = _named_metrics(more)
    beside = {key: value for key, value in message.items() if key not in _KNOWN}
    beside |= {"metrics": more} if more else {}
    beside |= {"artifacts": strange} if (strange := unknown_fields(message.get("artifacts"))) else {}
    if beside:
        request.log(f"beside the response: {cut(beside, RAW_LENGTH)}")
    reply = Reply(output=_answer(response, artifacts), artifacts=artifacts, usage=usage, metrics=metrics)
    if response.status != "completed":
        why = response.error or f"status `{response.status}`"
        raise AgentError(f"agent error: {cut(why, RAW_LENGTH)}", reply=reply)
    return reply


def _named_metrics(raw: dict[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """The named metrics among the keys that are none of a usage, and the rest, which only goes to the log.

    Agents of the protocol may send anything there, so that what can't be a metric is no error.
    """
    named = {name: float(value) for name, value in raw.items() if metric_problem(name, value) is None}
    if len(named) > MOST_METRICS:
        named = dict(islice(named.items(), MOST_METRICS))
    return named, {name: value for name, value in raw.items() if name not in named}


def _broken_rule(message: Any, error: str) -> str:
    """Explain a broken rule; a rare one in the validator's words."""
    if not isinstance(message, dict):
        return "the response is not an object"
    for name, rule in _RULES.items():
        if error.endswith((f"at `$.{name}`", f"field `{name}`")):
            wrong = f"is {cut(json_text(message[name]), 100)}" if name in message else "is missing"
            return f"`{name}` of the response {wrong}: {rule}"
    return f"response: {error}"


def _answer(response: _Response, artifacts: list[Artifact]) -> Any:
    """The answer in words: the structured artifact `output` or `response`, the field `output`, a lone text."""
    for name in ("output", "response"):
        for one in artifacts:
            if one.kind == "structured" and one.name == name:
                return one.data
    if response.output is not UNSET:
        return response.output
    texts = [one.text for one in artifacts if one.text is not None]
    return texts[0] if len(texts) == 1 else None
