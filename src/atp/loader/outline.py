"""Shows what was understood of a file, as plain data and as text."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from atp.base.secrets import secrets_of
from atp.base.text import cut
from atp.loader.load import Loaded
from atp.suite.agent import Agent
from atp.suite.assertion import Assertion
from atp.suite.case import Case, Weights
from atp.suite.expectation import read_expectation
from atp.suite.record import Record
from atp.suite.suite import Suite

if TYPE_CHECKING:
    from atp.loader.markdown.lines import Line

Exact = Callable[[Case], list[tuple[str | None, str | None]]]
"""For each expectation of a case: the exact check that it stands for, and a wording that would have one."""


def outline(loaded: Loaded, exact: Exact | None = None, by_line: bool = False) -> dict[str, Any]:
    """The suite, its cases and the diagnostics of a file.

    With `exact`, also the checks that expectations stand for; with `by_line`, what became of each line of Markdown.
    """
    suite = loaded.suite
    head = suite_outline(suite) if suite else {"path": loaded.path}
    cases = [case_outline(case) for case in suite.cases] if suite else []
    for plain_case, case in zip(cases, suite.cases if suite else (), strict=True):
        if exact is not None and case.expectations:
            found = exact(case)
            plain_case["exact"] = [check for check, _ in found]
            if any(wording for _, wording in found):
                plain_case["exact_if"] = [wording for _, wording in found]
    diagnostics = [one.as_dict() for one in loaded.diagnostics]
    plain = {"suite": head, "cases": cases, "diagnostics": diagnostics}
    if by_line:
        plain["lines"] = [asdict(one) for one in loaded.lines() or ()]
    return secrets_of(suite.secrets).mask(plain, numbers=True) if suite else plain


def suite_outline(suite: Suite) -> dict[str, Any]:
    """The suite without its cases."""
    head: dict[str, Any] = {key: getattr(suite, key) for key in ("name", "dialect", "path", "version", "description")}
    head["agents"] = [_agent_outline(agent) for agent in suite.agents]
    given = suite.defaults.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    head["defaults"] = given | _weights(suite.defaults.scoring)
    return head | _given_values(suite, leave_out={"cases", *head})


def _agent_outline(agent: Agent) -> dict[str, Any]:
    """The keys that an agent has, and the names of its columns if it has a matrix."""
    plain = _given_values(agent) | {"config": _given_values(agent.config)}
    return plain | ({"columns": agent.column_names} if agent.matrix else {})


def case_outline(case: Case) -> dict[str, Any]:
    """The keys that a case has."""
    plain = {key: getattr(case, key) for key in ("index", "id", "name", "path", "intent", "tags", "chains")}
    plain["messages"] = [message.wire() for message in case.messages]
    plain["expectations"] = case.expectations
    plain["assertions"] = [assertion_outline(one) for one in case.assertions]
    plain["checkpoints"] = [
        _given_values(one) | {"id": one.id, "assertion": assertion_outline(one.assertion)} for one in case.checkpoints
    ]
    plain["befores"], plain["before_sequence"] = case.befores, case.before_sequence
    plain["limits"] = case.limits.given()
    return plain | _given_values(case, leave_out=set(plain)) | _weights(case.scoring)


def _weights(scoring: Weights | None) -> dict[str, Any]:
    """All four weights where a file gives any: one that is its default counts, too."""
    return {} if scoring is None else {"scoring": scoring.model_dump()}


def assertion_outline(assertion: Assertion) -> dict[str, Any]:
    """The keys that an assertion has, in one spelling."""
    plain = _given_values(assertion)
    if "value" in assertion.model_fields_set:
        plain.setdefault("value", None)  # a null that is expected is not the same as nothing expected
    inner = getattr(assertion, "assertions", None)
    if isinstance(inner, list):
        plain["assertions"] = [assertion_outline(one) for one in inner]
    return {"type": assertion.type, **plain}


def _given_values(record: Record, leave_out: set[str] | None = None) -> dict[str, Any]:
    return record.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=leave_out)


def text(loaded: Loaded, exact: Exact | None = None) -> Iterator[str]:
    """The outline as lines of text."""
    suite = loaded.suite
    if suite is None:
        return
    plain = outline(loaded, exact)
    head = plain["suite"]
    yield f"{head['name']}  ({suite.dialect}, {suite.path or 'no file'})"
    if suite.description:
        yield f"  {head['description']}"
    for agent in head["agents"]:
        yield f"  agent {agent['name']} ({agent['type']})"
        yield from (f"    {column}" for column in agent.get("columns", ()))
    if suite.target:
        yield f"  target {suite.target}, assessor {suite.assessor or 'not named'}"
    for case in plain["cases"]:
        yield ""
        yield from _case_text(case)


def lines_text(loaded: Loaded) -> Iterator[str]:
    """The lines of a Markdown file, each beside what it was read as."""
    lines = loaded.lines() or []
    roles = [_role(one) for one in lines]
    secrets = secrets_of(loaded.suite.secrets if loaded.suite else ())
    wide = max(map(len, roles), default=0)
    for one, role in zip(lines, roles, strict=True):
        yield f"{one.number:>4}  {role:<{wide}} | {secrets.mask_text(one.text)}".rstrip()


def _role(line: "Line") -> str:
    """What a line was read as, with the codes of its diagnostics or the line of the one that stands for it."""
    if line.codes:
        return f"{line.role} ! {', '.join(line.codes)}".lstrip()
    return f"{line.role}, see line {line.reported}" if line.reported else line.role


def _case_text(case: dict[str, Any]) -> Iterator[str]:
    name = f"  {case['name']}" if case["name"] != case["id"] else ""
    tags = f"  [{', '.join(case['tags'])}]" if case["tags"] else ""
    yield f"{case['index']:>3}  {case['id']}{name}{tags}{'  (skipped)' if case.get('skip') else ''}"
    if case.get("intent"):
        yield f"     intent: {_short(case['intent'])}"
    for chain in case["chains"]:
        yield f"     says: {' → '.join(_short(prompt) for prompt in chain)}"
    for message in case["messages"]:
        yield f"     {message['role']}: {_short(message.get('content'))}"
    for one in case["assertions"]:
        rest = ", ".join(f"{key}={_short(value)}" for key, value in one.items() if key != "type")
        yield f"     checks: {one['type']}{f' ({rest})' if rest else ''}"
    if case.get("expected") is not None:
        yield f"     expected: {_short(case['expected'])}"
    if artifacts := (case.get("task") or {}).get("expected_artifacts"):
        yield f"     makes: {', '.join(map(_short, artifacts))}"
    for one, check, wording in zip_longest(case["expectations"], case.get("exact", ()), case.get("exact_if", ())):
        by_judge = "a judge decides by its own turns" if read_expectation(one).own_turns else ""
        hint = f" ({by_judge or 'a judge decides'}; exact if it says: {wording})" if wording else ""
        hint = hint or (f" ({by_judge})" if by_judge else "")
        yield f"     expects: {_short(one)}{f' → {check}' if check else hint}"
    for one in case["checkpoints"]:
        after = f" after {', '.join(one['after'])}" if one.get("after") else ""
        yield f"     reaches: {one['id']} ({one['assertion']['type']}){after}"
    if case["before_sequence"]:
        yield f"     after cases: {', '.join(map(str, case['before_sequence']))}"
    if case.get("runs"):
        yield f"     runs: {case['runs']}"
    if case["limits"]:
        yield f"     limits: {', '.join(f'{key} {_short(value)}' for key, value in case['limits'].items())}"


def _short(value: Any, most: int = 100) -> str:
    return cut(" ".join(str(value).split()), most)
