"""A fork leaves the recording at the request with the struck result: not before, not after."""

import json
from itertools import count

import pytest

from replay.fork_state import Fork
from replay.player import PlaybackOptions, TapePlayer
from tests.support.stores.scripted_runs import (
    ORDER,
    Telling,
)
from traces.conversation.tracker import ConversationTap
from traces.model import Exchange, Request, Response
from traces.taps import TapChain

RUN = Telling().calls(ORDER).calls(ORDER).calls(ORDER).says("DONE: refunded").over()
"""Model, tool, model, tool, model, tool, model."""
RECORDED = RUN.tape.exchanges


class Agent:
    """Asks a player; what goes out is answered as it was recorded, or as it is told."""

    def __init__(self, call: str, *, world: bool = True) -> None:
        use = RUN.story.find_use(call)
        assert use is not None
        watch = ConversationTap()
        self.player = TapePlayer(
            RUN.tape, watch, options=PlaybackOptions(fork=Fork(call, use.prefix, world=world))
        )
        self.taps, self.seqs = TapChain([watch, self.player]), count()

    def ask(self, request: Request, answer: Response | None) -> str:
        """Who answered."""
        seq = next(self.seqs)
        x = self.taps.request(Exchange(seq=seq, request=request, started=float(seq)))
        if x.response is None:
            x = Exchange(
                **{name: getattr(x, name) for name in x.__struct_fields__} | {"response": answer}
            )
        self.taps.done(x)
        return x.answered_by

    def follow(self, upto: int = len(RECORDED)) -> list[str]:
        return [self.ask(x.request, x.response) for x in RECORDED[:upto]]


@pytest.mark.parametrize(("call", "saved"), [("c1", 1), ("c2", 2), ("c3", 3)])
def test_the_model_is_live_from_the_struck_result_on_whatever_it_says(
    call: str, saved: int
) -> None:
    """Nothing differs from the recording here, as for a clean twin."""
    agent = Agent(call)
    models = agent.follow()[::2]
    assert models == ["recorded"] * saved + ["live"] * (4 - saved)
    assert len(agent.player.saved) == saved
    assert agent.player.diverged == []


def test_a_request_without_the_struck_result_stays_on_the_tape() -> None:
    agent = Agent("c1")
    agent.follow(2)
    assert agent.ask(RECORDED[0].request, None) == "refused"
    assert agent.player.went_live == []
    assert len(agent.player.diverged) == 1


def test_what_parts_before_the_fork_is_refused_and_does_not_go_live() -> None:
    agent = Agent("c2")
    agent.follow(1)
    other = {"model": "m", "messages": [{"role": "user", "content": "refund ord-7315"}]}
    request = Request(method="POST", url=RECORDED[0].request.url, body=json.dumps(other).encode())
    assert agent.ask(request, None) == "refused"
    assert agent.player.went_live == []
    assert len(agent.player.diverged) == 1


def test_a_world_that_answers_otherwise_before_the_fork_is_named() -> None:
    agent, used = Agent("c2"), Telling().calls('{"id": "ord-7314", "total": 0}').exchanges
    agent.follow(1)
    assert agent.ask(RECORDED[1].request, used[1].response) == "live"
    (why,) = agent.player.diverged
    assert "total" in why
    assert "1250.4" in why
