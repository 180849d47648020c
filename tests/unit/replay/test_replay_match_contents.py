"""A player that reads each exchange when it is asked for answers as one that has read all."""

from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.player import TapePlayer
from tests.unit.traces.tape.test_traces_tape_contents import LIES, lied
from traces.conversation.tracker import ConversationTap
from traces.model import Chunk, Exchange, Request, Response, Trajectory
from traces.tape.random_access import LazyExchanges
from traces.tape.reader import Tape, read_tape, read_tape_lazily
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

BODIES = (b'{"id":1}', b'{ "id": 1 }', b'{"id":2}', b"plain", b"")
URLS = ("http://shop/a", "http://shop/b", "http://m/v1/chat/completions")
ENDS = ("whole", "cut", "reset", "open")

asked = st.builds(Request, method=st.just("POST"), url=st.sampled_from(URLS),
                  body=st.sampled_from(BODIES))  # fmt: skip


def recorded(seq: int, request: Request, end: str) -> Exchange:
    """An exchange whose answer nobody else has."""
    at = float(seq)
    answer = Response(
        status=200,
        chunks=(Chunk(at=at, data=b"answer %d" % seq),),
        at=at,
        ended=at if end == "whole" else None,
    )
    return Exchange(
        seq=seq,
        started=at,
        request=request,
        response=None if end == "open" else answer,
        error="reset" if end == "reset" else None,
    )


def sealed(path: Path, *exchanges: Exchange) -> Path:
    with TapeWriter(path, Trajectory(id="rec", recorded_at=0.0), redact=False) as tape:
        for each in exchanges:
            tape.write_exchange(each)
    assert seal_tape(path)
    return path


def played(tape: Tape, asks: list[Request]) -> tuple[list[Exchange], list[str], tuple[int, ...]]:
    """What each ask gets, what is said of the misses, and what nobody asked for."""
    watch = ConversationTap()
    player = TapePlayer(tape, watch)
    taps, seqs = TapChain([watch, player]), count()
    said = []
    for request in asks:
        answered = taps.request(Exchange(seq=next(seqs), request=request, started=100.0))
        taps.done(answered)
        said.append(answered)
    return said, player.diverged, tuple(each.seq for each in player.list_unasked())


@given(
    tape=st.lists(st.tuples(asked, st.sampled_from(ENDS)), max_size=8),
    asks=st.lists(asked, max_size=12),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_both_players_answer_alike(
    tmp_path_factory: pytest.TempPathFactory,
    tape: list[tuple[Request, str]],
    asks: list[Request],
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.tape"
    sealed(path, *(recorded(seq, *each) for seq, each in enumerate(tape)))
    assert isinstance(read_tape_lazily(path).exchanges, LazyExchanges)
    assert played(read_tape_lazily(path), asks) == played(read_tape(path), asks)


@pytest.mark.parametrize("lie", LIES)
def test_contents_that_lie_never_make_a_wrong_match(lie: str, tmp_path: Path) -> None:
    requests = [Request(method="POST", url=f"http://shop/{n}", body=b"{}") for n in range(2)]
    tape = [recorded(seq, request, "whole") for seq, request in enumerate(requests)]
    path = sealed(tmp_path / "a.tape", *tape)
    lied(path, lie)
    with pytest.raises(ValueError, match=f"^{path}: "):
        played(read_tape_lazily(path), requests)


def test_an_exchange_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    requests = [Request(method="POST", url=f"http://shop/{n}", body=b"{}") for n in range(3)]
    tape = [recorded(seq, request, "whole") for seq, request in enumerate(requests)]
    path = sealed(tmp_path / "a.tape", *tape)
    lied(path, "the first two keys")
    watch = ConversationTap()
    taps = TapChain([watch, TapePlayer(read_tape_lazily(path), watch)])

    def ask(number: int) -> Exchange:
        return taps.request(Exchange(seq=number, request=requests[number], started=9.0))

    answer = ask(2).response
    assert answer is not None
    assert answer.body == b"answer 2"
    with pytest.raises(ValueError, match="its contents do not fit exchange 0"):
        ask(1)
