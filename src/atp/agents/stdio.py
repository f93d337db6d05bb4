"""Requests, replies and events over stdin, stdout and stderr, for commands, containers and MCP servers."""

import shlex
from collections import deque
from collections.abc import Iterable, Mapping

from atp.agents.adapter import AgentError, Reply, TurnRequest
from atp.agents.events import read_event
from atp.agents.protocol import read_response
from atp.agents.wire import LARGEST_OUTPUT, RAW_LENGTH, ProtocolError, broken, read_json
from atp.base.errors import ConfigurationError
from atp.base.text import cut, cut_start
from atp.usercode.printed import LONGEST, KeptLines

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line on stderr that may be an event."""
_KEPT = 4 * LONGEST
_TAIL = 10


def split_words(command: str | list[str], key: str) -> list[str]:
    """Split a command, a list or text, into words without a shell. Raises `ConfigurationError`."""
    try:
        return shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise ConfigurationError(f"`{key}` can't be split: {error}", "write it as a list") from error


def check_startable(argv: Iterable[str], environment: Mapping[str, str]) -> None:
    """Raise `ConfigurationError` for words and variables that no system can start a process with."""
    if any("\0" in one for one in (*argv, *environment, *environment.values())):
        raise ConfigurationError("`command` or `environment` has a NUL character in it")
    for name in environment:
        if "=" in name or not name:
            wrong = f"the name {name!r}, which has a `=` in it" if name else "a name that is empty"
            raise ConfigurationError(f"`environment` has {wrong}", "write `NAME: value`")


def prompt_line(prompt: str) -> bytes:
    """Return a prompt with a line end, without which tools that read lines would not see the last line."""
    return (prompt if prompt.endswith("\n") else f"{prompt}\n").encode(errors="replace")


def read_reply(output: bytes, request: TurnRequest, speaks: bool) -> Reply:
    """Read the reply from stdout: a response, or text if the agent does not speak the protocol."""
    if speaks:
        return read_response(output, request)
    return Reply(output=output.decode(errors="replace").rstrip("\r\n"))


def failure(how: str, output: bytes, request: TurnRequest, tail: str, speaks: bool) -> AgentError:
    """Return the error of an agent that ended badly, with its own message: in a response, else the end of its log."""
    said, reply = tail, None
    if speaks and output.strip():
        try:
            reply = read_response(output, request)
        except AgentError as error:
            if error.raw is None:  # a valid response with a failure
                said, reply = str(error).removeprefix("agent error: "), error.reply
    raw = cut(output, RAW_LENGTH) if output else None
    return AgentError(f"agent error: {how}{f': {said}' if said else ''}", raw=raw, reply=reply)


class Stdout:
    """Collects stdout, up to `LARGEST_OUTPUT` bytes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Add a piece. Raises `AgentError` when stdout gets too large."""
        self._size += len(piece)
        if self._size > LARGEST_OUTPUT:
            raise AgentError(f"agent error: wrote more than {LARGEST_OUTPUT // 1024 // 1024} MB to stdout")
        self._pieces.append(piece)

    @property
    def content(self) -> bytes:
        """All of stdout."""
        return b"".join(self._pieces)


class Stderr:
    """Reads stderr: emits events at once, and adds other lines to the log."""

    def __init__(self, request: TurnRequest, events: bool) -> None:
        self._request = request
        self._events = events
        self._kept = KeptLines(request.log)
        self._tail: deque[str] = deque(maxlen=_TAIL)
        self._buffer = bytearray()
        self._skipped = 0

    @property
    def tail(self) -> str:
        """The last lines of the log."""
        return cut_start("\n".join(self._tail), 1000)

    def feed(self, piece: bytes) -> None:
        """Add a piece. Raises what `emit` raises when a limit is passed."""
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._buffer += line
            self.end_line()
        if len(self._buffer) + len(rest) <= LONGEST_LINE:
            self._buffer += rest
        else:
            self._skipped += len(rest)

    def end_line(self) -> None:
        """End the current line: emit it as an event, or log it."""
        line, skipped = bytes(self._buffer), self._skipped
        self._buffer.clear()
        self._skipped = 0
        is_object = self._events and line.lstrip().startswith(b"{")
        if is_object and skipped:  # whether it is an event may stand in what was skipped
            raise broken(f"a JSON object of {len(line) + skipped} bytes on stderr is too long for an event", line)
        if is_object and b'"event_type"' in line:
            self._emit(line)
        elif line:
            self._keep(line, skipped)

    def finish(self) -> None:
        """Log an unfinished line. Called when nothing more is read."""
        if self._buffer:
            self._keep(bytes(self._buffer), self._skipped)
        self._kept.finish()

    def _emit(self, line: bytes) -> None:
        try:
            event = read_event(read_json(line, "an event"), self._request)
        except ProtocolError as error:
            raise broken(error, line) from error
        self._request.emit(event)

    def _keep(self, line: bytes, skipped: int) -> None:
        if len(line) > _KEPT:
            text = f"{cut(line, LONGEST - 40)} ({len(line) + skipped} bytes)"
        else:
            text = line.decode(errors="replace").rstrip("\r")
        self._kept.add(text)
        self._tail.append(cut(text, 500))
