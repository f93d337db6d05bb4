"""`TestLoader` as document 1 shows it, for all dialects; and how a text without a name is recognised."""

from pathlib import Path

import pytest

from atp.loader import LoadError, TestLoader
from atp.loader.load import load_message, load_path, load_text, sniff

YAML = "test_suite: s\nagents: [{name: a, type: custom, config: {}}]\ntests: [{id: t, name: T, input: Hello}]\n"
JSONL = '{"id": "t", "input": "Hello"}\n'


def test_a_file_by_text_or_path(tmp_path: Path) -> None:
    file = tmp_path / "suite.yml"
    file.write_text(YAML)
    assert TestLoader().load_file(str(file)) == TestLoader().load_file(file)
    assert TestLoader().load_file(file).path == str(file)


def test_the_suite_answers_to_the_documents_names() -> None:
    suite = TestLoader(env={}).load_string(
        "test_suite: s\nversion: '2.3'\ndescription: d\ndefaults: {runs_per_test: 3, timeout_seconds: 60}\n"
        "agents: [{name: a, type: http, config: {endpoint: 'http://x', timeout: 30}}]\n"
        "tests: [{id: t, name: T, task: {description: Sell, input_data: {a: 1}}, constraints: {max_steps: 5}}]\n"
    )
    assert (suite.test_suite, suite.version, suite.description) == ("s", "2.3", "d")
    assert (suite.defaults.runs_per_test, suite.defaults.timeout_seconds) == (3, 60)
    assert (suite.agents[0].name, suite.agents[0].type, suite.agents[0].config.endpoint) == ("a", "http", "http://x")
    test = suite.tests[0]
    assert (test.id, test.name, test.constraints.max_steps) == ("t", "T", 5)
    assert test.task is not None
    assert (test.task.description, test.task.input_data) == ("Sell", {"a": 1})
    assert test.chains == [["Sell"]]


def test_mistakes_are_raised_with_all_diagnostics(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(YAML.replace("input", "inptu").replace("name: a", "nam: a"))
    with pytest.raises(LoadError) as caught:
        TestLoader().load_file(file)
    assert [(one.code, one.line, one.column) for one in caught.value.diagnostics] == [
        ("unknown-key", 2, 11),
        ("unknown-key", 3, 26),
    ]
    assert str(caught.value).splitlines()[1] == (
        f"{file}:3:26: error[unknown-key]: unknown key `inptu` (did you mean `input`?)"
    )


def test_warnings_are_raised_only_when_strict() -> None:
    warned = YAML.replace("input: Hello", "input: Hello, max_turns: 3")
    assert TestLoader().load_string(warned).tests[0].id == "t"
    with pytest.raises(LoadError) as caught:
        TestLoader(strict=True).load_string(warned)
    assert [one.code for one in caught.value.diagnostics] == ["max-turns-unused"]


def test_pytest_does_not_take_it_for_a_test() -> None:
    assert TestLoader.__test__ is False


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (YAML, "yaml"),
        ("# comment\n\n" + YAML, "yaml"),
        (JSONL, "jsonl"),
        ("// comment\n# more\n" + JSONL, "jsonl"),
        ("  {\n", "jsonl"),
        (f"[{JSONL}]", "json"),
        ("---\ntarget: agents/a.md\n---\n\n# Case\n", "markdown"),
        ("---\n" + YAML, "yaml"),
        ("", "yaml"),
    ],
)
def test_the_dialect_of_a_text_is_recognised(text: str, dialect: str) -> None:
    assert sniff(text) == dialect


def test_a_dialect_can_be_named() -> None:
    agents = '[{"name": "a", "type": "custom", "config": {}}]'
    flow = f'{{"test_suite": "s", "agents": {agents}, "tests": [{{"id": "t", "name": "T", "input": "x"}}]}}'
    assert TestLoader().load_string(flow, "yaml").test_suite == "s"


@pytest.mark.parametrize("dialect", ["yaml", "jsonl", "json"])
def test_equal_texts_give_equal_suites(dialect: str) -> None:
    text = {"yaml": YAML, "jsonl": JSONL, "json": f"[{JSONL}]"}[dialect]
    assert load_text(text).suite == load_text(f"\n{text}").suite
    assert load_text(text).suite != load_text(text.replace("Hello", "Bye")).suite


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_do_not_matter_in_yaml(end: str) -> None:
    text = YAML + "  \n" + "description: |\n  two\n  lines\n"
    assert load_text(text.replace("\n", end), "yaml").suite == load_text(text, "yaml").suite


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + YAML.replace("test_suite", "test_suit").encode())
    (one,) = load_path(file).diagnostics
    assert (one.code, one.line, one.column) == ("unknown-key", 1, 1)
    assert load_text("\ufeff" + YAML).ok


def test_columns_count_characters() -> None:
    (one,) = load_text(YAML.replace("name: T", "name: 'äö😀é', skip: maybe")).diagnostics
    assert (one.line, one.column) == (3, 37)


def test_a_message_is_a_suite_of_one_case() -> None:
    suite = load_message("How\nare you? " + "x" * 100)
    assert (suite.dialect, len(suite.cases)) == ("message", 1)
    assert suite.cases[0].input == "How\nare you? " + "x" * 100
    assert len(suite.cases[0].name) == 60
    assert suite.cases[0].name.startswith("How are you?")


def test_a_name_that_tells_no_dialect(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(YAML)
    (one,) = load_path(file).diagnostics
    assert (one.code, one.hint) == ("unknown-format", "use .yaml, .test.md, .jsonl or .json")


@pytest.mark.parametrize("name", ["SUITE.YAML", "suite.Yml"])
def test_endings_in_any_letter_case(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(YAML)
    assert TestLoader().load_file(file).test_suite == "s"


def test_the_models_answer_to_document_1s_names() -> None:
    suite = TestLoader(env={}).load_string(
        "test_suite: s\n"
        "agents: [{name: a, type: http, config: {endpoint: 'http://x'}}, {name: b, type: custom, config: {own: 1}}]\n"
        "tests: [{id: a, name: A, input: x, assertions: [{type: artifact_exists, config: {path: a.txt}, weight: 2}]}]\n"
    )
    assert suite.tests[0].assertions[0].config == {"path": "a.txt"}
    assert [suite.agents[0].config["endpoint"], suite.agents[1].config["own"]] == ["http://x", 1]
    config = suite.agents[0].config
    assert ("endpoint" in config, "api_key" in config, "nothing" in config) == (True, False, False)
    assert (config.get("endpoint"), config.get("nothing"), config.get("api_key", "none")) == ("http://x", None, "none")
    assert dict(config) == {"endpoint": "http://x", "protocol": "atp", "verify_ssl": True, "headers": {}}
    assert list(config) == list(config.keys()) == [key for key, _ in config.items()]
    assert len(config) == len(list(config.values())) == 4
    assert "own" in suite.agents[1].config
    with pytest.raises(KeyError):
        suite.agents[0].config["nothing"]
    assert (suite.defaults.runs_per_test, suite.defaults.timeout_seconds) == (1, 300)
    assert suite.tests[0].constraints.timeout_seconds == 300
    assert suite.tests[0].runs is None, "a flag may still say how often"


def test_a_default_that_is_shown_is_not_given() -> None:
    """The engine asks for what is given: the suite's default and `--timeout` go before a default of the format."""
    head = "test_suite: s\nagents: [{name: a, type: custom, config: {entry: 'a.py:a'}}]\n"
    tests = "tests: [{id: a, name: A, input: x}, {id: b, name: B, input: x, constraints: {timeout_seconds: 300}}]\n"
    suite = TestLoader().load_string(head + tests)
    assert [case.limits.timeout_seconds for case in suite.tests] == [300, 300]
    assert [case.limits.given() for case in suite.tests] == [{}, {"timeout_seconds": 300}]
    assert suite.defaults.given() == {}
    wide = TestLoader().load_string(head + "defaults: {timeout_seconds: 60, runs_per_test: 1}\n" + tests)
    assert [case.limits.timeout_seconds for case in wide.tests] == [60, 300]
    assert [case.runs for case in wide.tests] == [1, 1]
    nulls = TestLoader().load_string(head + "defaults: {timeout_seconds: null, constraints: null}\n" + tests)
    assert nulls.defaults.given() == {}
    assert nulls.defaults.timeout_seconds == 300
