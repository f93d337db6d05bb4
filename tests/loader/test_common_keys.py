"""The keys that a case takes in every dialect, and that they mean the same in each."""

import json
from typing import Any

import pytest

from atp.loader import TestLoader
from atp.suite import Case

COMMON: dict[str, Any] = {
    "tags": ["smoke"],
    "skip": True,
    "runs": 3,
    "timeout": "90s",
    "user": "somebody",
    "team": "ops",
    "metadata": {"a": [1, None]},
    "options": {"connector": "gpt", "metadata": {"k": "v"}, "further": 1},
    "constraints": {"max_steps": 5, "allowed_tools": ["a"]},
    "scoring": {"quality_weight": 0.3, "cost_weight": 0.2},
    "min_score": 70,
    "pass_rate": 0.8,
    "workspace": "fixtures/shop",
    "before_hook": "hooks:before",
    "after_hook": "hooks:after",
    "name": "A name",
    "description": "A description",
    "expectations": ["it was nice"],
    "expected": {"a": 1},
    "assertions": [{"type": "contains", "value": "x"}],
}
SAYS: dict[str, Any] = {
    "task": {"description": "Sell", "input_data": {"a": 1}, "expected_artifacts": ["a.txt"]},
    "input": "Hello",
    "messages": [{"role": "user", "content": [{"type": "image", "source": "file://a.png"}]}],
    "simulator": {"use": "sim", "options": {"metadata": {"goal": "g"}}},
}


def in_jsonl(record: dict[str, Any]) -> Case:
    (case,) = TestLoader(strict=True).load_string(json.dumps(record), "jsonl").cases
    return case


def in_json(record: dict[str, Any]) -> Case:
    (case,) = TestLoader(strict=True).load_string(json.dumps([record]), "json").cases
    return case


def in_yaml(record: dict[str, Any]) -> Case:
    suite = {"test_suite": "s", "agents": [{"name": "a", "type": "custom", "config": {}}], "tests": [record]}
    (case,) = TestLoader(strict=True).load_string(json.dumps(suite), "yaml").cases
    return case


@pytest.mark.parametrize("key", COMMON)
def test_a_common_key_means_the_same_in_every_dialect(key: str) -> None:
    record = {"id": "one", "name": "One", "input": "Hello", key: COMMON[key]}
    plain = {"id": "one", "name": "One", "input": "Hello"}
    assert in_yaml(record) == in_jsonl(record) == in_json(record)
    assert in_yaml(record) != in_yaml(plain)


@pytest.mark.parametrize("key", SAYS)
def test_what_is_said_means_the_same_in_every_dialect(key: str) -> None:
    record = {"id": "one", "name": "One", key: SAYS[key]}
    if key == "simulator":
        record |= {"checkpoints": [{"id": "c", "assertion": {"type": "regex", "value": "x"}}], "max_turns": 3}
    assert in_yaml(record) == in_jsonl(record) == in_json(record)


def test_all_of_them_at_once() -> None:
    record = {"id": "one", "input": "Hello", **COMMON}
    case = in_yaml(record)
    assert case == in_jsonl(record)
    assert (case.runs, case.limits.timeout_seconds, case.limits.max_steps) == (3, 90, 5)
    assert case.options is not None
    assert case.options.model_dump(exclude_none=True) == COMMON["options"]
