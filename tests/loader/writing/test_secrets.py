"""Secrets never come out: a variable stands in their place, and with its value the suite is the same again."""

from collections.abc import Mapping

import pytest
from tests.base.test_secrets import FORMS

from atp.base.secrets import Secrets
from atp.loader.load import FileDialect, load_text
from atp.loader.source import LoadContext
from atp.loader.writing import write
from atp.suite.suite import Suite

ENV = {"FIRST_KEY": "first-secret", "OTHER_TOKEN": "other-secret", "HOST": "example.com"}
SUITE = """\
test_suite: s
agents:
  - name: a
    type: http
    config:
      endpoint: https://${HOST}/
      api_key: "${FIRST_KEY}"
      headers: {Authorization: "Bearer ${OTHER_TOKEN}", X-Trace: "${FIRST_KEY}"}
  - name: b
    type: http
    config: {endpoint: https://b/, api_key: "written-right-here"}
tests:
  - id: t
    name: T
    input: "Log in with $${NAME} and $${FIRST_KEY}=${FIRST_KEY}"
    metadata: {2nd: "costs $${OTHER_TOKEN} or $$${OTHER_TOKEN}", nested: [{Pass word: "x${OTHER_TOKEN}y"}]}
"""


def load(text: str, env: Mapping[str, str]) -> Suite:
    loaded = load_text(text, "yaml", LoadContext(env=env))
    assert loaded.ok, loaded.diagnostics
    assert loaded.suite
    return loaded.suite


def test_a_variable_named_after_the_key_stands_for_each_secret() -> None:
    written = write(load(SUITE, ENV), "yaml")
    assert "-secret" not in written.text
    assert "right-here" not in written.text
    assert "api_key: ${API_KEY}\n" in written.text
    assert "Authorization: ${AUTHORIZATION_SECRET}\n" in written.text
    assert "X-Trace: ${API_KEY}\n" in written.text
    assert "api_key: ${API_KEY_2}\n" in written.text
    assert "input: Log in with $${NAME} and $${FIRST_KEY}=${API_KEY}\n" in written.text
    assert "Pass word: x${PASS_WORD}y\n" in written.text
    assert written.losses == [
        "suite: agents.config.api_key (a secret: ${API_KEY} stands there)",
        "suite: agents.config.headers.Authorization (a secret: ${AUTHORIZATION_SECRET} stands there)",
        "suite: agents.config.headers.X-Trace (a secret: ${API_KEY} stands there)",
        "suite: agents.config.api_key (a secret: ${API_KEY_2} stands there)",
        "case `t`: input (a secret: ${API_KEY} stands there)",
        "case `t`: metadata.nested.Pass word (a secret: ${PASS_WORD} stands there)",
    ]


def test_with_the_variables_set_nothing_has_changed() -> None:
    suite = load(SUITE, ENV)
    written = write(suite, "yaml")
    env = {
        "API_KEY": "first-secret",
        "API_KEY_2": "written-right-here",
        "AUTHORIZATION_SECRET": "Bearer other-secret",
        "PASS_WORD": "other-secret",
    }
    again = load(written.text, env)
    assert again.cases == suite.cases
    assert again.agents == suite.agents
    assert suite.secrets <= again.secrets
    assert write(again, "yaml") == written


@pytest.mark.parametrize("dialect", ["jsonl", "json", "markdown"])
def test_formats_without_variables_hide_secrets_all_the_same(dialect: FileDialect) -> None:
    suite = load(SUITE, ENV)
    suite.cases[0].id = "first-secret"
    written = write(suite, dialect)
    assert "-secret" not in written.text
    assert not any("-secret" in loss for loss in written.losses)
    assert "${" in written.text


@pytest.mark.parametrize("dialect", ["yaml", "jsonl", "markdown"])
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_hidden_in_every_form_that_is_masked(form: str, dialect: FileDialect) -> None:
    secret = 'zQ7"xCANARY\\w9/KpL=2mN+4v'
    suite = load(SUITE, ENV).model_copy(update={"secrets": frozenset({secret})})
    suite.cases[0].expectations = [f"it does not say {FORMS[form](secret)} at all"]
    written = write(suite, dialect)
    assert "it does not say " in written.text
    assert written.text.count("${EXPECTATIONS_SECRET}") == 1
    assert Secrets({secret}).mask_text(written.text) == written.text


@pytest.mark.parametrize("form", FORMS)
def test_the_variable_of_an_escaped_secret_has_the_text_that_it_stands_for(form: str) -> None:
    suite = load(SUITE, ENV).model_copy(update={"secrets": frozenset({'zQ7"xCANARY'})})
    told = f"it says {FORMS[form]('zQ7' + chr(34) + 'xCANARY')}."
    suite.cases[0].expectations = [told]
    (begin, end), *more = Secrets(suite.secrets).spans(told)
    assert more == []
    again = load(write(suite, "yaml").text, {"EXPECTATIONS_SECRET": told[begin:end]})
    assert again.cases[0].expectations == [told]


def test_a_dollar_sign_before_a_secret_goes_with_it() -> None:
    suite = load(SUITE, ENV)
    suite.cases[0].user = "$first-secret"
    written = write(suite, "yaml")
    assert "user: ${USER_SECRET}\n" in written.text
