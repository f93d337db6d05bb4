"""Which agent is tested: the flag's, the file's own, the environment's, `atp.toml`'s, in this order."""

import pytest
from tests.engine.support.project import Project

OWN = {"name": "own", "type": "custom", "config": {"entry": "agent.py:own"}}
OTHER = {"name": "other", "type": "custom", "config": {"entry": "agent.py:other"}}


@pytest.fixture(autouse=True)
def agents(project: Project) -> None:
    """Agents that say who they are, one of which the project's settings name."""
    functions = ("own", "other", "file", "env", "flag", "target")
    project.write("agent.py", "".join(f"def {name}():\n    return {name!r}\n" for name in functions))
    project.write("atp.toml", 'name = "agent.py:file"\n')


def asked(project: Project, *call: str, **env: str) -> list[str]:
    ran = project.test(*call, "--runs", "1", env=env)
    assert ran.code == 0, ran.err
    return [one["output"] for one in ran.events if one["type"] == "result"]


def test_a_suite_s_own_agents_go_before_the_project_s_settings(project: Project) -> None:
    suite = project.suite([OWN, OTHER], [{"id": "a", "input": "hi"}])
    assert asked(project, suite) == ["own", "other"]
    assert asked(project, suite, ATP_NAME="agent.py:env") == ["own", "other"]
    assert asked(project, suite, "-n", "agent.py:flag", ATP_NAME="agent.py:env") == ["flag"]
    assert asked(project, suite, "-n", "other") == ["other"]


def test_a_file_without_agents_takes_those_of_the_settings(project: Project) -> None:
    project.write("bare.yaml", {"test_suite": "bare", "tests": [{"id": "a", "name": "A", "input": "hi"}]})
    for file in ("bare.yaml", project.cases("a")):
        assert asked(project, file) == ["file"]
        assert asked(project, file, ATP_NAME="agent.py:env") == ["env"]
        assert asked(project, file, "-n", "agent.py:flag", ATP_NAME="agent.py:env") == ["flag"]


def test_an_unknown_name_in_a_test_is_an_error_beside_settings_too(project: Project) -> None:
    suite = project.suite([OWN], [{"id": "a", "input": "hi", "agents": ["owm"]}])
    ran = project.atp("test", suite)
    assert ran.code == 2
    assert "the suite has no agent `owm`" in ran.err


def test_what_agents_check_contacts(project: Project) -> None:
    suite = project.suite([OWN], [{"id": "a", "input": "hi"}])
    ran = project.atp("agents", "check", suite)
    assert ran.code == 0, ran.err
    assert "own" in ran.out
    assert "agent.py:file" not in ran.out


def test_a_markdown_target_goes_before_the_project_s_settings(project: Project) -> None:
    project.write("agents/t.md", "---\ntype: custom\nconfig: {entry: ../agent.py:target}\n---\n")
    project.write("scripts/house.py", 'def judge(request):\n    return "nothing"\n')
    project.write(
        "a.test.md", "---\ntarget: agents/t.md\n---\n# A\n\n**Prompt:** hi\n\n**Expectations:**\n- it answers\n"
    )
    ran = project.atp("test", "a.test.md", "--assessor", "scripts:house.judge", "--dry-run")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("t × a ")


def test_agents_in_folders_of_the_same_last_name_have_names_of_their_own(project: Project) -> None:
    project.write("atp.toml", '[connectors.any]\ntype = "openai"\nhost = "http://127.0.0.1:9"\nmodel = "m"\n')
    for folder in ("assistants/sales/desk", "assistants/support/desk", "elsewhere/desk"):
        project.write(f"{folder}/package.yao", "{}")
        project.write(f"{folder}/prompts.yml", "- role: system\n  content: Be brief.\n")
        project.write(f"{folder}/tests/a.jsonl", '{"id": "a", "input": "hi"}\n')
    ran = project.atp("test", "assistants", "elsewhere", "--dry-run", "-c", "any")
    assert ran.code == 0, ran.err
    names = sorted({line.split(" × ")[0] for line in ran.out.splitlines() if " × a" in line})
    assert names == ["elsewhere.desk", "sales.desk", "support.desk"]


@pytest.mark.parametrize(
    "name",
    ["http://", "https://", "ftp://x", "x:", "agent.py:", ":x", "a/b", "agents/q", "/etc/passwd", "gone.md", "a:b.md"],
)
def test_what_names_no_agent_is_a_mistake(project: Project, name: str) -> None:
    for call in (("test", project.cases("a"), "-n", name), ("chat", name)):
        ran = project.atp(*call)
        assert ran.code == 2, ran.err
        assert "no-such-agent" in ran.err
        assert "Traceback" not in ran.err
        assert name in ran.err


@pytest.mark.parametrize(
    ("agent_file", "message"),
    [
        (None, "agent `x`: there is no agent at "),
        ("---\ntype: nothing\n---\n", "agent `x`: "),
        ("---\ntype: custom\nentry: gone.py:run\n---\n", "agent `x`: "),
    ],
    ids=["missing", "unusable", "without its function"],
)
def test_a_target_that_can_not_be_used_is_reported_at_its_place_with_the_warnings_of_the_file(
    project: Project, agent_file: str | None, message: str
) -> None:
    if agent_file is not None:
        project.write("agents/x.md", agent_file)
    project.write("m.test.md", "---\ntarget: agents/x.md\n---\n\n# A\n\n**Prompt**: hi\n\n**Typo**: x\n")
    ran = project.atp("test", "m.test.md")
    assert ran.code == 2
    error = ran.err.partition("error[agent-configuration]: ")[2]
    assert error.startswith(message), ran.err
    assert "\n  --> m.test.md:2:9\n" in error
    assert "warning[unknown-label]" in ran.err


TABLES = """\
    [agents.echo]
    type = "cli"
    [agents.echo.config]
    command = ["sh", "-c", "cat >/dev/null; echo $SAYS $TOKEN"]
    protocol = "text"
    parallel = "${AT_ONCE:2}"
    environment = { SAYS = "hello ${WHO}, a $${PRICE}", TOKEN = "${HOUSE_TOKEN:none}" }

    [agents.other]
    type = "http"
    config = { endpoint = "http://${UNSET_HOST}/", timeout = "${UNSET_SECONDS}" }
"""


def test_variables_of_an_agent_in_atp_toml_are_filled_in_and_masked(project: Project) -> None:
    project.write("atp.toml", TABLES)
    ran = project.atp("test", "-i", "x", "-n", "echo", env={"WHO": "Ada", "HOUSE_TOKEN": "open-sesame"})
    assert (ran.code, ran.out) == (0, "hello Ada, a ${PRICE} ***\n"), ran.err
    assert "open-sesame" not in ran.err


@pytest.mark.parametrize("call", [("test", "-i", "x", "-n", "echo"), ("chat", "echo")])
def test_a_missing_variable_of_an_agent_in_atp_toml_is_an_error_at_its_place(
    project: Project, call: tuple[str, ...]
) -> None:
    project.write("atp.toml", TABLES)
    ran = project.atp(*call)
    assert ran.code == 2, ran.err
    error, _, place = ran.err.partition("\n  --> ")
    assert error == "error[missing-variable]: the variable `WHO` is not set"
    assert place.splitlines()[0].endswith("atp.toml:7:31")
    assert "no-such-agent" not in ran.err
    assert "UNSET" not in ran.err


def write_custom(project: Project, **config: str) -> None:
    project.write("agent.py", "def answer(prompt):\n    return prompt\n")
    keys = "".join(f"      {key}: {value}\n" for key, value in config.items())
    agent = f"agents:\n  - name: a\n    type: custom\n    config:\n{keys}"
    project.write("s.yaml", f"test_suite: s\n{agent}tests:\n  - {{id: t, name: t, input: hi}}\n")


@pytest.mark.parametrize("command", ["validate", "test"])
def test_a_misspelled_key_in_an_open_config_is_warned_of_at_its_place(project: Project, command: str) -> None:
    write_custom(project, entry="agent.py:answer", paralel="2", pyhton="x", histroy="ignored", mode="fast", entry_2="x")
    ran = project.atp(command, "s.yaml")
    assert ran.code == 0, ran.err
    shown = ran.out + ran.err
    assert shown.count("warning[unknown-key]") == 3
    for line, key, meant in ((7, "paralel", "parallel"), (8, "pyhton", "python"), (9, "histroy", "history")):
        found = shown.partition(f"agent `a`: `{key}` is no key of ATP's")[2]
        assert found.partition("--> ")[2].startswith(f"s.yaml:{line}:7\n")
        assert found.partition("help: ")[2].startswith(f"did you mean `{meant}`?\n")


def test_entrypoint_is_told_to_be_entry(project: Project) -> None:
    write_custom(project, entrypoint="agent.py:answer")
    ran = project.atp("test", "s.yaml")
    assert ran.code == 2
    assert "unknown key `entrypoint`" in ran.err
    assert "help: known here: entry\n" in ran.err


def test_an_entry_that_can_not_be_used_is_reported_at_its_key(project: Project) -> None:
    write_custom(project, parallel="2", entry="agent.py:gone")
    ran = project.atp("test", "s.yaml")
    assert ran.code == 2
    error = ran.err.partition("error[agent-configuration]: agent `a`: ")[2]
    assert error.partition("--> ")[2].startswith("s.yaml:7:7\n"), ran.err
