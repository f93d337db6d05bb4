"""Agents in Markdown files: frontmatter, body, links, variables, and every mistake told before anything runs."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.support.prompts import Scripted, Stage
from tests.agents.support.talk import Talk, run

from atp.agents.agent_files import AgentFiles
from atp.agents.prompt.file import agent_of_file, read_prompt_file
from atp.base.errors import ConfigurationError


@pytest.fixture
def stage(talk: Talk) -> Stage:
    return Stage(talk, Scripted("Hello"))


def system(stage: Stage, talk: Talk, **request: Any) -> str:
    """The system prompt that the model gets from `agents/x.md`."""
    model = Scripted("Hello")
    stage.models[None] = model
    run(talk.ask(stage.agent(), **request))
    first = model.asked[0].messages[0]
    return str(first["content"]) if first["role"] == "system" else ""


def test_body_is_the_system_prompt(stage: Stage, talk: Talk) -> None:
    stage.write(**{"agents/x.md": "---\ndescription: d\n---\n\n# You are X\n\nBe kind.\n"})
    assert system(stage, talk) == "# You are X\n\nBe kind."


def test_frontmatter_is_optional(stage: Stage, talk: Talk) -> None:
    stage.write(**{"agents/x.md": "You are X.\n"})
    assert system(stage, talk) == "You are X."


@pytest.mark.parametrize("above", [" ", "\t", "-", "<!-- a comment -->\n", "Hello.\n\n"])
def test_frontmatter_that_is_not_read_is_a_mistake(stage: Stage, above: str) -> None:
    stage.write(**{"agents/x.md": f"{above}---\nconnector: a.b\n---\n\nBe kind.\n"})
    assert "these keys are not read as frontmatter" in stage.refuse()


def test_rules_and_headings_in_a_prompt_are_no_frontmatter(stage: Stage, talk: Talk) -> None:
    body = "----\n\nTools: none.\n\nAgents\n---\nname: who you are\n\n---\n\nBe kind: always."
    stage.write(**{"agents/x.md": body})
    assert system(stage, talk) == body


def test_no_body_means_no_system_prompt(stage: Stage, talk: Talk) -> None:
    stage.write(**{"agents/x.md": "---\ntemperature: 0\n---\n"})
    assert system(stage, talk) == ""


@pytest.mark.parametrize("place", ["agents/x.md", "/agents/x.md", "agents/x", "../project/agents/x.md"])
def test_paths(stage: Stage, place: str) -> None:
    stage.write(**{"agents/x.md": "---\ndescription: found\n---\nHi"})
    assert stage.make(path=place).description == "found"


def test_no_such_file(stage: Stage) -> None:
    assert "there is no agent at agents/y.md" in stage.refuse(path="agents/y.md")


def test_links_are_replaced_by_what_they_link_to(stage: Stage, talk: Talk) -> None:
    stage.write(
        **{
            "agents/x.md": "Start.\n\n[rules](rules/a.md)\n\nEnd with [the last](</agents/b c.md> 'title').",
            "agents/rules/a.md": "---\ndescription: not part of it\n---\n\n- one\n- [two](../two.md)\n",
            "agents/two.md": "number two",
            "agents/b c.md": "b",
        }
    )
    assert system(stage, talk) == "Start.\n\n- one\n- number two\n\nEnd with b."


UNTOUCHED = [
    "`[code](a.md)`",
    "```\n[fence](a.md)\n```",
    "~~~md\n[fence](a.md)\n~~~",
    "<!-- [comment](a.md) -->",
    r"\[escaped](a.md)",
    "![picture](a.md)",
    "[net](https://example.org/a.md)",
    "[net](//example.org/a.md)",
    "[other](a.txt)",
    "[place](#a)",
    "[reference][a.md]",
]


@pytest.mark.parametrize("text", UNTOUCHED)
def test_not_every_link_is_one(stage: Stage, talk: Talk, text: str) -> None:
    stage.write(**{"agents/x.md": f"{text}\n", "agents/a.md": "WRONG"})
    assert system(stage, talk) == text


@pytest.mark.parametrize(
    "text",
    [
        "[[nested] text](a.md)",
        "a [b](a.md) c",
        "- [b](a.md)\n",
        "``x`` [b](a.md)",
        "```\nx\n```\n[b](a%2Emd)",
        "[](a.md)",
    ],
)
def test_links_in_all_places(stage: Stage, talk: Talk, text: str) -> None:
    stage.write(**{"agents/x.md": text, "agents/a.md": "FOUND"})
    assert "FOUND" in system(stage, talk)
    assert "(a" not in system(stage, talk)


def test_a_file_linked_twice_is_no_circle(stage: Stage, talk: Talk) -> None:
    stage.write(**{"agents/x.md": "[a](a.md) [a](a.md) [b](b.md)", "agents/a.md": "A", "agents/b.md": "[a](a.md)"})
    assert system(stage, talk) == "A A A"


def test_circle(stage: Stage) -> None:
    stage.write(**{"agents/a.md": "1\n2 [b](b.md)", "agents/b.md": "[a](a.md)"})
    told = stage.refuse("[a](a.md)")
    assert "agents/b.md:1:1: these files link to each other: agents/a.md → agents/b.md → agents/a.md" in told


def test_a_file_that_links_to_itself(stage: Stage) -> None:
    assert "agents/x.md → agents/x.md" in stage.refuse("[me](x.md)")


def test_links_are_looked_for_beside_the_file_then_below_the_root(stage: Stage, talk: Talk) -> None:
    stage.write(**{"info/list.md": "the list", "info/more.md": "wrong", "agents/info/more.md": "right"})
    stage.write(**{"agents/x.md": "[a](info/list.md), [b](info/more.md), [c](/info/list.md)"})
    assert system(stage, talk) == "the list, right, the list"


def test_missing_links_are_told_together_each_at_its_place(stage: Stage) -> None:
    told = stage.refuse("---\ndescription: d\n---\nOne [a](a.md)\n\nTwo [b](b.md), $CTX.WHAT, [c](c.md#part)")
    assert told.startswith("4 mistakes in its files:")
    assert "agents/x.md:4:5: there is no file `a.md`" in told
    assert "agents/x.md:6:5: there is no file `b.md`" in told
    assert "agents/x.md:6:16: there is no `$CTX.WHAT`" in told
    assert "`c.md#part` is a part of a file" in told


def test_nothing_outside_of_the_project_is_read(stage: Stage) -> None:
    (stage.root.parent / "secret.md").write_text("secret")
    assert "leads out of the project" in stage.refuse("[x](../../secret.md)")
    (stage.root / "agents" / "link.md").symlink_to(stage.root.parent / "secret.md")
    assert "leads out of the project" in stage.refuse("[x](link.md)")


def test_many_small_files_that_link_to_each_other_twice(stage: Stage) -> None:
    """Each doubles the next one: that must end, and soon."""
    for number in range(60):
        stage.write(**{f"agents/n{number}.md": f"[a](n{number + 1}.md) [b](n{number + 1}.md)"})
    stage.write(**{"agents/n60.md": "x" * 1000})
    assert "longer than 4 MB" in stage.refuse("[a](n0.md)")


def test_a_long_way(stage: Stage) -> None:
    for number in range(150):
        stage.write(**{f"agents/n{number}.md": f"[a](n{number + 1}.md)"})
    stage.write(**{"agents/n150.md": "x"})
    assert "more than 100 files" in stage.refuse("[a](n0.md)")


@given(st.text(alphabet="[](a.md`\\!<->\n ~", max_size=60))
def test_any_text_is_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "x.md").write_text(f"x {text}", encoding="utf-8")
    (folder / "a.md").write_text("A", encoding="utf-8")
    files = AgentFiles(folder, {})
    written = read_prompt_file(folder / "x.md", files)
    assert written.prompts or "x.md" in str(files.notes(folder / "x.md"))


def test_settings_of_all_spellings(stage: Stage, talk: Talk) -> None:
    model = Scripted("Hi")
    stage.models["m1"] = model
    stage.make("---\nmodel: m1\ntemperature: 0.5\nmax_tokens: 7\nsettings: {top_p: 1}\n---\nHi")
    run(talk.ask(stage.agent()))
    assert model.asked[0].settings == {"temperature": 0.5, "max_tokens": 7, "top_p": 1}


def test_settings_of_the_model_in_config(stage: Stage, talk: Talk) -> None:
    model = Scripted("Hi")
    stage.models["m1"] = model
    stage.make("---\noptions: {top_p: 1}\nconfig: {model: m1, temperature: 0.5, tool_choice: auto}\n---\nHi")
    run(talk.ask(stage.agent()))
    assert model.asked[0].settings == {"temperature": 0.5, "tool_choice": "auto", "top_p": 1}


MISTAKES = [
    ("modle: a", ":2:1: unknown key `modle` (did you mean `model`?)"),
    ("comands: [a:b]", "did you mean `commands`?"),
    ("tol: {}", "unknown key `tol`"),
    ("whatever: 1", "unknown key `whatever`"),
    ("model: a\nconnector: b", "`model` and `connector` mean the same"),
    ("temperature: hot", ":2:14: `temperature` must be a number, found the text 'hot'"),
    ("temperature: 1\noptions: {temperature: 2}", "`temperature` is given twice"),
    ("max_steps: 0", "`max_steps` must be at least 1"),
    ("commands: nope", "`commands` must be a list"),
    ("commands: [nope]", "expected `module:function`"),
    ("mcp: [a]", "there is no MCP server `a`"),
    ("mcp: {servers: [a]}", "there is no MCP server `a`"),
    ("config: {entry: a.py:f}", "`config` belongs to an agent of another type"),
    ("config: [a]", "`config` belongs to an agent of another type"),
    ("temperature: 1\nconfig: {temperature: 2}", ":3:10: `temperature` is given twice"),
    ("options: {top_p: 1}\nconfig: {top_p: 2}", "`top_p` is given twice"),
    ("type: http", "describes an agent of type `http`"),
    ("a: 1\na: 2", "`a` is given twice"),
    ("- a", "the frontmatter must be a mapping"),
    ("a: [", "not YAML"),
    ("model: ${NO_SUCH_VARIABLE_HERE}", "the variable `NO_SUCH_VARIABLE_HERE` is not set"),
    ("tools: {'a b': {result: 1}}", "is no name that models take for a tool"),
    ("tools: {a: 1}", "`a` must be a mapping"),
    ("tools: [a]", "`tools` must be a mapping"),
    ("tools: {a: {}}", "it has no answer"),
    ("tools: {a: {result: 1, error: x}}", "not two"),
    ("tools: {a: {when: [{arguments: {}}]}}", "it has no answer"),
    ("tools: {a: {when: [{result: 1}]}}", "`arguments` is missing"),
    ("tools: {a: {reslt: 1}}", "did you mean `result"),
    ("tools: {a: {result: 1, parameters: {type: nope}}}", "not a JSON Schema"),
    ("tools: {a: {when: [{arguments: {b: {$regex: x}}, result: 1}]}}", "`$regex` is no matcher here"),
]


@pytest.mark.parametrize(("frontmatter", "told"), MISTAKES)
def test_mistakes_in_the_frontmatter(stage: Stage, frontmatter: str, told: str) -> None:
    found = stage.refuse(f"---\n{frontmatter}\n---\nHi")
    assert told in found
    assert re.search(r"agents/x\.md:\d+:\d+: ", found)


def test_an_empty_file(stage: Stage) -> None:
    assert "there is nothing in this file" in stage.refuse("\n")


def test_unclosed_frontmatter(stage: Stage) -> None:
    assert "the frontmatter is not closed" in stage.refuse("---\nmodel: a\n\nHi")


def test_all_mistakes_of_a_file_are_told_at_once(stage: Stage) -> None:
    stage.tools("def known(): ...\n")
    frontmatter = "modl: a\ncommands: [tools.py:known, tools.py:unknown, 'no_such_module:f']\nagents: [nobody]"
    told = stage.refuse(f"---\n{frontmatter}\n---\n[a](a.md) $ENV.NO_SUCH_VARIABLE_HERE")
    assert told.startswith("6 mistakes in its files:")
    assert "agents/x.md:3:28: `tools.py:unknown`: there is no `unknown`" in told
    assert "no_such_module can't be imported" in told
    assert "agents/x.md:4:10: `nobody`: there is no agent `nobody`" in told


def test_variables(stage: Stage, talk: Talk) -> None:
    talk.around.environment["TONE"] = "dry"  # type: ignore[index]
    stage.write(
        **{"agents/x.md": "$ENV.TONE; $CTX.USER_ID/{{ $CTX.locale }}. $CTX.METADATA.plan-b, $$CTX.NAME $CTX ${X} $5"}
    )
    context = {"user": "ann", "locale": "de", "metadata": {"plan-b": 2}}
    assert system(stage, talk, context=context) == "dry; ann/de. 2, $CTX.NAME $CTX ${X} $5"


def test_the_mode_and_the_theme_are_options_of_the_case(stage: Stage, talk: Talk) -> None:
    stage.write(**{"agents/x.md": "<$CTX.MODE> <$CTX.THEME>"})
    assert system(stage, talk, context={}, options={"mode": "task"}) == "<task> <>"


def test_the_clock(stage: Stage, talk: Talk) -> None:
    names = "DATETIME DATE TIME WEEKDAY YEAR MONTH DAY HOUR MINUTE SECOND UNIX"
    stage.write(**{"agents/x.md": "|".join(f"$SYS.{name}" for name in names.split()) + "|$SYS.TIMEZONE|$CTX.date"})
    found = system(stage, talk)
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\|\d{4}-\d\d-\d\d\|\d\d:\d\d:\d\d\|\w+day\|", found)
    assert "$" not in found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("$SYS.DATETME", "did you mean `$SYS.DATETIME`?"),
        ("$SYS.METADATA.x", "there is no `$SYS.METADATA.x`"),
        ("$CTX.USRE", "did you mean `$CTX.USER`?"),
        ("$CTX.PLAN", "the case's own data is `$CTX.METADATA.PLAN`"),
        ("$ENV.NO_SUCH_VARIABLE_HERE", "set NO_SUCH_VARIABLE_HERE in the environment"),
    ],
)
def test_variables_that_are_not_there(stage: Stage, text: str, told: str) -> None:
    assert told in stage.refuse(f"Hi {text}")


def test_a_case_without_the_metadata_that_a_prompt_needs(stage: Stage, talk: Talk) -> None:
    stage.write(**{"agents/x.md": "$CTX.METADATA.plan"})
    error = run(talk.fail(stage.agent(), context={"metadata": {}}))
    assert error.blame == "environment"
    assert "`plan`" in str(error)


def test_what_decides_and_what_must_not_be_shown(stage: Stage, talk: Talk) -> None:
    talk.around.environment.update(MY_TOKEN="abcdef123", TONE="dry", MODEL="m1")  # type: ignore[attr-defined]
    stage.models["m1"] = Scripted()
    stage.tools("def f(): ...\n")
    stage.write(**{"agents/a.md": "$ENV.MY_TOKEN", "agents/inner.md": "$ENV.TONE"})
    made = stage.make("---\nmodel: ${MODEL}\ncommands: [tools.py:f]\nagents: [inner]\n---\n[a](a.md)")
    names = [path.relative_to(stage.root).as_posix() for path in made.files]
    assert names == ["agents/x.md", "agents/a.md", "agents/tools.py", "agents/inner.md"]
    assert made.variables == {"MY_TOKEN": "abcdef123", "TONE": "dry", "MODEL": "m1"}
    assert made.secrets == {"abcdef123"}


def test_a_file_may_describe_another_kind_of_agent(stage: Stage) -> None:
    secrets: set[str] = set()
    stage.write(
        **{
            "agents/h.md": "---\ntype: http\ndescription: d\nconfig:\n  endpoint: ${HOST:http://a}/x\n"
            "  headers: {X: '${MY_TOKEN}'}\n---\n# About\n"
        }
    )
    made = agent_of_file(stage.root / "agents/h.md", "h", stage.root, {"MY_TOKEN": "abcdef123"}, secrets)
    assert made.type == "http"
    assert (made.name, made.description, made.config.endpoint) == ("h", "d", "http://a/x")
    assert secrets == {"abcdef123"}


def test_a_file_that_says_no_type_is_a_prompt(stage: Stage) -> None:
    stage.write(**{"agents/p.md": "---\ndescription: d\nmodle: typo\n---\nHi"})
    made = agent_of_file(stage.root / "agents/p.md", "p", stage.root)
    assert made.type == "prompt"
    assert (made.description, Path(made.config.path)) == ("d", (stage.root / "agents/p.md").resolve())


@pytest.mark.parametrize(
    ("frontmatter", "told"),
    [
        ("type: htpp\nconfig: {}", "did you mean `http`?"),
        ("type: http\nconfig: {endpont: http://a}", "agents/h.md:3:10: unknown key `endpont`"),
        ("type: http", "`endpoint` is missing"),
        ("type: http\nconfig: {endpoint: http://a}\nmodel: x", "takes all else in `config`"),
        ("type: http\nconfg: {endpoint: http://a}", "did you mean `config`?"),
        ("type: custom\nconfig: {entry: '${NO_SUCH_VARIABLE_HERE}'}", "`NO_SUCH_VARIABLE_HERE` is not set"),
    ],
)
def test_mistakes_in_another_kind_of_agent(stage: Stage, frontmatter: str, told: str) -> None:
    stage.write(**{"agents/h.md": f"---\n{frontmatter}\n---\n"})
    with pytest.raises(ConfigurationError) as raised:
        agent_of_file(stage.root / "agents/h.md", "h", stage.root)
    assert told in f"{raised.value} {raised.value.hint}"
