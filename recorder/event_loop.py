"""The asyncio event loop, and its cancellation by signals."""

import asyncio
from collections.abc import Coroutine
from types import FrameType

from recorder.ending_signals import SignalInterrupt, handle_ending_signals


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


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        from uvloop import new_event_loop
    except ImportError:  # not available on every platform; asyncio's loop is only slower
        return asyncio.new_event_loop()
    return new_event_loop()
