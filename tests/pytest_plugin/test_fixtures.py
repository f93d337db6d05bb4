"""Fixtures for tests in Python: `t`, `ctx`, `atp_agent`, `atp_judge`, and script tests under pytest."""

from typing import Any

import pytest
from tests.engine.support.judge import judge
from tests.models.mock_server import MockModels
from tests.pytest_plugin.support.plugin import PLUGIN

# Imported here, so that the sessions inside these tests don't import them anew each time.
import atp.pytest_plugin.items
import atp.pytest_plugin.session  # noqa: F401

pytest_plugins = ["pytester"]

AGENT = """
def answer(messages, context):
    said = messages[-1]["content"]
    if said == "boom":
        raise ValueError("no tea")
    if said == "hang":
        import time; time.sleep(600)
    calls = [{"name": "brew"}] if said == "brew" else []
    return {"output": f"{len(messages)}: tea?", "tool_calls": calls}

def strict(messages):
    return {"passed": "coffee" in messages[-1]["content"], "reason": "I want coffee"}

def odd(messages):
    return "perhaps"

def sleepy(messages):
    import time; time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _project(pytester: pytest.Pytester) -> None:
    (pytester.path / "atp.toml").touch()
    (pytester.path / "desk.py").write_text(AGENT)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    usual = (*PLUGIN, "-W", "error", "-p", "no:cacheprovider")
    return pytester.runpytest_inprocess(*usual, *arguments)


def test_script_tests_run_under_pytest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_desk="""
        def TestCapital(t, ctx):
            agent = ctx.agent("desk.py:answer")
            t.assert_.Contains(agent.send("hi").content, "tea")
            t.assert_.equal(agent.send("again").content, "3: tea?")

        def test_small(t, ctx):
            t.assert_.tool_called(ctx.agent("desk.py:answer").send("brew"), "brew")

        async def test_async(t, ctx):
            response = await ctx.agent("desk.py:answer").send("hi")
            t.assert_.contains(response, "tea")

        def TestNotOurs(x):
            raise AssertionError("no test of ours")

        class TestClass:
            def test_inside(self, t, ctx):
                t.assert_.true(ctx.agent("desk.py:answer").send("hi"))
        """
    )
    ran = run(pytester, "-v")
    ran.assert_outcomes(passed=4)
    ran.stdout.fnmatch_lines(["test_desk.py::TestCapital PASSED*"])


def test_what_fails_is_shown_where_the_test_says_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_desk="""
        import pytest

        def test_assertion(t, ctx):
            response = ctx.agent("desk.py:answer").send("hi")
            t.assert_.contains(response, "coffee")

        def test_validator(t, ctx):
            t.assert_.agent("milk", "desk.py:strict")

        def test_agent_error(t, ctx):
            ctx.agent("desk.py:answer").send("boom")

        def test_soft(t, ctx):
            t.fail("first")
            t.error("second")

        def test_swallowed(t, ctx):
            with pytest.raises(AssertionError):
                t.assert_.equal(1, 2)

        def test_then_breaks(t, ctx):
            t.fail("first")
            raise RuntimeError("second")

        async def test_forgotten(t, ctx):
            ctx.agent("desk.py:answer").send("hi")

        async def test_async(t, ctx):
            await t.assert_.agent("milk", "desk.py:strict")
        """
    )
    ran = run(pytester)
    ran.assert_outcomes(failed=8)
    ran.stdout.fnmatch_lines(
        [
            ">       t.assert_.contains(response, ?coffee?)",
            'E       atp.AssertionFailed: contains: expected the output to contain "coffee", found "1: tea?"',
            "*ATP conversation*",
            "    user: hi",
            "    assistant: 1: tea?",
        ]
    )
    ran.stdout.fnmatch_lines([">       ctx.agent(?desk.py:answer?).send(?boom?)", "E       *AgentError: *no tea"])
    ran.stdout.fnmatch_lines(["*_ test_soft _*", "fail: first (test_desk.py:14)", "error: second (test_desk.py:15)"])
    ran.stdout.fnmatch_lines(["*ATP failed before*", "fail: first (test_desk.py:22)"])
    ran.stdout.fnmatch_lines(["`send` at test_desk.py:26 was not awaited, so it was never done"])
    ran.stdout.fnmatch_lines([">       await t.assert_.agent(*", "E       atp.AssertionFailed: agent: I want coffee"])
    for ours in ("script_*.py:*", "*concurrent/futures*", "*pluggy/*"):
        ran.stdout.no_fnmatch_line(ours)


def test_what_nobody_is_to_blame_for_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_unjudged(t):
            t.assert_.agent("x", "desk.py:odd")

        def test_unreachable(ctx):
            ctx.agent("http://127.0.0.1:1/").send("hi")

        def test_skip(t):
            t.skip("not today")

        def test_own_mistake(ctx):
            ctx.agent("nobody.here").send("hi")
        """
    )
    ran = run(pytester, "-rs")
    ran.assert_outcomes(errors=2, skipped=1, failed=1)
    ran.stdout.fnmatch_lines(["SKIPPED * not today"])
    ran.stdout.fnmatch_lines(["E       *ConfigurationError: there is no agent `nobody.here`*"])


def test_a_call_that_hangs_ends(pytester: pytest.Pytester) -> None:
    (pytester.path / "atp.toml").write_text("timeout = 0.2\n")
    pytester.makepyfile(
        """
        def test_hangs(ctx):
            ctx.agent("desk.py:answer").send("hang")

        async def test_hangs_async(ctx):
            await ctx.agent("desk.py:answer").send("hang")

        def test_judge_hangs(t):
            t.assert_.agent("x", "desk.py:sleepy")
        """
    )
    ran = run(pytester)
    ran.assert_outcomes(failed=2, errors=1)
    ran.stdout.fnmatch_lines(["E       *AgentError: timeout after 0.2s while judging"])
    ran.stdout.fnmatch_lines(["E       *AgentTimeout: timeout after 0.2s"])


def test_the_agent_that_the_command_line_names(pytester: pytest.Pytester) -> None:
    pytester.makepyfile('def test_it(t, ctx):\n    t.assert_.contains(ctx.agent().send("hi"), "tea")\n')
    run(pytester, "--atp-name", "desk.py:answer").assert_outcomes(passed=1)
    ran = run(pytester)
    ran.assert_outcomes(failed=1)
    told = "no agent is under test: name one in `ctx.agent(…)`, or with --atp-name"
    ran.stdout.fnmatch_lines([f"E       atp.ScriptError: {told}"])


def test_an_assertion_that_is_none(pytester: pytest.Pytester) -> None:
    pytester.makepyfile('def test_it(atp_judge):\n    atp_judge.check("x", "y")\n')
    ran = run(pytester)
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(['E       *ScriptError: `check` takes an assertion as files give it *, not "y"'])


def test_agents_and_judges_in_tests_of_any_kind(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    (pytester.path / "agents").mkdir()
    (pytester.path / "agents/tea.md").write_text("---\nconnector: openai.any\n---\nYou sell tea.\n")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("word", ["one", "two"])
        def test_agent(atp_agent, atp_judge, word):
            response = atp_agent("agents/tea.md").send(word)
            assert response.content == "tea it is"
            assert response.usage.output_tokens == 3
            assert atp_judge.check(response, {"type": "contains", "value": "tea"}).passed
            assert not atp_judge.check(response, {"type": "contains", "value": "coffee"}).passed
            atp_judge.expect(response, "it offers tea", "no errors")
            found = atp_judge.assess(response, "it offers tea", "it offers coffee")
            assert [one.outcome for one in found] == ["passed", "failed"]
            assert atp_judge.score(response, "how good is it") == 0.25
            with pytest.raises(AssertionError, match="it offers coffee"):
                assert atp_judge.assess(response, "it offers coffee")[0].passed, "it offers coffee"

        def test_not_met(atp_agent, atp_judge):
            atp_judge.expect(atp_agent("agents/tea.md").send("hi"), "it offers coffee")
        """
    )

    def model(heard: Any) -> Any:
        if "verdicts" not in str(heard.body):
            return "tea it is"
        return judge(lambda asked, _: 0.25 if "good" in asked else "tea" in asked)(heard)

    with MockModels(model) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        ran = run(pytester, "--atp-role-connector", "openai.judge")
    ran.assert_outcomes(passed=2, failed=1)
    ran.stdout.fnmatch_lines(["E       atp.AssertionFailed: expectation: the rule says so of: it offers coffee*"])


def test_no_judge_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile('def test_it(atp_judge):\n    atp_judge.expect("tea", "it is polite")\n')
    ran = run(pytester)
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["E       atp.NotJudged: *no model is set for the judge*"])


def test_workspaces(pytester: pytest.Pytester) -> None:
    (pytester.path / "maker.py").write_text(
        "def answer(prompt, workspace):\n    (workspace / 'made.txt').write_text(prompt)\n"
    )
    pytester.makepyfile(
        """
        def test_one(t, ctx):
            t.assert_.artifact_exists(ctx.agent("maker.py:answer").send("hi"), "made.txt", contains="hi")
            assert (ctx.workspace / "made.txt").read_text() == "hi"

        def test_two(ctx):
            assert list(ctx.workspace.iterdir()) == []
        """
    )
    run(pytester).assert_outcomes(passed=2)
    assert not (pytester.path / "made.txt").exists()


def test_bad_settings_are_told(pytester: pytest.Pytester) -> None:
    (pytester.path / "atp.toml").write_text("rnus = 3\n")
    pytester.makepyfile("def test_it(ctx):\n    pass\n")
    ran = run(pytester)
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*unknown key `rnus`*"])


def test_xdist_and_other_event_loops(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio
        import pytest

        @pytest.mark.parametrize("number", range(6))
        def test_many(ctx, number):
            assert "tea" in ctx.agent("desk.py:answer").send(str(number)).content

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_in_somebody_elses_loop(t, ctx, anyio_backend):
            response = await ctx.agent("desk.py:answer").send("hi")
            await t.assert_.expect(response, "no errors")
            t.assert_.match(response, "tea")

        def test_in_a_loop_of_its_own(t, ctx):
            async def main():
                return await ctx.agent("desk.py:answer").send("hi")

            t.assert_.contains(asyncio.run(main()), "tea")
        """
    )
    ran = pytester.runpytest_subprocess(*PLUGIN, "-n", "2", "-W", "error", "-p", "no:cacheprovider")
    ran.assert_outcomes(passed=8)
