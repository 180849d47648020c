"""The signals that end the program: their handlers, and the exception for them."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end the program."""


class SignalInterrupt(KeyboardInterrupt):
    """A signal ended the program; everything it had started has ended."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


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


@contextmanager
def defer_ending_signals() -> Iterator[Callable[[], None]]:
    """Only note the ending signals, and yield a function that raises SignalInterrupt after one.

    For libraries that call handlers from their own code and do not survive an exception there.
    """
    received: list[int] = []

    def check() -> None:
        if received:
            raise SignalInterrupt(received.pop(0))

    with handle_ending_signals(lambda number, _: received.append(number)):
        yield check
