"""The event loop everything runs on."""

import asyncio
from collections.abc import Coroutine


def run[T](main: Coroutine[object, object, T]) -> T:
    """What `main` returns, run on uvloop where it is installed."""
    with asyncio.Runner(loop_factory=_loop) as runner:
        return runner.run(main)


def _loop() -> asyncio.AbstractEventLoop:
    try:
        from uvloop import new_event_loop
    except ImportError:  # not to be had on every platform; only slower without
        return asyncio.new_event_loop()
    return new_event_loop()
