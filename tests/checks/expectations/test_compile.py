"""Expectations that have an exact meaning, and the many more that only look so."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checks.conftest import make_assertion

from atp.checks.before_run import compiled_expectations
from atp.checks.expectations.compile import compile_expectation, describe, exact_wording
from atp.checks.groups import AnyOf
from atp.checks.output import Contains
from atp.checks.tools import ToolCalled
from atp.suite.assertion import Assertion
from atp.suite.case import Case

EXACT: dict[str, list[str]] = {
    "tool_called warm_ocean": [
        "the warm_ocean function was called",
        "The warm_ocean function was called.",
        "The `warm_ocean` function was called!",
        "the function warm_ocean was called",
        "the **warm_ocean** tool was invoked",
        "warm_ocean was called",
        "warm_ocean() is called",
        "warm_ocean called",
        "`warm_ocean` gets called",
        '"warm_ocean" has been called',
        "“warm_ocean” should be called",
        "a tool named warm_ocean was called",
        "the tool called warm_ocean was called",
        "warm_ocean must have been called by the agent",
        "the warm_ocean tool was used",
        "calls warm_ocean",
        "Called warm_ocean",
        "the agent calls warm_ocean",
        "The AGENT should call the warm_ocean function",
        "it must invoke `warm_ocean`",
        "The assistant has called warm_ocean.",
        "the agent uses the warm_ocean tool",
        "warm_ocean is called at least once",
        "the agent calls warm_ocean at least one time",
        "a call to warm_ocean was made",
        "there was at least one call to warm_ocean",
        "  the\n warm_ocean   function was called ",
    ],
    "tool_called warm_ocean, times 1": [
        "warm_ocean is called once",
        "warm_ocean was only called once",
        "warm_ocean was called only once",
        "warm_ocean should be called exactly once",
        "the agent calls warm_ocean exactly one time",
        "warm_ocean was called a single time",
        "there was exactly one call to warm_ocean",
        "one call was made to warm_ocean",
    ],
    "tool_called warm_ocean, times 2": [
        "the warm_ocean function was called twice",
        "warm_ocean is called twice",
        "the agent calls warm_ocean two times",
        "there were two calls to warm_ocean",
        "makes exactly 2 calls to warm_ocean",
    ],
    "tool_called warm_ocean, times 3": [
        "warm_ocean is called exactly 3 times",
        "warm_ocean was called three times",
        "warm_ocean was called thrice",
        "the agent made 3 calls to the warm_ocean tool",
    ],
    "none_of (tool_called warm_ocean, times 0; tool_called warm_ocean, times 1)": [
        "warm_ocean is called at least twice",
        "warm_ocean was called more than once",
        "at least two calls to warm_ocean were made",
    ],
    "any_of (tool_called warm_ocean, times 0; tool_called warm_ocean, times 1)": [
        "warm_ocean is called at most once",
        "warm_ocean was called no more than once",
        "warm_ocean was not called more than once",
        "the agent should never call warm_ocean more than once",
        "warm_ocean was called fewer than 2 times",
    ],
    "not_tool_called warm_ocean": [
        "the tool `warm_ocean` was not called",
        "never calls warm_ocean",
        "The agent should never call warm_ocean.",
        "the warm_ocean function wasn't called",
        "warm_ocean isn’t called",
        "warm_ocean must not be called",
        "warm_ocean should never have been called",
        "warm_ocean was never invoked by the agent",
        "does not call warm_ocean",
        "the agent doesn't use the warm_ocean tool",
        "the agent didn't call the function warm_ocean",
        "warm_ocean was called zero times",
        "no calls to warm_ocean were made",
        "there were no calls to `warm_ocean`",
    ],
    "tool_called search": [
        "search was called",
        'the tool called was "search"',
        "the function that was called is search",
        "the agent calls search",
        "the search tool was called",
        "the tool search was called",
        "calls the search tool",
        "`search` was called",
        "calls 'search'",
    ],
    "not_tool_called search": [
        "the search tool was not called",
        "the search function was never called",
        "the tool search was not called",
        "it never calls search",
        "search was not called",
        "no calls to search were made",
        "the tool named search was not called",
        "`search` was not called",
        "never calls “search”",
    ],
    "tool_called search, times 2": ["search was called twice", "the search function was called twice"],
    "not_tool_called refund": ["the refund function was not called", "it never calls refund"],
    "tool_called payment": ["the payment tool was called"],
    "tool_called calculate": ["the calculate function was called"],
    "tool_called booking": ["the booking tool was called"],
    "tool_called memory": ["the memory tool was called"],
    "tool_called request": ["request was called"],
    "tool_called local, times 1": ["local function was called once"],
    "tool_called search, before read": ["search was called before read", "the search tool was called before read"],
    "tool_called pay, after search": ["pay was called after search"],
    'tool_called book, arguments {"seats": 2}': ['book was called with {"seats": 2}'],
    "tool_called weather.get": ["weather.get was called", "the weather.get function was called"],
    "tool_called getWeather": ["getWeather was called", "calls getWeather"],
    "tool_called github__create_issue": ["github__create_issue was called"],
    "tool_called get-weather": ["the tool get-weather was called", "`get-weather` was called"],
    "tool_called run.py": ["the tool run.py was called", "`run.py` was called"],
    "tool_called get_user, before send_mail": [
        "get_user was called before send_mail",
        "get_user is called before send_mail is called",
        "the agent calls get_user before calling send_mail",
        "the `get_user` tool was called before the `send_mail` tool",
    ],
    "tool_called send_mail, after get_user": ["send_mail was called after get_user"],
    'tool_called warm_ocean, arguments {"degrees": 2}': [
        'warm_ocean was called with {"degrees": 2}',
        'the agent calls warm_ocean with the arguments {"degrees": 2}.',
        'the warm_ocean function was called with `{"degrees": 2}`',
    ],
    'tool_called warm_ocean, arguments {"at": {"$literal": ["a"]}}': ['warm_ocean was called with {"at": ["a"]}'],
    'not_tool_called warm_ocean, arguments {"degrees": 2}': ['warm_ocean was never called with {"degrees": 2}'],
    'tool_order ["get_user", "get_time", "send_mail"]': [
        "get_user, get_time and send_mail were called in this order",
        "the tools `get_user`, `get_time`, and `send_mail` were called in that order",
    ],
    "behavior, max_tool_calls 0": [
        "no tools were called",
        "No tool is called.",
        "no functions should be called",
        "no tools are used",
        "the agent calls no tools",
        "does not call any tools",
        "the agent should not use any tool",
        "makes no tool calls",
        "there were no tool calls",
        "no tool calls were made",
        "no function calls were made",
        "no tool calls",
    ],
    "behavior, min_tool_calls 1": [
        "a tool was called",
        "at least one tool was called",
        "at least one tool call was made",
    ],
    "behavior, min_tool_calls 3, max_tool_calls 3": ["exactly 3 tool calls were made", "makes three tool calls"],
    "behavior, min_tool_calls 1, max_tool_calls 1": [
        "only a single tool call was used",
        "exactly one tool call was made",
    ],
    "behavior, max_tool_calls 5": ["at most 5 tool calls were made", "there were no more than five tool calls"],
    "behavior no_errors": [
        "no errors",
        "No errors.",
        "no error",
        "there were no errors",
        "There are no errors",
        "there should be no errors",
        "there weren't any errors",
        "no error occurred",
        "no errors occurred",
        "no errors were raised",
        "no errors should occur",
        "the agent encountered no errors",
        "the agent completes without errors",
        "runs without any errors",
    ],
    "artifact_exists x.txt": [
        "the file x.txt exists",
        "The file `x.txt` exists.",
        "x.txt exists",
        "the x.txt file exists",
        "the file x.txt should exist",
        "there is a file x.txt",
        "there should be a file named x.txt",
        "x.txt was created",
        "a file called x.txt has been written",
        "creates x.txt",
        "the agent should create a file named x.txt",
        "it wrote the file x.txt",
        "x.txt should have been generated by the agent",
    ],
    "artifact_exists out/x.json": ["a file named out/x.json was created", "creates out/x.json"],
    "artifact_exists Makefile": ["the file `Makefile` exists"],
    'artifact_exists x.txt, contains "foo bar"': [
        'the file x.txt contains "foo bar"',
        "x.txt should contain the text 'foo bar'",
        "there is a file x.txt that contains `foo bar`",
        'creates x.txt containing "foo bar"',
    ],
    'all_of (artifact_exists x.txt; not artifact_exists x.txt, contains "foo")': ['x.txt does not contain "foo"'],
    "not artifact_exists x.txt": [
        "x.txt was not created",
        "no file x.txt was created",
        "no file named x.txt is written",
        "the agent does not create x.txt",
        "never writes the file x.txt",
    ],
    "not artifact_exists x.txt, untouched true": [
        "the file x.txt does not exist",
        "no file x.txt exists",
        "x.txt should not exist",
        "there is no file named x.txt",
    ],
    'contains "foo"': [
        'the response contains "foo"',
        'The RESPONSE should contain "foo".',
        "the final answer contains `foo`",
        "the agent's reply must include 'foo'",
        "the output contains the text “foo”",
    ],
    'contains "foo, and bar."': ['the response contains "foo, and bar."'],
    'not_contains "foo"': [
        'the response does not contain "foo"',
        "the answer doesn't include `foo`",
        'the output must not contain "foo"',
    ],
    'contains "foo", ignore_case true': ['the response mentions "foo"', 'the answer should mention "foo"'],
    'not_contains "foo", ignore_case true': ['the response does not mention "foo"', 'the answer never mentions "foo"'],
    r'regex "^\\d+ km\\/h$"': [r"the response matches /^\d+ km\/h$/"],
    'regex "(?i)hello"': ["the output matches the pattern /hello/i"],
    'regex "^[a-z]+$"': ["the answer should match the regex `^[a-z]+$`", "the answer matches /^[a-z]+$/"],
    'not regex "foo"': ["the output does not match /foo/"],
}

FOR_THE_ASSESSOR = [
    # More than the form.
    "the warm_ocean function was called politely",
    "the warm_ocean function was called with care",
    "the warm_ocean function was called because the ocean is cold",
    "the warm_ocean function was called if the user asked for it",
    "the warm_ocean function was called twice in a row",
    "the warm_ocean function was called in the last turn",
    "the warm_ocean function was called and the ocean is warm",
    "warm_ocean and cool_ocean were called",
    "warm_ocean or cool_ocean was called",
    "warm_ocean was called, cool_ocean was not",
    "calls warm_ocean and answers politely",
    "calls warm_ocean, then answers",
    "the user calls warm_ocean",
    "the response calls warm_ocean a success",
    "the warm_ocean function was not called twice",
    "the warm_ocean function was almost called",
    "the warm_ocean function was called about three times",
    "the warm_ocean function was called two or three times",
    "the warm_ocean function was called: yes",
    "the warm_ocean function (new) was called",
    "was the warm_ocean function called?",
    "only warm_ocean was called",
    "only calls warm_ocean",
    "warm_ocean was only called",
    "warm_ocean was called at least zero times",
    "warm_ocean was called at most 500 times",
    # Hedges.
    "the warm_ocean function may be called",
    "the warm_ocean function can be called",
    "the warm_ocean function might have been called",
    "the warm_ocean function was probably called",
    "ideally warm_ocean is called",
    "warm_ocean should ideally be called",
    "the warm_ocean function would be called",
    # No names of tools.
    "the right tool was called",
    "the correct function was called",
    "the appropriate tool was used",
    "the dangerous tool was not called",
    "the same tool was called twice",
    "the first tool was called",
    "the cheapest tool was called",
    "the well-known tool was called",
    "the Search tool was called",
    "the tool was called",
    "the tool itself was called",
    "the tool never was called",
    "the tool actually was not called",
    "the tool call was not executed",
    "the tool output was not used",
    "the tool results were not used",
    "tool access was not used",
    "the tool response was used",
    "the tool call was executed",
    "the tool tool was called",
    'the agent never calls "Bob"',
    'the agent calls "Bob"',
    "the function then was called",
    "the ocean was called",
    "the local function was not called",
    "correct function was called",
    "wrong tool was not called",
    "it never calls anyone",
    "it never calls home",
    "help was called",
    "customer called twice",
    "users were called twice",
    "the agent calls back",
    "Search was called",
    "calls the ocean",
    "the police were called",
    "calls the user by name",
    "iPhone was never called",
    "GitHub was never called",
    "macOS was not called",
    "example.com was never called",
    "api.example.com was not called",
    "run.py was not called",
    "report.md was called",
    "`warm ocean` was called",
    "`rm -rf /` was not called",
    "uses warm_ocean",
    "the code uses snake_case",
    "the warm_ocean function is used",
    "warm_ocean was executed",
    # Tools in general.
    "two tools were called",
    "a tool was called twice",
    "no tools other than warm_ocean were called",
    "no dangerous tools were called",
    "no tools were harmed",
    "no functions are used",
    "no function calls",
    "few tool calls were made",
    "does not call many tools",
    # Arguments.
    "warm_ocean was called with degrees 2",
    "warm_ocean was called with {degrees: 2}",
    "warm_ocean was called with {}",
    'warm_ocean was called with "2"',
    'warm_ocean was called with {"$gt": 2}',
    'warm_ocean was called with {"degrees": 2} only',
    'warm_ocean was called exactly with {"degrees": 2}',
    # Order.
    "get_user was called right before send_mail",
    "get_user was called before the user was told",
    "get_user was called before get_user",
    "get_user was not called before send_mail",
    "get_user, get_time and send_mail were called",
    # Errors.
    "no errors in the spelling",
    "no spelling errors",
    "no errors or warnings",
    "no errors were corrected",
    "the response has no errors",
    "it has no errors",
    "the agent made no errors",
    "the agent reports no errors",
    "there is any error",
    "there were few errors",
    "errors",
    "an error occurred",
    "no errors?",
    "no tool call failed",
    "handles errors gracefully",
    # Files.
    "the file exists",
    "the file still exists",
    "the file x.txt was deleted",
    "the file x.txt still exists",
    "the file x.txt is empty",
    "the file x.txt exists and is empty",
    "the file x.txt or y.txt exists",
    "the file ../x.txt exists",
    "the file /etc/passwd exists",
    "the file ~/x.txt exists",
    "the file *.txt exists",
    "example.com exists",
    "Rome exists",
    "`Rome` exists",
    "creates a report",
    "creates a file",
    "creates value",
    "the file x.txt contains the answer",
    "the file x.txt contains foo",
    'the file x.txt contains "foo" twice',
    'the folder out contains "foo"',
    # The answer.
    'The RESPONSE should be "4".',
    'the response is "4"',
    'the response equals "4"',
    "the response is valid JSON",
    "the response contains foo",
    "the response contains **foo**",
    'the response contains ""',
    'the response contains " "',
    r'the response contains "a\nb"',
    'the response contains "foo" and "bar"',
    'the response contains "foo" or "bar"',
    'the response contains something like "foo"',
    'the response contains the word "foo"',
    'the response contains "foo',
    'the response contains "foo" at the end',
    'the first response contains "foo"',
    'all responses contain "foo"',
    'a response contains "foo"',
    'the user\'s response contains "foo"',
    'it contains "foo"',
    'the agent says "foo"',
    "the response mentions Rome",
    'the response rarely mentions "foo"',
    "the response matches the style guide",
    'the response matches "foo"',
    'the response matches the pattern "YYYY-MM-DD"',
    "the response matches /(/",
    "the response matches /foo/g",
    "the response matches /foo/ and /bar/",
    # Documents 2 and 3.
    "responses were short and to the point",
    "the ocean is no longer cold",
    "The AGENT should identify Mount Everest as the tallest mountain.",
    "The AGENT should provide information about the average temperature at Mount Everest.",
    # Nothing, and what is no sentence.
    "",
    " ",
    ".",
    "`",
    "the",
    "was called",
    "<word0> was called",
    "the <code0> function was called",
    "дом_дом was called",
    "the warm_ocean function was called" + " " * 2000 + "x",
]


@pytest.mark.parametrize(("text", "meaning"), [(text, meaning) for meaning, texts in EXACT.items() for text in texts])
def test_an_exact_sentence(text: str, meaning: str) -> None:
    compiled = compile_expectation(text)
    assert compiled is not None, text
    assert describe(compiled) == meaning


@pytest.mark.parametrize("text", FOR_THE_ASSESSOR)
def test_all_else_is_for_the_assessor(text: str) -> None:
    compiled = compile_expectation(text)
    assert compiled is None, describe(compiled)


def test_there_are_at_least_as_many_that_only_look_exact() -> None:
    assert len(FOR_THE_ASSESSOR) >= 150
    assert sum(map(len, EXACT.values())) >= 150


EVERY = [text for texts in EXACT.values() for text in texts]
MORE = st.sampled_from(
    [
        "politely",
        "because",
        "and",
        "or",
        "not",
        "unless",
        "if",
        "early",
        "once more",
        "the ocean",
        "again and again",
        "maybe",
        "in vain",
        "too",
        "with care",
        "x_y",
        "`x`",
        "“foo”",
        "?",
        ": yes",
        "(twice)",
        "{}",
        "at all",
        "before",
        "after",
        "with",
        "quickly",
        "/x/",
        "ten",
        "often",
    ]
)


@given(st.sampled_from(EVERY), MORE)
def test_what_is_added_is_never_passed_over(text: str, more: str) -> None:
    """A longer sentence means something else, or nothing exact; never the same."""
    before = compile_expectation(text)
    longer = compile_expectation(f"{text.rstrip(' .!')} {more}")
    assert longer is None or longer != before


@given(MORE, st.sampled_from(EVERY))
def test_what_is_put_before_is_never_passed_over(more: str, text: str) -> None:
    before = compile_expectation(text)
    longer = compile_expectation(f"{more} {text.strip()}")
    assert longer is None or longer != before


WORDS = st.lists(st.from_regex(r"[a-z]{1,9}", fullmatch=True), min_size=1, max_size=6).map(" ".join)


@given(st.sampled_from([one for one in EVERY if one.endswith(("called", "exists", "errors"))]), WORDS)
def test_prose_after_a_known_beginning_is_not_compiled(text: str, prose: str) -> None:
    known = r"(at|by|before|after|exactly|precisely|only|just|no|not|more|fewer|less|a|once|twice|thrice|\w+ times?)\b"
    if not re.match(known, prose):
        assert compile_expectation(f"{text} {prose}") is None


@given(
    st.text(max_size=200) | st.from_regex(r"(the |`|\"|/|\{|warm_ocean|was called|contains| ){1,20}", fullmatch=True)
)
def test_no_text_breaks_it(text: str) -> None:
    compiled = compile_expectation(text)
    assert compiled is None or describe(compiled)


@pytest.mark.parametrize("text", EVERY)
def test_what_comes_out_is_what_a_file_could_say(text: str) -> None:
    compiled = compile_expectation(text)
    assert compiled is not None
    plain = compiled.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert make_assertion(plain) == compiled


def made(given: dict[str, Any]) -> Assertion:
    return make_assertion(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"type": "equals", "value": {"a": 1}}, 'equals {"a": 1}'),
        ({"type": "json_path", "path": "$.a", "value": None}, "json_path $.a, value null"),
        ({"type": "json_schema", "schema": {"type": "object"}}, 'json_schema, schema {"type": "object"}'),
        ({"type": "llm_eval", "criteria": "is kind", "votes": 3}, 'llm_eval "is kind", votes 3'),
        (
            {"type": "at_least", "k": 1, "negate": True, "assertions": [{"type": "contains", "value": "x"}]},
            'not at_least 1 (contains "x")',
        ),
    ],
)
def test_every_kind_can_be_described(given: dict[str, Any], words: str) -> None:
    assert describe(made(given)) == words


def test_the_kinds_that_sentences_become() -> None:
    assert compile_expectation("no errors") == made({"type": "behavior", "check": "no_errors"})
    twice = compile_expectation("warm_ocean was called twice")
    assert isinstance(twice, ToolCalled)
    assert (twice.name, twice.times) == ("warm_ocean", 2)
    most = compile_expectation("warm_ocean was called at most twice")
    assert isinstance(most, AnyOf)
    assert [one.times for one in most.assertions if isinstance(one, ToolCalled)] == [0, 1, 2]
    text = compile_expectation('the response contains "  two  blanks "')
    assert isinstance(text, Contains)
    assert text.value == "  two  blanks "


def test_a_tool_that_the_case_names_is_known() -> None:
    for text in ("the local function was not called", "Local was not called", "it never calls Local"):
        assert compile_expectation(text) is None
        compiled = compile_expectation(text, frozenset({"local"}))
        assert compiled is not None, text
        assert describe(compiled) == "not_tool_called local"
    case = Case.model_validate(
        {
            "id": "a",
            "limits": {"allowed_tools": ["local"]},
            "assertions": [{"type": "tool_called", "name": "Remote"}],
            "expectations": ["the local function was called", "the remote tool was not called"],
        }
    )
    exact, in_words = compiled_expectations(case)
    assert [describe(one) for one in exact.values()] == ["tool_called local", "not_tool_called Remote"]
    assert in_words == []


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("the Search tool was called", "the `Search` tool was called"),
        ("Search was called twice.", "`search` was called twice."),
        ("the expensive tool was not called", "the `expensive` tool was not called"),
        ("the right tool was called", None),
        ("the guest is greeted by name", None),
        ("search was called twice", None),
    ],
)
def test_a_wording_that_would_be_exact(text: str, wording: str | None) -> None:
    assert exact_wording(text) == wording
