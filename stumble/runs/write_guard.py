"""A guard of a recording: nothing outside of the run's copy is changed."""

import asyncio
from copy import replace

from faults.judging.sent_writes import is_outside_write, name_request
from traces.conversation.tracker import ConversationTap
from traces.model import Exchange, Response


class WriteGuard:
    """A tap that stops a run at the first request that may change something outside its copy."""

    def __init__(self, watch: ConversationTap | None = None) -> None:
        self.watch = watch
        self.stopped = asyncio.Event()
        self.refused = ""
        """The refused request, as `POST host/path`; empty if there was none."""

    def request(self, exchange: Exchange) -> Exchange:
        """Refuse a write, and every request after it; let any other pass."""
        call = self.watch.find_context(exchange).call if self.watch else None
        if not self.refused and not is_outside_write(
            exchange, read_only=call.read_only if call else None
        ):
            return exchange
        self.refused = self.refused or name_request(exchange.request)
        self.stopped.set()
        at, length = exchange.started, (("content-length", "0"),)
        answer = Response(status=403, headers=length, at=at, ended=at)
        return replace(exchange, response=answer, answered_by="refused")
