"""What a control learns while rules for an agent's own requests are on trial.

One replay refused these requests, and two answered them alike.
"""

import json
from pathlib import Path

import pytest

from stumble.drift.volatile_rules import learn_beside_background
from traces.model import Chunk, Exchange, Request, Response, Trajectory
from traces.tape.reader import Tape

MODEL = "http://model/v1/chat/completions"
TELEMETRY = "http://telemetry/events"
BACKGROUND = (f"background:POST {TELEMETRY}",)


def exchange(seq: int, url: str, text: str, *, status: int = 200) -> Exchange:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})
    answer = Response(
        status=status, chunks=(Chunk(at=seq + 0.5, data=b"fine"),), at=seq + 0.5, ended=seq + 0.5
    )
    request = Request(
        method="POST", url=url, headers=(("content-type", "application/json"),), body=body.encode()
    )
    return Exchange(
        seq=seq,
        request=request,
        response=answer,
        started=float(seq),
        answered_by="live" if status == 200 else "refused",
    )


def tape(id: str, *exchanges: Exchange) -> Tape:
    parent = None if id == "recording" else "recording"
    run = Trajectory(id=id, recorded_at=0.0, parent=parent)
    return Tape(path=Path(id), trajectory=run, exchanges=exchanges, spans={})


def replay(id: str, text: str, *, telemetry: int) -> Tape:
    """A replay in which telemetry got this status, and the request to the model was refused."""
    return tape(
        id,
        exchange(0, TELEMETRY, f"{id} happened", status=telemetry),
        exchange(1, MODEL, text, status=422),
    )


RECORDING = tape(
    "recording",
    exchange(0, TELEMETRY, "this and that happened"),
    exchange(1, MODEL, "session 3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a, failures: 17"),
)


def learn(*said: str, background: tuple[str, ...] = BACKGROUND) -> list[str]:
    """The kinds of the rules, by what the model was told: refused, answered, answered."""
    refused, one, two = (
        replay(f"{number}", each, telemetry=200 if number else 422)
        for number, each in enumerate(said)
    )
    lesson = learn_beside_background(RECORDING, refused, (one, two), background)
    return sorted(rule.kind for rule in lesson.rules)


def said(id: str, count: object) -> str:
    return f"session {id}-7c1d-4a53-9a64-1f0c2d3e4b5a, failures: {count}"


@pytest.mark.parametrize(
    ("counts", "kinds"),
    [
        ((17, 17, 17), ["uuid"]),
        ((18, 17, 17), []),  # the refusal was counted
        ((17, 18, 18), []),  # the answer was
        ((88, 2, 2), []),  # its length was told
        ((18, 19, 20), ["counter", "uuid"]),
        (("many", "many", "many"), []),
    ],
)
def test_what_differs_with_equal_answers_does_not_come_of_them(
    counts: tuple[object, ...], kinds: list[str]
) -> None:
    ids = ("9d8c7b6a", "0a1b2c3d", "5e6f7a8b")
    assert learn(*map(said, ids, counts)) == kinds


def test_an_id_made_of_the_answer_is_not_learnt() -> None:
    assert learn(*map(said, ("9d8c7b6a", "0a1b2c3d", "0a1b2c3d"), (17, 17, 17))) == []


def test_without_the_rules_the_first_refusal_hides_the_others() -> None:
    told = [said(id, 17) for id in ("9d8c7b6a", "0a1b2c3d", "5e6f7a8b")]
    assert learn(*told, background=()) == []
