"""Every YAML example of document 1 loads, and says what it says.

Complete suites stand in `yaml/complete`; fragments of a suite in `yaml/suite`, of a test in `yaml/test`. Where a block
of the document shows alternatives, each has a file of its own. Blocks that only describe types are left out.
"""

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
import yaml

from atp.loader import Loaded, TestLoader
from atp.loader.load import load_path, load_text
from atp.loader.outline import outline
from atp.loader.source import LoadContext

FOLDER = Path(__file__).parent / "yaml"
ENV = {
    "API_ENDPOINT": "https://api.production.com",
    "API_KEY": "secret-key-123",
    "BASELINE_ENDPOINT": "https://baseline.example.com",
    "TEST_ENDPOINT": "https://test.example.com",
    "TEST_USER": "somebody",
    "TEST_PASSWORD": "hunter2-hunter2",
}
MINIMAL = {
    "test_suite": "test_suite: minimal\n",
    "agents": "agents:\n  - name: agent\n    type: custom\n    config: {}\n",
    "tests": "tests:\n  - id: one\n    name: One\n    task: {description: Do it}\n",
}
"""What a suite needs at least."""
MINIMAL_TEST = {"id": "id: one\n", "name": "name: One\n", "task": "task: {description: Do it}\n"}


def files(level: str) -> list[str]:
    return sorted(path.name for path in (FOLDER / level).iterdir())


def in_a_suite(fragment: str) -> str:
    """A suite with the fragment in it; an agent without a `type` is a custom one."""
    if "agents:" in fragment and "type:" not in fragment:
        fragment = fragment.replace("    config:", "    type: custom\n    config:")
    return fragment + "".join(text for key, text in MINIMAL.items() if f"{key}:" not in fragment)


def in_a_test(fragment: str) -> str:
    """A suite with a test that has the fragment in it."""
    given = yaml.safe_load(fragment)
    test = "".join(text for key, text in MINIMAL_TEST.items() if key not in given) + fragment
    return MINIMAL["test_suite"] + MINIMAL["agents"] + "tests:\n  -\n" + indent(test, "    ")


def load(text: str, env: dict[str, str] | None = None) -> Loaded:
    loaded = load_text(text, "yaml", LoadContext(env=ENV if env is None else env))
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    return loaded


@pytest.mark.parametrize("name", files("complete"))
def test_a_complete_suite_loads(name: str) -> None:
    path = FOLDER / "complete" / name
    loaded = load_path(path, LoadContext(env=ENV))
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    written = yaml.safe_load(path.read_text())
    assert loaded.suite.test_suite == written["test_suite"]
    assert [agent.name for agent in loaded.suite.agents] == [agent["name"] for agent in written["agents"]]
    for test, said in zip(loaded.suite.tests, written["tests"], strict=True):
        assert test.task is not None
        assert (test.id, test.name, test.task.description) == (said["id"], said["name"], said["task"]["description"])
        assert test.tags == said.get("tags", [])
        assert test.task.expected_artifacts == said["task"].get("expected_artifacts")
        assert [one.type for one in test.assertions] == [one["type"] for one in said.get("assertions", [])]


@pytest.mark.parametrize("name", files("suite"))
def test_a_fragment_of_a_suite_loads(name: str) -> None:
    fragment = (FOLDER / "suite" / name).read_text()
    loaded = load(in_a_suite(fragment))
    suite = outline(loaded)["suite"]
    for key, value in yaml.safe_load(fragment).items():
        match key:
            case "test_suite":
                assert suite["name"] == value
            case "version" | "description":
                assert suite[key] == value
            case "defaults":
                assert loaded.suite is not None
                assert loaded.suite.defaults.model_dump(exclude_none=True) == value | {
                    "constraints": loaded.suite.defaults.constraints
                    and loaded.suite.defaults.constraints.model_dump(exclude_none=True),
                }
                assert loaded.suite.defaults.constraints is not None
                assert loaded.suite.defaults.constraints.given() == value["constraints"]
            case "agents":
                assert [agent["name"] for agent in suite["agents"]] == [agent["name"] for agent in value]
                assert suite["agents"][0]["config"].keys() == value[0]["config"].keys()
            case "tests":
                assert [case["id"] for case in outline(loaded)["cases"]] == [test["id"] for test in value]


@pytest.mark.parametrize("name", files("test"))
def test_a_fragment_of_a_test_loads(name: str) -> None:
    fragment = (FOLDER / "test" / name).read_text()
    loaded = load(in_a_test(fragment))
    assert loaded.suite is not None
    (test,) = loaded.suite.tests
    for key, value in yaml.safe_load(fragment).items():
        found: Any = getattr(test, key)
        match key:
            case "task":
                found = test.task and test.task.model_dump(exclude_none=True)
            case "constraints":
                found = test.constraints.given()
            case "scoring":
                found = test.scoring and test.scoring.model_dump()
            case "assertions":
                found = [
                    {"type": one.pop("type"), "config": one}
                    for one in (
                        assertion.model_dump(exclude_unset=True, by_alias=True) for assertion in test.assertions
                    )
                ]
        assert found == value


def test_the_fixtures_are_all_there() -> None:
    assert (len(files("complete")), len(files("suite")), len(files("test"))) == (3, 15, 26)


# Variables


def load_fragment(name: str, env: dict[str, str]) -> dict[str, Any]:
    return outline(load(in_a_suite((FOLDER / "suite" / name).read_text()), env))


def config(name: str, env: dict[str, str]) -> Any:
    return load_fragment(name, env)["suite"]["agents"][0]["config"]


def test_defaults_stand_in_for_variables_and_are_typed() -> None:
    assert config("substitution-with-defaults.yaml", {}) == {
        "endpoint": "http://localhost:8000",
        "timeout": 30,
        "debug": False,
    }


def test_values_of_variables_stay_text() -> None:
    env = {"API_ENDPOINT": "http://x", "TIMEOUT": "60", "DEBUG": "true"}
    assert config("substitution-with-defaults.yaml", env) == {"endpoint": "http://x", "timeout": "60", "debug": "true"}


def test_a_default_serves_the_nested_example() -> None:
    assert config("nested-substitution.yaml", {}) == {
        "base_url": "https://api.example.com",
        "endpoints": {"chat": "https://api.example.com/chat", "search": "https://api.example.com/search"},
    }


def test_secrets_are_masked() -> None:
    assert config("basic-substitution.yaml", ENV) == {"endpoint": "https://api.production.com", "api_key": "***"}
    data = load_fragment("substitution-in-task-data.yaml", ENV)["cases"][0]["task"]["input_data"]
    assert data == {
        "endpoint": "https://test.example.com",
        "credentials": {"username": "somebody", "password": "***"},
    }


def test_the_python_example_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    smoke = (FOLDER / "complete" / "smoke-suite.yaml").read_text()
    Path("suite.yaml").write_text(smoke.replace("timeout: 30", 'timeout: "${TIMEOUT:30}"\n      api_key: "${API_KEY}"'))
    printed = dedent(
        """\
        from atp.loader import TestLoader

        # Set variables
        loader = TestLoader(env={
            "API_ENDPOINT": "https://api.production.com",
            "API_KEY": "secret-key-123",
            "TIMEOUT": "60"
        })

        # Load suite
        suite = loader.load_file("suite.yaml")
        """
    )
    names: dict[str, Any] = {}
    exec(printed, names)
    suite = names["suite"]
    assert isinstance(names["loader"], TestLoader)
    assert (suite.test_suite, suite.version) == ("smoke_tests", "1.0")
    assert suite.description == "Quick validation of basic functionality"
    assert (suite.defaults.runs_per_test, suite.defaults.timeout_seconds) == (1, 60)
    assert suite.defaults.constraints.max_steps == 5
    config = suite.agents[0].config
    assert (config.endpoint, config.api_key, config.timeout) == ("https://api.production.com", "secret-key-123", 60)
    assert [test.id for test in suite.tests] == ["smoke-001", "smoke-002", "smoke-003"]
    assert suite.tests[1].task.expected_artifacts == ["output.txt"]
    assert (suite.tests[0].constraints.max_steps, suite.tests[0].constraints.timeout_seconds) == (5, 60)


def test_the_comprehensive_suite_in_detail() -> None:
    loaded = load_path(FOLDER / "complete" / "comprehensive-suite.yaml", LoadContext(env=ENV))
    assert loaded.suite is not None
    first, second, third = loaded.suite.tests
    tools = ["file_read", "file_write", "python_repl", "web_search"]
    rest = {"max_tokens": 100000, "budget_usd": 0.5}
    assert first.limits.given() == {"max_steps": 10, "timeout_seconds": 120, "allowed_tools": tools, **rest}
    assert second.limits.given() == {"max_steps": 15, "timeout_seconds": 300, "allowed_tools": tools, **rest}
    assert third.limits.given() == {
        "max_steps": 25,
        "timeout_seconds": 600,
        "allowed_tools": ["web_search", "file_write"],
        **rest,
    }
    assert first.scoring is not None
    assert second.scoring is not None
    assert (first.scoring.quality_weight, second.scoring.quality_weight) == (0.6, 0.5)
    assert {case.runs for case in loaded.suite.tests} == {3}


def test_a_variable_without_value_or_default_is_named() -> None:
    loaded = load_path(FOLDER / "complete" / "comprehensive-suite.yaml", LoadContext(env={}))
    assert {one.code for one in loaded.diagnostics} == {"missing-variable"}
    assert [one.line for one in loaded.diagnostics] == [27, 28, 34, 35]
