"""What agents write to stdout and stderr, whatever it is and however it is cut: read, logged, or an agent's error."""

import json
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.agents.support.talk import Talk
from tests.damage import damaged_bytes
from tests.work import lines_executed

from atp.agents import stdio
from atp.agents.adapter import AgentError, Reply
from atp.agents.events import PairedCalls
from atp.agents.stdio import Stderr, read_reply
from atp.suite.result import Event


def event(kind: str, number: int, **payload: object) -> str:
    named = {"version": "1.0", "task_id": "trial-1", "sequence": number, "timestamp": "2026-01-01T00:00:00Z"}
    return json.dumps({**named, "event_type": kind, "payload": payload}, ensure_ascii=False)


STDERR = "\n".join(
    [
        event("tool_call", 0, tool="look", input={"for": "é"}, status="started", call_id=1),
        "a line of the log",
        event("tool_call", 1, tool="look", output=[1, 2.5, None], status="success", call_id=1, duration_ms=3),
        event("llm_request", 2, model="m", input_tokens=3, output_tokens=4),
        '{"level": "info"}',
        event("reasoning", 3, step="think"),
        event("error", 4, message="no", recoverable=True),
        "",
    ]
).encode()
RESPONSE = json.dumps(
    {
        "version": "1.0",
        "task_id": "trial-1",
        "status": "completed",
        "output": {"text": "é", "n": [1, 2.5, None]},
        "artifacts": [
            {"type": "file", "path": "a/b.txt", "content": "x", "content_type": "text/plain"},
            {"type": "structured", "name": "data", "data": {"k": 1}},
        ],
        "metrics": {"input_tokens": 3, "total_steps": 2, "cost_usd": 0.5},
        "error": None,
    }
).encode()
CUTS = st.lists(st.integers(0, len(STDERR)), max_size=4)


def heard(talk: Talk, *pieces: bytes) -> tuple[list[Event], list[str], str | None]:
    """The events, the log and the error that come of pieces on stderr."""
    talk.events, talk.logs = [], []
    reader, error = Stderr(talk.request(), events=True), None
    try:
        for piece in pieces:
            reader.feed(piece)
        reader.end_line()
    except AgentError as broken:
        error = f"{broken.blame}: {broken}"
    finally:
        reader.finish()
    return talk.events, talk.logs, error


def check_stderr(data: bytes, cuts: list[int]) -> None:
    """Every line is an event, a line of the log, or the agent's error, wherever the stream is cut."""
    with tempfile.TemporaryDirectory() as folder:
        talk = Talk(Path(folder))
        events, logs, error = heard(talk, data)
        places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
        assert heard(talk, *(data[a:b] for a, b in pairwise(places))) == (events, logs, error)
    told = [line for line in logs if not line.startswith(("beside a `", "a `"))]
    lines = [line for line in data.split(b"\n") if line]
    assert len(events) + len(told) == len(lines) or (error or "").startswith("agent: agent error: broke the protocol")
    pairs = PairedCalls()
    for one in events:
        if one.type == "tool_call":
            pairs.read(one, 1)
    pairs.unfinished()


def check_response(data: bytes) -> None:
    """A response gives a reply or the agent's error, which shows what the agent sent."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            read: Reply | AgentError = read_reply(data, Talk(Path(folder)).request(), speaks=True)
        except AgentError as error:
            read = error
        if isinstance(read, AgentError):
            assert read.blame == "agent"
            assert read.raw is not None or read.reply is not None
        assert {path.name for path in Path(folder).iterdir()} <= {"workspace"}


@settings(max_examples=60)
@given(damaged_bytes(STDERR), CUTS)
@example(STDERR, [])
@example(b'{"event_type": "progress", "payload": {}}', [3])
@example(b'{"event_type": ' + b"[" * 5_000, [])
def test_every_line_on_stderr_is_an_event_or_logged_or_an_error(data: bytes, cuts: list[int]) -> None:
    check_stderr(data, cuts)


@settings(max_examples=60)
@given(damaged_bytes(RESPONSE))
@example(RESPONSE)
@example(RESPONSE.replace(b"a/b.txt", b"../b.txt"))
@example(RESPONSE.replace(b"a/b.txt", b"a\\u0000b"))
@example(RESPONSE.replace(b"2.5", b"9" * 5_000))
def test_any_response_gives_a_reply_or_an_error_of_the_agent(data: bytes) -> None:
    check_response(data)


@pytest.mark.parametrize("line", ['{"payload": %s, "event_type": "progress"}', '{"event_type": "progress", "x": %s}'])
def test_an_object_too_long_to_be_an_event_is_an_error(talk: Talk, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "LONGEST_LINE", 100)
    events, logs, error = heard(talk, b"first\n" + (line % ("1" * 80)).encode()[:99], b"1" * 80, b"}\nlast\n")
    assert (events, logs) == ([], ["first"])
    assert error is not None
    assert "too long for an event" in error
    assert heard(talk, b"x" * 99, b"y" * 99, b"\nlast\n")[1][-1] == "last"


HOSTILE: dict[str, Callable[[int], str]] = {
    "keys": lambda size: "{" + ",".join(f'"{number}":1' for number in range(size)) + ',"0":1}',
    "brackets": lambda size: "[" * size,
    "strings": lambda size: '{"a":"' + "\\\\" * size,
    "lines": lambda size: "x\n" * size,
}


@pytest.mark.no_cover  # coverage traces as well, and only one can
@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_no_faster_than_the_output(talk: Talk, name: str) -> None:
    def work(size: int) -> int:
        data = HOSTILE[name](size).encode()

        def read() -> None:
            with pytest.raises(AgentError):
                read_reply(data, talk.request(), speaks=True)
            heard(talk, *(data[place : place + 64] for place in range(0, len(data), 64)))

        return lines_executed(read)

    work(100)
    assert work(4_000) < 2.3 * work(2_000)


def test_a_key_twice_behind_very_many_is_found(talk: Talk) -> None:
    """To compare each key with all before would take hours."""
    data = HOSTILE["keys"](100_000).replace(',"0":1}', ',"99999":1}')
    with pytest.raises(AgentError, match="the key `99999` twice"):
        read_reply(data.encode(), talk.request(), speaks=True)
