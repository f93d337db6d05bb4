"""Server-sent events, cut anywhere."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.work import lines_executed

from atp.base.sse import SseMessage, SseParser, TooLong


def parse(*pieces: bytes, longest: int = 10_000) -> list[SseMessage]:
    parser = SseParser(longest)
    found = [message for piece in pieces for message in parser.feed(piece)]
    return [*found, *parser.end()]


@pytest.mark.parametrize(
    ("stream", "messages"),
    [
        ("", []),
        ("data: a\n\n", [("message", "a")]),
        ("data:a\n\ndata:  b\n\n", [("message", "a"), ("message", " b")]),
        ("data: YHOO\ndata: +2\ndata: 10\n\n", [("message", "YHOO\n+2\n10")]),
        (": a comment\n\ndata: x\nid: 1\nretry: 10\nwhat: ever\n\n", [("message", "x")]),
        ("event: e\ndata: x\n\ndata: y\n\n", [("e", "x"), ("message", "y")]),
        ("event: e\n\ndata: y\n\n", [("message", "y")]),
        ("data\n\ndata\ndata\n\ndata:", [("message", ""), ("message", "\n"), ("message", "")]),
        ("data: a\r\rdata: b\r\n\r\ndata: c\n\n", [("message", "a"), ("message", "b"), ("message", "c")]),
        ("data: last", [("message", "last")]),
        ("data: last\n", [("message", "last")]),
        ("data: last\r", [("message", "last")]),
        ("\ufeffdata: a\n\n", [("message", "a")]),
        ("\ufeff\ufeffdata: a\n\n", []),
        ("data: \u2028\x85é€😀\n\n", [("message", "\u2028\x85é€😀")]),
        ("\n\n\r\r\n\ndata: x\n\n\n\n", [("message", "x")]),
    ],
)
def test_by_the_standard_at_every_cut(stream: str, messages: list[tuple[str, str]]) -> None:
    raw = stream.encode()
    assert parse(raw) == messages
    assert parse(*(bytes([byte]) for byte in raw)) == messages
    for cut in range(len(raw) + 1):
        assert parse(raw[:cut], raw[cut:]) == messages
        assert parse(raw[:cut], b"", raw[cut:]) == messages


def test_messages_come_as_soon_as_they_are_complete() -> None:
    parser = SseParser(1000)
    assert list(parser.feed(b"data: a\n")) == []
    assert list(parser.feed(b"\r")) == [("message", "a")]
    assert list(parser.feed(b"\n")) == []
    assert list(parser.feed(b"data: b\n\n")) == [("message", "b")]


def test_broken_utf_8_is_replaced() -> None:
    assert parse(b"data: \xff\xc3\n\n") == [("message", "\ufffd\ufffd")]


def test_messages_are_bounded() -> None:
    with pytest.raises(TooLong):
        parse(b"data: " + b"x" * 200, longest=100)
    with pytest.raises(TooLong):
        parse(*[b"data: x\n"] * 100, longest=100)
    assert len(parse(*[b"data: x\n\n"] * 100, longest=100)) == 100


def reference(stream: bytes) -> list[SseMessage]:
    """The standard's algorithm, without regard for pieces."""
    text = stream.decode(errors="replace").removeprefix("\ufeff")
    found: list[SseMessage] = []
    event, data = "", list[str]()
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    for line in [*lines, ""]:
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if line == "":
            if data:
                found.append(SseMessage(event or "message", "\n".join(data)))
            event, data = "", []
        elif name == "data":
            data.append(value)
        elif name == "event":
            event = value
    return found


_WORDS = [
    b"data",
    b"event",
    b":",
    b" ",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"id",
    b"x",
    "é€😀".encode(),
    b"\xef\xbb\xbf",
    b"\xff",
]


STREAMS = st.lists(st.sampled_from(_WORDS) | st.binary(max_size=3), max_size=40).map(b"".join)
CUTS = st.lists(st.integers(0, 200), max_size=8)


@given(STREAMS, CUTS)
def test_same_as_the_reference(stream: bytes, cuts: list[int]) -> None:
    check_stream(stream, cuts)


@pytest.mark.no_cover  # coverage traces as well, and only one can
@pytest.mark.parametrize("unit", [b"x", b"\r", b"\n", b"data\n", b":\n", b"data: x\n\n"])
def test_work_grows_no_faster_than_the_stream(unit: bytes) -> None:
    def work(times: int) -> int:
        return lines_executed(lambda: parse(*(bytes([byte]) for byte in unit * times), longest=10**6))

    work(10)
    assert work(2_000) < 2.3 * work(1_000)


def check_stream(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in pairwise(places)]
    assert parse(*pieces) == reference(stream)
