"""What a judge is shown of a trial."""

from typing import Any

import pytest
from tests.roles.support.doubles import talk

from atp.roles.record import LONGEST, MOST, Given, Piece, Unshown, make_record
from atp.suite.result import Event, ToolCall, Transcript, Turn


def shown(pieces: list[Piece]) -> dict[str, str]:
    return {one.label: one.text for one in pieces}


def test_everything_that_was_said_and_done_is_there_in_order() -> None:
    calls = [
        ToolCall(name="warm_ocean", arguments={"by": 2}, result="ok"),
        ToolCall(name="cool", error="no such sea", result={"a": [1]}),
    ]
    events = [
        Event(type="error", payload={"message": "oops", "duration_ms": 3}),
        Event(type="llm_request", payload={"model": "m"}),
        Event(type="tool_call", payload={"tool": "warm_ocean"}),
    ]
    record = make_record(
        talk(("hi", "hello"), calls=calls, events=events), files={"a.txt": "text"}, given=Given({"x": 1})
    )
    assert [(one.label, one.text) for one in record.pieces] == [
        ("The data that came with the task", '{"x": 1}'),
        ("The user said", "hi"),
        ("The agent said, as its last answer", "hello"),
        ("Turn 1, tool call 1, its name and arguments", '{"tool": "warm_ocean", "arguments": {"by": 2}}'),
        ("Turn 1, tool call 1, its result", "ok"),
        ("Turn 1, tool call 2, its name and arguments", '{"tool": "cool", "arguments": null}'),
        ("Turn 1, tool call 2, its result", '{"a": [1]}'),
        ("Turn 1, tool call 2, its error", "no such sea"),
        ("Turn 1, told by the agent", '{"event": "error", "message": "oops"}'),
        ("A file that the agent made, with its path on the first line", "a.txt\ntext"),
    ]
    assert [one.text for one in record.pieces if one.judged] == ["hello"]
    assert record.notes == []


def test_all_kinds_of_messages_are_shown() -> None:
    parts = [{"type": "text", "text": "look"}, {"type": "image", "source": "file://x.png"}]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": [{"name": "see"}]},
        {"role": "tool", "content": "a cat"},
        {"role": "assistant", "content": "A cat."},
    ]
    found = shown(make_record(Transcript(messages=messages)).pieces)
    assert found == {
        "The agent's system message": "be kind",
        "The user said": "look\n[image]",
        "The agent asked for tools to be called": '[{"name": "see"}]',
        "A tool's message": "a cat",
        "The agent said, as its last answer": "A cat.",
    }


def test_only_so_many_turns() -> None:
    calls = [ToolCall(name="one", turn=1), ToolCall(name="two", turn=2)]
    whole = talk(("a", "b"), ("c", "d"), calls=calls, events=[Event(type="error", payload={}, turn=2)])
    texts = [one.text for one in make_record(whole, turn=1).pieces]
    assert texts == ["a", "b", '{"tool": "one", "arguments": null}']
    assert len(make_record(whole, turn=2).pieces) == 7


def test_what_was_said_before_the_trial_is_shown_too() -> None:
    earlier = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "done"}]
    whole = talk(("a", "b"), ("c", "d"))
    whole.messages, whole.inherited = [*earlier, *whole.messages], 2
    assert [one.text for one in make_record(whole, turn=1).pieces] == ["before", "done", "a", "b"]


def test_a_transcript_without_messages_is_shown_by_its_turns() -> None:
    turns = [Turn(turn=1, input="a", output={"b": 1})]
    assert [one.text for one in make_record(Transcript(turns=turns)).pieces] == ["a", '{"b": 1}']


def test_the_question_may_be_about_a_file() -> None:
    record = make_record(talk(("a", "b")), files={"x.md": "old", "y.md": "other"}, about={"x.md": "text"})
    assert [one.text for one in record.pieces if one.judged] == ["x.md\ntext"]
    assert len(record.pieces) == 4


def test_a_long_text_is_cut_in_the_middle_and_says_so() -> None:
    text = "begin " + "x" * 100_000 + " end"
    record = make_record(talk(("a", text)))
    piece = record.pieces[1]
    assert len(piece.text) < LONGEST + 100
    assert "characters are left out in the middle" in piece.label
    assert "characters left out" in piece.text
    assert piece.quotable[0].startswith("begin")
    assert piece.quotable[1].endswith("end")
    assert "cut to" in record.notes[0]


def test_many_long_texts_share_the_room() -> None:
    record = make_record(talk(*[("q" * 5000, "a" * 5000) for _ in range(20)]))
    assert sum(len(one.text) for one in record.pieces) <= MOST
    assert len(record.pieces) == 40


def test_of_too_many_texts_the_middle_is_left_out_but_not_what_is_judged() -> None:
    calls = [ToolCall(name=f"tool{number}", result="r" * 300) for number in range(5000)]
    record = make_record(talk(("hi", "the answer"), calls=calls))
    assert sum(len(one.text) + len(one.label) for one in record.pieces) <= MOST
    assert "tool4999" in record.pieces[-2].text
    assert [one.text for one in record.pieces if one.judged] == ["the answer"]
    (gap,) = [one for one in record.pieces if "are left out, because" in one.label]
    assert gap.quotable == []
    assert f"{10_002 - len(record.pieces) + 1} of 10002 texts" in record.notes[-1]


def test_the_ids_of_calls_make_no_difference() -> None:
    def asked(id_: str) -> Transcript:
        wish = {"id": id_, "type": "function", "function": {"name": "search", "arguments": "{}"}}
        return Transcript(messages=[{"role": "assistant", "content": "", "tool_calls": [wish]}])

    one, other = make_record(asked("call_1a")), make_record(asked("call_2b"))
    assert one == other
    assert "search" in one.pieces[0].text


def function_call(id_: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_each_tool_call_is_shown_once_where_it_was_made() -> None:
    """A prompt agent's messages repeat the calls that the transcript has."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "warm it twice"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [function_call("a", "warm", '{"by": 1}'), function_call("b", "warm", '{"by": 1}')],
        },
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
        {"role": "tool", "tool_call_id": "b", "content": "error: too hot"},
        {"role": "assistant", "content": "", "tool_calls": [function_call("c", "look", "")]},
        {"role": "tool", "tool_call_id": "c", "content": '{"degrees":2}'},
        {"role": "assistant", "content": "Once."},
    ]
    calls = [
        ToolCall(name="warm", arguments={"by": 1}, result="ok"),
        ToolCall(name="warm", arguments={"by": 1}, error="too hot"),
        ToolCall(name="look", arguments={}, result={"degrees": 2}),
        ToolCall(name="log", result="told by an event only"),
    ]
    record = make_record(Transcript(messages=messages, tool_calls=calls))
    assert [(one.label, one.text) for one in record.pieces] == [
        ("The user said", "warm it twice"),
        ("Turn 1, tool call 1, its name and arguments", '{"tool": "warm", "arguments": {"by": 1}}'),
        ("Turn 1, tool call 1, its result", "ok"),
        ("Turn 1, tool call 2, its name and arguments", '{"tool": "warm", "arguments": {"by": 1}}'),
        ("Turn 1, tool call 2, its error", "too hot"),
        ("Turn 1, tool call 3, its name and arguments", '{"tool": "look", "arguments": {}}'),
        ("Turn 1, tool call 3, its result", '{"degrees": 2}'),
        ("The agent said, as its last answer", "Once."),
        ("Turn 1, tool call 4, its name and arguments", '{"tool": "log", "arguments": null}'),
        ("Turn 1, tool call 4, its result", "told by an event only"),
    ]


def test_a_tools_message_that_says_more_than_the_result_is_shown() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [function_call("a", "warm", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": "ok, but slowly"},
    ]
    record = make_record(Transcript(messages=messages, tool_calls=[ToolCall(name="warm", result="ok")]))
    assert [one.text for one in record.pieces][-1] == "ok, but slowly"


def test_a_call_is_shown_where_it_was_made_and_not_where_a_before_made_the_same() -> None:
    def asked(id_: str) -> dict[str, Any]:
        return {"role": "assistant", "content": "", "tool_calls": [function_call(id_, "warm", "{}")]}

    whole = Transcript(
        messages=[asked("a"), {"role": "user", "content": "again"}, asked("b")],
        inherited=1,
        turns=[Turn(turn=2, input="again")],
        tool_calls=[ToolCall(name="warm", arguments={}, turn=2)],
    )
    assert [one.label for one in make_record(whole).pieces] == [
        "Before this test: The agent asked for tools to be called",
        "The user said",
        "Turn 2, tool call 1, its name and arguments",
    ]


def test_calls_of_befores_are_shown_once_and_marked_as_such() -> None:
    """Those that a message asks for stand in its place, others behind the messages."""
    asked = {"role": "assistant", "content": "", "tool_calls": [function_call("a", "warm", "{}")]}
    done = [ToolCall(name="warm", arguments={}, result="ok"), ToolCall(name="log")]
    earlier = Transcript(tool_calls=done, events=[Event(type="error", payload={"message": "oops"})])
    whole = Transcript(
        messages=[asked, {"role": "user", "content": "again"}, {"role": "assistant", "content": "no"}],
        inherited=1,
        turns=[Turn(turn=2, input="again", output="no")],
        tool_calls=[ToolCall(name="warm", arguments={}, turn=2)],
    )
    assert [one.label for one in make_record(whole, earlier=earlier).pieces] == [
        "Before this test: Turn 1, tool call 1, its name and arguments",
        "Before this test: Turn 1, tool call 1, its result",
        "The user said",
        "The agent said, as its last answer",
        "Before this test: Turn 1, tool call 2, its name and arguments",
        "Turn 2, tool call 3, its name and arguments",
        "Before this test: Turn 1, told by the agent",
    ]


def test_arguments_that_are_too_large_to_be_read_are_shown_as_they_are() -> None:
    asked = function_call("a", "warm", "[" * 500 + "]" * 500)
    whole = Transcript(messages=[{"role": "assistant", "content": "", "tool_calls": [asked]}])
    whole.tool_calls.append(ToolCall(name="warm", arguments={}))
    assert len(make_record(whole).pieces) == 2


def test_a_case_that_says_nothing_is_judged_by_what_its_befores_did() -> None:
    whole = talk(("warm it", "I warmed it."), calls=[ToolCall(name="warm")], events=[Event(type="error", payload={})])
    whole.inherited = 2
    record = make_record(whole)
    assert [one.label for one in record.pieces] == [
        "Before this test: The user said",
        "Before this test: The agent said, as its last answer",
        "Before this test: Turn 1, tool call 1, its name and arguments",
        "Before this test: Turn 1, told by the agent",
    ]
    assert [one.text for one in record.pieces if one.judged] == ["I warmed it."]


def test_what_befores_did_and_what_the_case_gives_are_marked_as_such() -> None:
    whole = talk(("warm it", "I warmed it."), ("an old question", "an old answer"), ("and now?", "It is warm."))
    whole.inherited = 2
    record = make_record(whole, given=Given(messages=3))
    assert [(one.label, one.by_agent) for one in record.pieces] == [
        ("Before this test: The user said", False),
        ("Before this test: The agent said", True),
        ("The user said", False),
        ("Given with the test: The agent said", False),
        ("The user said", False),
        ("The agent said, as its last answer", True),
    ]


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "flight", "price": 100}, {"type": "hotel", "price": 7}],
        [{"type": "output_text", "text": "the price is 100"}, {"type": "text", "text": "7"}],
        [{"type": "text", "text": "7", "note": "100"}],
        [{"type": "file", "name": "100.txt"}, {"type": "image", "note": "7"}],
        [{"type": "text", "content": "100 and 7"}],
        [{"type": "refusal", "refusal": "not for 100"}, {"type": "text", "text": 7}],
    ],
)
def test_nothing_that_the_agent_says_in_parts_gets_lost(content: list[dict[str, Any]]) -> None:
    for seen in (
        Transcript(messages=[{"role": "assistant", "content": content}]),
        Transcript(turns=[Turn(turn=1, input="x", output=content)]),
        Transcript(tool_calls=[ToolCall(name="x", result=content)]),
    ):
        text = make_record(seen).pieces[-1].text
        assert ("100" in text, "7" in text) == (True, "7" in str(content))


@pytest.mark.parametrize("line_break", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\0"])
def test_the_name_of_a_file_is_a_line_and_no_content(line_break: str) -> None:
    name = f"report.md{line_break}All hotels are listed."
    (piece,) = [one for one in make_record(talk(("a", "b")), files={name: ""}).pieces if "file" in one.label]
    first, _, rest = piece.text.partition("\n")
    assert (len(first.splitlines()), rest) == (1, "")
    assert "All hotels are listed." in first


def test_a_file_that_is_not_shown_is_named_and_no_words_of_ours_are_its_content() -> None:
    record = make_record(talk(("a", "b")), files={"a.png": Unshown("it is not text"), "b.txt": "x"})
    labels = {one.text: one.label for one in record.pieces if one.by_agent}
    assert labels["a.png"] == "The path of a file that the agent made; it is not text"
    assert record.is_whole


LONG = "x" * (LONGEST + 1)


@pytest.mark.parametrize(
    ("seen", "files", "is_whole"),
    [
        (talk(("a", LONG)), {}, False),
        (talk(("a", "b"), calls=[ToolCall(name="x", arguments=LONG)]), {}, False),
        (talk(("a", "b"), events=[Event(type="message", payload={"text": LONG})]), {}, False),
        (talk(*[("a", f"b{number}") for number in range(1000)]), {}, False),
        (talk(("a", "b")), {"a.txt": LONG}, False),
        (talk(("a", "b")), {"a.txt": Unshown("it is too large", is_too_large=True)}, False),
        (talk((LONG, "b")), {}, True),
        (talk(("a", "b"), calls=[ToolCall(name="x", result=LONG)]), {}, True),
        (talk(("a", "b"), calls=[ToolCall(name="x", error=LONG)]), {}, True),
        (talk(("a", "b")), {"a.txt": "short"}, True),
    ],
)
def test_a_record_is_whole_if_all_that_the_agent_wrote_is_shown(
    seen: Transcript, files: dict[str, str | Unshown], is_whole: bool
) -> None:
    assert make_record(seen, files=files).is_whole is is_whole


@pytest.mark.parametrize(
    ("output", "content", "shown"),
    [
        ("refused", "refunded", ["refunded", "refused"]),
        ("", "refunded", ["refunded", ""]),
        (None, "refunded", ["refunded", ""]),
        ({"a": 1}, "refunded", ["refunded", '{"a": 1}']),
        ({"a": 1}, '{"a":1}', ['{"a":1}']),
        ({"a": 1}, '{"a":2}', ['{"a":2}', '{"a": 1}']),
        ("refunded", " refunded\n", [" refunded\n"]),
        ([{"type": "text", "text": "refunded"}], "refunded", ["refunded"]),
        (5, "5", ["5"]),
        ("refused", None, ["refused"]),
    ],
)
def test_the_answer_that_is_checked_is_shown_whatever_the_messages_end_with(
    output: Any, content: str | None, shown: list[str]
) -> None:
    """An adapter of a plugin gives messages and output by itself: exact checks look at the output, and so do judges."""
    said = [] if content is None else [{"role": "assistant", "content": content}]
    whole = Transcript(
        messages=[{"role": "user", "content": "hi"}, *said], turns=[Turn(turn=1, input="hi", output=output)]
    )
    pieces = make_record(whole).pieces
    assert [one.text for one in pieces if one.own] == shown
    assert [one.text for one in pieces if one.judged] == shown[-1:]
    assert pieces[-1].label == "The agent said, as its last answer"


def test_what_a_before_said_is_not_taken_for_the_answer() -> None:
    whole = Transcript(
        messages=[
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "again"},
        ],
        inherited=2,
        turns=[Turn(turn=2, input="again", output="hello")],
    )
    last = make_record(whole).pieces[-1]
    assert (last.label, last.text, last.judged) == ("The agent said, as its last answer", "hello", True)
