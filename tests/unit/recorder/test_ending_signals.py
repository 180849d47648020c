"""Signals that end the program while a library does not survive an exception."""

import os
import signal

import pytest

from recorder.ending_signals import SignalInterrupt, defer_ending_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_deferred_signal_is_raised_at_the_next_check_and_once(number: int) -> None:
    handler = signal.getsignal(number)
    with defer_ending_signals() as check:
        check()
        os.kill(os.getpid(), number)
        with pytest.raises(SignalInterrupt) as raised:
            check()
        assert raised.value.number == number
        check()
    assert signal.getsignal(number) == handler
