"""Reads the body of an HTTP response up to a limit, for models and for agents."""

import aiohttp

from atp.base.sse import TooLong

LARGEST = 64 * 1024 * 1024
"""Bytes that an answer may have."""


class Body:
    """The body of a response, of which no more than `LARGEST` bytes are read."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._content = response.content
        self._size = 0

    async def next(self) -> bytes:
        """The next piece; nothing at the end. Raises `TooLong`."""
        chunk = await self._content.readany()
        self._size += len(chunk)
        if self._size > LARGEST:
            raise TooLong
        return chunk

    async def read(self) -> bytes:
        """All that is left. Raises `TooLong`."""
        chunks = []
        while chunk := await self.next():
            chunks.append(chunk)
        return b"".join(chunks)


def too_large() -> str:
    """What is wrong with an answer that is too long."""
    return f"larger than {LARGEST // 1024 // 1024} MB"
