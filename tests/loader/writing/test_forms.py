"""What written files look like."""

from textwrap import dedent

import pytest

from atp.loader.load import FileDialect, load_text
from atp.loader.source import LoadContext
from atp.loader.writing import Written, write
from atp.suite.case import Case
from atp.suite.message import Message
from atp.suite.suite import Dialect, Suite

SUITE = """\
test_suite: clerk
description: |
  First line.

  Last line.
defaults:
  runs_per_test: 2
  timeout_seconds: 60
  constraints: {max_steps: 8}
agents:
  - {name: clerk, type: http, config: {endpoint: "http://localhost:8000", timeout: 1m}}
tests:
  - id: one
    name: "Yes"
    tags: [smoke, "1.0"]
    agents: [clerk]
    task: {description: "Say $${HOME}", expected_artifacts: [a.txt]}
    assertions:
      - {type: any_of, assert: [{type: contains, value: "null"}, {type: regex, value: '\\d'}], critical: true}
      - {type: json_path, path: $.a, value: null}
    constraints: {timeout_seconds: 10}
  - id: two
    name: two
    input: "  two\\nlines"
    expectations: [It is short, "# no comment"]
    runs: 5
    skip: true
    metadata: {when: 2024-01-01, n: 1.0}
"""


def convert(text: str, source: FileDialect, target: FileDialect) -> Written:
    loaded = load_text(text, source, LoadContext(env={}, agent=True, simulator=True, assessor=True))
    assert loaded.ok, loaded.diagnostics
    assert loaded.suite
    return write(loaded.suite, target)


def test_yaml_is_in_blocks_with_quotes_only_where_they_are_needed() -> None:
    assert convert(SUITE, "yaml", "yaml") == Written(
        dedent("""\
            test_suite: clerk
            version: "1.0"
            description: |
              First line.

              Last line.

            defaults:
              runs_per_test: 2
              timeout_seconds: 60
              constraints:
                max_steps: 8

            agents:
              - name: clerk
                type: http
                config:
                  timeout: 60
                  endpoint: http://localhost:8000

            tests:
              - id: one
                name: 'Yes'
                tags: [smoke, "1.0"]
                agents: [clerk]
                task:
                  description: Say $${HOME}
                  expected_artifacts: [a.txt]
                constraints:
                  timeout_seconds: 10
                assertions:
                  - type: any_of
                    assertions:
                      - type: contains
                        config:
                          value: "null"
                      - type: regex
                        config:
                          pattern: \\d
                    critical: true
                  - type: json_path
                    config:
                      path: $.a
                      value: null

              - id: two
                name: two
                skip: true
                input: "  two\\nlines"
                expectations:
                  - It is short
                  - '# no comment'
                runs: 5
                metadata:
                  when: '2024-01-01'
                  n: 1.0
            """),
        [],
    )


def test_jsonl_is_one_line_a_case_with_the_defaults_in_each() -> None:
    assert convert(SUITE, "yaml", "jsonl") == Written(
        '{"id": "one", "name": "Yes", "tags": ["smoke", "1.0"], '
        '"task": {"description": "Say ${HOME}", "expected_artifacts": ["a.txt"]}, "constraints": {"max_steps": 8}, '
        '"assertions": [{"type": "any_of", "assertions": [{"type": "contains", "value": "null"}, '
        '{"type": "regex", "pattern": "\\\\d"}], "critical": true}, '
        '{"type": "json_path", "path": "$.a", "value": null}], "runs": 2, "timeout": "10s"}\n'
        '{"id": "two", "skip": true, "input": "  two\\nlines", "constraints": {"max_steps": 8}, '
        '"expectations": ["It is short", "# no comment"], "runs": 5, '
        '"metadata": {"when": "2024-01-01", "n": 1.0}, "timeout": "60s"}\n',
        ["suite: name (clerk)", "suite: description", "suite: agents (`clerk`)", "case `one`: agents (clerk)"],
    )


def test_markdown_has_labels_and_fences_what_it_would_change() -> None:
    assert convert(SUITE, "yaml", "markdown") == Written(
        dedent("""\
            ---
            description: |
              First line.

              Last line.
            runs: 2
            timeout: 60
            ---

            # clerk

            ## Yes

            **ID:** one

            **Tags:** smoke, 1.0

            **Timeout:** 10s

            **Constraints:**

            ```yaml
            max_steps: 8
            ```

            **Prompts:**

            - Say ${HOME}

            ## two

            **Skip:** true

            **Runs:** 5

            **Metadata:**

            ```yaml
            when: '2024-01-01'
            n: 1.0
            ```

            **Constraints:**

            ```yaml
            max_steps: 8
            ```

            **Prompts:**

            - ```
                two
              lines
              ```

            **Expectations:**

            - It is short
            - # no comment
            """),
        [
            "suite: agents (`clerk`)",
            "case `one`: agents",
            "case `one`: assertions (any_of, json_path)",
            "case `one`: task (expected_artifacts)",
        ],
    )


MARKDOWN = """\
---
target: agents/ocean.md
assessor: agents/judge.md
iterations: 3
---
# Ocean
## Deep
### Warming
It warms up.

**Prompts:**
- **Chain:**
  - hello
  - warm it
- "warm *the* ocean"

**Expectations:**
- it is warm
### Test: Cooling
**Before:** Warming
**Prompts:**
- **Chain:**
  - now
  - cool it
**Expectations:**
- it is cold
"""


@pytest.mark.parametrize(("target", "said_once"), [("yaml", []), ("jsonl", ["name", "target"])])
def test_what_markdown_alone_can_say_is_listed(target: FileDialect, said_once: list[str]) -> None:
    written = convert(MARKDOWN, "markdown", target)
    assert "warm *the* ocean" in written.text
    lost = [loss for loss in written.losses if loss.split(" ")[1] not in said_once]
    assert lost == [
        "suite: assessor (agents/judge.md)",
        "suite: iterations (3)",
        "case `warming`: chains (1 of 2: it takes one prompt only)",
        "case `warming`: intent",
        "case `warming`: path (Ocean / Deep / Warming)",
        "case `test-cooling`: everything (its chains have several prompts)",
    ]


def test_markdown_stays_what_it_is() -> None:
    written = convert(MARKDOWN, "markdown", "markdown")
    assert written.losses == []
    assert "# Ocean\n\n## Deep\n\n### Warming\n" in written.text
    assert "### Test: Cooling\n\n**Test Intent:**" not in written.text
    assert "**Before:**\n\n- Warming\n" in written.text


def test_a_target_is_an_agent_that_is_a_prompt_and_the_reverse() -> None:
    as_yaml = convert(MARKDOWN, "markdown", "yaml").text
    assert "agents:\n  - name: ocean\n    type: prompt\n    config:\n      path: agents/ocean.md\n" in as_yaml
    again = convert(as_yaml, "yaml", "markdown")
    assert again.text.startswith("---\ntarget: agents/ocean.md\n---\n")
    assert again.losses == []


def test_nothing_is_written_when_no_case_can_be_said() -> None:
    talk = '{"id": "a", "messages": [{"role": "user", "content": "b"}, {"role": "system", "content": "c"}]}'
    written = convert(talk, "jsonl", "markdown")
    assert written == Written("", ["case `a`: everything (it is a conversation of messages)"])


def test_what_only_code_can_make_is_not_lost_in_silence() -> None:
    several = Case(id="several", name="several", chains=[["a"]], iterations=5)
    long = Case(id="long", name="long", chains=[["a" * 100_001]])
    silent = Case(id="silent", name="silent", expectations=["x"])
    suite = Suite(name="made", cases=[several, long, silent])
    written = write(suite, "yaml")
    assert written.losses == [
        "case `several`: iterations (5)",
        "case `long`: everything (its prompt is too long)",
        "case `silent`: everything (it says nothing to the agent)",
    ]


def test_a_name_that_a_target_cannot_have_is_listed() -> None:
    agents = "agents: [{name: sea, type: prompt, description: d, config: {path: agents/ocean.md}}]"
    written = convert(f"test_suite: s\n{agents}\ntests: [{{id: t, name: T, input: a}}]\n", "yaml", "markdown")
    assert written.text.startswith("---\ntarget: agents/ocean.md\n---\n")
    assert written.losses == ["suite: agents (the name and description of `sea`)"]


@pytest.mark.parametrize(
    ("path", "losses"), [("clerk.yaml", []), ("b/clerk.test.md", []), ("x.yaml", ["suite: name (clerk)"])]
)
def test_a_suite_named_after_its_file_keeps_its_name_in_jsonl(path: str, losses: list[str]) -> None:
    dialect: Dialect = "markdown" if path.endswith(".md") else "yaml"
    case = Case(id="a", name="a", messages=[Message(role="user", content="b")])
    suite = Suite(name="clerk", dialect=dialect, path=path, cases=[case])
    assert write(suite, "jsonl").losses == losses
