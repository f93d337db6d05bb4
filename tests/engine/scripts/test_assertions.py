"""`t.assert_` of tests in Python: what holds, what does not, and what makes no sense."""

from tests.engine.support.desk import results
from tests.engine.support.project import Project


def test_every_assertion_that_holds(desk: Project) -> None:
    ran = results(
        desk,
        """
        def test_all(t, ctx):
            response = ctx.agent("desk.py:answer").send("order")
            a = t.assert_
            a.true(1); a.false(0); a.True_(True); a.False_("")
            a.equal({"a": 1, "b": [1.0]}, {"b": [1], "a": {"$gt": 0}}); a.Equal(1, 1.0); a.equals(None, None)
            a.not_equal(True, 1); a.NotEqual("5", 5)
            a.nil(None); a.Nil(None); a.not_nil(0); a.NotNil("")
            a.contains("some tea", "tea"); a.contains([1, 2], 2); a.contains({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}})
            a.contains(response, "CONFIRM", ignore_case=True)
            a.not_contains("tea", "coffee"); a.NotContains(response, "coffee")
            a.len("tea", 3); a.Len([1], 1); a.len({}, 0)
            a.greater(2, 1); a.Greater(2, 1); a.greater_or_equal(2, 2); a.GreaterOrEqual(3, 2)
            a.less(1, 2); a.Less(1, 2); a.less_or_equal(2, 2); a.LessOrEqual(1, 2)
            a.error(ValueError()); a.Error("no"); a.no_error(None); a.NoError(None)
            a.panic(lambda: 1 / 0); a.Panic(lambda: ctx.agent("desk.py:answer").send("boom")); a.no_panic(lambda: 1)
            a.match("order 17", r"order \\d+"); a.Match("x", "x"); a.regex("x", "."); a.Matches("x", "^x$")
            a.not_match("x", "y"); a.NotMatch("x", "y")
            a.type("x", "string"); a.Type([], "array"); a.type(1, "number"); a.type({"n": 1}, "integer", path="$.n")
            a.json_path({"a": {"b": 3}}, "$.a.b", 3); a.JSONPath({"a": {"b": 3}}, "a.b", 3); a.JsonPath({"a": 1}, "a")
            a.json_path("text with {\\"a\\": null} inside", "a", None)
            a.json_schema({"a": 1}, {"type": "object", "required": ["a"]}); a.JSONSchema([], {"type": "array"})
            a.tool_called(response, "place_order", arguments={"cups": {"$gte": 2}}, times=1)
            a.ToolCalled(response, "place_order"); a.not_tool_called(response, "pay"); a.NotToolCalled(response, "pay")
            a.tool_result(response, "place_order", value=17); a.tool_order(response, ["place_order"])
            a.behavior(response, "no_errors"); a.Behavior(response, max_tool_calls=1)
            a.agent(response, "agents:desk.py:strict", {"criteria": "confirm"})
            a.check(response, {"type": "any_of", "assertions": [{"type": "contains", "value": "17"}]})
            a.expect(response, "the place_order function was called", "no errors")
            a.script(response, "scripts:tests.test_desk.short")

        def short(output):
            return len(output) < 100
        """,
    )
    found = ran["test_all"]
    assert found["error"] is None
    assert found["status"] == "passed"
    assert all(one["passed"] for one in found["assertions"])


FAILING = {
    "true(0)": "true: expected true, found 0",
    'false("x", "should be empty")': "false: should be empty",
    'equal({"a": [1, 2]}, {"a": [1, 3]})': "equals: expected 3 at $.a[1], found 2",
    'equal("5", 5)': 'equals: expected 5, found "5"',
    "not_equal(1, 1.0)": "not_equal: expected another value than 1.0",
    "nil(3)": "nil: expected nothing, found 3",
    "not_nil(None)": "not_nil: expected something, found nothing",
    'contains("tea", "coffee")': 'contains: expected the output to contain "coffee", found "tea"',
    'not_contains("tea", "tea")': "not_contains: ",
    'len("tea", 4)': "len: expected the length 4, found 3",
    "len(3, 4)": "len: expected the length 4, found 3, which has none",
    "greater(1, 1)": "greater: expected 1 > 1",
    "greater_or_equal(1, 2)": "greater_or_equal: expected 1 ≥ 2",
    "less(1, 1)": "less: expected 1 < 1",
    "less_or_equal(2, 1)": "less_or_equal: expected 2 ≤ 1",
    "error(None)": "error: expected an error, found none",
    'no_error(ValueError("x"))': "no_error: expected no error, found \"ValueError('x')\"",
    "panic(lambda: 1)": "panic: expected an exception, none was raised",
    "no_panic(lambda: 1 / 0)": "no_panic: expected no exception, ZeroDivisionError was raised: division by zero",
    'match("tea", "^ea")': "regex: ",
    'not_match("tea", "ea")': "regex: ",
    'type("3", "number")': "type: expected the type number, found string",
    'json_path({"a": 1}, "a", 2)': "json_path: ",
    'json_path({"a": 1}, "b")': "json_path: ",
    'json_schema({}, {"required": ["a"]})': "json_schema: ",
    'tool_called(response, "pay")': "tool_called: ",
    'not_tool_called(response, "place_order")': "not_tool_called: ",
    'tool_result(response, "place_order", value=18)': "tool_result: ",
    'tool_order(response, ["place_order", "pay"])': "tool_order: ",
    'artifact_exists(response, "x.txt")': "artifact_exists: ",
    "behavior(response, min_tool_calls=2)": "behavior: ",
    'agent(response, "desk.py:strict", {"criteria": "coffee"})': "agent: looked for coffee after order",
    'expect(response, "the pay function was called")': "expectation: ",
    'check(response, {"type": "contains", "value": "coffee"})': "contains: ",
}


def test_every_assertion_that_does_not_hold(desk: Project) -> None:
    code = "def send(ctx):\n    return ctx.agent('desk.py:answer').send('order')\n"
    for number, assertion in enumerate(FAILING):
        code += (
            f"def test_{number}(t, ctx):\n    response = send(ctx)\n    t.assert_.{assertion}\n    t.fatal('went on')\n"
        )
    ran = results(desk, code)
    for number, (assertion, told) in enumerate(FAILING.items()):
        found = ran[f"test_{number}"]
        assert found["status"] == "failed", assertion
        [verdict] = found["assertions"]
        assert f"{verdict['type']}: {verdict['message']}".startswith(told), assertion
        assert verdict["where"].endswith(f"test_desk.py:{4 * number + 5}"), assertion


def test_what_is_wrong_with_the_test_itself_is_no_failure_of_the_agent(desk: Project) -> None:
    ran = results(
        desk,
        """
        def test_bug(t, ctx):
            {}["x"]

        def test_unknown_assertion(t, ctx):
            t.assert_.contians("a", "a")

        def test_bad_keys(t, ctx):
            t.assert_.contains("a", "a", ignore_cse=True)

        def test_bad_rule(t, ctx):
            t.assert_.match("a", "(")

        def test_no_response(t, ctx):
            t.assert_.tool_called("text", "pay")

        def test_no_agent(t, ctx):
            name = "nobody.here"
            ctx.agent(name).send("hi")

        def test_nobody_under_test(t, ctx):
            ctx.agent().send("hi")

        def test_no_message(t, ctx):
            ctx.agent("desk.py:answer").send({"role": "user", "contnt": "hi"})

        def test_exit(t, ctx):
            raise SystemExit(0)

        async def test_not_awaited(t, ctx):
            ctx.agent("desk.py:answer").send("hi")

        async def test_assertion_not_awaited(t, ctx):
            response = await ctx.agent("desk.py:answer").send("hi")
            t.assert_.agent(response, "desk.py:strict", {"criteria": "coffee"})

        async def test_looked_at_too_early(t, ctx):
            ctx.agent("desk.py:answer").send("hi").content

        def test_no_length(t, ctx):
            t.assert_.len(3, 1)

        def test_no_length_of_a_thing(t, ctx):
            ctx.agent("desk.py:answer").send("hi")
            t.assert_.len(print, 1)

        def test_no_assertion(t, ctx):
            t.assert_.check("x", "y")

        def test_returned(t, ctx):
            return "tea" in ctx.agent("desk.py:answer").send("coffee").content and False
        """,
    )
    assert {found["status"] for found in ran.values()} == {"error"}
    assert {found["blame"] for found in ran.values()} == {"environment"}
    said = {name: found["error"] for name, found in ran.items()}
    path = desk.folder / "scripts/tests/test_desk.py"
    assert said["test_bug"] == f"KeyError: 'x' ({path}, line 3)"
    assert said["test_unknown_assertion"].startswith(
        "AttributeError: there is no assertion `contians`, did you mean `contains`?"
    )
    assert "ignore_cse" in said["test_bad_keys"]
    assert "not a regular expression" in said["test_bad_rule"]
    assert said["test_no_response"].startswith("`tool_called` is about a response of `ctx.agent(…).send(…)`, not")
    assert said["test_no_agent"].startswith("there is no agent `nobody.here`")
    assert said["test_nobody_under_test"].startswith("no agent is under test: name one in `ctx.agent(…)`, or with -n")
    assert "contnt" in said["test_no_message"]
    assert said["test_exit"].startswith("SystemExit: 0")
    assert said["test_not_awaited"] == "`send` at test_desk.py:31 was not awaited, so it was never done"
    assert said["test_assertion_not_awaited"] == "`agent` at test_desk.py:35 was not awaited, so it was never done"
    assert "write `await` before it" in said["test_looked_at_too_early"]
    assert said["test_no_length"].startswith("`len`: 3 has no length")
    assert said["test_no_length_of_a_thing"].startswith("`len`: ")
    assert said["test_no_assertion"].startswith("`check` takes an assertion as files give it")
    told = "it returned false, and what a test returns decides nothing: write `assert`, or t.assert_.true(…)"
    assert said["test_returned"] == told


def test_what_an_agent_answered_without_a_length_is_its_failure(desk: Project) -> None:
    ran = results(
        desk,
        """
        def test_output(t, ctx):
            t.assert_.len(ctx.agent("desk.py:answer").send("json").json["cups"], 2)
        """,
    )
    assert (ran["test_output"]["status"], ran["test_output"]["error"]) == (
        "failed",
        "expected the length 2, found 2, which has none",
    )


def test_what_a_test_returns_decides_nothing(desk: Project) -> None:
    ran = results(
        desk,
        """
        def test_text(t, ctx):
            return "passed"

        async def test_coroutine(t, ctx):
            return True

        def test_failed(t, ctx):
            t.fail("no")
            return False
        """,
    )
    assert {name: one["status"] for name, one in ran.items()} == {
        "test_text": "passed",
        "test_coroutine": "error",
        "test_failed": "failed",
    }
    told = "and what a test returns decides nothing"
    assert ran["test_text"]["warnings"] == [f'it returned "passed", {told}']
    assert ran["test_text"]["no_assertions"] is True
    assert ran["test_failed"]["warnings"] == [f"it returned false, {told}"]


def test_what_an_agent_cannot_show_does_not_pass(desk: Project) -> None:
    desk.write(
        "agents/cat.md",
        """
        ---
        type: cli
        config: { command: [cat], protocol: text }
        ---
        """,
    )
    ran = results(
        desk,
        """
        def test_absence(t, ctx):
            t.assert_.not_tool_called(ctx.agent("agents/cat.md").send("hi"), "pay")

        def test_absence_in_words(t, ctx):
            t.assert_.expect(ctx.agent("agents/cat.md").send("hi"), "the pay function was not called")
        """,
    )
    assert {(one["status"], one["blame"]) for one in ran.values()} == {("error", "judge")}
    assert "can never report its tool calls" in ran["test_absence"]["error"]
