"""Every JSONL example of documents 4 and 5 loads, and the two dialects say the same."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from atp.loader import TestLoader
from atp.loader.load import load_text
from atp.loader.outline import outline
from atp.suite import Case, Suite

Atp = Callable[..., CompletedProcess[str]]

FOLDER = Path(__file__).parent / "jsonl"


def cases_in(name: str) -> list[Case]:
    return TestLoader(strict=True).load_file(FOLDER / "cases" / name).cases


def objects(text: str) -> Iterator[Any]:
    """The JSON objects of a text without comments, one after the other."""
    decoder = json.JSONDecoder()
    position = 0
    while text[position:].strip():
        position += len(text[position:]) - len(text[position:].lstrip())
        value, position = decoder.raw_decode(text, position)
        yield value


EXAMPLES = {
    "document-4-input-format.jsonl": ["T001", "T002", "T003", "T004", "T005", "T006"],
    "document-4-simple-contains-check.jsonl": ["T001"],
    "document-4-json-path-validation.jsonl": ["T002"],
    "document-4-multiple-assertions.jsonl": ["T003"],
    "document-4-custom-script-assertion.jsonl": ["T004"],
    "document-4-negated-assertion.jsonl": ["T005"],
    "document-4-environment-override.jsonl": ["T001", "T002", "T003"],
    "document-5-simple-input.jsonl": ["T001"],
    "document-5-message-history.jsonl": ["T002"],
    "document-5-points-in-a-conversation.jsonl": ["expense-turn1", "expense-turn2", "expense-turn3"],
    "document-5-attachments.jsonl": ["T003"],
    "document-5-dynamic-mode.jsonl": ["T004"],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_loads(name: str) -> None:
    assert [case.id for case in cases_in(name)] == EXAMPLES[name]


def test_all_examples_are_covered_here() -> None:
    assert set(EXAMPLES) == {path.name for path in (FOLDER / "cases").iterdir()}


ASSERTIONS = [
    pytest.param(one, id=f"{path.stem}-{number}")
    for path in sorted((FOLDER / "assertions").iterdir())
    for number, one in enumerate(objects(path.read_text()))
]


@pytest.mark.parametrize("assertion", ASSERTIONS)
@pytest.mark.parametrize("key", ["assert", "assertions"])
def test_an_assertion_loads_in_a_minimal_case(assertion: dict[str, Any], key: str) -> None:
    for form in (assertion, [assertion]):
        (case,) = TestLoader(strict=True).load_string(json.dumps({"id": "a", "input": "Hello", key: form})).cases
        (one,) = case.assertions
        assert one.type == assertion["type"]


def test_all_rows_of_the_tables_are_covered() -> None:
    assert len(ASSERTIONS) == 7 + 6 + 2


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        ("Hello world", [{"role": "user", "content": "Hello world"}]),
        ({"role": "user", "content": "..."}, [{"role": "user", "content": "..."}]),
        (
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
        ),
    ],
)
def test_input_types_of_document_4(given: Any, messages: Any) -> None:
    (case,) = TestLoader(strict=True).load_string(json.dumps({"id": "a", "input": given})).cases
    assert [message.wire() for message in case.messages] == messages


def test_document_4_in_detail() -> None:
    first, second, third, fourth, fifth, sixth = cases_in("document-4-input-format.jsonl")
    assert first.input == "Simple text input"
    assert second.input == "Message with role"
    assert third.messages[0].text == "ContentPart array"
    assert [message.role for message in fourth.messages] == ["user", "assistant", "user"]
    assert fifth.expected == {"keywords": ["keyword1", "keyword2"]}
    assert (sixth.user, sixth.team) == ("admin", "ops-team")
    default, both, user = cases_in("document-4-environment-override.jsonl")
    assert (default.user, default.team) == (None, None)
    assert (both.user, both.team) == ("admin", "admin-team")
    assert (user.user, user.team) == ("special-user", None)
    (negated,) = cases_in("document-4-negated-assertion.jsonl")
    assert negated.assertions[0].negate


def test_document_5_in_detail() -> None:
    (dynamic,) = cases_in("document-5-dynamic-mode.jsonl")
    assert dynamic.mode == "dialogue"
    assert dynamic.simulator is not None
    assert dynamic.simulator.use == "workers.test.user-simulator"
    assert dynamic.simulator.options is not None
    assert dynamic.simulator.options.metadata["goal"] == "Submit a $3500 travel expense"
    assert [(one.id, one.after, one.assertion.type) for one in dynamic.checkpoints] == [
        ("ask_type", [], "contains"),
        ("call_create", ["ask_type"], "tool_called"),
        ("confirm", ["call_create"], "contains"),
    ]
    assert (dynamic.max_turns, dynamic.limits.timeout_seconds) == (10, 120)
    turns = cases_in("document-5-points-in-a-conversation.jsonl")
    assert [len(case.messages) for case in turns] == [1, 3, 5]
    assert [case.place.line for case in turns] == [2, 11, 22]
    (attachment,) = cases_in("document-5-attachments.jsonl")
    assert [part["type"] for part in attachment.messages[0].wire()["content"]] == ["text", "image"]


# Both dialects side by side

CONVERSATION = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b"},
    {"role": "user", "content": "c"},
]
DIALOGUE: dict[str, Any] = {"id": "a", "simulator": {"use": "s"}}
SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "assert and assertions, an object and a list": (
        {"id": "a", "input": "x", "assert": {"type": "contains", "value": "y"}},
        {"id": "a", "input": "x", "assertions": [{"type": "contains", "value": "y"}]},
    ),
    "input and messages": (
        {"id": "a", "input": "Hello"},
        {"id": "a", "messages": [{"role": "user", "content": "Hello"}]},
    ),
    "a message and a list of one": (
        {"id": "a", "input": {"role": "user", "content": "Hello"}},
        {"id": "a", "messages": [{"role": "user", "content": "Hello"}]},
    ),
    "a conversation": (
        {"id": "a", "input": CONVERSATION},
        {"id": "a", "messages": CONVERSATION},
    ),
    "regex value and pattern": (
        {"id": "a", "input": "x", "assert": {"type": "regex", "value": "a+"}},
        {"id": "a", "input": "x", "assertions": [{"type": "regex", "pattern": "a+"}]},
    ),
    "tool_called name and value": (
        {"id": "a", "input": "x", "assert": {"type": "tool_called", "value": "t"}},
        {"id": "a", "input": "x", "assertions": [{"type": "tool_called", "name": "t"}]},
    ),
    "checkpoint assert and assertion": (
        DIALOGUE | {"checkpoints": [{"id": "c", "assert": {"type": "regex", "value": "a"}}]},
        DIALOGUE | {"checkpoints": [{"id": "c", "assertion": {"type": "regex", "pattern": "a"}}]},
    ),
    "script and use": (
        {"id": "a", "input": "x", "assert": {"type": "script", "script": "scripts:test.Assert"}},
        {"id": "a", "input": "x", "assertions": [{"type": "script", "use": "scripts:test.Assert"}]},
    ),
    "a timeout in seconds and with a unit": (
        {"id": "a", "input": "x", "timeout": 120},
        {"id": "a", "input": "x", "timeout": "2m"},
    ),
    "keys in another order": (
        {"id": "a", "input": "x", "metadata": {"a": 1, "b": 2}},
        {"metadata": {"b": 2, "a": 1}, "input": "x", "id": "a"},
    ),
}


def read(record: dict[str, Any]) -> tuple[Suite, Any]:
    loaded = load_text(json.dumps(record), "jsonl")
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    return loaded.suite, outline(loaded)["cases"]


@pytest.mark.parametrize("what", SAME)
def test_both_spellings_give_equal_suites(what: str) -> None:
    one, other = SAME[what]
    assert read(one) == read(other)


def test_what_is_different_is_not_equal() -> None:
    assert read({"id": "a", "input": "x"})[0] != read({"id": "a", "input": "y"})[0]


def test_show_prints_the_same_cases_for_both(atp: Atp, tmp_path: Path) -> None:
    names = ("four.jsonl", "five.jsonl")
    for number, name in enumerate(names):
        records = (json.dumps({**pair[number], "id": str(line)}) for line, pair in enumerate(SAME.values()))
        (tmp_path / name).write_text("\n".join(records))
    four, five = (json.loads(atp("show", "--json", str(tmp_path / name)).stdout) for name in names)
    assert len(four["cases"]) == len(SAME)
    assert four["cases"] == five["cases"]
    assert four["diagnostics"] == five["diagnostics"] == []


def test_a_yaml_test_says_the_same_as_a_jsonl_record() -> None:
    check = {"type": "regex", "value": "a"}
    record = {"id": "a", "name": "A", "input": "x", "assert": check, "timeout": "5m", "tags": ["t"]}
    suite = {"test_suite": "s", "agents": [{"name": "b", "type": "custom", "config": {}}], "tests": [record]}
    assert TestLoader().load_string(json.dumps(suite), "yaml").cases == read(record)[0].cases
