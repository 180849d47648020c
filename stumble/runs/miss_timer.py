"""End a replay some seconds after a request that the recording cannot answer.

An agent may repeat such a request for minutes, while nothing more can be learnt from it. One that
goes on with requests that are recorded is not ended.
"""

import asyncio
from collections.abc import Callable

from traces.model import Exchange


class MissTimer:
    """A tap behind the player: starts at a refusal, stops at the next answer of the tape."""

    def __init__(self, seconds: float, halt: Callable[[], object]) -> None:
        self._seconds, self._halt = seconds, halt
        self._timer: asyncio.TimerHandle | None = None

    def request(self, exchange: Exchange) -> Exchange:
        """Start or stop the timer, and return the exchange unchanged."""
        if exchange.answered_by == "refused" and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._halt)
        elif exchange.answered_by == "recorded" and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return exchange
