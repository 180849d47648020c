"""The event loop everything runs on, and how it is ended by a signal."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals by which somebody wants us to end."""


class Interrupted(KeyboardInterrupt):
    """We were told to end by a signal, and all that had been started has ended."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run[T](main: Coroutine[object, object, T]) -> T:
    """What `main` returns, run on uvloop where it is installed.

    A signal cancels it, so that whatever it has opened is closed, and then raises Interrupted.
    An agent that runs at that time is told the signal instead (`recorder.process`).
    """
    told: list[int] = []
    with asyncio.Runner(loop_factory=_loop) as runner:
        try:
            return runner.run(_stoppable(main, told))
        except asyncio.CancelledError:
            if told:
                raise Interrupted(told[0]) from None
            raise


async def _stoppable[T](main: Coroutine[object, object, T], told: list[int]) -> T:
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    cancel = task.cancel

    def stop(number: int, _: FrameType | None) -> None:
        if not told:
            told.append(number)
            loop.call_soon_threadsafe(cancel)

    with handled(stop):
        return await main


@contextmanager
def handled(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Have the ending signals come to this, as far as we get any: in the main thread, not ignored.

    What handled them before does so again afterwards.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in ENDING}
    before = {number: was for number, was in before.items() if was not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


def _loop() -> asyncio.AbstractEventLoop:
    try:
        from uvloop import new_event_loop
    except ImportError:  # not to be had on every platform; only slower without
        return asyncio.new_event_loop()
    return new_event_loop()
