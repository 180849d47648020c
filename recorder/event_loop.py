"""The asyncio event loop, and its cancellation by signals."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end the program."""


class SignalInterrupt(KeyboardInterrupt):
    """A signal ended the program; everything it had started has ended."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_event_loop[T](main: Coroutine[object, object, T]) -> T:
    """Run `main` (on uvloop if installed) and return its result.

    A signal cancels `main`, so that its resources are closed; then SignalInterrupt is raised. While
    an agent runs, its signals are forwarded to it instead (`recorder.agent.process`).
    """
    received: list[int] = []
    with asyncio.Runner(loop_factory=_new_event_loop) as runner:
        try:
            return runner.run(_run_until_signal(main, received))
        except asyncio.CancelledError:
            if received:
                raise SignalInterrupt(received[0]) from None
            raise


async def _run_until_signal[T](main: Coroutine[object, object, T], told: list[int]) -> T:
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    cancel = task.cancel

    def stop(number: int, _: FrameType | None) -> None:
        if not told:
            told.append(number)
            loop.call_soon_threadsafe(cancel)

    with handle_ending_signals(stop):
        return await main


@contextmanager
def handle_ending_signals(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Handle the ending signals with `handler`; restore the previous handlers afterwards.

    Ignored signals stay ignored. Outside the main thread no handler is installed.
    """
    previous = {}
    if threading.current_thread() is threading.main_thread():
        previous = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    previous = {n: old for n, old in previous.items() if old not in (signal.SIG_IGN, None)}
    for number in previous:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        from uvloop import new_event_loop
    except ImportError:  # not available on every platform; asyncio's loop is only slower
        return asyncio.new_event_loop()
    return new_event_loop()
