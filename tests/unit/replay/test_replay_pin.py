"""Pinned results: what a local tool says otherwise in the shared prefix, and nowhere else."""

import json
from collections.abc import Iterator
from copy import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.injector.injector import FaultInjector, RunSeeds
from faults.specs.spec_check import bind_operator
from faults.targeting.bound_fault import BoundFault
from faults.targeting.site import select_site
from replay.fork_state import Fork
from replay.player import PlaybackOptions, TapePlayer
from replay.result_pinning import ResultPinning, find_pinnable_uses
from tests.support.request_readings import read_tool_results
from tests.unit.replay.test_replay_lanes import Talk, call, moved
from traces.conversation.derived_steps import derive_tape_steps
from traces.conversation.tracker import ConversationTap
from traces.dialects import openai_chat
from traces.dialects.types import ToolCall
from traces.model import (
    BodyEdit,
    Exchange,
    Fault,
    Response,
    Trajectory,
    apply_body_edits,
    compose_body_edits,
)
from traces.model import Request as Asked
from traces.store.rows import build_tape_rows
from traces.store.schema import SCHEMAS
from traces.tape.reader import Tape, read_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

NOW, LOOK, SUM = call("c1", "now"), call("c2", "look", at="north"), call("c3", "sum")
CALLS = (NOW, LOOK, SUM)
SAYS = {"c1": "12:00:01", "c2": "lamps 48271", "c3": "48271"}


def work(*says: str) -> Iterator[tuple[Asked, Response]]:
    """(request, answer): a call after the other, with these results in the place of the usual."""
    talk = Talk("sum up")
    for made, said in zip(CALLS, (*says, *list(SAYS.values())[len(says) :]), strict=True):
        yield talk.request(), talk.hears(made)
        talk.tells(made, said)
    yield talk.request(), talk.hears(message="done")


def recorded(*says: str) -> Tape:
    exchanges = tuple(
        Exchange(seq=seq, started=float(seq), request=request, response=moved(answer, float(seq)))
        for seq, (request, answer) in enumerate(work(*says))
    )
    run = Trajectory(id="r", recorded_at=0.0)
    return Tape(path=Path("a.tape"), trajectory=run, exchanges=exchanges, spans={})


def forked(
    path: Path, *says: str, at: ToolCall = LOOK, fault: Fault | None = None, pinned: bool = True
) -> tuple[list[Exchange], TapePlayer, ResultPinning]:
    """All exchanges of a fork at a call, in which tools say these things."""
    tape, watch, seqs = recorded(), ConversationTap(), count()
    derived_steps = derive_tape_steps(tape)
    player = TapePlayer(tape, watch, options=PlaybackOptions(fork=Fork(at.id, None, world=False)))
    pin = ResultPinning(derived_steps.tool_uses if pinned else (), player.saved)
    began = Trajectory(id="f", recorded_at=0.0, forked_at=at.id, source="fork")
    said = list[Exchange]()
    with TapeWriter(path, began) as writer:
        taps: list[object] = [pin, watch, player, writer]
        if fault is not None:
            site = select_site(derived_steps, fault, bind_operator(fault))
            injected = FaultInjector(
                (BoundFault(fault=fault, site=site),),
                watch,
                writer.write_injection,
                seeds=RunSeeds(run="f", trace="t"),
            )
            taps.insert(2, injected)
        chain = TapChain(taps)
        for request, answer in work(*says):
            seq = next(seqs)
            x = chain.request(Exchange(seq=seq, request=request, started=float(seq)))
            if x.response is None:
                x = replace(x, response=moved(answer, float(seq)))
            assert x.response is not None
            chain.head(x)
            for chunk in x.response.chunks:
                chain.chunk(x, chunk)
            chain.done(x)
            said.append(x)
            if x.answered_by == "refused":
                break
    return said, player, pin


def results(x: Exchange) -> list[str]:
    """What the model is told."""
    return [result.text for result in read_tool_results(openai_chat, x.forwarded.body)]


def test_a_result_that_drifted_is_told_as_it_was_and_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "f.tape"
    said, player, pin = forked(path, "12:34:56")
    assert [x.answered_by for x in said] == ["recorded", "recorded", "live", "live"]
    assert player.diverged == []
    assert [results(x)[:1] for x in said[1:]] == [["12:00:01"]] * 3, "also where it is live"
    assert [x.pinned for x in said] == [(), ("c1",), ("c1",), ("c1",)]
    assert pin.drift_count == 1

    tape = read_tape(path)
    assert [x.pinned for x in tape.exchanges] == [x.pinned for x in said]
    assert [x.request.body for x in tape.exchanges] == [x.request.body for x in said]
    found = build_tape_rows(tape)
    run = dict(zip(SCHEMAS["trajectories"].names, found["trajectories"][0], strict=True))
    assert run["drifted"] == 1
    calls = {
        call["call_id"]: (call["result"], call["drifted"])
        for row in found["tool_calls"]
        for call in [dict(zip(SCHEMAS["tool_calls"].names, row, strict=True))]
    }
    assert calls["c1"] == ("12:34:56", True), "the row has what the tool really said"
    assert calls["c2"] == ("lamps 48271", False)


def test_unpinned_a_result_that_drifted_has_left_the_recording(tmp_path: Path) -> None:
    said, player, pin = forked(tmp_path / "f.tape", "12:34:56", pinned=False)
    assert [x.answered_by for x in said] == ["recorded", "refused"]
    assert len(player.diverged) == 1
    assert pin.drift_count == 0


def test_what_a_live_model_asked_for_is_never_pinned(tmp_path: Path) -> None:
    """It has the id and the arguments of a recorded call, and is another one all the same."""
    said, player, pin = forked(tmp_path / "f.tape", "12:00:01", "lamps 48271", "99999", at=NOW)
    assert [x.answered_by for x in said] == ["recorded", "live", "live", "live"]
    assert results(said[-1]) == ["12:00:01", "lamps 48271", "99999"]
    assert (pin.drift_count, player.diverged) == (0, [])


@pytest.mark.parametrize("name", ["digit", "sham"])
def test_the_struck_result_is_bent_from_what_was_recorded(tmp_path: Path, name: str) -> None:
    """So all runs of a fork differ by the lie alone, whatever their tools said."""
    fault = Fault(name=name, where={"tool": "look"}, at="model-boundary")
    lies = set()
    for drifted in ("lamps 48271", "lamps 99999"):
        path = tmp_path / f"{drifted}.tape"
        said, player, pin = forked(path, "12:34:56", drifted, fault=fault)
        assert player.diverged == []
        (injection,) = read_tape(path).injections
        assert injection.original == b"lamps 48271"
        assert results(said[2])[0] == "12:00:01"
        lies.add(results(said[2])[1])
        assert results(said[3])[:2] == results(said[2])[:2], "neither is taken back"
        assert pin.drift_count == 1 + (drifted == "lamps 99999")
        assert len(injection.edits) == (name == "digit")
    assert len(lies) == 1
    assert (lies == {"lamps 48271"}) == (name == "sham")


def test_what_does_not_count_in_matching_is_no_drift(tmp_path: Path) -> None:
    """Codex says how long a command took, each time another time."""
    shown = "Chunk ID: {}\nWall time: {} seconds\nProcess exited with code 0\nOutput:\nlamps 1\n"
    prompt = {"type": "message", "role": "user", "content": "go"}
    said = {"type": "function_call", "call_id": "c1", "name": "exec", "arguments": "{}"}

    def told(output: str) -> dict[str, object]:
        return {"type": "function_call_output", "call_id": "c1", "output": output}

    def body(output: str) -> dict[str, object]:
        return {"model": "m", "input": [prompt, said, told(output)]}

    asks = {"model": "m", "input": [prompt]}
    answer = {"id": "r1", "status": "completed", "output": [said], "model": "m"}
    bodies = (json.dumps(asks).encode(), json.dumps(body(shown.format("a1", "0.1"))).encode())
    exchanges = tuple(
        Exchange(
            seq=seq,
            started=float(seq),
            request=Asked(method="POST", url="http://m/v1/responses", body=each),
            response=moved(
                Response(status=200, chunks=Talk("").hears().chunks, ended=0.0), float(seq)
            ),
        )
        for seq, each in enumerate(bodies)
    )
    first = exchanges[0].response
    assert first is not None
    chunk = replace(first.chunks[0], data=json.dumps(answer).encode())
    exchanges = (replace(exchanges[0], response=replace(first, chunks=(chunk,))), exchanges[1])
    tape = Tape(
        path=tmp_path, trajectory=Trajectory(id="r", recorded_at=0.0), exchanges=exchanges, spans={}
    )
    uses = derive_tape_steps(tape).tool_uses
    assert [use.place for use in find_pinnable_uses(uses)] == ["local"]
    for output, drifted in ((shown.format("b2", "0.9"), 0), (shown.format("b2", "0.9") + "x", 1)):
        request = Asked(
            method="POST", url="http://m/v1/responses", body=json.dumps(body(output)).encode()
        )
        pin = ResultPinning(uses, exchanges[:1])
        asked = pin.request(Exchange(seq=9, request=request))
        assert len(asked.pinned) == pin.drift_count == drifted

    twice = body(shown.format("b2", "0.9"))
    twice["input"] = [prompt, said, told("another"), told("of another call with this id")]
    request = Asked(method="POST", url="http://m/v1/responses", body=json.dumps(twice).encode())
    asked = ResultPinning(uses, exchanges[:1]).request(Exchange(seq=9, request=request))
    assert [request.body[edit.start : edit.stop] for edit in asked.edits] == [b'"another"']


def test_a_result_whose_call_cannot_be_told_is_left_alone() -> None:
    """Two calls have one id here, as where a client counts anew in each conversation."""
    uses = derive_tape_steps(recorded()).tool_uses
    again = replace(uses[1], call_id="c1")
    assert {use.call_id for use in find_pinnable_uses((uses[0], again, uses[2]))} == {"c3"}
    assert find_pinnable_uses(replace(use, place="http") for use in uses) == ()


@given(st.data())
def test_edits_of_an_edited_body_are_edits_of_the_body(data: st.DataObject) -> None:
    body = data.draw(st.binary(max_size=30))
    first = data.draw(some_edits(len(body)))
    between = apply_body_edits(body, first)
    then = data.draw(some_edits(len(between)))
    assert apply_body_edits(body, compose_body_edits(first, then, between)) == apply_body_edits(
        between, then
    )


@st.composite
def some_edits(draw: st.DrawFn, length: int) -> tuple[BodyEdit, ...]:
    """Edits in order that do not overlap, and of which no two insert at one place."""
    places = draw(st.lists(st.integers(0, length), unique=True, max_size=6).map(sorted))
    data = st.binary(max_size=5)
    return tuple(
        BodyEdit(start=start, stop=stop, data=draw(data))
        for start, stop in zip(places[::2], places[1::2], strict=False)
    )
