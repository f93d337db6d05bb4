"""A deadline cancels its trial when the time is up, and only then."""

import asyncio

import pytest
from tests.waiting import WAIT_LIMIT

from atp.engine.trial.deadline import Deadline, Deadlines

FOREVER = 3600


def test_a_later_trial_with_less_time_is_stopped_first() -> None:
    ended: list[str] = []

    deadlines = Deadlines()

    async def trial(name: str, seconds: float) -> None:
        deadline = Deadline(deadlines, seconds, lambda: None)
        try:
            await asyncio.sleep(FOREVER)
        except asyncio.CancelledError:
            assert deadline.is_cause_of_cancellation()
            ended.append(name)
        finally:
            deadline.cancel()

    async def main() -> None:
        await asyncio.gather(*(trial(str(seconds), seconds) for seconds in (0.4, 0.2, 0.3)))

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))
    assert ended == ["0.2", "0.3", "0.4"]


def test_one_that_is_lifted_stops_nothing_and_those_after_it_still_pass() -> None:
    async def main() -> None:
        deadlines = Deadlines()
        Deadline(deadlines, 0.05, pytest.fail).cancel()
        await asyncio.sleep(0.2)
        late = Deadline(deadlines, 0.05, pytest.fail)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)
        assert late.is_cause_of_cancellation()
        late.cancel()

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))


def test_a_cancellation_of_somebody_else_is_not_ours() -> None:
    async def main() -> None:
        deadline = Deadline(Deadlines(), FOREVER, pytest.fail)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)
        assert not deadline.is_cause_of_cancellation()
        task.uncancel()

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))


def test_a_trial_that_does_not_end_is_given_up() -> None:
    async def stubborn(given_up: asyncio.Event) -> Deadline:
        deadline = Deadline(Deadlines(), 0.05, given_up.set)
        while not given_up.is_set():
            try:
                await given_up.wait()
            except asyncio.CancelledError:
                assert deadline.is_cause_of_cancellation()
        return deadline

    async def main() -> None:
        await stubborn(asyncio.Event())

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))


def test_time_stands_still_until_the_trial_can_begin() -> None:
    async def main() -> None:
        deadline = Deadline(Deadlines(), 0.05, pytest.fail)
        deadline.pause(FOREVER)
        await asyncio.sleep(0.2)
        deadline.resume()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)
        assert deadline.is_cause_of_cancellation()
        deadline.cancel()

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))


def test_what_never_begins_is_stopped_too() -> None:
    async def main() -> None:
        deadline = Deadline(Deadlines(), FOREVER, pytest.fail)
        deadline.pause(0.05)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)
        deadline.resume()  # changes nothing any more
        assert deadline.is_cause_of_cancellation()
        deadline.cancel()

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))


def test_deadlines_that_are_due_together_are_all_called_also_if_one_raises() -> None:
    given_up: list[int] = []

    async def main() -> None:
        deadlines = Deadlines()
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)

        async def trial(number: int) -> None:
            def give_up() -> None:
                given_up.append(number)
                raise OSError

            deadline = Deadline(deadlines, 0.05, give_up)
            while number not in given_up:
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    assert deadline.is_cause_of_cancellation()

        await asyncio.gather(*(trial(number) for number in range(3)))

    asyncio.run(asyncio.wait_for(main(), WAIT_LIMIT))
    assert sorted(given_up) == [0, 1, 2]
