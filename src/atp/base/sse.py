"""Parses server-sent events (HTML, 9.2), with one difference: a last message without a blank line counts.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class SseMessage(NamedTuple):
    """One message of a stream."""

    event: str
    """The message's event name; `message` if it has none."""
    data: str
    """The data, its lines joined."""


class TooLong(Exception):
    """A message that is longer than it may be."""


class SseParser:
    """Takes a stream in pieces, cut anywhere, and yields its messages as soon as they are complete."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._buffer = bytearray()
        self._searched = 0
        self._after_cr = False
        self._at_start = True
        self._event = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[SseMessage]:
        """The messages that this piece completes."""
        buffer = self._buffer
        buffer += piece
        if self._at_start:
            if len(buffer) < len(_BOM) and _BOM.startswith(buffer):
                return  # it may become a byte order mark
            if buffer.startswith(_BOM):
                del buffer[: len(_BOM)]
            self._at_start = False
        yield from self._lines()
        if self._size + len(buffer) > self._longest:
            raise TooLong

    def end(self) -> Iterator[SseMessage]:
        """The last message, when the stream is over: an unfinished message counts."""
        self._at_start = False
        yield from self._lines()
        if self._buffer:
            self._take(bytes(self._buffer))
            self._buffer.clear()
        yield from self._complete()

    def _lines(self) -> Iterator[SseMessage]:
        buffer, begin = self._buffer, 0
        if self._after_cr and buffer:
            # A CR ended the last line at once, not knowing whether an LF belongs to it.
            begin = 1 if buffer[0] == 0x0A else 0
            self._after_cr = False
        search = max(begin, self._searched)
        try:
            while match := _LINE_END.search(buffer, search):
                line = bytes(buffer[begin : match.start()])
                begin = search = match.end()
                self._after_cr = match.end() == len(buffer) and match.group() == b"\r"
                if line:
                    self._take(line)
                else:
                    yield from self._complete()
        finally:
            del buffer[:begin]
            self._searched = len(buffer)

    def _take(self, line: bytes) -> None:
        self._size += len(line)
        field, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value

    def _complete(self) -> Iterator[SseMessage]:
        if self._data:
            yield SseMessage(self._event or "message", "\n".join(self._data))
        self._event, self._data, self._size = "", [], 0
