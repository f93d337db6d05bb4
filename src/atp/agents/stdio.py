"""What agents that are spoken to over stdin, stdout and stderr share, be they commands or containers."""

import shlex
from collections import deque
from collections.abc import Iterable, Mapping

from atp.agents.adapter import AgentError, Capabilities, Reply, TurnRequest
from atp.agents.events import read_event
from atp.agents.protocol import read_response
from atp.agents.wire import RAW_LENGTH, ProtocolError, broken, read_json
from atp.base.errors import ConfigurationError
from atp.base.text import cut
from atp.usercode.printed import LONGEST, KeptLines

LARGEST_OUTPUT = 64 * 1024 * 1024
"""Bytes that may be written to stdout."""
LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line on stderr that may be an event."""
NOTHING = Capabilities(tool_calls=False, tokens=False, cost=False, steps=False)
"""What an agent that only writes text lets be seen."""
_KEPT = 4 * LONGEST
_TAIL = 10


def split_words(command: str | list[str], key: str) -> list[str]:
    """The words of a command: a list, or text that is split without a shell."""
    try:
        return shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise ConfigurationError(f"`{key}` can't be split: {error}", "write it as a list") from error


def check_startable(argv: Iterable[str], environment: Mapping[str, str]) -> None:
    """Refuse words and variables that no system could start anything with."""
    if any("\0" in one for one in (*argv, *environment, *environment.values())):
        raise ConfigurationError("`command` or `environment` has a NUL character in it")
    for name in environment:
        if "=" in name or not name:
            wrong = f"the name {name!r}, which has a `=` in it" if name else "a name that is empty"
            raise ConfigurationError(f"`environment` has {wrong}", "write `NAME: value`")


def prompt_line(prompt: str) -> bytes:
    """A prompt as a line, or lines: tools that read lines would not see a last one without its end."""
    return (prompt if prompt.endswith("\n") else f"{prompt}\n").encode(errors="replace")


def read_reply(output: bytes, request: TurnRequest, speaks: bool) -> Reply:
    """The reply in what was written to stdout: a response, or text if the agent doesn't speak the protocol."""
    if speaks:
        return read_response(output, request)
    return Reply(output=output.decode(errors="replace").rstrip("\r\n"))


def failure(how: str, output: bytes, request: TurnRequest, tail: str, speaks: bool) -> AgentError:
    """The error of an agent that ended badly, with what it said of it: in a response, else at the end of its log."""
    said, reply = tail, None
    if speaks and output.strip():
        try:
            reply = read_response(output, request)
        except AgentError as error:
            if error.raw is None:  # a response in good form that tells of a failure
                said, reply = str(error).removeprefix("agent error: "), error.reply
    raw = cut(output, RAW_LENGTH) if output else None
    return AgentError(f"agent error: {how}{f': {said}' if said else ''}", raw=raw, reply=reply)


class Stdout:
    """What is written to stdout, up to its largest size."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Take a piece in. Raises `AgentError` when it is too much."""
        self._size += len(piece)
        if self._size > LARGEST_OUTPUT:
            raise AgentError(f"agent error: wrote more than {LARGEST_OUTPUT // 1024 // 1024} MB to stdout")
        self._pieces.append(piece)

    @property
    def content(self) -> bytes:
        """All of it."""
        return b"".join(self._pieces)


class Stderr:
    """What is written to stderr: events, told at once, and lines for the log."""

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
        return cut("\n".join(self._tail)[-1000:], RAW_LENGTH)

    def feed(self, piece: bytes) -> None:
        """Take a piece in. Raises what the engine raises when a limit is passed."""
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._buffer += line
            self.end_line()
        if len(self._buffer) + len(rest) <= LONGEST_LINE:
            self._buffer += rest
        else:
            self._skipped += len(rest)

    def end_line(self) -> None:
        """What has come is a line, if there is any of it: an event or not."""
        line, skipped = bytes(self._buffer), self._skipped
        self._buffer.clear()
        self._skipped = 0
        if self._events and b'"event_type"' in line and line.lstrip().startswith(b"{"):
            if skipped:
                raise broken(f"an event of {len(line) + skipped} bytes is too long", line)
            self._tell(line)
        elif line:
            self._keep(line, skipped)

    def finish(self) -> None:
        """Nothing more will come, or nobody wants to hear it."""
        if self._buffer:
            self._keep(bytes(self._buffer), self._skipped)
        self._kept.finish()

    def _tell(self, line: bytes) -> None:
        try:
            event = read_event(read_json(line, "an event"), self._request)
        except ProtocolError as breach:
            raise broken(breach, line) from breach
        self._request.emit(event)

    def _keep(self, line: bytes, skipped: int) -> None:
        text = line[:_KEPT].decode(errors="replace").rstrip("\r")
        if len(line) > _KEPT:
            text = f"{cut(text, LONGEST - 40)} ({len(line) + skipped} bytes)"
        self._kept.add(text)
        self._tail.append(cut(text, 500))
