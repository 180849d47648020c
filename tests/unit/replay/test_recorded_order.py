"""The answer to a helper comes when it came: after what its agent had done beside it."""

from collections.abc import Iterator
from copy import replace
from dataclasses import dataclass
from random import Random

import pytest

from replay.recorded_order import MAX_GAP, MAX_HELD_SECONDS, RecordedOrder
from tests.support.tiers import examples
from traces.model import Chunk, Exchange, Request, Response


def exchange(started: float, *chunks: float, seq: int = 0) -> Exchange:
    request = Request(method="POST", url="http://m/v1/chat/completions")
    made = tuple(Chunk(at=at, data=b"x") for at in chunks)
    answer = Response(status=200, chunks=made, at=chunks[0], ended=chunks[-1])
    return Exchange(seq=seq, request=request, response=answer, started=started)


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def order(
    *exchanges: Exchange, lacks: frozenset[int] = frozenset(), last: frozenset[int] = frozenset()
) -> tuple[RecordedOrder, Clock]:
    clock, placed = Clock(), [replace(each, seq=n) for n, each in enumerate(exchanges)]
    made = RecordedOrder(
        placed, lambda each: each.seq in lacks, lambda each: each.seq in last, clock
    )
    return made, clock


HELPER, MAIN, LATER = exchange(1, 5.0), exchange(2, 3.0), exchange(4, 4.5)


def test_a_sequential_agent_never_waits() -> None:
    made, _ = order(exchange(0, 1.0), exchange(1, 2.0), exchange(3, 4.0))
    for place in range(3):
        made.begin(place, place)
        assert made.is_due(place, 0)
        made.end(place)


def test_a_helpers_answer_waits_for_what_came_before_it() -> None:
    made, clock = order(HELPER, MAIN, LATER)
    made.begin(0, 0)
    made.begin(1, 1)
    assert made.is_due(1, 0), "the other answer had come at once"
    made.end(1)
    clock.now += 1
    assert not made.is_due(0, 0), "a request that was made before is missing"
    made.begin(2, 2)
    clock.now += 1
    assert not made.is_due(0, 0), "its answer had ended before as well"
    made.end(2)
    assert not made.is_due(0, 0), "and the agent has to take it in"
    clock.now += 1.01 * MAX_GAP
    assert made.is_due(0, 0)


def test_a_chunk_waits_for_what_came_before_that_chunk() -> None:
    made, clock = order(exchange(1, 1.5, 5.0), MAIN)
    made.begin(0, 0)
    assert made.is_due(0, 0)
    assert not made.is_due(0, 1)
    made.begin(1, 1)
    made.end(1)
    clock.now += 1
    assert made.is_due(0, 1)


def test_the_last_answer_of_a_helper_comes_as_long_after_the_other_as_it_did() -> None:
    made, clock = order(HELPER, MAIN, last=frozenset((0,)))
    made.begin(0, 0)
    made.begin(1, 1)
    made.end(1)
    clock.now += 1.9
    assert not made.is_due(0, 0), "its agent was at work for two seconds by then"
    clock.now += 0.11
    assert made.is_due(0, 0)


def test_an_earlier_answer_comes_first() -> None:
    made, clock = order(exchange(1, 3.0), exchange(2, 4.0))
    made.begin(0, 0)
    made.begin(1, 1)
    clock.now += 1
    assert made.is_due(0, 0)
    assert not made.is_due(1, 0)
    made.end(0)
    clock.now += 1
    assert made.is_due(1, 0)


def test_an_agent_in_another_order_waits_once_and_never_again() -> None:
    made, clock = order(HELPER, MAIN, LATER)
    made.begin(0, 0)
    clock.now += MAX_HELD_SECONDS
    assert not made.is_due(0, 0)
    clock.now += 3 * 4 + 0.1
    assert made.is_due(0, 0)
    assert made.is_lost
    made.begin(1, 1)
    assert made.is_due(1, 0)


def test_nothing_waits_for_what_an_agent_may_leave_out() -> None:
    made, _ = order(HELPER, MAIN, LATER, lacks=frozenset((1, 2)))
    made.begin(0, 0)
    assert made.is_due(0, 0)


def draw(chance: Random) -> list[Exchange]:
    """Exchanges of some agents, each of which goes on when its answer is there."""
    found = list[Exchange]()
    for _ in range(chance.randint(1, 4)):
        at = chance.random()
        for _ in range(chance.randint(1, 5)):
            times = sorted(at + 0.01 + chance.random() for _ in range(chance.randint(1, 3)))
            found.append(exchange(at, *times))
            at = times[-1] + 0.01 + chance.random()
    return sorted(found, key=lambda each: each.started)


def follow(made: RecordedOrder, clock: Clock, chance: Random) -> Iterator[tuple[str, int, int]]:
    """Yield the events of a run that does as recorded, with other delays of its own."""
    recorded, sent = made.exchanges, dict[int, int]()
    causes = {
        n: max((m for m, x in enumerate(recorded) if _end(x) < own.started), key=lambda m:
               _end(recorded[m]), default=None)
        for n, own in enumerate(recorded)
    }  # fmt: skip
    for _ in range(100_000):
        clock.now += chance.random() * 0.05
        done = {n for n, count in sent.items() if count == _count(recorded[n])}
        if len(done) == len(recorded):
            return
        for n in range(len(recorded)):
            if n not in sent and (causes[n] is None or causes[n] in done) and chance.random() < 0.3:
                made.begin(n, n)
                sent[n] = 0
                yield "asked", n, 0
            elif n in sent and n not in done and made.is_due(n, sent[n]):
                yield "chunk", n, sent[n]
                sent[n] += 1
                if sent[n] == _count(recorded[n]):
                    made.end(n)
    raise AssertionError("it waits for ever")


def _end(one: Exchange) -> float:
    assert one.response is not None
    return one.response.chunks[-1].at


def _count(one: Exchange) -> int:
    assert one.response is not None
    return len(one.response.chunks)


@pytest.mark.parametrize("seed", range(examples(200)))
def test_no_chunk_comes_before_what_came_before_it_and_none_waits_for_ever(seed: int) -> None:
    chance = Random(seed)
    made, clock = order(*draw(chance))
    asked = set[int]()
    for event, n, number in follow(made, clock, chance):
        assert not made.is_lost
        if event == "asked":
            asked.add(n)
            continue
        answer = made.exchanges[n].response
        assert answer is not None
        at = answer.chunks[number].at
        assert {m for m, x in enumerate(made.exchanges) if m > n and x.started < at} <= asked
