"""What comes from a worker in pieces, as whole lines."""

from collections.abc import Callable

from atp.agents.adapter import AgentError
from atp.agents.stdio import LARGEST_OUTPUT


class WholeLines:
    """Puts the pieces of one pipe together."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Take a piece in, and hand over the lines that it ends. Raises `AgentError` when one is too long."""
        *lines, rest = piece.split(b"\n")
        for line in lines:
            whole, self._begun, self._size = b"".join((*self._begun, line)), [], 0
            self._take(whole)
        self._begun.append(rest)
        self._size += len(rest)
        if self._size > LARGEST_OUTPUT:
            raise AgentError(f"agent error: answered with more than {LARGEST_OUTPUT // 1024 // 1024} MB")
