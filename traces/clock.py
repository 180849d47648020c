"""The time of a run, and waits that end on time.

A timer of the event loop counts whole milliseconds from a time read when the loop last woke, so it
fires up to one millisecond early or late. On Linux one timerfd (timerfd_create(2)) serves all waits
of a clock, and they end about 0.1 ms late; elsewhere the last two milliseconds of a wait poll the
time.
"""

import asyncio
import os
import time
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count

_SPENT = 0.002
"""Seconds before the end of a wait from which on a timer of the loop is too coarse."""

type _Wait = tuple[float, int, asyncio.Future[None]]


class RunClock:
    """Seconds since `began`, a reading of `time.monotonic`; its creator has to close it."""

    def __init__(self, began: float) -> None:
        self.began = began
        self._timer = -1
        self._waits: list[_Wait] = []
        self._numbers = count()

    def now(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    async def wait_until(self, at: float) -> None:
        """Return at time `at` of this clock, never earlier."""
        while at > self.now():
            if hasattr(os, "timerfd_create"):
                await self._wait_for_timer(at)
            else:
                await asyncio.sleep(max(0.0, at - self.now() - _SPENT))

    async def _wait_for_timer(self, at: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer < 0:
            flags = os.TFD_NONBLOCK | os.TFD_CLOEXEC
            self._timer = os.timerfd_create(time.CLOCK_MONOTONIC, flags=flags)
            loop.add_reader(self._timer, self._wake_waiters)
        wait = at + self.began, next(self._numbers), loop.create_future()
        heappush(self._waits, wait)
        if self._waits[0] is wait:
            self._arm_timer()
        await wait[2]

    def _wake_waiters(self) -> None:
        with suppress(BlockingIOError):  # re-armed since it fired
            os.read(self._timer, 8)
        now = time.monotonic()
        while self._waits and self._waits[0][0] <= now:
            *_, future = heappop(self._waits)
            if not future.done():
                future.set_result(None)
        if self._waits:
            self._arm_timer()

    def _arm_timer(self) -> None:
        os.timerfd_settime(self._timer, flags=os.TFD_TIMER_ABSTIME, initial=self._waits[0][0])

    def close(self) -> None:
        """Close the timer; no wait may be pending."""
        if self._timer >= 0:
            asyncio.get_running_loop().remove_reader(self._timer)
            os.close(self._timer)
            self._timer = -1
