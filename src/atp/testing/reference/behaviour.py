"""The reference agent of the conformance suite: the first word of a message says what the agent does.

One file that needs nothing but Python's standard library, so it can be copied into a container or beside a framework.
`steps` is the behaviour; `agent` is it as a function, `python behaviour.py cli` as a command, and
`python behaviour.py http PORTFILE` as a server.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BIG = 5_000_000
"""The number of two-byte characters in an answer of ten million bytes."""
ODD = 'ünïcödé ✓ 日本語 🎉 e\u0301 "quotes" \\ \u202eright to left\u202c\ttab\nnew line\u2028line'
"""An answer with characters that are easily encoded wrongly."""
DATA = {"text": "ünïcödé ✓", "list": [1, 2.5, None, True], "object": {"": {}}}
"""An answer that is JSON."""
REASON = "the reference agent was told to fail ✗"
"""The reason of a failure."""
Step = dict[str, Any]
"""One step: `do` is `call`, `think`, `make`, `answer`, `fail`, `sleep` or `die`; the other keys say how."""


def steps(messages: list[dict[str, Any]], data: dict[str, Any] | None, workspace: str | None) -> Iterator[Step]:
    """Yield the steps of a turn. `data` is the task's `input_data`, `workspace` the folder to write to."""
    heard = [_text(one) for one in messages if one["role"] == "user"]
    word, _, rest = heard[-1].partition(" ")
    match word:
        case "echo":
            yield {"do": "answer", "output": rest}
        case "hear":
            yield {"do": "answer", "output": " | ".join(heard)}
        case "roles":
            yield {"do": "answer", "output": ", ".join(one["role"] for one in messages)}
        case "data":
            yield {"do": "answer", "output": json.dumps({"value": (data or {}).get("value")}, ensure_ascii=False)}
        case "write":
            Path(workspace or ".", "notes").mkdir(exist_ok=True)
            Path(workspace or ".", "notes", "ünï.txt").write_text("kept ✓", encoding="utf-8")
            yield {"do": "answer", "output": "written"}
        case _:
            yield from _further(word)


def _further(word: str) -> Iterator[Step]:
    match word:
        case "tools":
            yield {"do": "call", "tool": "search", "input": {"query": "räin", "limit": 2}, "output": {"found": 2}}
            yield {"do": "call", "tool": "delete", "input": {"path": "/"}, "error": "not allowed"}
            yield {"do": "answer", "output": "2 found"}
        case "make":
            yield {"do": "make", "type": "file", "path": "made/ünï.txt", "content": "made ✓"}
            yield {"do": "make", "type": "structured", "name": "summary", "data": DATA}
            yield {"do": "answer", "output": "made"}
        case "think":
            yield {"do": "think", "input_tokens": 120, "output_tokens": 30}
            yield {"do": "think", "input_tokens": 80, "output_tokens": 20}
            yield {"do": "answer", "output": "thought"}
        case "spend":
            yield {"do": "think", "input_tokens": 10, "output_tokens": 10, "cost_usd": 0.02}
            yield {"do": "answer", "output": "spent"}
        case "loop":
            for number in itertools.count():
                yield {"do": "call", "tool": "search", "input": {"page": number}, "output": {"found": 0}}
        case "fail":
            yield {"do": "call", "tool": "search", "input": {}, "output": {"found": 0}}
            yield {"do": "fail", "reason": REASON}
        case "sleep" | "die":
            yield {"do": word}
        case _:
            big, data = (json.dumps(one, ensure_ascii=False) for one in ({"text": "ü" * BIG}, DATA))
            answers = {"big": big, "odd": ODD, "json": data, "nothing": ""}
            yield {"do": "answer", "output": answers.get(word, f"no such word: {word}")}


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


class Failed(Exception):
    """The failure of the word `fail`."""


def agent(messages: list[dict[str, Any]], task: dict[str, Any], workspace: Path) -> Iterator[Any]:
    """The behaviour as a function, for agents of type `custom`."""
    for step in steps(messages, task.get("input_data"), str(workspace)):
        match step:
            case {"do": "answer", "output": output}:
                yield {"output": output}
            case {"do": "make"}:
                yield {"artifacts": [{key: value for key, value in step.items() if key != "do"}]}
            case {"do": "fail", "reason": reason}:
                raise Failed(reason)
            case {"do": "sleep"}:
                time.sleep(3600)
            case {"do": "die"}:
                sys.exit(7)
            case _:
                kind, payload = event(step)
                yield {"type": kind, "payload": payload}


def event(step: Step) -> tuple[str, dict[str, Any]]:
    """Return a call or a thought as an event of the wire protocol."""
    if step["do"] == "think":
        return "llm_request", {"model": "reference", **{key: value for key, value in step.items() if key != "do"}}
    failed = {"output": step["error"], "status": "error"} if "error" in step else {"output": step["output"]}
    return "tool_call", {"tool": step["tool"], "input": step["input"], "status": "success", **failed}


class Turn:
    """Answers a request of the wire protocol: with events, then with the response."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._task_id = request["task_id"]
        task, context = request["task"], request.get("context") or {}
        data = task.get("input_data")
        messages = (data or {}).get("messages") or [{"role": "user", "content": task["description"]}]
        self._steps = steps(messages, data, context.get("workspace_path"))
        self.response: dict[str, Any] = {}
        """The response, once all events were yielded."""
        self.end = ""
        """`die` if the agent must end without a response."""

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events as they happen."""
        artifacts: list[Step] = []
        ending: dict[str, Any] = {"status": "completed"}
        for number, step in enumerate(self._steps):
            match step["do"]:
                case "answer":
                    ending["output"] = step["output"]
                case "make":
                    artifacts.append({key: value for key, value in step.items() if key != "do"})
                case "fail":
                    ending = {"status": "failed", "error": step["reason"]}
                case "sleep":
                    time.sleep(3600)
                case "die":
                    self.end = "die"
                    return
                case _:
                    kind, payload = event(step)
                    yield {**self._about(), "sequence": number, "event_type": kind, "payload": payload}
        self.response = {**self._about(), **ending, "artifacts": artifacts}

    def _about(self) -> dict[str, Any]:
        return {"version": "1.0", "task_id": self._task_id}


def answer_stdin() -> None:
    """The behaviour as a command: a request on stdin, events on stderr, the response on stdout."""
    turn = Turn(json.load(sys.stdin))
    for one in turn.events():
        sys.stderr.write(f"{json.dumps(one)}\n")
        sys.stderr.flush()
    if turn.end == "die":
        os._exit(7)
    sys.stdout.write(json.dumps(turn.response))


class Handler(BaseHTTPRequestHandler):
    """The behaviour as a server: a request is posted, the answer is a stream of events."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a health check."""
        self._answer(200)

    def do_POST(self) -> None:
        """Answer a request."""
        turn = Turn(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        events = turn.events()
        first = next(events, None)
        if turn.end == "die":
            self._answer(500)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the client has closed the connection
            for one in itertools.chain([] if first is None else [first], events):
                self._send(f"data: {json.dumps(one)}\n\n")
            self._send(f"event: response\ndata: {json.dumps(turn.response)}\n\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()


def serve(port_file: Path) -> None:
    """Serve on a free port of 127.0.0.1, and write it to a file."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    beside = port_file.with_name(f"{port_file.name}.part")
    beside.write_text(str(server.server_address[1]))
    beside.replace(port_file)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:] == ["cli"]:
        answer_stdin()
    elif len(sys.argv) == 3 and sys.argv[1] == "http":
        serve(Path(sys.argv[2]))
    else:
        sys.exit("usage: behaviour.py cli | http PORTFILE")
