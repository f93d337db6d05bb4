"""The conformance suite: the same cases must give the same verdicts for every kind of agent with the same behaviour.

For authors of a kind of agent: make an agent of the kind with the behaviour of `BEHAVIOUR`, write the suite with that
agent, run it, and look for differences.

    suite = conformance.write_suite(folder, {"name": "mine", "type": "parrot", "config": {…}})
    report = atp.run_sync(atp.load(suite))
    assert conformance.differences(report.results) == []
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atp.base.text import cut
from atp.suite.result import Blame, CaseResult, Status, TrialResult
from atp.testing.reference.behaviour import BIG, DATA, ODD, REASON

BEHAVIOUR = Path(__file__).parent / "reference" / "behaviour.py"
"""The reference agent: one file without dependencies, to be copied or imported."""
FEATURES = ("artifacts", "cost", "data", "steps", "tokens", "tools", "turns", "workspace")
"""Features that a kind of agent may lack. Each case has the features that it needs."""
USER = "conformance-user"
"""The name of the agent that simulates the user of a dialogue."""
_USER_FILE = "conformance_user.py"
_USER = '''"""Simulates the user of a dialogue."""

import json

LINES = ["hear one", "hear zwei ✓", "hear three"]


def user(prompt):
    turn = json.loads(prompt)["turn_number"]
    return {"input": LINES[turn - 1] if turn <= len(LINES) else "", "goal_achieved": turn >= len(LINES)}
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The result that a case must have."""

    status: Status = "passed"
    blame: Blame | None = None
    says: str = ""
    """Text that the reason must contain."""


@dataclass(frozen=True, slots=True)
class ConformanceCase:
    """A case and the result that it must have."""

    case: Mapping[str, Any]
    """The case as in a YAML suite."""
    expected: Expected
    needs: tuple[str, ...] = ()
    """Those of `FEATURES` that the case needs."""


def _case(name: str, said: str | None, *checks: Mapping[str, Any], needs: str = "", **more: Any) -> ConformanceCase:
    expected = more.pop("expected", Expected())
    asked = {} if said is None else {"input": said}
    case = {"id": name, "name": name, **asked, **({"assertions": list(checks)} if checks else {}), **more}
    return ConformanceCase(case, expected, tuple(needs.split()))


def _equals(value: Any) -> dict[str, Any]:
    return {"type": "equals", "value": value}


_LARGE = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": BIG, "maxLength": BIG, "pattern": "^ü+$"}},
    "required": ["text"],
    "additionalProperties": False,
}
_HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Yes?"},
    {"role": "user", "content": "roles"},
]
CASES: tuple[ConformanceCase, ...] = (
    _case("echo", "echo Hello there", _equals("Hello there")),
    _case("wrong", "echo left", _equals("right"), expected=Expected(status="failed", says="right")),
    _case("nothing", "nothing", _equals("")),
    _case("unicode", "odd", _equals(ODD)),
    _case("unicode-in", f"echo {ODD}", _equals(ODD)),
    _case("json", "json", _equals(DATA), {"type": "json_path", "path": "$.list[1]", "value": 2.5}),
    _case("large", "big", {"type": "json_schema", "schema": _LARGE}),
    _case("history", None, _equals("system, user, assistant, user"), needs="turns", messages=_HISTORY),
    _case(
        "turns",
        None,
        needs="turns",
        simulator={"use": USER, "options": {"metadata": {"goal": "be heard"}}},
        checkpoints=[
            {"id": "first", "assertion": _equals("hear one")},
            {"id": "second", "after": ["first"], "assertion": _equals("hear one | hear zwei ✓")},
            {"id": "third", "after": ["second"], "assertion": _equals("hear one | hear zwei ✓ | hear three")},
        ],
    ),
    _case(
        "data",
        None,
        _equals({"value": {"deep": [1, "zwei ✓"]}}),
        needs="data",
        task={"description": "data", "input_data": {"value": {"deep": [1, "zwei ✓"]}}},
    ),
    _case(
        "tools",
        "tools",
        _equals("2 found"),
        {"type": "tool_called", "name": "search", "arguments": {"query": "räin"}, "times": 1},
        {"type": "tool_result", "name": "search", "value": {"found": 2}},
        {"type": "tool_called", "name": "delete", "after": "search"},
        {"type": "not_tool_called", "name": "rename"},
        needs="tools",
    ),
    _case(
        "failed-tool",
        "tools",
        {"type": "behavior", "check": "no_errors"},
        needs="tools",
        expected=Expected(status="failed", says="delete"),
    ),
    _case(
        "forbidden-tool",
        "tools",
        needs="tools",
        constraints={"allowed_tools": ["search"]},
        expected=Expected(status="failed", says="delete"),
    ),
    _case(
        "steps",
        "loop",
        needs="tools steps",
        constraints={"max_steps": 3},
        expected=Expected(status="failed", says="max_steps"),
    ),
    _case("tokens", "think", _equals("thought"), needs="tokens", constraints={"max_tokens": 250}),
    _case(
        "too-many-tokens",
        "think",
        needs="tokens",
        constraints={"max_tokens": 249},
        expected=Expected(status="failed", says="max_tokens"),
    ),
    _case("cost", "spend", _equals("spent"), needs="cost", constraints={"budget_usd": 0.03}),
    _case(
        "too-dear",
        "spend",
        needs="cost",
        constraints={"budget_usd": 0.01},
        expected=Expected(status="failed", says="budget_usd"),
    ),
    _case(
        "workspace",
        "write",
        {"type": "artifact_exists", "path": "notes/ünï.txt", "contains": "kept ✓"},
        needs="workspace",
    ),
    _case(
        "artifacts",
        "make",
        {"type": "artifact_exists", "path": "made/ünï.txt", "contains": "made ✓"},
        {"type": "artifact_exists", "path": "summary", "json_schema": {"type": "object", "required": ["list"]}},
        needs="artifacts",
    ),
    _case("fails", "fail", expected=Expected(status="error", blame="agent", says=REASON)),
    _case("dies", "die", expected=Expected(status="error", blame="agent")),
    _case("times-out", "sleep", timeout="3s", expected=Expected(status="timeout", says="timeout after 3s")),
)
"""The cases, a reply of ten megabytes, a time limit and a stop in the middle of work included."""


def cases(without: Iterable[str] = ()) -> list[ConformanceCase]:
    """Return the cases for a kind without some `FEATURES`."""
    lacking = set(without)
    if unknown := lacking - set(FEATURES):
        raise ValueError(f"no such feature: {', '.join(sorted(unknown))}; there are {', '.join(FEATURES)}")
    return [one for one in CASES if not lacking & set(one.needs)]


def write_suite(folder: Path, *agents: Mapping[str, Any], without: Iterable[str] = ()) -> Path:
    """Write the suite for these agents (`name`, `type`, `config`), and the file of the simulated user.

    Cases that need one of the features in `without` are left out. Returns the suite's file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _USER_FILE).write_text(_USER, encoding="utf-8")
    suite = folder / "conformance.yaml"
    names = [one["name"] for one in agents]
    tests = [{**one.case, "agents": names} for one in cases(without)]
    user = {"name": USER, "type": "custom", "config": {"entry": f"{_USER_FILE}:user"}}
    content = {"test_suite": "conformance", "agents": [*map(dict, agents), user], "tests": tests}
    text = json.dumps(content, ensure_ascii=False, indent=1)  # YAML reads JSON, except for a bare line separator
    suite.write_text(text.replace("\u2028", "\\u2028"), encoding="utf-8")
    return suite


def differences(results: Iterable[CaseResult], without: Iterable[str] = ()) -> list[str]:
    """Return what differs from the expected results, missing cases included; nothing if the kind conforms."""
    wanted = {str(one.case["id"]): one.expected for one in cases(without)}
    by_agent: dict[str, dict[str, CaseResult]] = {}
    for result in results:
        by_agent.setdefault(result.agent, {})[result.case] = result
    found = [] if by_agent else ["there are no results"]
    for agent, of_agent in by_agent.items():
        ran = {name for name, result in of_agent.items() if result.trials}
        found += [f"{agent}: {name}: it did not run" for name in wanted if name not in ran]
        for name, result in of_agent.items():
            if name in wanted:
                found += [f"{agent}: {name}: {why}" for trial in result.trials for why in _differs(trial, wanted[name])]
    return found


def _differs(trial: TrialResult, expected: Expected) -> list[str]:
    found = []
    if (trial.status, trial.blame) != (expected.status, expected.blame):
        came = trial.status if trial.blame is None else f"{trial.status} ({trial.blame})"
        must = expected.status if expected.blame is None else f"{expected.status} ({expected.blame})"
        found.append(f"{came} instead of {must}: {cut(trial.error or '', 500)}")
    elif expected.says not in (trial.error or ""):
        found.append(f"its reason doesn't say {expected.says!r}: {cut(trial.error or '', 500)}")
    unjudged = [one.message for one in trial.verdicts if one.outcome == "unjudged"]
    return [*found, *(f"unjudged: {one}" for one in unjudged)]
