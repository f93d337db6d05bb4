"""The columns of a grid: several connectors, and the matrix of an agent."""

import json
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran
from tests.models.mock_server import MockModels

import atp
from atp import Options

AGENT = """
    def answer(prompt, options, context):
        with open("calls", "a") as file:
            file.write("x ")
        keys = ("temperature", "model", "prompt_file")
        said = [f"{key}={options[key]}" for key in keys if key in options]
        return " ".join([prompt, *said, f"connector={context.get('connector')}"])
"""
CUSTOM = {"name": "support", "type": "custom", "config": {"entry": "agent.py:answer"}}
CASE = {"id": "a", "input": "hi"}


@pytest.fixture(autouse=True)
def agent(project: Project) -> None:
    """An agent that says what it was configured with."""
    project.write("agent.py", AGENT)
    project.write("atp.toml", "")


def outputs(ran: Ran) -> dict[str, Any]:
    """The outputs of a run with one case, by agent."""
    return {one["agent_id"]: one["output"] for one in ran.events if one["type"] == "result"}


def matrix_suite(project: Project, matrix: dict[str, Any], *tests: dict[str, Any]) -> str:
    return project.suite([{**CUSTOM, "matrix": matrix}], list(tests or (CASE,)))


def test_each_combination_of_a_matrix_is_an_agent(project: Project) -> None:
    ran = project.test(matrix_suite(project, {"temperature": [0, 0.5], "model": ["m1", "m2"]}))
    assert ran.code == 0, ran.err
    assert outputs(ran) == {
        "support [temperature=0, model=m1]": "hi temperature=0 model=m1 connector=None",
        "support [temperature=0, model=m2]": "hi temperature=0 model=m2 connector=None",
        "support [temperature=0.5, model=m1]": "hi temperature=0.5 model=m1 connector=None",
        "support [temperature=0.5, model=m2]": "hi temperature=0.5 model=m2 connector=None",
    }
    assert ran.summary["agents"] == list(outputs(ran))
    assert len({one["key"] for one in project.trials()}) == 4


def test_columns_are_named_by_n_whole_in_part_or_all_together(project: Project) -> None:
    suite = matrix_suite(project, {"temperature": [0, 1], "model": ["m1", "m2"]})
    whole, part, group = project.tests(
        [suite, "-n", "support [temperature=1, model=m1]"],
        [suite, "-n", "support [temperature=0]"],
        [suite, "-n", "support"],
    )
    assert list(outputs(whole)) == ["support [temperature=1, model=m1]"]
    assert list(outputs(part)) == ["support [temperature=0, model=m1]", "support [temperature=0, model=m2]"]
    assert len(outputs(group)) == 4
    wrong = project.atp("test", suite, "-n", "support [temperature=1, model=m3]")
    assert wrong.code == 2
    assert "help: columns: `support [temperature=0, model=m1]`, " in wrong.err


def test_tests_list_an_agent_or_one_of_its_columns(project: Project) -> None:
    tests = [
        {"id": "all", "input": "hi", "agents": ["support"]},
        {"id": "one", "input": "hi", "agents": ["support [model=m2]"]},
        {"id": "other", "input": "hi", "agents": ["plain"]},
    ]
    agents = [{**CUSTOM, "matrix": {"model": ["m1", "m2"]}}, {**CUSTOM, "name": "plain"}]
    ran = project.test(project.suite(agents, tests))
    assert ran.code == 0, ran.err
    ends = [(one["id"], one["agent_id"]) for one in ran.events if one["type"] == "result"]
    assert sorted(ends) == [
        ("all", "support [model=m1]"),
        ("all", "support [model=m2]"),
        ("one", "support [model=m2]"),
        ("other", "plain"),
    ]
    unknown = project.suite(agents, [{"id": "a", "input": "hi", "agents": ["support [model=m9]"]}])
    assert project.atp("test", unknown).code == 2
    several = project.test(project.suite(agents, tests), "-n", "support [model=m1]", "-n", "plain")
    ends = [(one["id"], one["agent_id"]) for one in several.events if one["type"] == "result"]
    assert sorted(ends) == [("all", "support [model=m1]"), ("other", "plain")]


def test_several_connectors_are_columns_of_every_agent(project: Project) -> None:
    suite = project.suite([CUSTOM, {**CUSTOM, "name": "b"}], [CASE])
    ran = project.test(suite, "-c", "fast", "-c", "slow", "-c", "fast")
    assert ran.code == 0, ran.err
    assert outputs(ran) == {
        f"{agent} [{connector}]": f"hi connector={connector}"
        for agent in ("support", "b")
        for connector in ("fast", "slow")
    }
    assert ran.summary["connector"] is None
    inputs = next(line for line in project.journal() if line["type"] == "start")["agent_inputs"]
    assert len({one["digest"] for one in inputs.values()}) == 4
    assert len({one["key"] for one in project.trials()}) == 4


@pytest.mark.parametrize("source", ["flag", "environment", "file"])
def test_one_connector_keeps_the_agent_s_name(project: Project, source: str) -> None:
    suite = project.suite([CUSTOM], [CASE])
    if source == "file":
        project.write("atp.toml", 'connector = "fast"\n')
    flags = ["-c", "fast"] if source == "flag" else []
    ran = project.test(suite, *flags, env={"ATP_CONNECTOR": "fast"} if source == "environment" else {})
    assert outputs(ran) == {"support": "hi connector=fast"}
    assert ran.summary["connector"] == "fast"


def test_several_connectors_in_settings_and_the_environment_are_columns(project: Project) -> None:
    suite = project.suite([CUSTOM], [CASE])
    by_env = project.test(suite, env={"ATP_CONNECTOR": "fast,slow"})
    project.write("atp.toml", 'connector = ["fast", "slow"]\n')
    by_file = project.test(suite)
    assert list(outputs(by_env)) == list(outputs(by_file)) == ["support [fast]", "support [slow]"]


def test_a_matrix_and_connectors_multiply(project: Project) -> None:
    ran = project.test(matrix_suite(project, {"temperature": [0, 1]}), "-c", "x", "-c", "y")
    assert list(outputs(ran)) == [
        "support [temperature=0, x]",
        "support [temperature=0, y]",
        "support [temperature=1, x]",
        "support [temperature=1, y]",
    ]
    both = matrix_suite(project, {"connector": ["x", "y"]})
    assert outputs(project.test(both)) == {"support [x]": "hi connector=x", "support [y]": "hi connector=y"}
    refused = project.atp("test", both, "-c", "z")
    assert refused.code == 2
    assert "error[contradiction]: -c and `matrix.connector` of the agent `support`" in refused.err
    many = matrix_suite(project, {"a": list(range(60))})
    too_many = project.atp("test", many, "-c", "x", "-c", "y")
    assert too_many.code == 2
    assert "error[too-many-columns]" in too_many.err


def test_a_resumed_run_runs_only_the_column_that_was_added(project: Project) -> None:
    first = project.test(matrix_suite(project, {"model": ["m1", "m2"]}))
    run_id = first.summary["run_id"]
    assert project.lines("calls") == ["x"] * 2
    ran = project.test(matrix_suite(project, {"model": ["m1", "m2", "m3"]}), "--resume-from", run_id)
    assert ran.code == 0, ran.err
    assert list(outputs(ran)) == ["support [model=m1]", "support [model=m2]", "support [model=m3]"]
    assert project.lines("calls") == ["x"] * 3


def test_a_resumed_run_runs_only_the_connector_that_was_added(project: Project) -> None:
    suite = project.suite([CUSTOM], [CASE])
    first = project.test(suite, "-c", "x", "-c", "y")
    project.test(suite, "-c", "x", "-c", "y", "-c", "z", "--resume-from", first.summary["run_id"])
    assert project.lines("calls") == ["x"] * 3


def test_only_failed_runs_the_columns_that_failed(project: Project) -> None:
    check = [{"type": "contains", "value": "model=m1"}]
    suite = matrix_suite(project, {"model": ["m1", "m2"]}, {**CASE, "assertions": check})
    assert project.test(suite).code == 1
    assert list(outputs(project.test(suite, "--only-failed"))) == ["support [model=m2]"]


def test_files_of_a_matrix_are_part_of_the_column(project: Project) -> None:
    for name in ("a", "b"):
        project.write(f"prompts/{name}.txt", name)
    suite = matrix_suite(project, {"prompt_file": ["prompts/a.txt", "prompts/b.txt"]})
    project.test(suite)
    before = {one["agent"]: one["key"] for one in project.trials()}
    project.write("prompts/b.txt", "changed")
    project.test(suite)
    after = {one["agent"]: one["key"] for one in project.trials()}
    assert [name for name in before if before[name] != after[name]] == ["support [prompt_file=prompts/b.txt]"]


def test_values_of_variables_and_secrets(project: Project) -> None:
    suite = matrix_suite(project, {"model": ["${FIRST}", "${SECOND:m2}"], "api_key": ["${A_KEY}", "${B_KEY}"]})
    env = {"FIRST": "m1", "A_KEY": "first-secret-1234", "B_KEY": "second-secret-5678"}
    ran = project.test(suite, env=env)
    assert ran.code == 0, ran.err
    names = list(outputs(ran))
    assert names == [f"support [model={model}, api_key=#{key}]" for model in ("m1", "m2") for key in (1, 2)]
    assert "secret-" not in ran.out + ran.err


def test_labels_stay_apart(project: Project) -> None:
    long = "Answer like a harbour master who has seen it all, "
    ran = project.test(matrix_suite(project, {"prompt": [f"{long}briefly", f"{long}at length"], "n": [1, "1"]}))
    assert ran.code == 0, ran.err
    assert len(outputs(ran)) == 4
    assert all(len(name) < 80 for name in outputs(ran))


def test_a_dry_run_show_and_agents_list_the_columns(project: Project) -> None:
    suite = matrix_suite(project, {"model": ["m1", "m2"]})
    planned = project.atp("test", suite, "--dry-run")
    assert [line.split(" × ")[0] for line in planned.out.splitlines() if " × " in line] == [
        "support [model=m1]",
        "support [model=m2]",
    ]
    shown = json.loads(project.atp("show", suite, "--json").out)
    (agent,) = shown["suite"]["agents"]
    assert agent["matrix"] == {"model": ["m1", "m2"]}
    assert agent["columns"] == ["support [model=m1]", "support [model=m2]"]
    assert (
        "  agent support (custom)\n    support [model=m1]\n    support [model=m2]\n" in project.atp("show", suite).out
    )
    project.write(
        "atp.toml",
        '[agents.desk]\ntype = "custom"\nconfig = {entry = "agent.py:answer"}\nmatrix = {model = ["m1", "m2"]}\n',
    )
    listed = project.atp("agents")
    assert "    desk [model=m1]\n    desk [model=m2]\n" in listed.out
    checked = project.atp("agents", "check", suite)
    assert "support [model=m1] (custom)" in checked.out
    ran = project.test(project.cases("a"), "-n", "desk")
    assert list(outputs(ran)) == ["desk [model=m1]", "desk [model=m2]"]
    assert list(outputs(project.test(project.cases("a"), "-n", "desk [model=m2]"))) == ["desk [model=m2]"]


def test_two_agents_of_one_name_are_refused(project: Project) -> None:
    agents = [{**CUSTOM, "matrix": {"model": ["m1"]}}, {**CUSTOM, "name": "support [model=m1]"}]
    ran = project.atp("test", project.suite(agents, [CASE]))
    assert ran.code == 2
    assert "error[duplicate-agent]: two agents would be called `support [model=m1]`" in ran.err


def test_a_role_has_to_name_one_column(project: Project) -> None:
    project.write(
        "atp.toml",
        '[agents.judge]\ntype = "custom"\nconfig = {entry = "agent.py:answer"}\nmatrix = {model = ["m1", "m2"]}\n',
    )
    suite = project.suite([CUSTOM], [{**CASE, "assertions": [{"type": "llm_eval", "criteria": "polite"}]}])
    ran = project.atp("test", suite, "--assessor", "judge")
    assert ran.code == 2
    assert "`judge` is several agents, by its `matrix`" in ran.err
    assert "name one: `judge [model=m1]`, `judge [model=m2]`" in ran.err


def test_a_suite_made_in_python_has_columns(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)  # the agent writes there
    suite = atp.load(project.folder / matrix_suite(project, {"model": ["m1", "m2"]}))
    report = atp.run_sync(suite)
    assert [one.agent for one in report.results] == ["support [model=m1]", "support [model=m2]"]
    plain = atp.load(project.folder / project.suite([CUSTOM], [CASE], file="plain.yaml"))
    report = atp.run_sync(plain, Options(connector=["x", "y"]))
    assert [one.agent for one in report.results] == ["support [x]", "support [y]"]
    assert Options(connector="x").connector == ["x"]  # type: ignore[arg-type]  # a text is a list of one


@pytest.fixture
def servers(project: Project) -> Any:
    """Two servers that offer a model of the same name, behind the connectors `red` and `blue`."""
    with MockModels("I am red") as red, MockModels("I am blue") as blue:
        project.write("agents/p.md", "---\nmodel: red\n---\nBe brief.\n")
        tables = [
            f'[connectors.{name}]\ntype = "openai"\nhost = "{one.openai}"\nmodel = "shared"\nkey = "{one.key}"\n'
            for name, one in (("red", red), ("blue", blue))
        ]
        project.write("atp.toml", "\n".join(tables))
        yield red, blue


def test_a_prompt_runs_on_each_connector_and_recordings_are_not_mixed_up(project: Project, servers: Any) -> None:
    cases = project.cases("a")
    call = (cases, "-n", "p", "-c", "red", "-c", "blue")
    expected = {"p [red]": "I am red", "p [blue]": "I am blue"}
    assert outputs(project.test(*call)) == expected
    assert outputs(project.test(*call, "--record", "tape")) == expected
    asked = len(servers[0].requests) + len(servers[1].requests)
    assert outputs(project.test(*call, "--replay", "tape")) == expected
    assert len(servers[0].requests) + len(servers[1].requests) == asked


def test_a_case_s_own_connector_gives_way_to_the_column_s(project: Project, servers: Any) -> None:
    del servers
    cases = project.cases({"id": "a", "input": "hi", "options": {"connector": "red"}})
    project.write("agents/m.md", "---\nmatrix: {model: [red, blue]}\n---\nBe brief.\n")
    ran = project.test(cases, "-n", "m")
    assert outputs(ran) == {"m [model=red]": "I am red", "m [model=blue]": "I am blue"}, ran.err


def test_an_agent_that_is_a_tool_gets_the_column_s_model(project: Project, servers: Any) -> None:
    del servers
    project.write("agents/inner.md", "---\ndescription: helps\n---\nHelp.\n")
    project.write("agents/outer.md", "---\nagents: [inner]\n---\nAsk inner.\n")
    ran = project.test(project.cases("a"), "-n", "outer", "-c", "red", "-c", "blue")
    assert ran.code == 0, ran.err
    assert outputs(ran) == {"outer [red]": "I am red", "outer [blue]": "I am blue"}
    one = project.test(project.cases("a"), "-n", "agents/outer.md [blue]", "-c", "red", "-c", "blue")
    assert outputs(one) == {"outer [blue]": "I am blue"}


def test_an_unknown_connector_is_reported_at_the_flag(project: Project, servers: Any) -> None:
    del servers
    ran = project.atp("test", project.cases("a"), "-n", "p", "-c", "red", "-c", "bleu")
    assert ran.code == 2
    assert "error[no-connector]: -c bleu: there is no connector `bleu`" in ran.err
    assert "help: did you mean `blue`?" in ran.err
    assert ran.err.count("error[") == 1


def test_the_settings_of_a_prompt_s_model_are_tried(project: Project) -> None:
    project.write("agents/p.md", "---\nmodel: openai.m\nmatrix: {temperature: [0, 0.7]}\n---\nBe brief.\n")
    with MockModels() as server:
        ran = project.test(project.cases("a"), "-n", "p", env=server.env)
        assert ran.code == 0, ran.err
        assert list(outputs(ran)) == ["p [temperature=0]", "p [temperature=0.7]"]
        assert [one.body["temperature"] for one in server.requests] == [0, 0.7]


@pytest.mark.parametrize(
    ("head", "message", "place"),
    [
        ("matrix: {temprature: [0, 1]}", "unknown key `temprature`", "agents/p.md:2:10"),
        ("matrix: {temperature: [0, x]}", "`temperature` must be a number", "agents/p.md:2:27"),
        ("matrix: [1]", "`matrix` must be a mapping", "agents/p.md:2:9"),
        ("type: cli\nconfig: {command: cat}\nmatrix: {protocl: [text]}", "unknown key `protocl`", "agents/p.md:4:10"),
    ],
)
def test_mistakes_in_the_matrix_of_an_agent_s_file(project: Project, head: str, message: str, place: str) -> None:
    project.write("agents/p.md", f"---\n{head}\n---\nBe brief.\n")
    ran = project.atp("test", project.cases("a"), "-n", "p", "-c", "openai.m", env={"OPENAI_API_KEY": "k" * 20})
    assert ran.code == 2
    assert message in ran.err
    assert place in ran.err


def test_a_suite_that_names_a_prompt_says_that_the_matrix_of_its_file_has_no_effect(project: Project) -> None:
    project.write("agents/p.md", "---\nmodel: openai.m\nmatrix: {temperature: [0, 1]}\n---\nBe brief.\n")
    suite = project.suite([{"name": "q", "type": "prompt", "config": {"path": "agents/p.md"}}], [CASE])
    ran = project.atp("test", suite, "--dry-run", env={"OPENAI_API_KEY": "k" * 20})
    assert ran.code == 0, ran.err
    assert "warning[no-effect]: `matrix` has no effect here" in ran.err


def test_prompt_files_are_tried(project: Project) -> None:
    project.write("agents/kind.md", "Be kind.\n")
    project.write("agents/rude.md", "Be rude.\n")
    suite = project.suite(
        [{"name": "tone", "type": "prompt", "matrix": {"path": ["agents/kind.md", "agents/rude.md"]}}], [CASE]
    )
    with MockModels(lambda heard: heard.system) as server:
        ran = project.test(suite, "-c", "openai.m", env=server.env)
    assert ran.code == 0, ran.err
    assert outputs(ran) == {
        "tone [path=agents/kind.md]": "Be kind.",
        "tone [path=agents/rude.md]": "Be rude.",
    }


def test_a_test_in_python_runs_with_each_connector(project: Project) -> None:
    project.write(
        "scripts/test_any.py",
        """
        def test_under_test(t, ctx):
            t.assert_.contains(ctx.agent().send("hi"), "connector=x")

        def test_named(t, ctx):
            t.assert_.contains(ctx.agent("agent.py:answer").send("hi"), "connector=y")
        """,
    )
    ran = project.test("-i", "scripts:test_any", "-n", "agent.py:answer", "-c", "x", "-c", "y")
    assert ran.code == 1, ran.err
    found = {(one["id"], one["agent_id"]): one["status"] for one in ran.events if one["type"] == "result"}
    assert found == {
        ("test_under_test", "agent.py:answer [x]"): "passed",
        ("test_under_test", "agent.py:answer [y]"): "failed",
        ("test_named", "agent.py:answer [x]"): "failed",
        ("test_named", "agent.py:answer [y]"): "passed",
    }
    no_agent = project.test("-i", "scripts:test_any.test_named", "-c", "x", "-c", "y")
    assert sorted(one["status"] for one in no_agent.events if one["type"] == "result") == ["failed", "passed"]


def test_a_converted_suite_keeps_its_matrix(project: Project) -> None:
    suite = matrix_suite(project, {"model": ["m1", "m2"], "env.LEVEL": [1, 2]})
    assert project.atp("convert", suite, "-o", "again.yaml").code == 0
    assert list(outputs(project.test("again.yaml"))) == list(outputs(project.test(suite)))
    prompts = {"name": "p", "type": "prompt", "config": {"path": "agents/p.md"}, "matrix": {"temperature": [0, 1]}}
    ran = project.atp("convert", project.suite([prompts], [CASE]), "-o", "out.test.md")
    assert "`p`" in ran.out + ran.err  # is lost, and listed


def test_a_generated_case_may_not_have_a_matrix(project: Project) -> None:
    made = {"cases": [{"id": "a", "input": "hi", "matrix": {"model": ["m1", "m2"]}}]}
    project.write("gen.py", f"def make(prompt):\n    return {json.dumps(made)!r}\n")
    ran = project.atp("test", "-i", "agents:gen.py:make?count=1", "-n", "agent.py:answer")
    assert ran.code in (2, 3), ran.out
    assert "calls" not in {path.name for path in project.folder.iterdir()}
