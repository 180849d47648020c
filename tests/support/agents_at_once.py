"""Agents of one process with sessions of their own, recorded and replayed in random orders.

Each says what others say too, so that only the session tells them apart.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from replay.matching.index import RecordingIndex
from traces.model import Chunk, Exchange, Request, Response

URL = "http://m/v1/chat/completions"
TEXTS = ("go", "on", "more", "stop")


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of an agent, and its place in time."""

    agent: int
    text: str
    started: float
    lasts: float


def draw_turns(chance: Random) -> list[Turn]:
    """Draw two to four agents with one to four turns each, by start time."""
    turns = list[Turn]()
    for agent in range(chance.randint(2, 4)):
        at = chance.choice((0.0, chance.random() * 3))
        for _ in range(chance.randint(1, 4)):
            lasts = chance.random()
            turns.append(Turn(agent, chance.choice(TEXTS), at, lasts))
            at += lasts + chance.random()
    return sorted(turns, key=lambda turn: turn.started)


def _request(session: str, turn: Turn) -> Request:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": turn.text}]})
    return Request(method="POST", url=URL, headers=(("x-session-id", session),), body=body.encode())


def _draw_session(chance: Random) -> str:
    digits = f"{chance.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def find_mixed_answers(count: int, seed: int = 1) -> Iterator[str]:
    """Yield a line for each agent that got answers of two, or of another agent's session."""
    for number in range(count):
        chance = Random(seed * 1_000_003 + number)
        turns = draw_turns(chance)
        sessions = [_draw_session(chance) for _ in range(4)]
        texts = [f"{n}" if chance.random() < 0.8 else "same" for n in range(len(turns))]
        made = RecordingIndex(
            Exchange(
                seq=n, request=_request(sessions[turn.agent], turn), started=turn.started,
                response=Response(
                    status=200, at=turn.started, ended=turn.started + turn.lasts,
                    chunks=(Chunk(at=turn.started + turn.lasts, data=texts[n].encode()),),
                ),
            )
            for n, turn in enumerate(turns)
        )  # fmt: skip
        yield from _replay_in_another_order(chance, made, turns, texts)


def _replay_in_another_order(
    chance: Random, made: RecordingIndex, turns: list[Turn], texts: list[str]
) -> Iterator[str]:
    queues = [[turn for turn in turns if turn.agent == agent] for agent in range(4)]
    sessions = [_draw_session(chance) for _ in range(4)]
    got = [set[int]() for _ in queues]
    while any(queues):
        now = chance.choice([n for n, queue in enumerate(queues) if queue])
        match = made.find(_request(sessions[now], queues[now].pop(0)))
        if match is None:
            queues[now] = []  # its run has diverged
        elif texts[match.exchange.seq] != "same":
            got[now].add(turns[match.exchange.seq].agent)
    recurring = {t.agent for t in turns if sum(o.agent == t.agent for o in turns) > 1}
    for now, agents in enumerate(got):
        if len(agents) > 1 and agents & recurring:
            yield f"agent {now} got answers of {agents}: {turns}"
    for agent in recurring:
        if sum(agent in agents for agents in got) > 1:
            yield f"two agents got answers of {agent}: {turns}"
