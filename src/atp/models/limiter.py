"""How many requests a provider gets at once: more while all is well, half as many when it says "too many"."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

FIRST = 16
"""Requests at once, to begin with."""
MOST = 256


class Limiter:
    """One provider's limit, shared by all who ask it, in the order in which they came."""

    def __init__(self, first: float = FIRST, most: int = MOST) -> None:
        self.limit = float(first)
        """Requests that may be under way; its whole part counts."""
        self.under_way = 0
        """Requests that are."""
        self.halvings = 0
        """How often the provider was asked too much."""
        self._most = most
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for one's turn, and have it."""
        await self._enter()
        try:
            yield
        finally:
            self.under_way -= 1
            self._admit()

    async def _enter(self) -> None:
        if not self._waiting and self.under_way < int(self.limit):
            self.under_way += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was this one's turn already: now it is the next one's
                self.under_way -= 1
            self._admit()
            raise

    def _admit(self) -> None:
        waiting = self._waiting
        while waiting and (waiting[0].done() or self.under_way < int(self.limit)):
            turn = waiting.popleft()
            if not turn.done():  # else who waited has left
                self.under_way += 1
                turn.set_result(None)

    def went_well(self) -> None:
        """A request was answered: after as many as the limit, it is one higher."""
        self.limit = min(self.limit + 1 / self.limit, self._most)
        self._admit()

    def too_many(self, halvings: int) -> None:
        """The provider refused a request that was sent after so many halvings.

        All that are under way may be refused at once, which is one reason to halve, not many.
        """
        if halvings == self.halvings:
            self.halvings += 1
            self.limit = max(self.limit / 2, 1.0)
