"""The limit on requests at once: never passed, fair, and as high as the provider bears."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agents.support.talk import run
from tests.waiting import WAIT_LIMIT

from atp.models.client import TransientError, with_retries
from atp.models.connections import Limiter

STEP = st.one_of(
    st.just(("come", 0)),
    st.tuples(st.sampled_from(("go", "leave")), st.integers(0, 50)),
    st.sampled_from((("well", 0), ("too many", 0), ("too many", 1))),
)


class Crowd:
    """Those who want a turn."""

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter
        self.came = 0
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.ends: dict[int, asyncio.Event] = {}
        self.admitted: list[int] = []

    async def _want(self, number: int) -> None:
        async with self.limiter.slot():
            self.admitted.append(number)
            # Whoever comes in finds the limit kept; a halving doesn't throw anyone out.
            assert self.limiter.under_way <= int(self.limiter.limit)
            await self.ends[number].wait()

    async def step(self, what: str, which: int) -> None:
        inside = [number for number in self.admitted if not self.tasks[number].done()]
        if what == "come":
            self.ends[self.came] = asyncio.Event()
            self.tasks[self.came] = asyncio.create_task(self._want(self.came))
            self.came += 1
        elif what == "go" and inside:
            self.ends[inside[which % len(inside)]].set()
        elif what == "leave" and self.tasks:
            self.tasks[which % len(self.tasks)].cancel()
        elif what == "well":
            self.limiter.on_answered()
        elif what == "too many":
            self.limiter.on_rate_limited(self.limiter.halvings - which)
        for _ in range(4):  # everybody gets as far as they can
            await asyncio.sleep(0)


@settings(max_examples=200, deadline=None)
@given(first=st.integers(1, 5), steps=st.lists(STEP, max_size=60))
def test_requests_never_pass_the_limit_and_are_admitted_in_order(first: int, steps: list[tuple[str, int]]) -> None:
    async def main() -> None:
        crowd = Crowd(Limiter(first, highest=6))
        limiter = crowd.limiter
        for what, which in steps:
            await crowd.step(what, which)
            assert 1 <= limiter.limit <= 6
            inside = [number for number in crowd.admitted if not crowd.tasks[number].done()]
            waiting = [n for n, task in crowd.tasks.items() if not task.done() and n not in crowd.admitted]
            assert limiter.under_way == len(inside)
            assert not waiting or len(inside) >= int(limiter.limit)  # nobody waits for nothing
        assert crowd.admitted == sorted(crowd.admitted)
        for number in range(crowd.came):
            await crowd.step("go", 0)
            crowd.ends[number].set()
        await asyncio.wait_for(asyncio.gather(*crowd.tasks.values(), return_exceptions=True), WAIT_LIMIT)
        assert not [task for task in crowd.tasks.values() if not task.cancelled() and task.exception()]
        assert limiter.under_way == 0

    asyncio.run(main())


def test_the_limit_rises_by_one_after_as_many_answers() -> None:
    limiter = Limiter(4, highest=100)
    for _ in range(5):
        limiter.on_answered()
    assert 5 <= limiter.limit < 5.2
    for _ in range(10_000):
        limiter.on_answered()
    assert limiter.limit == 100


def test_one_wave_of_refusals_halves_it_once() -> None:
    limiter = Limiter(32)
    for _ in range(10):
        limiter.on_rate_limited(0)
    assert limiter.limit == 16
    for halving in range(1, 10):
        limiter.on_rate_limited(halving)
    assert limiter.limit == 1


def test_a_failure_that_is_no_refusal_leaves_the_limit_alone() -> None:
    async def main() -> None:
        limiter, failures = Limiter(8), [TransientError("tired", retry_after=0, status=503)]

        async def once() -> str:
            if failures:
                raise failures.pop()
            return "done"

        assert await with_retries(once, limiter, 1) == "done"
        assert (limiter.limit, limiter.under_way) == (8 + 1 / 8, 0)

    run(main())


def test_a_failed_request_frees_its_slot() -> None:
    async def main() -> None:
        limiter = Limiter(1)

        async def once() -> None:
            raise RuntimeError

        for _ in range(3):
            with pytest.raises(RuntimeError):
                await with_retries(once, limiter, 3)
        assert (limiter.under_way, limiter.limit) == (0, 1)

    run(main())
