"""Which worker holds which conversation."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from atp.agents.adapter import AgentError
from atp.agents.python.worker_process import WorkerProcess
from atp.suite.result import Blame

HANGS = 60.0
"""Seconds after which a worker that is still starting is not worth waiting for, once nobody does."""


@dataclass(eq=False, slots=True)
class Worker:
    """A worker process with its agent loaded."""

    process: WorkerProcess
    takes: tuple[str, ...]
    """What the agent wants to be given."""
    sessions: set[str] = field(default_factory=set)
    """The conversations that it holds, or held last."""
    session: str = ""
    """The one whose turn it is, or was last."""
    owner: "asyncio.Task[Any] | None" = None
    """Who leads that conversation: a task leads one after the other."""
    ended: list[str] = field(default_factory=list)
    """Conversations that are over, and that the worker was not told of yet."""
    busy: bool = False
    """A turn is under way."""
    used: int = 0
    """When it was last taken, counted in turns."""

    @property
    def free(self) -> bool:
        """Whether its conversation is over, for all that we know."""
        return self.owner is None or self.owner.done() or self.owner is asyncio.current_task()


class Pool:
    """The workers of an agent. There are as many as conversations go on at a time, or as many as are allowed."""

    def __init__(self, begin: Callable[[], Awaitable[Worker]], most: int | None) -> None:
        self._begin = begin
        self._most = most
        self._workers: list[Worker] = []
        self._starts: dict[asyncio.Task[Worker], float] = {}
        """Workers that are about to be there, and when their start began."""
        self._left: list[asyncio.Task[Worker]] = []
        """Those that nobody waits for: whose trial was stopped before they were there."""
        self._waiting: list[asyncio.Future[None]] = []
        self._ending: set[asyncio.Future[None]] = set()
        self._lost: dict[str, tuple[str, Blame]] = {}
        """Conversations whose worker ended between two turns: how, and whose fault it is."""
        self._turns = 0

    async def warm_up(self) -> None:
        """Have a worker ready. Raises `AgentError`."""
        self._workers.append(await self._begin())

    async def take(self, session: str) -> Worker:
        """A worker for a turn of a conversation; to be given back. Raises `AgentError`."""
        while True:
            await self._forget_the_dead()
            if session in self._lost:
                how, blame = self._lost[session]
                raise AgentError(f"the agent's process ended between two turns: {how}", blame)
            holds = next((one for one in self._workers if session and session in one.sessions), None)
            if holds is None:
                worker = self._choose()
                if worker is None and (self._left or self._may_begin):
                    await self._another()
                    continue  # somebody may have been quicker
            else:
                worker = None if holds.busy else holds
            if worker is not None:
                return self._lend(worker, session)
            await self._wait()

    def give_back(self, worker: Worker, well: bool) -> None:
        """The turn is over; unless it went well, so is the worker."""
        worker.busy = False
        if not well:
            others = worker.sessions - {worker.session}
            self._lost |= dict.fromkeys(others, ("another trial was stopped in it", "environment"))
            self._drop(worker)
        self._wake()

    async def close(self) -> None:
        """End all workers."""
        for start in self._starts:
            start.cancel()
        if self._starts:
            await asyncio.wait(self._starts)
        workers, self._workers = self._workers, []
        for worker in workers:
            self._ending.add(asyncio.ensure_future(worker.process.close()))
        if self._ending:
            await asyncio.wait(self._ending)

    @property
    def _may_begin(self) -> bool:
        return self._most is None or len(self._workers) + len(self._starts) < self._most

    def _choose(self) -> Worker | None:
        """A worker for a new conversation: the task's own, or one whose conversation is over.

        If there can't be another one, the worker that has been left alone for longest.
        """
        idle = [one for one in self._workers if not one.busy]
        own = asyncio.current_task()
        free = [one for one in idle if one.free]
        if free:
            return max(free, key=lambda one: (one.owner is own, one.used))
        if idle and not self._may_begin and not self._left:
            return min(idle, key=lambda one: one.used)
        return None

    def _lend(self, worker: Worker, session: str) -> Worker:
        if worker.free and session not in worker.sessions:
            worker.sessions.clear()
        worker.sessions.add(session)
        worker.session = session
        worker.owner = asyncio.current_task()
        worker.busy = True
        self._turns += 1
        worker.used = self._turns
        return worker

    async def _another(self) -> None:
        """Wait until there is one more worker. Raises `AgentError`.

        Its start is nobody's own: if this trial is stopped meanwhile, the next one need not wait from the beginning.
        """
        loop = asyncio.get_running_loop()
        if self._left:
            start = self._left.pop()
        else:
            start = asyncio.ensure_future(self._begin())
            self._starts[start] = loop.time()
            start.add_done_callback(self._begun)
        try:
            await asyncio.shield(start)
        except asyncio.CancelledError:
            if start in self._starts and loop.time() - self._starts[start] < HANGS:
                self._left.append(start)
                self._wake()
            else:
                start.cancel()
            raise

    def _begun(self, start: "asyncio.Task[Worker]") -> None:
        del self._starts[start]
        if start in self._left:
            self._left.remove(start)
        if not start.cancelled() and start.exception() is None:
            self._workers.append(start.result())
        self._wake()

    async def _wait(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    async def _forget_the_dead(self) -> None:
        for worker in [one for one in self._workers if not one.busy and one.process.over]:
            await worker.process.settle()
            if worker in self._workers:  # nobody else has dropped it meanwhile
                self._drop(worker)
                self._lost |= dict.fromkeys(worker.sessions, (worker.process.how, "agent"))

    def _drop(self, worker: Worker) -> None:
        self._workers.remove(worker)
        worker.process.kill()
        ending = asyncio.ensure_future(worker.process.end())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
