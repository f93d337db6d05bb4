"""Tests in Python, run by `atp test -i scripts:…`."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.desk import AGENT, results
from tests.engine.support.judge import judge
from tests.engine.support.project import Project, kill
from tests.models.mock_server import Heard, MockModels
from tests.waiting import until

from atp.base.diagnostics import LoadError
from atp.engine.prepare.prepare import prepare
from atp.engine.prepare.sources import Input


def test_the_documents_example(desk: Project) -> None:
    ran = results(
        desk,
        """
        def TestExpenseResponse(t, ctx):
            messages = [
                {"role": "user", "content": "I want tea"},
                {"role": "assistant", "content": "How many?"},
                {"role": "user", "content": "Two. order it"},
            ]
            response = ctx.agent("desk.py:answer").send(messages)

            # Static assertion
            t.assert_.Contains(response.content, "confirm")

            # Agent-driven assertion
            t.assert_.Agent(response.content, "desk.py:strict", {
                "metadata": {"criteria": "confirm", "conversation": messages},
            })
        """,
    )
    found = ran["TestExpenseResponse"]
    assert found["status"] == "passed"
    assert [one["type"] for one in found["assertions"]] == ["contains", "agent"]
    assert found["assertions"][1]["message"] == "looked for confirm after Two. order it"
    assert found["response"] == "Please confirm order 17."
    assert found["tool_calls"][0]["name"] == "place_order"
    assert found["usage"]["total_tokens"] == 5
    assert found["line"] == 2


def test_who_is_to_blame(desk: Project) -> None:
    desk.write(
        "scripts/tests/test_desk.py",
        """
        def test_agent(t, ctx):
            ctx.agent("desk.py:answer").send("boom")

        def test_judge(t, ctx):
            t.assert_.agent("x", "desk.py:odd")

        def test_unreachable(t, ctx):
            ctx.agent("http://127.0.0.1:1/").send("hi")

        def test_caught(t, ctx):
            try:
                ctx.agent("desk.py:answer").send("boom")
            except Exception as error:
                t.assert_.contains(str(error), "no tea")

        def test_swallowed(t, ctx):
            try:
                t.assert_.equal(1, 2)
            except AssertionError:
                pass

        def test_swallowed_by_all(t, ctx):
            try:
                t.assert_.agent("x", "desk.py:odd")
            except BaseException:
                pass
        """,
    )
    ran = desk.test("-i", "scripts:tests.test_desk", "--retries", "0")
    found = {name: (one["status"], one["blame"]) for name, one in ran.results.items()}
    assert found == {
        "test_agent": ("error", "agent"),
        "test_judge": ("error", "judge"),
        "test_unreachable": ("error", "environment"),
        "test_caught": ("passed", None),
        "test_swallowed": ("failed", None),
        "test_swallowed_by_all": ("error", "judge"),
    }
    assert ran.code == 1
    assert desk.test("-i", "scripts:tests.test_desk.test_judge").code == 3


def test_saying_it_with_t(desk: Project) -> None:
    ran = results(
        desk,
        """
        import pytest

        def test_goes_on(t, ctx):
            assert t.name == "test_goes_on" and not t.failed
            t.fail("one")
            t.error("two", 3)
            t.log("it", "goes on")
            print("and prints")
            assert t.failed

        def test_then_breaks(t, ctx):
            t.fail("one")
            raise RuntimeError("two")

        def test_fatal(t, ctx):
            t.fatal("enough")

        def test_skip(t, ctx):
            try:
                t.skip("not today")
            except Exception:
                pass

        def test_skip_of_pytest(t, ctx):
            pytest.skip("nor tomorrow")

        def test_fail_of_pytest(t, ctx):
            pytest.fail("at all")

        def test_plain(t, ctx):
            x = 3
            assert x == 4

        def test_with_message():
            assert False, "said so"

        def test_nothing(t, ctx):
            pass

        def test_plain_and_well(t):
            assert True
        """,
    )
    assert {name: (one["status"], one["error"]) for name, one in ran.items()} == {
        "test_goes_on": ("failed", "one"),
        "test_then_breaks": ("failed", "one"),
        "test_fatal": ("failed", "enough"),
        "test_fail_of_pytest": ("failed", "at all"),
        "test_plain": ("failed", "assert x == 4"),
        "test_with_message": ("failed", "said so"),
        "test_nothing": ("passed", None),
        "test_plain_and_well": ("passed", None),
    }
    assert [one["message"] for one in ran["test_goes_on"]["assertions"]] == ["one", "two 3"]
    assert "after that, the test raised RuntimeError: two" in ran["test_then_breaks"]["warnings"][0]
    assert [name for name, one in ran.items() if one["no_assertions"]] == ["test_nothing"]
    logs = {one["case"]: one["transcript"].get("logs") for one in desk.trials()}
    assert logs["test_goes_on"] == ["it goes on", "and prints"]


def test_conversations(desk: Project) -> None:
    ran = results(
        desk,
        """
        import asyncio

        def test_two_agents(t, ctx):
            one, other = ctx.agent("desk.py:answer"), ctx.agent("desk.py:answer", metadata={"vip": True})
            t.assert_.equal(one.send("hi").output, "Message 1: tea?")
            t.assert_.equal(one.send({"role": "user", "content": "again"}).content, "Message 3: tea?")
            t.assert_.equal(other.send("who").output, ["ada", "desk.py:answer", {"vip": True}, 1])
            t.assert_.equal(len(one.messages), 4)
            answer = other.send("json")
            t.assert_.equal(answer, {"kind": "tea", "cups": 2})
            t.assert_.equal(answer.json["cups"], 2)
            t.assert_.equal(answer.content, '{"cups":2,"kind":"tea"}')
            t.assert_.equal(ctx.user, "ada")
            t.assert_.true(ctx.workspace.is_dir())

        async def test_at_the_same_time(t, ctx):
            agent = ctx.agent("desk.py:answer")
            one, other = await asyncio.gather(agent.send("order"), ctx.agent("desk.py:answer").send("hi"))
            t.assert_.tool_called(one, "place_order")
            t.assert_.not_tool_called(other, "place_order")
            await t.assert_.agent(one, "desk.py:strict", {"criteria": "confirm"})
            await t.assert_.expect(one, "the place_order function was called")
        """,
        "-u",
        "ada",
    )
    assert {name: (one["status"], one["error"]) for name, one in ran.items()} == {
        "test_two_agents": ("passed", None),
        "test_at_the_same_time": ("passed", None),
    }
    turns = ran["test_two_agents"]["turns"]
    assert [one["turn"] for one in turns] == [1, 2, 3, 4]
    assert [one["input"] for one in turns] == ["hi", "again", "who", "json"]
    calls = ran["test_at_the_same_time"]["tool_calls"]
    assert [one["name"] for one in calls] == ["place_order"]


def test_the_agent_under_test(desk: Project) -> None:
    desk.write("other.py", "def answer(prompt):\n    return 'coffee?'\n")
    desk.write(
        "scripts/test_any.py",
        """
        def test_offers(t, ctx):
            t.assert_.contains(ctx.agent().send("hi"), "tea")
        """,
    )
    ran = desk.test("-i", "scripts:test_any", "-n", "desk.py:answer", "-n", "other.py:answer")
    found = {event["agent_id"]: event["status"] for event in ran.events if event["type"] == "result"}
    assert found == {"desk.py:answer": "passed", "other.py:answer": "failed"}


def test_the_agent_in_whose_folder_the_tests_are(desk: Project) -> None:
    desk.write("assistants/tea/package.yao", '{"name": "tea", "connector": "openai.any"}')
    desk.write("assistants/tea/prompts.yml", "- role: system\n  content: be brief\n")
    desk.write(
        "assistants/tea/scripts/tea_test.py",
        """
        def TestTea(t, ctx):
            answer = ctx.agent().send("hi")
            t.assert_.contains(answer, "tea")
            t.assert_.expect(answer, "it offers tea")
            t.assert_.llm_eval(answer, "it offers coffee", 0.5)
        """,
    )

    def model(heard: Heard) -> Any:
        judged = judge(lambda asked, _: True if "tea" in asked else 0.1)
        return judged(heard) if "verdicts" in str(heard.body) else "tea it is"

    with MockModels(model) as server:
        call = ("-i", "scripts:tea_test", "--role-connector", "openai.judge")
        ran = desk.test(*call, cwd=desk.folder / "assistants/tea", env=server.env)
    [result] = [event for event in ran.events if event["type"] == "result"]
    assert (result["agent_id"], result["status"]) == ("tea", "failed"), ran.err
    assert [one["passed"] for one in result["assertions"]] == [True, True, False]
    assert [one.get("judged", False) for one in result["assertions"]] == [False, True, True]


def test_references(desk: Project) -> None:
    desk.write(
        "scripts/expense_test.py",
        """
        def TestOne(t, ctx):
            t.assert_.true(True)

        def test_two(t):
            t.assert_.true(True)

        def helper():
            return 3

        class TestClass:
            def test_inside(self):
                assert False
        """,
    )
    desk.write("scripts/gen.py", "def test_cases():\n    return [{'id': 'made', 'input': 'hi'}]\n")
    whole, one, other, made = desk.tests(
        ["-i", "scripts:expense-test"],
        ["-i", "scripts:expense_test.testone"],
        ["-i", "scripts:expense_test", "--run", "two"],
        ["-i", "scripts:gen.test_cases", "-n", "desk.py:answer"],
    )
    assert list(whole.results) == ["TestOne", "test_two"]
    place = re.search(r"the class `TestClass` is left out\n  --> .*expense_test\.py:(\d+):1\n", whole.err)
    assert place, whole.err
    assert place[1] == "11"
    assert list(one.results) == ["TestOne"]
    assert list(other.results) == ["test_two"]
    assert list(made.results) == ["made"], made.err


@pytest.mark.parametrize(
    ("reference", "code", "said"),
    [
        ("scripts:test_none", "", "there is no test in"),
        ("scripts:test_none.helper", "def helper(): pass\ndef test_x(): pass", "`helper` in"),
        ("scripts:test_none.test_y", "def test_x(): pass", "there is no `test_y` in"),
        ("scripts:test_gone", "", "there is no scripts/test_gone.py"),
        ("scripts:test_none", "import nothing_here", "No module named 'nothing_here'"),
        (
            "scripts:test_none",
            "def test_x(tmp_path): pass",
            "`test_x` takes `tmp_path`; a test is given, by name, t and ctx",
        ),
        ("scripts:test_none", "def test_x():\n    yield", "`test_x` yields"),
        (
            "scripts:test_none",
            "import pytest\n@pytest.mark.xfail\ndef test_x(): pass",
            "`test_x` is marked `xfail`, which only pytest understands",
        ),
        ("scripts:test_none?focus=x", "def test_x(): pass", "tests take no parameters"),
        (
            "scripts:test_none",
            "def test_x(): assert False\n\ndef test_x(): pass",
            "test_none.py:3:1: error[duplicate-test]: `test_x` stands in line 1 as well",
        ),
        (
            "scripts:test_none",
            "def test_x(t, ctx):\n    ctx.agent('nobody.here').send('hi')",
            "case `test_x`: it calls an agent: there is no agent `nobody.here`",
        ),
        (
            "scripts:test_none",
            "def test_x(t, ctx):\n    t.assert_.Agent('x', 'nobody.here')",
            "case `test_x`: `agent` can't be judged: there is no agent `nobody.here`",
        ),
    ],
)
def test_what_can_be_known_before(
    desk: Project, reference: str, code: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("scripts/test_none.py", code + "\n")
    monkeypatch.chdir(desk.folder)
    with pytest.raises(LoadError) as raised:
        prepare(Input((reference,)), {})
    assert said in str(raised.value)


def test_marks_are_tags(desk: Project) -> None:
    desk.write(
        "scripts/test_marked.py",
        """
        import pytest
        pytestmark = pytest.mark.all

        @pytest.mark.smoke
        def test_one(t): t.assert_.true(1)

        def test_two(t): t.assert_.true(1)

        @pytest.mark.skip(reason="never")
        def test_three(t): t.assert_.true(0)

        @pytest.mark.skipif(True, reason="here")
        def test_four(t): t.assert_.true(0)
        """,
    )
    ran = desk.test("-i", "scripts:test_marked", "--tags", "smoke")
    assert {name: one["tags"] for name, one in ran.results.items()} == {"test_one": ["all", "smoke"]}
    ran = desk.test("-i", "scripts:test_marked")
    assert list(ran.results) == ["test_one", "test_two"]
    assert ran.summary["skipped"] == 2
    reasons = {"test_three": "never", "test_four": "here"}
    assert {one["id"]: one["reason"] for one in ran.events if one["type"] == "skipped"} == reasons
    told = desk.atp("report", "-o", "x.json", "-o", "x.xml", "-o", "x.ctrf.json")
    assert told.code == 0, told.err
    report = json.loads((desk.folder / "x.json").read_text("utf-8"))
    assert {one["id"]: one["reason"] for one in report["skipped"]} == reasons
    assert '<skipped message="never"/>' in (desk.folder / "x.xml").read_text("utf-8")
    assert '"message":"here"' in (desk.folder / "x.ctrf.json").read_text("utf-8")
    assert "test_three] test_three (skipped)" not in (shown := desk.atp("report", "-v").out)
    assert "- [test_three] (skipped)\n  never\n" in shown


def test_what_is_not_there_is_told_before_that_no_agent_is_named(desk: Project) -> None:
    ran = desk.atp("test", "-i", "scripts:tests.nope")
    assert ran.code == 2
    assert ran.err.startswith("error[no-generator]: `scripts:tests.nope`: there is no scripts/tests.py\n")


def test_runs_in_parallel_and_timeouts(desk: Project) -> None:
    desk.write(
        "scripts/test_slow.py",
        """
        import asyncio, time, pathlib

        def test_hangs(t, ctx):
            ctx.agent("desk.py:answer").send("hang")

        def test_hangs_itself(t, ctx):
            while True:
                try:
                    time.sleep(0.01)
                    ctx.agent("desk.py:answer").send("hang")
                except Exception:
                    pass

        async def test_hangs_async(t, ctx):
            await asyncio.sleep(600)

        def test_flaky(t, ctx):
            t.assert_.equal(ctx.run % 2, 0)
        """,
    )
    ran = desk.test("-i", "scripts:test_slow", "--timeout", "1s", "--parallel", "8", "--runs", "2")
    assert ran.statuses == {
        "test_hangs": "timeout",
        "test_hangs_itself": "timeout",
        "test_hangs_async": "error",
        "test_flaky": "failed",
    }
    assert ran.results["test_hangs_async"]["blame"] == "environment"
    assert ran.results["test_flaky"]["pass_rate"] == 50
    assert ran.results["test_hangs"]["turns"] == []
    assert ran.code == 1


def test_the_infrastructure_fails_and_the_whole_test_is_tried_again(desk: Project) -> None:
    desk.write(
        "scripts/test_retry.py",
        """
        import pathlib
        from atp.agents.adapter import AgentError

        def test_retry(t, ctx):
            t.assert_.true(True)
            seen = pathlib.Path("seen")
            if not seen.exists():
                seen.touch()
                raise AgentError("connection lost", "environment", retryable=True, retry_after=0)
        """,
    )
    [found] = desk.test("-i", "scripts:test_retry").results.values()
    assert (found["status"], found["attempt"], len(found["assertions"])) == ("passed", 2, 1)


def test_resume(desk: Project) -> None:
    marks = Path(desk.folder / "marks")
    code = """
        import pathlib, time

        def mark(name):
            with pathlib.Path("marks").open("a") as file:
                file.write(name + "\\n")

        def test_one(t, ctx):
            mark("one")
            ctx.agent("desk.py:answer").send("hi")

        def test_two(t, ctx):
            mark("two")
            if not pathlib.Path("go").exists():
                time.sleep(600)
        """
    desk.write("scripts/test_long.py", code)
    process = desk.start("test", "-i", "scripts:test_long")
    until(lambda: marks.exists() and "two" in marks.read_text())
    kill(process)
    desk.write("go", "")
    ran = desk.test("-i", "scripts:test_long", "--resume")
    assert (ran.code, list(ran.statuses.values())) == (0, ["passed", "passed"])
    assert marks.read_text().split() == ["one", "two", "two"]


def test_what_is_edited_runs_again(desk: Project) -> None:
    desk.write("scripts/helper.py", "WORD = 'tea'\n")
    desk.write(
        "scripts/test_keys.py",
        """
        from helper import WORD

        def test_one(t, ctx):
            t.assert_.contains(ctx.agent("desk.py:answer").send("hi"), WORD)
        """,
    )

    def key() -> str:
        assert desk.test("-i", "scripts:test_keys").code == 0
        found: str = desk.trials()[0]["key"]
        return found

    first = key()
    assert key() == first
    desk.write("scripts/helper.py", "WORD = 'tea?'\n")
    second = key()
    assert second != first
    desk.write("desk.py", AGENT + "\n    # edited\n")
    assert key() not in (first, second)


def test_reports_and_only_failed(desk: Project) -> None:
    desk.write(
        "scripts/test_two.py",
        """
        def test_good(t): t.assert_.true(1)
        def test_bad(t): t.assert_.equal({"a": 1}, {"a": 2}, "not the same")
        """,
    )
    ran = desk.atp("test", "-i", "scripts:test_two", "-o", "r.json", "-o", "r.xml", "-o", "r.md", "-o", "r.html")
    assert ran.code == 1
    assert "not the same" in ran.out
    report = json.loads((desk.folder / "r.json").read_text())
    assert {one["id"]: one["status"] for one in report["results"]} == {"test_good": "passed", "test_bad": "failed"}
    assert 'failures="1"' in (desk.folder / "r.xml").read_text()
    again = desk.test("-i", "scripts:test_two", "--only-failed")
    assert list(again.results) == ["test_bad"]


def test_a_test_that_skips_itself_is_skipped_in_every_report(desk: Project) -> None:
    desk.write(
        "scripts/test_two.py",
        """
        import pytest

        def test_good(t): t.assert_.true(1)
        def test_not_today(t): t.skip("not on Mondays")
        def test_nor_tomorrow(t): pytest.skip("nor on Tuesdays")
        @pytest.mark.skip
        def test_never(t): t.assert_.true(0)
        """,
    )
    names = ["r.json", "r.jsonl", "r.md", "r.html", "r.xml", "r.csv", "r.ctrf.json"]
    ran = desk.atp("test", "-i", "scripts:test_two", "-v", *[word for name in names for word in ("-o", name)])
    assert ran.code == 0
    assert "- [test_not_today] (skipped)\n  not on Mondays\n" in ran.out
    assert "  Total:   4 tests\n  Passed:  1\n  Failed:  0\n  Skipped: 3\n  Time:" in ran.out
    text = {name: (desk.folder / name).read_text("utf-8") for name in names}
    report, events = json.loads(text["r.json"]), [json.loads(line) for line in text["r.jsonl"].splitlines()]
    reasons = {"test_never": None, "test_not_today": "not on Mondays", "test_nor_tomorrow": "nor on Tuesdays"}
    assert [one["id"] for one in report["results"]] == ["test_good"]
    assert {one["id"]: one.get("reason") for one in report["skipped"]} == reasons
    assert {one["id"]: one.get("reason") for one in events if one["type"] == "skipped"} == reasons
    for summary in (report["summary"], events[-1]):
        told = [summary[name] for name in ("total", "passed", "skipped", "skipped_by_test", "not_run", "total_cases")]
        assert told == [4, 1, 3, 2, 0, 1]
    assert "| Skipped   | 3 " in text["r.md"]
    assert "Not Run" not in text["r.md"]
    assert "<h1>The case passed</h1>" in text["r.html"]
    assert [text["r.xml"].count(f"<{one}") for one in ("testcase", "skipped", "failure", "error")] == [4, 3, 0, 0]
    assert sum(",skipped," in line for line in text["r.csv"].splitlines()) == 3
    ctrf = json.loads(text["r.ctrf.json"])["results"]
    assert (ctrf["summary"]["skipped"], ctrf["summary"]["other"]) == (3, 0)
    assert "Not run" not in desk.atp("report", "last").out
    alone = desk.test("-i", "scripts:test_two.test_not_today")
    assert (alone.code, alone.summary["skipped"], alone.summary["not_run"]) == (2, 1, 0)


def test_secrets_of_called_agents_are_hidden(desk: Project) -> None:
    desk.write(
        "agents/key.md",
        """
        ---
        type: cli
        config:
          command: ["sh", "-c", "cat >/dev/null; echo $MY_API_KEY"]
          protocol: text
          environment: { MY_API_KEY: "${MY_API_KEY}" }
        ---
        """,
    )
    desk.write(
        "scripts/test_secret.py",
        """
        def test_secret(t, ctx):
            t.assert_.contains(ctx.agent("agents/key.md").send("hi"), "nothing")
        """,
    )
    ran = desk.test("-i", "scripts:test_secret", env={"MY_API_KEY": "sesame-123456"})
    assert ran.code == 1
    journal = (desk.runs()[-1] / "journal.jsonl").read_text()
    assert "sesame" not in ran.out + ran.err + journal


def test_ctrl_c(desk: Project) -> None:
    desk.write(
        "scripts/test_long.py",
        """
        import pathlib

        def test_long(t, ctx):
            pathlib.Path("began").touch()
            ctx.agent("desk.py:answer").send("hang")
        """,
    )
    process = desk.start("test", "-i", "scripts:test_long")
    until((desk.folder / "began").exists)
    process.send_signal(signal.SIGINT)
    assert desk.finish(process).code == 130
