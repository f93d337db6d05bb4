"""Assigns conversations to worker processes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from atp.agents.adapter import AgentError
from atp.agents.python.worker_process import WorkerProcess
from atp.suite.result import Blame

START_SECONDS = 60.0
"""A start that no trial waits for is kept for the next trial until it has taken this long; then it is cancelled."""


@dataclass(eq=False, slots=True)
class Worker:
    """A worker process with its agent loaded."""

    process: WorkerProcess
    parameters: tuple[str, ...]
    """The names of the turn's values that the agent's function takes."""
    sessions: set[str] = field(default_factory=set)
    """The conversations assigned to the worker. Kept until it is assigned a new one."""
    session: str = ""
    """The conversation of the current or latest turn."""
    owner: "asyncio.Task[Any] | None" = None
    """The task that runs that conversation. A task runs one conversation after the other."""
    ended: list[str] = field(default_factory=list)
    """Ended conversations that the worker's next request is to name."""
    busy: bool = False
    """True during a turn."""
    last_turn: int = 0
    """The number of its latest turn, counted over the whole pool."""

    @property
    def free(self) -> bool:
        """True if no other task is in the middle of a conversation with the worker, as far as the pool can know."""
        return self.owner is None or self.owner.done() or self.owner is asyncio.current_task()


class Pool:
    """The workers of an agent: one for each concurrent conversation, up to a limit."""

    def __init__(self, start_worker: Callable[[], Awaitable[Worker]], limit: int | None) -> None:
        self._start_worker = start_worker
        self._limit = limit
        self._workers: list[Worker] = []
        self._starts: dict[asyncio.Task[Worker], float] = {}
        """The workers that are being started, with the time at which each start began."""
        self._unclaimed: list[asyncio.Task[Worker]] = []
        """The starts that no trial waits for, because the trial was cancelled before its worker was ready."""
        self._waiting: list[asyncio.Future[None]] = []
        self._ending: set[asyncio.Future[None]] = set()
        self._lost: dict[str, tuple[str, Blame]] = {}
        """The conversations whose worker ended between two turns: how it ended, and who is to blame."""
        self._turns = 0

    async def warm_up(self) -> None:
        """Start a worker. Raises `AgentError`."""
        self._workers.append(await self._start_worker())

    async def take(self, session: str) -> Worker:
        """Reserve a worker for a turn of a conversation, until `give_back`. Raises `AgentError`."""
        while True:
            await self._drop_ended()
            if session in self._lost:
                how, blame = self._lost[session]
                raise AgentError(f"the agent's process ended between two turns: {how}", blame)
            assigned = next((one for one in self._workers if session and session in one.sessions), None)
            if assigned is None:
                worker = self._choose()
                if worker is None and (self._unclaimed or self._may_start):
                    await self._add_worker()
                    continue  # another task may have taken the new worker
            else:
                worker = None if assigned.busy else assigned
            if worker is not None:
                return self._reserve(worker, session)
            await self._wait_for_change()

    def give_back(self, worker: Worker, reusable: bool) -> None:
        """End the turn of a worker. The worker is ended too, unless it is reusable."""
        worker.busy = False
        if not reusable:
            others = worker.sessions - {worker.session}
            self._lost |= dict.fromkeys(others, ("another trial was stopped in it", "environment"))
            self._drop(worker)
        self._notify_change()

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
    def _may_start(self) -> bool:
        return self._limit is None or len(self._workers) + len(self._starts) < self._limit

    def _choose(self) -> Worker | None:
        """A worker for a new conversation: the task's own, or one whose conversation is over.

        At the limit of workers, the one whose latest turn is longest ago.
        """
        idle = [one for one in self._workers if not one.busy]
        own = asyncio.current_task()
        free = [one for one in idle if one.free]
        if free:
            return max(free, key=lambda one: (one.owner is own, one.last_turn))
        if idle and not self._may_start and not self._unclaimed:
            return min(idle, key=lambda one: one.last_turn)
        return None

    def _reserve(self, worker: Worker, session: str) -> Worker:
        if worker.free and session not in worker.sessions:
            worker.sessions.clear()
        worker.sessions.add(session)
        worker.session = session
        worker.owner = asyncio.current_task()
        worker.busy = True
        self._turns += 1
        worker.last_turn = self._turns
        return worker

    async def _add_worker(self) -> None:
        """Wait until one more worker has started. Raises `AgentError`.

        The start is a task of its own: if this trial is cancelled meanwhile, the next trial waits only for the rest.
        """
        loop = asyncio.get_running_loop()
        if self._unclaimed:
            start = self._unclaimed.pop()
        else:
            start = asyncio.ensure_future(self._start_worker())
            self._starts[start] = loop.time()
            start.add_done_callback(self._on_started)
        try:
            await asyncio.shield(start)
        except asyncio.CancelledError:
            if start in self._starts and loop.time() - self._starts[start] < START_SECONDS:
                self._unclaimed.append(start)
                self._notify_change()
            else:
                start.cancel()
            raise

    def _on_started(self, start: "asyncio.Task[Worker]") -> None:
        del self._starts[start]
        if start in self._unclaimed:
            self._unclaimed.remove(start)
        if not start.cancelled() and start.exception() is None:
            self._workers.append(start.result())
        self._notify_change()

    async def _wait_for_change(self) -> None:
        change = asyncio.get_running_loop().create_future()
        self._waiting.append(change)
        await change

    def _notify_change(self) -> None:
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.done():
                change.set_result(None)

    async def _drop_ended(self) -> None:
        for worker in [one for one in self._workers if not one.busy and one.process.over]:
            await worker.process.wait_exit_code()
            if worker in self._workers:  # no other task has dropped the worker meanwhile
                self._drop(worker)
                self._lost |= dict.fromkeys(worker.sessions, (worker.process.how, "agent"))

    def _drop(self, worker: Worker) -> None:
        self._workers.remove(worker)
        worker.process.kill()
        ending = asyncio.ensure_future(worker.process.end())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
