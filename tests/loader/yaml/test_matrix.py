"""The matrix of an agent in a YAML suite: each mistake at its place."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from atp.loader.load import load_text
from atp.loader.schema import schema
from atp.suite.agent import Agent, CustomConfig
from atp.suite.matrix import MOST_COLUMNS

HEAD = """\
test_suite: s
agents:
  - name: web
    type: http
    config: {endpoint: "http://localhost:1"}
"""
TAIL = """
tests:
  - id: a
    name: A
    input: hi
"""


def mistakes(matrix: str) -> list[tuple[str, int, int, str]]:
    text = HEAD + "".join(f"    {line}\n" for line in dedent(matrix).strip().splitlines()) + TAIL
    loaded = load_text(text, "yaml")
    return [(one.code, one.line, one.column, one.message) for one in loaded.diagnostics]


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ("matrix: {timout: [1, 2]}", [("unknown-key", 6, 14, "unknown key `timout`")]),
        ("matrix: {retry: [1, x]}", [("wrong-type", 6, 25, "`retry` must be a whole number, found the text 'x'")]),
        ("matrix: {retry: [x, 1]}", [("wrong-type", 6, 22, "`retry` must be a whole number, found the text 'x'")]),
        ("matrix: {headers.A: [b, 1]}", [("wrong-type", 6, 29, "`A` must be text, found the number 1")]),
        ("matrix: {retry: []}", [("empty", 6, 21, "`retry` is empty")]),
        ("matrix: {}", [("empty", 6, 13, "`matrix` is empty")]),
        ("matrix: [1]", [("wrong-type", 6, 13, "`matrix` must be a mapping, found a list")]),
        ("matrix: {retry: 3}", [("wrong-type", 6, 21, "`retry` must be a list, found the number 3")]),
        ("matrix: {retry: [1, 2, 1]}", [("matrix-twice", 6, 21, "`retry`: 1 is there twice")]),
        ("matrix: {protocol: [atp, openai], model: [m]}", [("protocol-key", 5, 5, "")]),
        (
            "matrix: {retry: [1, x], timeout: [1, -1]}",
            [
                ("wrong-type", 6, 25, "`retry` must be a whole number, found the text 'x'"),
                ("out-of-range", 6, 42, "`timeout` must be more than 0, found the number -1"),
            ],
        ),
    ],
)
def test_mistakes_stand_at_the_value(matrix: str, expected: list[tuple[str, int, int, str]]) -> None:
    found = mistakes(matrix)
    if expected[0][0] == "protocol-key":  # a mistake of two values together: that it is found is what counts
        assert [one[0] for one in found] == ["protocol-key"]
    else:
        assert found == expected


def test_too_many_columns() -> None:
    values = ", ".join(map(str, range(1, 12)))
    (found,) = mistakes(f"matrix: {{retry: [{values}], timeout: [{values}]}}")
    assert found[:3] == ("matrix-size", 6, 13)
    assert f"121 combinations are more than the {MOST_COLUMNS} columns" in found[3]


def test_a_key_that_only_the_matrix_has() -> None:
    text = (
        HEAD.replace("config: {endpoint: ", "matrix: {endpoint: [").replace(':1"}', ':1", "http://localhost:2"]}')
        + TAIL
    )
    loaded = load_text(text, "yaml")
    assert loaded.suite is not None
    assert not loaded.diagnostics
    (agent,) = loaded.suite.agents
    assert [one.config.endpoint for _, one in agent.columns()] == ["http://localhost:1", "http://localhost:2"]


VALUES = st.lists(
    st.one_of(st.text(max_size=60), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)),
    min_size=1,
    max_size=5,
    unique_by=lambda value: (isinstance(value, bool), value),
)


@given(st.dictionaries(st.sampled_from(["a", "b", "token", "c.d"]), VALUES, min_size=1, max_size=3))
def test_columns_have_names_of_their_own_and_the_values(matrix: dict[str, list[object]]) -> None:
    number = 1
    for values in matrix.values():
        number *= len(values)
    if number > MOST_COLUMNS:
        return
    agent = Agent(name="x", type="custom", config=CustomConfig(entry="a.py:b"), matrix=matrix)
    columns = agent.columns()
    assert len(columns) == number
    assert len({column.name for _, column in columns}) == number
    for _, column in columns:
        for key, value in column.column_values.items():
            found = column.config
            for step in key.split("."):
                found = found[step]
            assert found == value


def test_the_schema_lets_a_matrix_give_what_a_configuration_needs() -> None:
    checker = Draft202012Validator(schema("yaml"))
    tests = [{"id": "a", "name": "A", "input": "hi"}]

    def fits(agent: dict[str, object]) -> bool:
        return checker.is_valid({"test_suite": "s", "agents": [{"name": "x", **agent}], "tests": tests})

    assert fits({"type": "prompt", "matrix": {"path": ["a.md", "b.md"]}})
    assert fits({"type": "prompt", "config": {"path": "a.md"}})
    assert not fits({"type": "prompt", "config": {}})
    assert not fits({"type": "prompt"})
    assert not fits({"type": "prompt", "config": {"path": "a.md"}, "matrix": {"path": []}})
