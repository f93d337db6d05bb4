"""`pytest --atp`: test files as pytest's own items."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.pytest_plugin.support.plugin import PLUGIN
from tests.waiting import WAIT_LIMIT, until

# Imported here, so that the sessions inside these tests don't import them anew each time.
import atp.pytest_plugin.items
import atp.pytest_plugin.session  # noqa: F401

pytest_plugins = ["pytester"]

AGENT = """
    def answer(prompt):
        if prompt == "boom":
            raise ValueError("no tea")
        return {"output": f"{prompt}: tea?", "tool_calls": [{"name": "brew", "arguments": {"cups": 2}}]}

    def odd(prompt):
        return "perhaps"
"""
CASES = [
    {"id": "ask", "input": "hi", "assert": {"type": "contains", "value": "tea"}, "tags": ["smoke", "needs-key"]},
    {"id": "wrong", "name": "Wants coffee", "input": "hello", "expected": "coffee", "tags": ["skip", "_x"]},
    {"id": "boom", "input": "boom"},
    {"id": "left", "input": "x", "skip": True},
    {"id": "unjudged", "input": "x", "assert": {"type": "agent", "use": "agents:desk.py:odd"}},
]
Write = Callable[[str, Any], Path]
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def write(pytester: pytest.Pytester) -> Write:
    """Writes a file into the project of the test."""

    def write_file(name: str, content: Any) -> Path:
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(content) if isinstance(content, str) else "\n".join(map(json.dumps, content)))
        return path

    write_file("atp.toml", 'name = "desk.py:answer"\n')
    write_file("desk.py", AGENT)
    return write_file


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Runs pytest in this process, with warnings as errors."""

    def run_pytest(*arguments: str) -> pytest.RunResult:
        plain = ("-p", "no:cacheprovider") if "--lf" not in arguments and "--cache" not in arguments else ()
        given = [one for one in arguments if one != "--cache"]
        return pytester.runpytest_inprocess(*PLUGIN, "-W", "error", *plain, *given)

    return run_pytest


def runs(pytester: pytest.Pytester) -> list[list[dict[str, Any]]]:
    """The journals of all runs."""
    journals = sorted(pytester.path.glob(".atp/runs/*/journal.jsonl"))
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in journals]


def test_a_case_is_an_item(pytester: pytest.Pytester, write: Write, run: Run) -> None:
    write("cases.jsonl", CASES)
    ran = run("--atp", "-v")
    ran.assert_outcomes(passed=1, failed=2, skipped=1, errors=1)
    ran.stdout.fnmatch_lines(
        [
            "cases.jsonl::ask PASSED*",
            "cases.jsonl::wrong FAILED*",
            "cases.jsonl::boom FAILED*",
            "cases.jsonl::left SKIPPED (its file leaves it out)*",
            "cases.jsonl::unjudged ERROR*",
        ]
    )


def test_a_failure_shows_what_was_expected_and_said_and_nothing_of_ours(write: Write, run: Run) -> None:
    write("cases.jsonl", CASES)
    ran = run("--atp")
    ran.stdout.fnmatch_lines(
        [
            "*_ wrong _*",
            'expected "coffee" at output, found "hello: tea?"',
            "  Messages: 1, Assertions: 0/1 passed",
            '  equals: expected "coffee" at output, found "hello: tea?"',
            "    user: hello",
            '    tool: brew({"cups":2})*',
            "    assistant: hello: tea?",
        ]
    )
    ran.stdout.fnmatch_lines(['FAILED cases.jsonl::wrong - expected "coffee" at output, found*'])
    ran.stdout.fnmatch_lines(['ERROR cases.jsonl::unjudged - desk.py:odd answered "perhaps"*'])
    ran.stdout.no_fnmatch_line("*pytest_items.py*")
    ran.stdout.no_fnmatch_line("*piecemeal.py*")


def test_without_the_flag_nothing_is_collected(write: Write, run: Run) -> None:
    write("cases.jsonl", CASES)
    ran = run()
    assert ran.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_all_formats_and_agents(pytester: pytest.Pytester, write: Write, run: Run) -> None:
    write("atp.toml", "")
    write("agents/tea.md", "---\ntype: custom\nconfig: { entry: ../desk.py:answer }\n---\n")
    write(
        "tests/tea.test.md",
        """
        ---
        target: agents/tea.md
        assessor: agents/tea.md
        ---

        # Tea

        ## Brews

        **Prompts:**

        - brew

        **Expectations:**

        - the brew function was called
        - the file x.txt exists

        ## Again

        **Before:** Brews

        **Prompts:**

        - again

        **Expectations:**

        - no errors
        """,
    )
    write(
        "tests/suite.yaml",
        """
        test_suite: two
        agents:
          - { name: tea, type: custom, config: { entry: "../desk.py:answer" } }
          - { name: up, type: cli, config: { command: ["tr", "a-z", "A-Z"], protocol: text } }
        tests:
          - { id: both, name: Both, input: hello, assertions: [{ type: contains, value: HELLO }] }
          - { id: one, name: One, input: hello, agents: [up], assertions: [{ type: contains, value: HELLO }] }
        """,
    )
    write("tests/other.yaml", "not: a suite\n")
    write("tests/output-20260101000000.jsonl", [{"type": "start"}])
    write("tests/list.json", "[1, 2]")
    ran = run("--atp", "-v", "tests")
    ran.assert_outcomes(passed=2, failed=2, errors=1)
    ran.stdout.fnmatch_lines(
        [
            "tests/suite.yaml::both?tea? FAILED*",
            "tests/suite.yaml::both?up? PASSED*",
            "tests/suite.yaml::one PASSED*",
            "tests/tea.test.md::brews FAILED*",
            "tests/tea.test.md::again ERROR*",
        ]
    )
    ran.stdout.fnmatch_lines(["*before `brews` did not pass*"])


def test_befores_are_shared_and_all_is_in_one_journal(pytester: pytest.Pytester, write: Write, run: Run) -> None:
    write("agents/tea.md", "---\ntype: custom\nconfig: { entry: ../desk.py:answer }\n---\n")
    sections = "".join(
        f"\n## {name}\n\n{before}**Prompts:**\n\n- {name}\n\n**Expectations:**\n\n- no errors\n"
        for name, before in (("First", ""), ("Second", "**Before:** First\n\n"), ("Third", "**Before:** First\n\n"))
    )
    write("tea.test.md", f"---\ntarget: agents/tea.md\nassessor: agents/tea.md\n---\n\n# Tea\n{sections}")
    run("--atp", "--atp-runs", "2").assert_outcomes(passed=3)
    [lines] = runs(pytester)
    assert [line["type"] for line in lines] == ["start", *["trial"] * 6, "summary"]
    assert lines[0]["input"][0] == "pytest"
    assert lines[-1]["counts"]["passed"] == 3
    assert not list(pytester.path.glob(".atp/runs/*/work"))


def test_choosing(write: Write, run: Run) -> None:
    write("cases.jsonl", CASES)
    run("--atp", "-m", "needs-key", "--strict-markers").assert_outcomes(passed=1, deselected=4)
    run("--atp", "-k", "coffee").assert_outcomes(failed=1, deselected=4)
    run("--atp", "-k", "smoke or boom").assert_outcomes(passed=1, failed=1, deselected=3)
    run("--atp", "cases.jsonl::ask").assert_outcomes(passed=1)
    run("--atp", "--cache").assert_outcomes(passed=1, failed=2, skipped=1, errors=1)
    run("--atp", "--lf").assert_outcomes(failed=2, errors=1)
    run("--atp", "-x", "-k", "not ask").assert_outcomes(failed=1, deselected=1)


def test_options(pytester: pytest.Pytester, write: Write, run: Run) -> None:
    write("cases.jsonl", [{"id": "one", "input": "hi", "assert": {"type": "contains", "value": "HI"}}])
    write("up.py", "def answer(prompt, context):\n    return f'{prompt.upper()} {context[\"connector\"]}'\n")
    run("--atp").assert_outcomes(failed=1)
    run("--atp", "--atp-name", "up.py:answer", "--atp-connector", "x.y", "--atp-runs", "3").assert_outcomes(passed=1)
    trials = [line["result"] for line in runs(pytester)[-1] if line["type"] == "trial"]
    assert sorted(trial.get("run", 1) for trial in trials) == [1, 2, 3]
    assert trials[0]["transcript"]["turns"][0]["output"] == "HI x.y"


def test_columns_are_items(pytester: pytest.Pytester, write: Write, run: Run) -> None:
    write("up.py", 'def answer(options, context):\n    return f\'{options.get("tone")} {context["connector"]}\'\n')
    write(
        "suite.yaml",
        """
        test_suite: tones
        agents: [{name: up, type: custom, config: {entry: "up.py:answer"}, matrix: {tone: [calm, loud]}}]
        tests: [{id: one, name: One, input: hi, assertions: [{type: contains, value: calm}]}]
        """,
    )
    run("--atp").assert_outcomes(passed=1, failed=1)
    run("--atp", "--atp-name", "up [tone=calm]").assert_outcomes(passed=1)
    ran = run("--atp", "-v", "--atp-connector", "x", "--atp-connector", "y", "-k", "calm")
    ran.assert_outcomes(passed=2, deselected=2)
    agents = {line["result"]["agent"] for line in runs(pytester)[-1] if line["type"] == "trial"}
    assert agents == {"up [tone=calm, x]", "up [tone=calm, y]"}


def test_a_test_in_python_takes_one_connector(write: Write, run: Run) -> None:
    write("test_desk.py", "def test_hi(t, ctx):\n    ctx.agent().send('hi')\n")
    run("--atp-connector", "x").assert_outcomes(passed=1)
    ran = run("--atp-connector", "x", "--atp-connector", "y")
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*a test in Python runs with one connector, and several are named*"])


def test_bad_files_are_collection_errors_with_our_diagnostics(write: Write, run: Run) -> None:
    write("bad.jsonl", '{"id": "x", "inptu": "y"}\n')
    write("good.jsonl", CASES[:1])
    ran = run("--atp")
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(
        [
            "*ERROR collecting bad.jsonl*",
            "error?unknown-key?: unknown key `inptu`",
            "  --> *bad.jsonl:1:13",
            "  help: did you mean `input`?",
        ]
    )
    ran.stdout.no_fnmatch_line("*pytest_items.py*")
    run("--atp", "--continue-on-collection-errors").assert_outcomes(errors=1, passed=1)


def test_a_missing_agent_is_a_collection_error(write: Write, run: Run) -> None:
    write("atp.toml", "")
    write("cases.jsonl", CASES[:1])
    ran = run("--atp")
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["error?no-agent?: *", "  help: name one with --atp-name, or as `name` in atp.toml"])


def test_warnings_of_the_loader_are_warnings(pytester: pytest.Pytester, write: Write, run: Run) -> None:
    write("two.jsonl", '{"id": "x", "input": "a", "messages": [{"role": "user", "content": "hi"}]}\n')
    ran = run("--atp")
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*ERROR collecting two.jsonl*", "warning?*"])
    ran = pytester.runpytest_inprocess(*PLUGIN, "--atp", "-W", "default")
    ran.assert_outcomes(passed=1, warnings=1)
    ran.stdout.fnmatch_lines(["*AtpWarning: *"])


def test_files_by_name(write: Write, run: Run) -> None:
    write("list.json", json.dumps(CASES[:1]))
    run("--atp", "list.json").assert_outcomes(passed=1)
    assert run("--atp").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_junit_tells_errors_from_failures(pytester: pytest.Pytester, write: Write, run: Run) -> None:
    write("cases.jsonl", CASES)
    run("--atp", "--junitxml", "junit.xml", "--durations", "2")
    cases = {one.get("name"): one for one in ET.parse(pytester.path / "junit.xml").iter("testcase")}
    assert {name: [one.tag for one in case if one.tag != "properties"] for name, case in cases.items()} == {
        "ask": [],
        "wrong": ["failure"],
        "boom": ["failure"],
        "left": ["skipped"],
        "unjudged": ["error"],
    }
    properties = {one.get("name"): one.get("value") for one in cases["ask"].iter("property")}
    assert properties == {"agent": "desk.py:answer", "score": "100.0"}


def test_hooks_timeouts_and_budgets_of_the_project(pytester: pytest.Pytester, write: Write, run: Run) -> None:
    write(
        "atp.toml",
        'name = "slow.py:answer"\nbefore_all = "slow.py:before"\nafter_all = "slow.py:after"\nmax_errors = 1\n',
    )
    write(
        "slow.py",
        """
        import pathlib, time

        def answer(prompt):
            time.sleep(600 if prompt == "hang" else 0)

        def before(about):
            pathlib.Path("log").write_text("before ")

        def after(about):
            with pathlib.Path("log").open("a") as file:
                file.write("after")
        """,
    )
    unjudged = {"type": "script", "script": "scripts:none.none"}
    write("cases.jsonl", [{"id": "hangs", "input": "hang", "timeout": "100ms"}, {"id": "fine", "input": "hi"}])
    run("--atp").assert_outcomes(failed=1, passed=1)
    assert (pytester.path / "log").read_text() == "before after"
    write("scripts/none.py", "def none():\n    raise ValueError\n")
    write("more.jsonl", [{"id": "breaks", "input": "hi", "assert": unjudged}, {"id": "late", "input": "hi"}])
    ran = run("--atp", "more.jsonl")
    ran.assert_outcomes(errors=2)
    ran.stdout.fnmatch_lines(["*not run: 1 error that is not the agent's*"])


def test_xdist(pytester: pytest.Pytester, write: Write) -> None:
    cases = [{"id": f"case-{number}", "input": "hi", "tags": ["smoke"]} for number in range(12)]
    write("cases.jsonl", [*cases, *CASES])
    ran = pytester.runpytest_subprocess(*PLUGIN, "--atp", "-n", "3", "-W", "error", "-v")
    ran.assert_outcomes(passed=13, failed=2, skipped=1, errors=1)
    ran.stdout.fnmatch_lines(['expected "coffee" at output, found "hello: tea?"'])
    journals = runs(pytester)
    assert len(journals) <= 3
    assert sum(line["type"] == "trial" for lines in journals for line in lines) == 16
    assert all(lines[-1]["type"] == "summary" for lines in journals)


def test_with_all_of_pythons_warnings_as_errors(pytester: pytest.Pytester, write: Write) -> None:
    write("cases.jsonl", CASES[:1])
    command = [
        sys.executable,
        "-X",
        "dev",
        "-W",
        "error",
        "-m",
        "pytest",
        *PLUGIN,
        "--atp",
        "-W",
        "error",
    ]
    ran = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, timeout=WAIT_LIMIT, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""


def test_the_plugin_costs_nothing_where_it_is_not_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            ours = sorted(one for one in sys.modules if one.split(".")[0] == "atp")
            assert ours == ["atp", "atp.pytest_plugin", "atp.pytest_plugin.plugin"]
        """
    )
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


def test_ctrl_c_ends_what_runs(pytester: pytest.Pytester, write: Write) -> None:
    write(
        "slow.py", "import pathlib, time\ndef answer(prompt):\n    pathlib.Path('began').touch()\n    time.sleep(600)\n"
    )
    write("cases.jsonl", CASES[:1])
    command = [sys.executable, "-m", "pytest", *PLUGIN, "--atp", "--atp-name", "slow.py:answer"]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE, text=True) as process:
        until((pytester.path / "began").exists)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=WAIT_LIMIT)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, out
    assert runs(pytester)[0][-1]["type"] == "summary"


def test_hostile_names_and_output(write: Write, run: Run) -> None:
    write("rude.py", "def answer(prompt):\n    return '\\x1b[31mred\\x1b[0m [bold]x[/bold] \\u202e'\n")
    write("cases.jsonl", [{"id": "a::b\u001b[31m\nc", "input": "hi", "expected": "x"}, {"id": "a:b", "input": "hi"}])
    ran = run("--atp", "--atp-name", "rude.py:answer", "-v", "--color=no")
    ran.assert_outcomes(failed=1, passed=1)
    assert "\x1b" not in ran.stdout.str()


def test_no_secret_is_in_what_pytest_shows(
    pytester: pytest.Pytester, write: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEA_TOKEN", "zQ7xCANARYw9")
    code = """
        import warnings

        def answer(prompt):
            raise ValueError(prompt)

        def warns(prompt):
            warnings.warn(prompt)
    """
    write("desk.py", code)
    write(
        "suite.yaml",
        "test_suite: s\ntests: [{id: 'a ${TEA_TOKEN}', name: x, input: '${TEA_TOKEN}', tags: ['${TEA_TOKEN}']}]\n",
    )
    tests = """
        import os
        TOKEN = os.environ["TEA_TOKEN"]

        def test_raises(atp_agent):
            atp_agent("desk.py:answer").send(TOKEN)

        def test_asserts(t, ctx):
            print(TOKEN)
            t.assert_.contains(TOKEN, "more")

        def test_warns(atp_agent):
            assert atp_agent("desk.py:warns").send(TOKEN).output == TOKEN

        def test_skips(t):
            t.skip(TOKEN)
    """
    write("test_it.py", tests)
    ran = run("--atp", "-v", "-rA", "-W", "default", "--junitxml=out.xml")
    ran.assert_outcomes(failed=4, skipped=1, warnings=1)
    assert "CANARY" not in ran.stdout.str() + ran.stderr.str() + (pytester.path / "out.xml").read_text()
    ran.stdout.fnmatch_lines(["suite.yaml::a [*][*][*] FAILED*", "*AgentError: agent error: ValueError: [*][*][*]"])


def test_no_secret_is_in_the_line_that_a_warning_is_about(
    pytester: pytest.Pytester, write: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python reads that line from the file by itself."""
    monkeypatch.setenv("TEA_TOKEN", "zQ7xCANARYw9")
    write("quarantine.yaml", "[{case: gone, file: cases.jsonl, owner: zQ7xCANARYw9, reason: x, expires: 9999-12-31}]\n")
    two = {"id": "x", "input": "a", "messages": [{"role": "user", "content": "hi"}]}
    write("cases.jsonl", [{**two, "metadata": {"api_key": "sk-written-CANARY-1"}}])
    ran = run("--atp", "-W", "default")
    ran.assert_outcomes(passed=1, warnings=2)
    ran.stdout.fnmatch_lines(["*quarantine-unused: *", "*owner: [*][*][*], reason: x*"])
    assert "CANARY" not in ran.stdout.str() + ran.stderr.str()


def test_golden_files_that_were_written_or_are_not_used_are_told(
    pytester: pytest.Pytester, write: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    case = {"id": "ask", "input": "hi", "assert": {"type": "snapshot", "match": "text"}}
    write("cases.jsonl", [case])
    written = run("--atp", "cases.jsonl", "--atp-update-snapshots")
    written.assert_outcomes(passed=1)
    written.stdout.fnmatch_lines(["*ATP notes*", "1 golden file written: __snapshots__/cases.jsonl/*"])
    write("cases.jsonl", [{**case, "id": "other", "assert": {"type": "contains", "value": "tea"}}])
    unused = run("--atp", "cases.jsonl")
    unused.assert_outcomes(passed=1)
    unused.stdout.fnmatch_lines(["*ATP notes*", "1 golden file no check uses: *"])


def test_a_suite_with_gates_is_refused_by_xdist(pytester: pytest.Pytester, write: Write) -> None:
    write("atp.toml", 'name = "desk.py:answer"\ngates = ["pass_rate >= 0.1"]\n')
    write("cases.jsonl", CASES[:1])
    ran = pytester.runpytest_subprocess(*PLUGIN, "--atp", "-n", "2")
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*not run: leave out -n, or use `atp test`: the suite has gates, *"])
