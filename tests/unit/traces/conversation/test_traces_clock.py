"""Waits end on time: never early, in their order, and hardly late."""

import asyncio
import statistics
import time
from random import Random

import pytest
import uvloop

from traces.clock import RunClock


async def lateness(clock: RunClock, times: list[float]) -> list[float]:
    """How late each of these waits ended, all of them begun at once."""

    async def wait(at: float) -> float:
        await clock.wait_until(at)
        return clock.now() - at

    return await asyncio.gather(*map(wait, times))


@pytest.mark.alone
def test_no_wait_is_early_and_on_a_quiet_machine_the_median_is_not_a_millisecond_late() -> None:
    async def main() -> list[float]:
        clock, chance = RunClock(time.monotonic()), Random(7)
        try:
            return await lateness(clock, [0.02 + chance.random() / 5 for _ in range(100)])
        finally:
            clock.close()

    for run in (asyncio.run, uvloop.run):
        medians = []
        for _ in range(5):
            late = run(main())
            assert min(late) >= 0
            medians.append(statistics.median(late))
            if medians[-1] < 0.001:
                break
        else:
            pytest.fail(f"medians were {medians} s late")


def test_waits_end_in_the_order_of_their_times_whatever_was_waited_for_first() -> None:
    async def main() -> list[int]:
        clock, ended = RunClock(time.monotonic()), list[int]()

        async def wait(n: int) -> None:
            await clock.wait_until(0.02 + n / 200)
            ended.append(n)

        await asyncio.gather(*(wait(n) for n in (5, 1, 4, 0, 3, 2)))
        clock.close()
        return ended

    assert uvloop.run(main()) == [0, 1, 2, 3, 4, 5]


def test_who_no_longer_waits_holds_up_nobody() -> None:
    async def main() -> bool:
        clock = RunClock(time.monotonic())
        gone = asyncio.ensure_future(clock.wait_until(0.05))
        stays = asyncio.ensure_future(clock.wait_until(0.06))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait_for(stays, 20)
        clock.close()
        return gone.cancelled()

    assert uvloop.run(main())


def test_what_is_over_needs_no_wait() -> None:
    with pytest.raises(StopIteration):
        RunClock(time.monotonic() - 1).wait_until(0.5).send(None)
