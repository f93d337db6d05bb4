"""`atp show`: what ATP understood, as one JSON object and for people."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

Atp = Callable[..., CompletedProcess[str]]

YAML = """\
test_suite: shop
version: "2.3"
description: About the shop
defaults: {runs_per_test: 2, constraints: {max_steps: 9}}
agents:
  - name: clerk
    type: http
    config: {endpoint: "http://localhost:8000", api_key: "sk-written-here", timeout: 30s}
tests:
  - id: sell
    name: Sell bread
    description: The long story
    tags: [smoke, bread]
    task:
      description: Sell a loaf
      input_data: {price: 3}
      expected_artifacts: [bill.txt]
    constraints: {timeout_seconds: 1m}
    assertions:
      - type: llm_eval
        config: {criteria: completeness, threshold: 0.8}
      - {type: equals, value: null, negate: true}
    skip: true
"""
JSONL = """\
{"id": "talk", "messages": [{"role": "user", "content": "Hi"}], "assert": {"type": "regex", "value": "a+"}, "user": "u"}
{"id": "tour", "simulator": {"use": "sim"}, "checkpoints": [{"id": "a", "assert": {"type": "contains", "value": "x"}},
 {"id": "b", "after": ["a"], "required": false, "assertion": {"type": "tool_called", "value": "t"}}], "max_turns": 4}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop.yaml").write_text(YAML)
    Path("talk.jsonl").write_text(JSONL)


def show(atp: Atp, *arguments: str, code: int = 0) -> Any:
    done = atp("show", "--json", *arguments)
    assert (done.returncode, done.stderr) == (code, "")
    return json.loads(done.stdout)


def test_a_yaml_suite_as_json(atp: Atp) -> None:
    assert show(atp, "shop.yaml") == {
        "suite": {
            "name": "shop",
            "dialect": "yaml",
            "path": "shop.yaml",
            "version": "2.3",
            "description": "About the shop",
            "agents": [
                {
                    "name": "clerk",
                    "type": "http",
                    "config": {"endpoint": "http://localhost:8000", "api_key": "***", "timeout": 30.0},
                }
            ],
            "defaults": {"runs_per_test": 2, "constraints": {"max_steps": 9}},
        },
        "cases": [
            {
                "index": 0,
                "id": "sell",
                "name": "Sell bread",
                "path": [],
                "intent": None,
                "tags": ["smoke", "bread"],
                "chains": [["Sell a loaf"]],
                "messages": [],
                "expectations": [],
                "assertions": [
                    {"type": "llm_eval", "criteria": "completeness", "threshold": 0.8},
                    {"type": "equals", "value": None, "negate": True},
                ],
                "checkpoints": [],
                "befores": [],
                "before_sequence": [],
                "limits": {"timeout_seconds": 60.0, "max_steps": 9},
                "description": "The long story",
                "skip": True,
                "task": {
                    "description": "Sell a loaf",
                    "input_data": {"price": 3},
                    "expected_artifacts": ["bill.txt"],
                },
                "runs": 2,
            }
        ],
        "diagnostics": [],
    }


def test_a_jsonl_file_as_json(atp: Atp) -> None:
    shown = show(atp, "talk.jsonl")
    assert (shown["suite"]["name"], shown["suite"]["dialect"]) == ("talk", "jsonl")
    talk, tour = shown["cases"]
    assert talk["messages"] == [{"role": "user", "content": "Hi"}]
    assert talk["assertions"] == [{"type": "regex", "pattern": "a+"}]
    assert talk["user"] == "u"
    assert tour["checkpoints"] == [
        {"id": "a", "assertion": {"type": "contains", "value": "x"}},
        {"id": "b", "after": ["a"], "required": False, "assertion": {"type": "tool_called", "name": "t"}},
    ]
    assert (tour["simulator"], tour["max_turns"], tour["index"]) == ({"use": "sim"}, 4, 1)


def test_cases_hold_what_could_be_read_also_when_there_are_errors(atp: Atp) -> None:
    Path("shop.yaml").write_text(YAML.replace("tags:", "tgas:") + "  - id: sell\n    name: Again\n")
    shown = show(atp, "shop.yaml", code=2)
    assert [case["name"] for case in shown["cases"]] == ["Sell bread", "Again"]
    assert [
        {key: one[key] for key in ("code", "severity", "message", "hint", "line", "column")}
        for one in shown["diagnostics"]
    ] == [
        {
            "code": "unknown-key",
            "severity": "error",
            "message": "unknown key `tgas`",
            "hint": "did you mean `tags`?",
            "line": 13,
            "column": 5,
        },
        {
            "code": "nothing-said",
            "severity": "error",
            "message": "the case says nothing to the agent",
            "hint": "add `input`, `messages` or `task`",
            "line": 24,
            "column": 5,
        },
        {
            "code": "duplicate-id",
            "severity": "error",
            "message": "the id `sell` is already taken",
            "hint": "give it another: the case on line 10 has it, too",
            "line": 24,
            "column": 9,
        },
    ]


def test_a_file_that_cannot_be_read_is_still_one_object(atp: Atp) -> None:
    Path("broken.yaml").write_text("a: [\n")
    shown = show(atp, "broken.yaml", code=2)
    assert shown["cases"] == []
    assert shown["suite"] == {"path": "broken.yaml"}
    assert [one["code"] for one in shown["diagnostics"]] == ["syntax"]


def test_several_files_give_a_list(atp: Atp) -> None:
    shown = show(atp, "shop.yaml", "talk.jsonl")
    assert [one["suite"]["name"] for one in shown["suites"]] == ["shop", "talk"]
    assert shown["diagnostics"] == []


def test_nothing_found(atp: Atp) -> None:
    Path("empty").mkdir()
    shown = show(atp, "empty", code=2)
    assert shown["suites"] == []
    assert [one["code"] for one in shown["diagnostics"]] == ["no-test-files"]


def test_warnings_do_not_change_the_exit_code_unless_strict(atp: Atp) -> None:
    Path("warned.jsonl").write_text('{"id": "a", "input": "x", "max_turns": 3}\n')
    assert show(atp, "warned.jsonl")["diagnostics"][0]["severity"] == "warning"
    assert show(atp, "--strict", "warned.jsonl", code=2)["diagnostics"][0]["severity"] == "error"


def test_for_people(atp: Atp) -> None:
    done = atp("show", "shop.yaml", "talk.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        """\
shop  (yaml, shop.yaml)
  About the shop
  agent clerk (http)

  0  sell  Sell bread  [smoke, bread]  (skipped)
     says: Sell a loaf
     checks: llm_eval (criteria=completeness, threshold=0.8)
     checks: equals (negate=True, value=None)
     makes: bill.txt
     runs: 2
     limits: max_steps 9, timeout_seconds 60.0

talk  (jsonl, talk.jsonl)

  0  talk
     user: Hi
     checks: regex (pattern=a+)

  1  tour
     reaches: a (contains)
     reaches: b (tool_called) after a
"""
    )


def test_for_people_mistakes_go_to_stderr(atp: Atp) -> None:
    Path("shop.yaml").write_text(YAML.replace("tags:", "tgas:"))
    done = atp("show", "shop.yaml")
    assert done.returncode == 2
    assert done.stdout.startswith("shop  (yaml, shop.yaml)")
    assert done.stderr.startswith("\nerror[unknown-key]")  # a blank line after what is shown
    assert atp("show", "gone.yaml").stderr.startswith("error[no-such-file]")


def test_expectations_that_have_an_exact_meaning_are_shown_with_it(atp: Atp) -> None:
    words = ["the warm_ocean function was called", "it is polite"]
    Path("ocean.jsonl").write_text(json.dumps({"id": "warm", "input": "hi", "expectations": words}) + "\n")
    (case,) = json.loads(atp("show", "--json", "ocean.jsonl", "-n", "a.py:run").stdout)["cases"]
    assert (case["expectations"], case["exact"]) == (words, ["tool_called warm_ocean", None])
    lines = atp("show", "ocean.jsonl", "-n", "a.py:run").stdout.splitlines()
    assert "     expects: the warm_ocean function was called → tool_called warm_ocean" in lines
    assert "     expects: it is polite" in lines


def test_expectations_about_the_own_turns_are_shown_as_such(atp: Atp) -> None:
    words = ["the warm_ocean function was called (turns: own)", "it is polite (turns: own)"]
    Path("ocean.jsonl").write_text(json.dumps({"id": "warm", "input": "hi", "expectations": words}) + "\n")
    lines = atp("show", "ocean.jsonl", "-n", "a.py:run").stdout.splitlines()
    assert f"     expects: {words[0]} → tool_called warm_ocean (own turns)" in lines
    assert f"     expects: {words[1]} (a judge decides by its own turns)" in lines


def test_a_sentence_that_is_nearly_exact_is_shown_with_the_wording_that_would_be(atp: Atp) -> None:
    words = ["the Search tool was called", "it is polite"]
    Path("near.jsonl").write_text(json.dumps({"id": "near", "input": "hi", "expectations": words}) + "\n")
    (case,) = json.loads(atp("show", "--json", "near.jsonl", "-n", "a.py:run").stdout)["cases"]
    assert (case["exact"], case["exact_if"]) == ([None, None], ["the `Search` tool was called", None])
    wanted = "expects: the Search tool was called (a judge decides; exact if it says: the `Search` tool was called)"
    assert wanted in atp("show", "near.jsonl", "-n", "a.py:run").stdout


def test_the_expected_output_and_runs_are_shown(atp: Atp) -> None:
    Path("sum.jsonl").write_text('{"id": "sum", "input": "1+1", "expected": {"sum": 2}, "runs": 3}\n')
    lines = atp("show", "sum.jsonl").stdout.splitlines()
    assert lines[2:] == ["  0  sum", "     user: 1+1", "     expected: {'sum': 2}", "     runs: 3"]


MARKDOWN = "---\ntarget: agents/a.md\n---\n# C\n**Prompts:**\n- a\n\nAnd b.\n"


def test_what_each_line_of_a_markdown_file_is(atp: Atp) -> None:
    Path("c.test.md").write_text(MARKDOWN)
    done = atp("show", "--lines", "c.test.md")
    assert done.returncode == 0
    assert done.stdout.splitlines()[3:] == [
        "   4  case 0 ! no-expectations       | # C",
        "   5  Prompts                        | **Prompts:**",
        "   6  prompt 1 of chain 1            | - a",
        "   7                                 |",
        "   8  not read ! unread-text         | And b.",
        "   9                                 |",
    ]
    lines = show(atp, "--lines", "c.test.md")["lines"]
    assert lines[0] == {
        "number": 1,
        "text": "---",
        "kind": "frontmatter",
        "role": "frontmatter",
        "case": None,
        "codes": ["missing-assessor"],
        "reported": None,
    }


@pytest.mark.parametrize("name", ["shop.yaml", "talk.jsonl"])
def test_lines_of_other_formats_are_refused(atp: Atp, name: str) -> None:
    done = atp("show", "--lines", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--lines shows Markdown files (.test.md) only, and {name} is none" in done.stderr


def test_all_weights_are_shown_where_a_file_gives_any(atp: Atp) -> None:
    Path("weights.yaml").write_text(YAML.replace("    skip: true\n", "    scoring: {quality_weight: 0.4}\n"))
    shown = json.loads(atp("show", "--json", "weights.yaml").stdout)
    assert shown["cases"][0]["scoring"] == {
        "quality_weight": 0.4,
        "completeness_weight": 0.3,
        "efficiency_weight": 0.2,
        "cost_weight": 0.1,
    }
