"""Deadlines of trials that share one timer: each passes at its own time, and only if its trial is still running."""

import asyncio

import pytest
from tests.waiting import WAIT_LIMIT

from atp.engine.trial.deadline import Deadline, Deadlines

FOREVER = 3600


def test_a_later_trial_with_less_time_is_stopped_first() -> None:
    ended: list[str] = []

    async def trial(name: str, deadlines: Deadlines, seconds: float) -> None:
        deadline = deadlines.begin(seconds, lambda: None)
        try:
            await asyncio.sleep(FOREVER)
        except asyncio.CancelledError:
            assert deadline.passed()
            ended.append(name)
        finally:
            deadline.lift()

    async def main() -> None:
        deadlines = Deadlines()
        await asyncio.gather(*(trial(str(seconds), deadlines, seconds) for seconds in (0.4, 0.2, 0.3)))

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))
    assert ended == ["0.2", "0.3", "0.4"]


def test_one_that_is_lifted_stops_nothing_and_those_after_it_still_pass() -> None:
    async def main() -> None:
        deadlines = Deadlines()
        deadlines.begin(0.05, pytest.fail).lift()
        await asyncio.sleep(0.2)  # the timer goes off, with nothing left to stop
        late = deadlines.begin(0.05, pytest.fail)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)
        assert late.passed()
        late.lift()

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))


def test_a_cancellation_of_somebody_else_is_not_ours() -> None:
    async def main() -> None:
        deadline = Deadlines().begin(FOREVER, pytest.fail)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)
        assert not deadline.passed()
        task.uncancel()

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))


def test_a_trial_that_does_not_end_is_given_up() -> None:
    async def stubborn(deadlines: Deadlines, given_up: asyncio.Event) -> Deadline:
        deadline = deadlines.begin(0.05, given_up.set)
        while not given_up.is_set():
            try:
                await given_up.wait()
            except asyncio.CancelledError:
                assert deadline.passed()
        return deadline

    async def main() -> None:
        await stubborn(Deadlines(), asyncio.Event())

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))


def test_they_pass_in_another_loop_than_the_first_too() -> None:
    deadlines = Deadlines()

    async def main() -> bool:
        deadline = deadlines.begin(0.05 if seen else FOREVER, pytest.fail)
        try:
            await asyncio.sleep(FOREVER if seen else 0)
        except asyncio.CancelledError:
            return deadline.passed()
        finally:
            deadline.lift()
        return False

    seen: list[bool] = []
    for _ in range(2):
        seen.append(asyncio.run(main()))  # noqa: PERF401  (the second depends on the first)
    assert seen == [False, True]


def test_time_stands_still_until_the_trial_can_begin() -> None:
    async def main() -> None:
        deadline = Deadlines().begin(0.05, pytest.fail)
        deadline.stand_still(FOREVER)
        await asyncio.sleep(0.2)  # the timer goes off, too early by now
        deadline.go_on()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)
        assert deadline.passed()
        deadline.lift()

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))


def test_what_never_begins_is_stopped_too() -> None:
    async def main() -> None:
        deadline = Deadlines().begin(FOREVER, pytest.fail)
        deadline.stand_still(0.05)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)
        deadline.go_on()  # changes nothing any more
        assert deadline.passed()
        deadline.lift()

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))
