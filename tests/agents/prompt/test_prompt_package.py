"""Agents in folders: `package.yao` with comments and other tools' keys, `prompts.yml` with variables."""

import re

import pytest
from tests.agents.support.prompts import Scripted, Stage, uses
from tests.agents.support.talk import Talk, run

PLACE = "assistants/ocean"
PROMPTS = "- role: system\n  content: You are X.\n"


@pytest.fixture
def stage(talk: Talk) -> Stage:
    return Stage(talk, Scripted("Hello"))


def write(stage: Stage, package: str, prompts: str | None = PROMPTS, name: str = "prompts.yml") -> None:
    stage.write(**{f"{PLACE}/package.yao": package})
    if prompts is not None:
        stage.write(**{f"{PLACE}/{name}": prompts})


def refuse(stage: Stage, package: str, prompts: str | None = PROMPTS) -> str:
    write(stage, package, prompts)
    return stage.refuse(path=PLACE)


FULL = """
// The assistant of the harbour
{
  "name": "{{ name }}", /* shown
  in lists */
  "type": "assistant",
  "avatar": "/a.png", "tags": ["x // y"], "sort": 1, "readonly": true, "mentionable": true, "automated": false,
  "modes": ["chat", "task"], "default_mode": "task", "placeholder": {"title": "t"}, "created_at": "2024-01-01",
  "locales": {}, "public": true, "somebody_elses": {"key": 1},
  "connector": "$ENV.CONNECTOR",
  "mcp": {"servers": []},
  "options": {"temperature": 0.7, "top_p": 1,},
}
"""


def test_a_whole_package(stage: Stage, talk: Talk) -> None:
    model = Scripted("Hi")
    stage.models["m1"] = model
    talk.around.environment["CONNECTOR"] = "m1"  # type: ignore[index]
    write(
        stage,
        FULL,
        """
        - role: system
          content: |
            User $CTX.USER_ID of $CTX.TEAM_ID, {{ $CTX.locale }}.
        - role: user
          name: example
          content: Hi
        - role: assistant
          content: Ahoy
        """,
        "prompts.yaml",
    )
    run(talk.ask(stage.agent(PLACE), "Storm?", context={"user": "u1", "team": "t1", "locale": "de"}))
    ask = model.asked[0]
    assert ask.messages == [
        {"role": "system", "content": "User u1 of t1, de.\n"},
        {"role": "user", "name": "example", "content": "Hi"},
        {"role": "assistant", "content": "Ahoy"},
        {"role": "user", "content": "Storm?"},
    ]
    assert ask.settings == {"temperature": 0.7, "top_p": 1}


def test_a_package_takes_our_own_keys(stage: Stage, talk: Talk) -> None:
    model = Scripted(uses("add", {"a": 1, "b": 2}), uses("look"), "three")
    stage.models[None] = model
    stage.write(**{f"{PLACE}/src/sums.py": "def add(a: int, b: int):\n    return a + b\n"})
    write(
        stage,
        '{"commands": ["src/sums.py:add"], "tools": {"look": {"result": "calm"}}, "max_steps": 3, "description": null}',
    )
    assert run(talk.ask(stage.agent(f"{PLACE}/package.yao"))).output == "three"
    assert model.results == ["3", "calm"]


def test_files(stage: Stage) -> None:
    write(stage, "{}")
    made = stage.make(path=PLACE)
    assert [path.name for path in made.files] == ["package.yao", "prompts.yml"]


def test_a_default_that_yao_sets_elsewhere_is_the_models_default_here(stage: Stage, talk: Talk) -> None:
    write(stage, '{"connector": "use::default"}')
    assert run(talk.ask(stage.agent(path=PLACE))).output == "Hello"


def test_what_only_another_tool_can_do_is_said(stage: Stage) -> None:
    write(stage, '{\n "kb": {"collections": []}, "uses": {}, "hooks": {}, "sandbox": {"image": "x"}}')
    stage.write(**{f"{PLACE}/src/index.ts": "// hooks", f"{PLACE}/sandbox.yao": "{}"})
    told = [f"{one.file}:{one.line}: {one.message}" for one in stage.make(path=PLACE).warnings]
    assert [re.split(" has no effect", one)[0] for one in told] == [
        f"{PLACE}/package.yao:1: src/index.ts",
        f"{PLACE}/package.yao:1: sandbox.yao",
        f"{PLACE}/package.yao:2: `kb`",
        f"{PLACE}/package.yao:2: `uses`",
        f"{PLACE}/package.yao:2: `hooks`",
        f"{PLACE}/package.yao:2: `sandbox`",
    ]


@pytest.mark.parametrize(
    ("package", "told"),
    [
        ('{\n "conector": "a"}', "package.yao:2:2: unknown key `conector` (did you mean `connector`?)"),
        ('{"optoins": {}}', "did you mean `options`?"),
        ('{"comands": []}', "did you mean `commands`?"),
        ('{"model": "a", "connector": "b"}', "mean the same"),
        ('{"connector": 5}', "`connector` must be text"),
        ('{"connector": "$ENV.NO_SUCH_VARIABLE_HERE"}', ":1:15: the variable `NO_SUCH_VARIABLE_HERE` is not set"),
        ('{"mcp": {"servers": ["a"]}}', ":1:22: there is no MCP server `a`"),
        ('{"prompts": []}', "put the prompts into prompts.yml"),
        ('{"type": "http"}', "a package is a prompt, not of type `http`"),
        ('{"tools": {"a": {"reslt": 1}}}', "did you mean `result`?"),
        ('{"a": 1, "a": 2}', "`a` is given twice"),
        ('// a\n{"a": /* b */ 1 "b": 2}', "package.yao:2:17: not JSON"),
        ("[]", "a package must be an object"),
        ("", "not JSON"),
    ],
)
def test_mistakes_in_the_package(stage: Stage, package: str, told: str) -> None:
    assert told in refuse(stage, package)


@pytest.mark.parametrize(
    ("prompts", "told"),
    [
        (None, "package.yao:1:1: there is no prompts.yml beside it"),
        ("role: system", "prompts must be a list of messages"),
        ("- role: systm\n  content: a", "prompts.yml:1:9: `role` cannot be the text 'systm' (did you mean `system`?)"),
        ("- role: system", "`content` is missing"),
        ("- role: system\n  contnt: a", "did you mean `content`?"),
        ("- text", "must be a mapping"),
        ("- role: system\n  content: |\n    a\n    $CTX.WHAT", "prompts.yml:4:5: there is no `$CTX.WHAT`"),
        ("- role: system\n  content: $ENV.NO_SUCH_VARIABLE_HERE", "`NO_SUCH_VARIABLE_HERE` is not set"),
        ("- [", "not YAML"),
    ],
)
def test_mistakes_in_the_prompts(stage: Stage, prompts: str | None, told: str) -> None:
    assert told in refuse(stage, "{}", prompts)


def test_two_files_of_prompts(stage: Stage) -> None:
    stage.write(**{f"{PLACE}/prompts.yaml": PROMPTS})
    assert "are both there" in refuse(stage, "{}")


def test_no_prompts_at_all(stage: Stage, talk: Talk) -> None:
    model = Scripted("Hi")
    stage.models[None] = model
    write(stage, "{}", "[]")
    run(talk.ask(stage.agent(PLACE)))
    assert model.asked[0].messages == [{"role": "user", "content": "Hello"}]
