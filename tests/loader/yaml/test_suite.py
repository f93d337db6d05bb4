"""Document 1's validation rules and the rulings on YAML suites: what is wrong, and exactly where."""

import pytest
from tests.loader.shop import HEAD, Expect, one_case, suite_with

from atp.base.diagnostics import LoadError
from atp.loader import Loaded, TestLoader
from atp.loader.load import load_text
from atp.suite import Suite


def the_suite(loaded: Loaded) -> Suite:
    assert loaded.suite is not None
    return loaded.suite


# Rule 1: required fields


def test_suite_name_is_required(expect: Expect) -> None:
    loaded = expect(
        """\
«missing-key»agents: [{name: a, type: custom, config: {}}]
tests: [{id: t, name: T, input: Hello}]
"""
    )
    assert [case.id for case in the_suite(loaded).cases] == ["t"]


@pytest.mark.parametrize("value", ["", " ''", " [x]", " true"])
def test_suite_name_must_be_text_that_is_not_empty(expect: Expect, value: str) -> None:
    code = "empty" if value in ("", " ''") else "wrong-type"
    at_value = f" «{code}»{value.strip()}"
    first = f"«{code}»test_suite:" if not value else f"test_suite:{at_value}"
    loaded = expect(
        f"{first}\nagents: [{{name: a, type: custom, config: {{}}}}]\ntests: [{{id: t, name: T, input: x}}]\n"
    )
    assert [case.id for case in the_suite(loaded).cases] == ["t"]
    assert [agent.name for agent in the_suite(loaded).agents] == ["a"]


def test_version_may_be_left_out(expect: Expect) -> None:
    assert the_suite(expect(suite_with("input: Hello"))).version == "1.0"


@pytest.mark.parametrize(("written", "version"), [('"1.0"', "1.0"), ("1.0", "1.0"), ("2.3", "2.3"), ("2", "2")])
def test_version_needs_no_quotes(expect: Expect, written: str, version: str) -> None:
    loaded = expect(f"version: {written}\n{suite_with('input: Hello')}")
    assert the_suite(loaded).version == version


def test_version_must_be_text_or_a_number(expect: Expect) -> None:
    expect(f"version: «wrong-type»true\n{suite_with('input: Hello')}")


def test_agents_are_required(expect: Expect) -> None:
    loaded = expect("«missing-key»test_suite: s\ntests: [{id: t, name: T, input: Hello}]\n")
    assert [case.id for case in the_suite(loaded).cases] == ["t"]


def test_tests_are_required(expect: Expect) -> None:
    expect("«missing-key»test_suite: s\nagents: [{name: a, type: custom, config: {}}]\n")


@pytest.mark.parametrize("missing", ["id", "name"])
def test_a_test_needs_an_id_and_a_name(expect: Expect, missing: str) -> None:
    given = {"id": "name: T", "name": "id: t"}[missing]
    loaded = expect(f"{HEAD}tests:\n  - «missing-key»{given}\n    input: Hello\n")
    assert one_case(loaded).id == {"id": "case-0", "name": "t"}[missing]


def test_a_name_must_not_be_empty(expect: Expect) -> None:
    loaded = expect(f"{HEAD}tests:\n  - {{id: t, name: «empty»'', input: Hello}}\n")
    assert one_case(loaded).name == "t"


def test_a_task_needs_a_description(expect: Expect) -> None:
    loaded = expect(suite_with("task:\n  «missing-key»input_data: {a: 1}"))
    assert one_case(loaded).task is None


@pytest.mark.parametrize("missing", ["name", "type", "config"])
def test_an_agent_needs_name_type_and_config(expect: Expect, missing: str) -> None:
    keys = {"name": "name: a", "type": "type: custom", "config": "config: {}"}
    del keys[missing]
    agent = ", ".join(keys.values())
    loaded = expect(
        f"test_suite: s\nagents:\n  - «missing-key»{{{agent}}}\n  - {{name: b, type: custom, config: {{}}}}\n"
        "tests: [{id: t, name: T, input: Hello}]\n"
    )
    assert [agent.name for agent in the_suite(loaded).agents] == ["b"]


def test_a_test_must_say_something(expect: Expect) -> None:
    expect(f"{HEAD}tests:\n  - «nothing-said»id: t\n    name: T\n")


@pytest.mark.parametrize("key", ["input", "messages"])
def test_a_test_says_one_thing(expect: Expect, key: str) -> None:
    value = {"input": "Hello", "messages": "[{role: user, content: Hello}]"}[key]
    expect(suite_with(f"task: {{description: Sell}}\n«two-inputs»{key}: {value}"))


def test_messages_override_input_with_a_warning(expect: Expect) -> None:
    loaded = expect(suite_with("«warning:input-ignored»input: Hello\nmessages: [{role: user, content: Bye}]"))
    assert one_case(loaded).messages[0].content == "Bye"


@pytest.mark.parametrize("key", ["input", "messages"])
def test_an_empty_conversation_is_an_error(expect: Expect, key: str) -> None:
    expect(suite_with(f"{key}: «empty»[]"))


def test_a_conversation_that_ends_with_the_assistant_warns(expect: Expect) -> None:
    expect(suite_with("messages: «warning:nothing-to-answer»[{role: assistant, content: Hello}]"))


# Rule 2: unique ids


def test_ids_are_unique_and_both_tests_are_kept(expect: Expect) -> None:
    loaded = expect(
        f"{HEAD}tests:\n  - {{id: t, name: T, input: a}}\n  - {{id: u, name: U, input: b}}\n"
        "  - {id: «duplicate-id»t, name: V, input: c}\n"
    )
    assert [case.name for case in the_suite(loaded).cases] == ["T", "U", "V"]


# Rules 3 and 4: weights


@pytest.mark.parametrize(
    "weights",
    [
        "{quality_weight: 0.5, completeness_weight: 0.3, efficiency_weight: 0.15, cost_weight: 0.05}",
        "{quality_weight: 0.41, completeness_weight: 0.3, efficiency_weight: 0.2, cost_weight: 0.1}",
        "{quality_weight: 0.39, completeness_weight: 0.3, efficiency_weight: 0.2, cost_weight: 0.1}",
        "{quality_weight: 1, completeness_weight: 0, efficiency_weight: 0, cost_weight: 0}",
    ],
)
def test_weights_sum_to_one_within_a_hundredth(expect: Expect, weights: str) -> None:
    scoring = one_case(expect(suite_with(f"input: Hello\nscoring: {weights}"))).scoring
    assert scoring is not None
    assert sum(scoring.model_dump().values()) == pytest.approx(1, abs=0.0101)


@pytest.mark.parametrize(
    "weights",
    [
        "{quality_weight: 0.42, completeness_weight: 0.3, efficiency_weight: 0.2, cost_weight: 0.1}",
        "{quality_weight: 0.38, completeness_weight: 0.3, efficiency_weight: 0.2, cost_weight: 0.1}",
        "{quality_weight: 1.0}",
        "{quality_weight: 0, completeness_weight: 0, efficiency_weight: 0, cost_weight: 0}",
    ],
)
def test_weights_that_do_not_sum_to_one_are_an_error(expect: Expect, weights: str) -> None:
    expect(suite_with(f"input: Hello\nscoring: «weights-sum»{weights}"))


def test_the_sum_is_named(expect: Expect) -> None:
    (one,) = expect(suite_with("input: Hello\nscoring: «weights-sum»{quality_weight: 0.9}")).diagnostics
    assert one.message == "`scoring`: the four scoring weights must sum to 1.0, they sum to 1.5"


def test_weights_that_are_not_given_keep_their_default(expect: Expect) -> None:
    scoring = one_case(expect(suite_with("input: Hello\nscoring: {quality_weight: 0.3, cost_weight: 0.2}"))).scoring
    assert scoring is not None
    assert scoring.model_dump() == {
        "quality_weight": 0.3,
        "completeness_weight": 0.3,
        "efficiency_weight": 0.2,
        "cost_weight": 0.2,
    }


@pytest.mark.parametrize("key", ["quality_weight", "completeness_weight", "efficiency_weight", "cost_weight"])
@pytest.mark.parametrize("value", ["-0.1", "1.1"])
def test_weights_are_between_zero_and_one(expect: Expect, key: str, value: str) -> None:
    expect(suite_with(f"input: Hello\nscoring: {{{key}: «out-of-range»{value}}}"))


def test_weights_in_the_defaults_are_checked_too(expect: Expect) -> None:
    expect(f"defaults:\n  scoring: «weights-sum»{{quality_weight: 0.9}}\n{suite_with('input: Hello')}")


# Rules 5 and 6: at least one test, at least one agent


@pytest.mark.parametrize("nothing", ["", " []"])
def test_at_least_one_test(expect: Expect, nothing: str) -> None:
    expect(f"{HEAD}«empty»tests:{nothing}\n")


@pytest.mark.parametrize("nothing", ["", " []"])
def test_at_least_one_agent(expect: Expect, nothing: str) -> None:
    loaded = expect(f"test_suite: s\n«empty»agents:{nothing}\ntests: [{{id: t, name: T, input: Hello}}]\n")
    assert [case.id for case in the_suite(loaded).cases] == ["t"]


@pytest.mark.parametrize("agents", ["", "agents:\n", "agents: []\n"])
def test_an_agent_named_on_the_command_line_lifts_that(expect: Expect, agents: str) -> None:
    expect(f"test_suite: s\n{agents}tests: [{{id: t, name: T, input: Hello}}]\n", agent=True)


def test_tests_must_be_a_list(expect: Expect) -> None:
    expect(f"{HEAD}tests: «wrong-type»{{id: t}}\n")


def test_a_test_must_be_a_mapping(expect: Expect) -> None:
    loaded = expect(f"{HEAD}tests:\n  - «wrong-type»hello\n  - {{id: t, name: T, input: Hello}}\n")
    assert [case.index for case in the_suite(loaded).cases] == [1]


def test_a_suite_must_be_a_mapping(expect: Expect) -> None:
    assert expect("«wrong-type»- test_suite: s\n", "yaml").suite is None


# Agents


def test_agent_names_are_unique(expect: Expect) -> None:
    expect(
        "test_suite: s\nagents:\n  - {name: a, type: custom, config: {}}\n"
        "  - {name: «duplicate-agent»a, type: custom, config: {}}\ntests: [{id: t, name: T, input: Hello}]\n"
    )


def test_a_test_names_agents_of_the_suite(expect: Expect) -> None:
    loaded = expect(suite_with("input: Hello\nagents: [clerk, «unknown-agent-name»clerc]"))
    assert loaded.diagnostics[0].hint == "did you mean `clerk`?"


def test_an_agent_with_a_mistake_can_still_be_named(expect: Expect) -> None:
    expect(
        "test_suite: s\nagents:\n  - name: a\n    type: «unknown-agent»htpp\n    config: {}\n"
        "tests: [{id: t, name: T, input: Hello, agents: [a]}]\n"
    )


def test_agents_of_a_test_do_not_count_beside_one_from_the_command_line(expect: Expect) -> None:
    expect("test_suite: s\ntests: [{id: t, name: T, input: Hello, agents: [a]}]\n", agent=True)


def test_unknown_agent_types_are_told_with_those_there_are(expect: Expect) -> None:
    agent = "test_suite: s\nagents:\n  - {name: a, type: «unknown-agent»robot, config: {}}\n"
    loaded = expect(f"{agent}tests: [{{id: t, name: T, input: Hello}}]\n")
    assert loaded.diagnostics[0].hint == "one of: cli, crewai, custom, docker, http, langgraph, prompt"


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("http", "{endpoint: «bad-value»localhost}"),
        ("http", "«missing-key»{}"),
        ("http", "{endpoint: http://x, protocol: «bad-value»soap}"),
        ("http", "{endpoint: http://x, timeout: «duration»soon}"),
        ("http", "{endpoint: http://x, retry: «out-of-range»-1}"),
        ("cli", "«missing-key»{args: [a]}"),
        ("cli", "{command: «empty»''}"),
        ("docker", "«docker-image»{}"),
        ("docker", "«docker-image»{image: a, build: b}"),
        ("docker", "{image: a, port: «out-of-range»70000}"),
        ("langgraph", "«langgraph-graph»{model: m}"),
        ("langgraph", "«langgraph-graph»{graph_path: a.py, module: b, graph: c}"),
        ("crewai", "«crewai-crew»{}"),
        ("crewai", "«crewai-crew»{crew_path: a.py, module: b, crew: c}"),
        ("prompt", "«missing-key»{}"),
        ("custom", "{entry: «wrong-type»1}"),
        ("custom", "{parallel: «out-of-range»0}"),
    ],
)
def test_an_agents_config_is_checked_by_its_kind(expect: Expect, kind: str, config: str) -> None:
    expect(
        f"test_suite: s\nagents:\n  - {{name: a, type: {kind}, config: {config}}}\n"
        "tests: [{id: t, name: T, input: Hello}]\n"
    )


# Defaults and precedence


def test_constraint_defaults_merge_field_by_field(expect: Expect) -> None:
    loaded = expect(
        "defaults: {constraints: {max_steps: 20, max_tokens: 1000, allowed_tools: [a, b], budget_usd: 0.5}}\n"
        + suite_with("input: Hello\nconstraints: {max_steps: 5, allowed_tools: [c]}")
    )
    assert one_case(loaded).limits.given() == {
        "max_steps": 5,
        "max_tokens": 1000,
        "allowed_tools": ["c"],
        "budget_usd": 0.5,
    }


def test_scoring_defaults_are_replaced_as_a_whole(expect: Expect) -> None:
    defaults = "defaults: {scoring: {quality_weight: 0.3, cost_weight: 0.2}}\n"
    inherited = one_case(expect(defaults + suite_with("input: Hello"))).scoring
    own = one_case(expect(defaults + suite_with("input: Hello\nscoring: {quality_weight: 0.4}"))).scoring
    assert inherited is not None
    assert own is not None
    assert (inherited.quality_weight, inherited.cost_weight) == (0.3, 0.2)
    assert (own.quality_weight, own.cost_weight) == (0.4, 0.1)


@pytest.mark.parametrize(
    ("defaults", "test", "seconds"),
    [
        ("", "", None),
        ("defaults: {timeout_seconds: 60}\n", "", 60),
        ("defaults: {timeout_seconds: 60, constraints: {timeout_seconds: 50}}\n", "", 50),
        (
            "defaults: {timeout_seconds: 60, constraints: {timeout_seconds: 50}}\n",
            "constraints: {timeout_seconds: 40}",
            40,
        ),
        ("defaults: {timeout_seconds: 60, constraints: {timeout_seconds: 50}}\n", "timeout: 30", 30),
        ("defaults: {timeout_seconds: 60}\n", "constraints: {max_steps: 3}", 60),
    ],
)
def test_the_nearer_timeout_wins(expect: Expect, defaults: str, test: str, seconds: float | None) -> None:
    limits = one_case(expect(defaults + suite_with(f"input: Hello\n{test}"))).limits
    assert limits.given().get("timeout_seconds") == seconds


def test_a_timeout_given_twice_is_an_error(expect: Expect) -> None:
    expect(suite_with("input: Hello\n«given-twice»timeout: 30\nconstraints: {timeout_seconds: 40}"))


def test_other_defaults_reach_the_tests_that_say_nothing(expect: Expect) -> None:
    loaded = expect(
        f"defaults: {{runs_per_test: 3, min_score: 70, pass_rate: 0.8}}\n{HEAD}tests:\n"
        "  - {id: a, name: A, input: Hello}\n  - {id: b, name: B, input: Hello, runs: 1, min_score: 0, pass_rate: 1}\n"
    )
    first, second = the_suite(loaded).cases
    assert (first.runs, first.min_score, first.pass_rate) == (3, 70, 0.8)
    assert (second.runs, second.min_score, second.pass_rate) == (1, 0, 1)


@pytest.mark.parametrize(
    "defaults",
    [
        "runs_per_test: «out-of-range»0",
        "runs_per_test: «wrong-type»1.5",
        "runs_per_test: «wrong-type»true",
        "runs_per_test: «wrong-type»many",
        "timeout_seconds: «out-of-range»0",
        "timeout_seconds: «duration»-5m",
        "constraints: {max_steps: «out-of-range»-1}",
        "constraints: {max_tokens: «wrong-type»[1]}",
        "constraints: {budget_usd: «out-of-range»-0.5}",
        "constraints: {allowed_tools: «wrong-type»web_search}",
        "constraints: {allowed_tools: [web_search, «wrong-type»7]}",
        "constraints: «wrong-type»[max_steps]",
        "min_score: «out-of-range»101",
        "pass_rate: «out-of-range»1.5",
    ],
)
def test_defaults_are_checked(expect: Expect, defaults: str) -> None:
    loaded = expect(f"defaults:\n  {defaults}\n{suite_with('input: Hello')}")
    assert one_case(loaded).id == "one"


# Values


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30", 30),
        ("1.5", 1.5),
        ('"45"', 45),
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("250ms", 0.25),
        ("1d", 86400),
        ("1.5m", 90),
    ],
)
def test_durations(expect: Expect, written: str, seconds: float) -> None:
    assert one_case(expect(suite_with(f"input: Hello\ntimeout: {written}"))).limits.timeout_seconds == seconds


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("duration", "soon"),
        ("duration", "5 minutes"),
        ("duration", "5x"),
        ("duration", '""'),
        ("duration", "-5m"),
        ("out-of-range", "0"),
        ("out-of-range", "-1"),
        ("out-of-range", "0s"),
        ("wrong-type", "true"),
        ("wrong-type", "[5]"),
    ],
)
def test_durations_that_are_none(expect: Expect, code: str, written: str) -> None:
    loaded = expect(suite_with(f"input: Hello\ntimeout: «{code}»{written}"))
    assert one_case(loaded).limits.given() == {}


@pytest.mark.parametrize(("written", "skips"), [("true", True), ("false", False)])
def test_skip(expect: Expect, written: str, skips: bool) -> None:
    assert one_case(expect(suite_with(f"input: Hello\nskip: {written}"))).skip is skips


def test_skip_is_true_or_false(expect: Expect) -> None:
    expect(suite_with("input: Hello\nskip: «wrong-type»later"))


def test_words_that_other_readers_take_for_booleans_are_text_with_a_warning(expect: Expect) -> None:
    loaded = expect(suite_with("input: «warning:ambiguous-boolean»yes"))
    assert one_case(loaded).input == "yes"
    assert loaded.diagnostics[0].hint == 'write `true`, or "yes" in quotes'


@pytest.mark.parametrize(
    "line",
    [
        "tags: «wrong-type»smoke",
        "tags: [smoke, «empty»'']",
        "tags: [«wrong-type»1]",
        "description: «wrong-type»[a]",
        "runs: «out-of-range»0",
        "pass_rate: «out-of-range»2",
        "min_score: «out-of-range»-1",
        "user: «empty»''",
        "team: «wrong-type»7",
        "metadata: «wrong-type»[a]",
        "«empty»expectations:",
        "options: {mode: «wrong-type»1}",
        "workspace: «wrong-type»{}",
        "before_hook: «empty»''",
        "after_hook: «wrong-type»1",
        "expectations: «wrong-type»be nice",
        "expectations: [«wrong-type»1]",
        "task: «wrong-type»Sell",
        "constraints: «wrong-type»10",
        "scoring: «wrong-type»high",
    ],
)
def test_a_tests_values_are_checked(expect: Expect, line: str) -> None:
    said = "" if line.startswith("task") else "input: Hello\n"
    assert one_case(expect(suite_with(said + line))).id == "one"


@pytest.mark.parametrize(
    "line",
    [
        "description: «empty»''",
        "description: «wrong-type»7",
        "description: d\n  input_data: «wrong-type»[1]",
        "description: d\n  expected_artifacts: «wrong-type»report.json",
        "description: d\n  expected_artifacts: [a, «empty»'']",
    ],
)
def test_a_task_is_checked(expect: Expect, line: str) -> None:
    expect(suite_with(f"task:\n  {line}"))


def test_a_description_has_a_limit(expect: Expect) -> None:
    expect(suite_with(f"task: {{description: «out-of-range»{'x' * 100_001}}}"))


@pytest.mark.parametrize(
    "message",
    [
        "{role: «bad-value»bot, content: Hi}",
        "«missing-key»{content: Hi}",
        "{role: user, content: «wrong-type»7}",
        "{role: user, content: [{type: «unknown-part»video, source: x}]}",
        "{role: user, content: [«missing-key»{type: text}]}",
        "{role: user, content: [{type: image, source: «empty»''}]}",
        "«wrong-type»Hello",
    ],
)
def test_messages_are_checked(expect: Expect, message: str) -> None:
    expect(suite_with(f"messages:\n  - {message}\n  - {{role: user, content: Hi}}"))


# Many mistakes


def test_two_mistakes_give_two_errors(expect: Expect) -> None:
    loaded = expect(suite_with("input: Hello\nruns: «out-of-range»0\n«unknown-key»tag: [a]"))
    assert len(loaded.diagnostics) == 2


def test_all_mistakes_of_a_file_at_once_and_the_rest_is_read(expect: Expect) -> None:
    loaded = expect(
        """\
test_suite: shop
«unknown-key»descripton: The shop
defaults:
  runs_per_test: «out-of-range»0
  «unknown-key»timeout: 5
agents:
  - name: clerk
    type: http
    config:
      endpoint: «bad-value»localhost
      «unknown-key»timout: 3
  - name: baseline
    type: custom
    config: {}
tests:
  - id: first
    name: First
    task:
      description: Sell
      «unknown-key»input: x
    constraints:
      max_steps: «wrong-type»many
      max_tokens: 100
    assertions:
      - type: contains
        value: sold
      - type: «unknown-assertion»contain
        value: sold
      - «missing-key»type: regex
  - id: «duplicate-id»first
    name: Second
    input: «missing-variable»${MISSING}
"""
    )
    suite = the_suite(loaded)
    first, second = suite.cases
    assert [agent.name for agent in suite.agents] == ["baseline"]
    assert first.limits.given() == {"max_tokens": 100}
    assert [one.type for one in first.assertions] == ["contains"]
    assert second.name == "Second"


def test_a_slip_in_a_required_key_is_one_mistake(expect: Expect) -> None:
    expect(f"{HEAD}tests:\n  - {{id: t, «unknown-key»nam: T, input: Hello}}\n")
    expect(suite_with("task: {«unknown-key»descripton: Sell}"))
    expect(
        "«unknown-key»test_suit: s\nagents: [{name: a, type: custom, config: {}}]\n"
        "tests: [{id: t, name: T, input: x}]\n"
    )


# YAML itself


@pytest.mark.parametrize(
    "text",
    [
        "test_suite: s\ntests:\n«syntax»\t- id: t\n",
        'test_suite: «syntax»"s\ntests: []\n',
        "test_suite: «syntax»'s\ntests: []\n",
        'test_suite: "a«syntax»\\q"\ntests: []\n',
        "test_suite: s\n«syntax»- a\n",
        "test_suite: s\ntests: «syntax»[{id: t}\n",
        "test_suite: s\ntests: «syntax»[a, b\nversion: 1\n",
        "test_suite: s\ntests: [\n  a,\n  'b' «syntax»'c',\n  d]\n",
        "test_suite: s\n«syntax»---\ntest_suite: t\n",
        "test_suite: «syntax»*nobody\n",
        "test_suite: «syntax»@home\n",
    ],
)
def test_what_is_not_yaml_is_told_with_its_place(expect: Expect, text: str) -> None:
    assert expect(text, "yaml").suite is None


@pytest.mark.parametrize(
    "line",
    [
        "expected: «not-finite».inf",
        "expected: «not-finite».nan",
        "expected: «not-finite»1e999",
        f"expected: «bad-number»1{'0' * 5000}",
        "expected: «unknown-tag»!secret x",
        "expected: «unknown-tag»!!python/object:os.system {a: 1}",
        "expected: {«bad-key»[a, b]: 1}",
        "expected: {<<: «bad-merge»hello}",
    ],
)
def test_values_that_json_does_not_have_are_errors(expect: Expect, line: str) -> None:
    expect(suite_with(f"input: Hello\n{line}"))


def test_anchors_aliases_and_merge_keys(expect: Expect) -> None:
    loaded = expect(
        f"{HEAD}tests:\n  - id: a\n    name: A\n    input: x\n    constraints: &wide {{max_steps: 9, max_tokens: 90}}\n"
        "  - id: b\n    name: B\n    input: x\n    constraints: *wide\n"
        "  - id: c\n    name: C\n    input: x\n    constraints: {max_steps: 1, <<: *wide}\n"
    )
    limits = [(case.limits.max_steps, case.limits.max_tokens) for case in the_suite(loaded).cases]
    assert limits == [(9, 90), (9, 90), (1, 90)]


def test_a_mistake_behind_an_alias_is_told_once(expect: Expect) -> None:
    expect(
        f"{HEAD}tests:\n  - {{id: a, name: A, input: x, constraints: &c {{«unknown-key»max_step: 9}}}}\n"
        "  - {id: b, name: B, input: x, constraints: *c}\n"
    )


def test_plain_words_are_read_as_yaml_1_2_does(expect: Expect) -> None:
    loaded = expect(
        suite_with("input: x\nexpected: [2024-01-01, 1:30, 0o17, 0x1F, 012, 1_000, ~, null, True, .5, 1e3, '5']")
    )
    assert one_case(loaded).expected == ["2024-01-01", "1:30", 15, 31, 12, "1_000", None, None, True, 0.5, 1000.0, "5"]


def test_a_test_for_no_agent_is_an_error(expect: Expect) -> None:
    (one,) = expect(suite_with("input: Hello\nagents: «empty»[]")).diagnostics
    assert one.hint == "give it a value or leave the key out"


def test_a_command_has_words(expect: Expect) -> None:
    expect(
        "test_suite: s\nagents: [{name: a, type: cli, config: {command: «empty»[]}}]\n"
        "tests: [{id: t, name: T, input: x}]\n"
    )


@pytest.mark.parametrize("entry", ["m", "agent.py", ":f", "m:", "m:1f", " "])
def test_an_entry_names_a_function(expect: Expect, entry: str) -> None:
    expect(HEAD.replace('"clerk:answer"', f'«reference»"{entry}"') + "tests: [{id: t, name: T, input: x}]\n")


@pytest.mark.parametrize("entry", ["m:f", "a.b:C.f", "../a b/c.py:f", "C:/a/b.py:f", "m:größe"])
def test_entries(expect: Expect, entry: str) -> None:
    expect(HEAD.replace("clerk:answer", entry) + "tests: [{id: t, name: T, input: x}]\n")


@pytest.mark.parametrize("version", ["1.10", "1.0", "2", "1e3", "0x10"])
def test_a_version_is_kept_as_written(expect: Expect, version: str) -> None:
    loaded = expect(f"version: {version}\n" + suite_with("input: Hello"))
    assert the_suite(loaded).version == version


@pytest.mark.parametrize("number", [".inf", "-.inf", ".nan", "1e999"])
def test_what_is_no_finite_number_is_one_mistake(expect: Expect, number: str) -> None:
    for key in ("timeout", "runs", "min_score"):
        (one,) = expect(suite_with(f"input: Hello\n{key}: «not-finite»{number}")).diagnostics
        assert one.hint == "write a number, or put it in quotes if text is meant"


def test_old_booleans_are_told_as_what_they_are_taken_for(expect: Expect) -> None:
    loaded = expect(suite_with("input: Hello\nskip: «warning:ambiguous-boolean»yes"))
    assert one_case(loaded).skip is True
    message = "`yes` is taken as true where true or false belongs, and as text elsewhere"
    assert loaded.diagnostics[0].message == message


@pytest.mark.parametrize(
    "text", ['input: «syntax»"Hello', "input: «syntax»'Hello", "tags: «syntax»[a, b", "x: «syntax»{a: 1"]
)
def test_what_is_not_closed_is_told_where_it_opens(expect: Expect, text: str) -> None:
    (one,) = expect(suite_with(f"{text}\nruns: 1")).diagnostics
    assert one.hint is not None
    assert one.hint.startswith("close the `")


@pytest.mark.parametrize(
    ("kind", "config", "told"),
    [
        ("langgraph", "{graph_path: a.py, module: b, graph: c}", "`langgraph` has both `graph_path` and `module`"),
        ("langgraph", "{}", "`langgraph` needs `graph_path`, or `module` and `graph`"),
        ("crewai", "{crew_path: a.py, module: b, crew: c}", "`crewai` has both `crew_path` and `module`"),
        ("crewai", "{}", "`crewai` needs `crew_path`, or `module` and `crew`"),
    ],
)
def test_code_is_in_one_place(kind: str, config: str, told: str) -> None:
    text = (
        f"test_suite: s\nagents: [{{name: a, type: {kind}, config: {config}}}]\ntests: [{{id: a, name: a, input: a}}]"
    )
    with pytest.raises(LoadError) as caught:
        TestLoader(env={}).load_string(text)
    (found,) = caught.value.diagnostics
    assert found.message == f"`config`: {told}"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (r'pattern: "\d+"', r"in double quotes write `\\d`, or use single quotes"),
        ("input: Order: where is it?", "text with `: ` in it needs quotes around it"),
        ("input: x\n      name: y", "check the indentation and the quotes around here"),
    ],
)
def test_a_syntax_error_comes_with_the_likely_reason(line: str, hint: str) -> None:
    (found,) = load_text(f"test_suite: s\ntests:\n  - id: a\n    {line}\n", "yaml").diagnostics
    assert (found.code, found.hint) == ("syntax", hint)
