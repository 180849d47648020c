"""The time of a run, and waits that end on time.

A timer of the event loop counts whole milliseconds from a time that was read when the loop last
woke, so it is early or late by up to one. Where Linux offers a timer as a file (timerfd_create(2))
one of them serves all waits of a clock, and they end about a tenth of a millisecond late; elsewhere
the last two milliseconds of a wait are spent asking for the time.
"""

import asyncio
import os
import time
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count

_SPENT = 0.002
"""Seconds before the end of a wait at which no timer of the loop is trusted any more."""

type _Wait = tuple[float, int, asyncio.Future[None]]


class Clock:
    """Seconds since `began`, a reading of `time.monotonic`; to be closed by who made it."""

    def __init__(self, began: float) -> None:
        self.began = began
        self._timer = -1
        self._waits: list[_Wait] = []
        self._numbers = count()

    def now(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    async def until(self, at: float) -> None:
        """Return at this time of the clock, never earlier."""
        while at > self.now():
            if hasattr(os, "timerfd_create"):
                await self._timed(at)
            else:
                await asyncio.sleep(max(0.0, at - self.now() - _SPENT))

    async def _timed(self, at: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer < 0:
            flags = os.TFD_NONBLOCK | os.TFD_CLOEXEC
            self._timer = os.timerfd_create(time.CLOCK_MONOTONIC, flags=flags)
            loop.add_reader(self._timer, self._ring)
        wait = at + self.began, next(self._numbers), loop.create_future()
        heappush(self._waits, wait)
        if self._waits[0] is wait:
            self._set()
        await wait[2]

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # it was set anew since it rang
            os.read(self._timer, 8)
        now = time.monotonic()
        while self._waits and self._waits[0][0] <= now:
            *_, over = heappop(self._waits)
            if not over.done():
                over.set_result(None)
        if self._waits:
            self._set()

    def _set(self) -> None:
        os.timerfd_settime(self._timer, flags=os.TFD_TIMER_ABSTIME, initial=self._waits[0][0])

    def close(self) -> None:
        """Nobody waits any more."""
        if self._timer >= 0:
            asyncio.get_running_loop().remove_reader(self._timer)
            os.close(self._timer)
            self._timer = -1
