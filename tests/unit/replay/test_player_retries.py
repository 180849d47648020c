"""Once a fault was injected, what the client tries again is the fork's, and no divergence."""

from copy import replace
from itertools import count

import pytest

from replay.fork_state import Fork
from replay.player import PlaybackOptions, TapePlayer
from tests.support.stores.scripted_runs import (
    FAILED,
    ORDER,
    Telling,
)
from traces.conversation.tracker import ConversationTap
from traces.model import Chunk, Exchange, Request, Response
from traces.taps import TapChain

RUN = Telling().calls(ORDER).calls(ORDER).says("DONE: refunded").over()
"""Model, tool, model, tool, model; the tool is asked by POST."""
MODEL, TOOL = (RUN.tape.exchanges[n].request for n in (0, 1))
ANSWER = RUN.tape.exchanges[1].response
GATEWAY = Response(status=504, chunks=(Chunk(at=0.0, data=FAILED.encode()),), ended=0.0)


class Client:
    """The agent's client; `struck` is the request whose answer a fault replaces."""

    def __init__(self, *, world: bool, at_once: bool = False) -> None:
        use = RUN.story.find_use("c1")
        assert use is not None
        self.struck, self.at_once = -1, at_once
        self.watch = ConversationTap()
        self.player = TapePlayer(
            RUN.tape, self.watch, options=PlaybackOptions(fork=Fork("c1", use.prefix, world=world))
        )
        self.taps, self.seqs = TapChain([self.watch, self, self.player]), count()

    def request(self, exchange: Exchange) -> Exchange:
        """As the injector does: an answer that replaces the tool's without asking it."""
        return self._bent(exchange) if self.at_once and exchange.seq == self.struck else exchange

    def holds(self, exchange: Exchange) -> bool:
        return exchange.seq == self.struck

    def response(self, exchange: Exchange) -> Exchange:
        return self._bent(exchange)

    def _bent(self, exchange: Exchange) -> Exchange:
        return replace(exchange, response=GATEWAY, answered_by="fault")

    def ask(
        self, request: Request, answer: Response | None = ANSWER, *, over: bool = True
    ) -> Exchange:
        """The exchange as the client got it; a client that left before the end is not `over`."""
        seq = next(self.seqs)
        x = self.taps.request(Exchange(seq=seq, request=request, started=float(seq)))
        if x.response is None:
            x = replace(x, response=answer)
        if x.answered_by != "fault" and self.taps.holds(x):
            x = self.taps.response(x)
        if over:
            self.taps.done(x)
        return x


@pytest.mark.parametrize("over", [True, False], ids=["failed", "still waiting"])
def test_a_retry_in_a_world_is_live(over: bool) -> None:
    client = Client(world=True)
    client.ask(MODEL)
    client.struck = 1
    assert client.ask(TOOL, over=over).answered_by == "fault"
    # The recording holds this request twice, of which the struck one is the first.
    assert [client.ask(TOOL).answered_by for _ in range(2)] == ["live"] * 2
    assert client.player.diverged == []


def test_another_request_of_a_client_that_handles_the_fault_is_live_too() -> None:
    """It asks for the state of what it did, or tries with another key."""
    client = Client(world=True)
    client.ask(MODEL)
    client.struck = 1
    client.ask(TOOL)
    status = Request(method="GET", url="http://shop/refunds/last")
    assert client.ask(status).answered_by == "live"
    assert client.player.diverged == []


def test_a_world_that_answers_otherwise_after_the_fault_has_not_left_the_recording() -> None:
    client = Client(world=True)
    client.ask(MODEL)
    client.struck = 1
    client.ask(TOOL)
    assert client.ask(TOOL, replace(GATEWAY, status=200)).answered_by == "live"
    assert client.player.diverged == []


def test_a_strict_replay_with_a_fault_is_no_fork_and_forgives_nothing() -> None:
    client = Client(world=False)
    client.player = TapePlayer(RUN.tape, client.watch)
    client.taps = TapChain([client.watch, client, client.player])
    client.ask(MODEL)
    client.struck = 1
    for _ in range(3):
        client.ask(TOOL)
    assert (len(client.player.diverged), client.player.missed) == (1, [])


def test_before_the_fault_what_is_asked_too_often_has_left_the_recording() -> None:
    client = Client(world=True)
    client.ask(MODEL)
    for _ in range(3):
        client.ask(TOOL)
    assert len(client.player.diverged) == 1


def test_without_a_world_a_write_that_the_tape_does_not_hold_again_is_unknown() -> None:
    client = Client(world=False)
    client.ask(MODEL)
    client.struck = 1
    client.ask(TOOL)
    client.ask(TOOL)
    last = client.ask(TOOL)
    assert last.answered_by == "refused"
    assert (client.player.diverged, len(client.player.missed)) == ([], 1)


def test_without_a_world_a_read_is_answered_again_with_what_the_fault_kept_from_it() -> None:
    client = Client(world=False)
    read = Request(method="GET", url="http://shop/get_order")
    client.player = TapePlayer(
        replace(
            RUN.tape,
            exchanges=tuple(
                replace(x, request=read) if x.request == TOOL else x for x in RUN.tape.exchanges
            ),
        ),
        client.watch,
        options=PlaybackOptions(fork=Fork("c1", None, world=False)),
    )
    client.taps = TapChain([client.watch, client, client.player])
    client.ask(MODEL)
    client.struck = 1
    assert [client.ask(read).answered_by for _ in range(4)] == ["fault", *["recorded"] * 3]
    assert (client.player.diverged, client.player.missed) == ([], [])


def test_a_fault_that_asked_no_tool_leaves_the_tools_answer_to_the_retry() -> None:
    client = Client(world=False, at_once=True)
    client.ask(MODEL)
    client.struck = 1
    assert client.ask(TOOL).answered_by == "fault"
    assert client.ask(TOOL).answered_by == "recorded"
    assert client.player.diverged == []
