"""Conversations that the provider keeps: the same as if the agent had sent all of it again."""

import gzip
import json
from collections.abc import Iterator
from copy import replace
from io import BytesIO
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader

from tests.support.request_readings import read_tool_results, replace_call_results
from tests.support.stores.conversation_turns import (
    ORDER,
    RATE,
    UPGRADE,
    URL,
    Play,
    result,
    user,
)
from traces.bodies import websocket
from traces.conversation.classify import classify_request
from traces.conversation.derived_steps import DerivedSteps, derive_steps
from traces.dialects import find_dialect, openai_responses
from traces.dialects.types import ModelAnswer
from traces.model import Chunk, Exchange, Request, Response, apply_body_edits


def job(play: Play) -> DerivedSteps:
    """A task with two calls, the second in the same answer as some words."""
    play.ask(user("refund 7314"), say=ModelAnswer(calls=(ORDER,)))
    play.ask(result("c1", "1250"), say=ModelAnswer(message="and now", calls=(RATE,)))
    play.ask(result("c2", "1.1"), user("hurry"), say=ModelAnswer(message="done"))
    return derive_steps(play.exchanges)


def told(derived_steps: DerivedSteps) -> object:
    """All that a story says but the numbers of its exchanges."""
    steps = [replace(step, seqs=(), at=0.0) for step in derived_steps.steps]
    uses = [replace(use, seqs=(), asked_by=0, result_seq=None) for use in derived_steps.tool_uses]
    models = [placed for placed in derived_steps.contexts.values() if placed.lane is not None]
    return steps, uses, [(p.lane, p.messages, p.prefix) for p in models]


@pytest.mark.parametrize("socket", [True, False], ids=["websocket", "http"])
def test_what_the_provider_kept_is_told_as_if_it_had_been_sent(socket: bool) -> None:
    resent = job(Play(socket=False, whole=True))
    kept = job(Play(socket=socket, whole=False))
    assert told(kept) == told(resent)
    assert [use.result for use in kept.tool_uses] == ["1250", "1.1"]
    assert {step.lane for step in kept.steps} == {0}
    assert [(s.source, s.message) for s in kept.steps][-2:] == [
        ("user", "hurry"),
        ("agent", "done"),
    ]


def test_a_warm_up_is_no_step_and_what_it_handed_over_is_kept() -> None:
    play = Play(socket=True, whole=False)
    play.ask(user("who you are"), generate=False, say=ModelAnswer())
    play.ask(user("refund 7314"), say=ModelAnswer(calls=(ORDER,)))
    play.ask(result("c1", "1250"), say=ModelAnswer(message="done"))
    found = derive_steps(play.exchanges)
    assert [(step.source, step.message) for step in found.steps] == [
        ("system", "be brief"),
        ("user", "who you are"),
        ("user", "refund 7314"),
        ("agent", ""),
        ("agent", "done"),
    ]
    assert [turn.seqs for turn in found.agent_steps] == [(2,), (3,)]
    assert len(found.contexts[3].messages) == 5
    assert [placed.kind for placed in found.contexts.values()] == ["model"] * 4
    assert found.contexts[0].lane is None


def test_a_warm_up_without_a_word_begins_the_lane_of_who_goes_on_from_it() -> None:
    play = Play(socket=True, whole=False)
    play.ask(generate=False, instructions=None, say=ModelAnswer())
    play.ask(user("refund 7314"), say=ModelAnswer(message="done"))
    found = derive_steps(play.exchanges)
    assert [(step.source, step.lane) for step in found.steps] == [
        ("system", 0),
        ("user", 0),
        ("agent", 0),
    ]


def test_an_answer_that_was_never_seen_is_named_and_not_guessed() -> None:
    play = Play(socket=True, whole=False)
    play._previous = "resp_before"
    play.ask(result("c0", "42"), say=ModelAnswer(message="so it is 42"))
    play.ask(user("and?"), say=ModelAnswer(message="that is all"))
    found = derive_steps(play.exchanges)
    first, second = (found.contexts[seq] for seq in (1, 2))
    assert (first.missing, second.missing) == ("resp_before", None)
    assert [message.role for message in second.messages] == ["system", "tool", "assistant", "user"]
    assert [turn.missing for turn in found.agent_steps] == ["resp_before", None]


def test_an_answer_that_broke_off_is_nothing_to_go_on_from() -> None:
    play = Play(socket=True, whole=False)
    play.ask(user("go"), say=ModelAnswer(message="a long word that breaks off"))
    cut = play.exchanges[-1]
    assert cut.response is not None
    half = replace(cut.response, chunks=cut.response.chunks[:-3], ended=None)
    play.exchanges[-1] = replace(cut, response=half, error="reset: by the server")
    play.ask(user("go on"))
    assert derive_steps(play.exchanges).contexts[2].missing == "resp_0"


def test_a_turn_goes_on_from_any_answer_and_then_it_is_another_lane() -> None:
    play = Play(socket=True, whole=False)
    root = play.ask(user("go"), say=ModelAnswer(message="which way?"))
    play.ask(user("left"), say=ModelAnswer(message="left it is"))
    play._previous = root
    play.ask(user("right"), say=ModelAnswer(message="right it is"))
    found = derive_steps(play.exchanges)
    assert [step.lane for step in found.agent_steps] == [0, 0, 1]
    said = [message.content for message in found.contexts[3].messages]
    assert said == ["be brief", "go", "which way?", "right"]


def test_who_asks_again_after_an_error_makes_another_attempt() -> None:
    """A real agent sends everything again where its provider has lost the answer before."""
    play = Play(socket=True, whole=False)
    play.ask(user("go"), say=ModelAnswer(calls=(ORDER,)))
    again = result("c1", "1250")
    play.error(
        {"instructions": "be brief", "previous_response_id": "resp_0", "input": [again]},
        {"status": 400, "error": {"code": "previous_response_not_found"}},
    )
    play._previous = None
    play.ask(again, say=ModelAnswer(message="done"))
    found = derive_steps(play.exchanges)
    assert found.contexts[3].attempt_of == 2
    assert found.agent_steps[-1].seqs == (2, 3)
    assert {step.lane for step in found.steps} == {0}


def test_an_id_that_comes_again_is_another_call_here_too() -> None:
    play = Play(socket=True, whole=False)
    play.ask(user("go"), say=ModelAnswer(calls=(ORDER,)))
    play.ask(result("c1", "first"), say=ModelAnswer(calls=(ORDER,)))
    play.ask(result("c1", "second"), say=ModelAnswer(message="done"))
    uses = derive_steps(play.exchanges).tool_uses
    assert [(use.call_id, use.result) for use in uses] == [("c1", "first"), ("c1#2", "second")]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (UPGRADE, "model"),
        (Request(method="TEXT", url=URL, body=b'{"type":"response.create","input":[]}'), "model"),
        (Request(method="TEXT", url=URL, body=b'{"type":"response.processed"}'), "model"),
        (replace(UPGRADE, url="http://h/ticks"), "tool"),
        (Request(method="TEXT", url="http://h/ticks", body=b"{}"), "tool"),
        (replace(UPGRADE, headers=()), "tool"),
    ],
)
def test_what_kind_a_turn_is(request_: Request, expected: str) -> None:
    assert classify_request(request_) == expected


texts = st.text(st.characters(codec="utf-8"), max_size=80)


@pytest.mark.gate
@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), texts, st.booleans())
def test_law_on_turns(said: list[str], now: str, ascii: bool) -> None:
    """A result put in place of itself changes no byte; another one changes nothing else."""
    items = [result(f"c{n}", text) for n, text in enumerate(said)]
    turn = {"type": "response.create", "previous_response_id": "r", "input": items, "n": 10**22}
    body = json.dumps(turn, ensure_ascii=ascii).encode()
    dialect = find_dialect(Request(method="TEXT", url=URL, body=body))
    assert dialect is openai_responses
    found = read_tool_results(dialect, body)
    assert [each.text for each in found] == said
    for each in found:
        assert replace_call_results(dialect, body, each.call_id, each.text) == ()
    after = apply_body_edits(body, replace_call_results(dialect, body, "c0", now))
    assert [each.text for each in read_tool_results(dialect, after)] == [now, *said[1:]]
    assert json.loads(after) == {**turn, "input": [result("c0", now), *items[1:]]}


@settings(deadline=None)
@given(texts, st.sampled_from(["completed", "max_output_tokens"]))
def test_what_is_written_as_messages_reads_back(text: str, finish: str) -> None:
    answer = ModelAnswer(message=text, calls=(ORDER,), model="m", finish=finish)
    chunks = openai_responses.write_websocket_turn(answer, id="resp_1", created=1)
    assert all(json.loads(chunk.data)["type"] for chunk in chunks)
    read = openai_responses.parse_model_answer((), b"".join(chunk.data for chunk in chunks))
    assert read == answer
    assert read.id == "resp_1"
    assert [openai_responses.is_final_event(chunk.data) for chunk in chunks].index(True) == len(
        chunks
    ) - 1


def recorded(shared: Path) -> Iterator[Exchange]:
    """What real Codex did over its WebSocket, as our recorder writes it."""
    file = BytesIO(gzip.decompress((shared / "flows/codex.fwd.websocket.mitm.gz").read_bytes()))
    flow = next(
        flow
        for flow in FlowReader(file).stream()
        if isinstance(flow, HTTPFlow) and flow.websocket is not None
    )
    assert flow.websocket is not None
    began = flow.request.timestamp_start
    seqs = count()
    turn = Exchange(
        seq=next(seqs),
        request=replace(UPGRADE, url=flow.request.url),
        response=Response(status=101, at=0.0, ended=0.0),
        transport="websocket",
    )
    for message in flow.websocket.messages:
        at = message.timestamp - began
        answer = turn.response
        if message.from_client:
            yield turn
            request = Request(method="TEXT", url=flow.request.url, body=message.content)
            turn = Exchange(seq=next(seqs), request=request, started=at, transport="websocket")
            continue
        answer = answer or Response(status=101, at=at)
        chunks = (*answer.chunks, Chunk(at=at, data=message.content))
        turn = replace(turn, response=replace(answer, chunks=chunks, ended=at))
    yield turn


def test_what_real_codex_did_is_told(shared: Path) -> None:
    exchanges = tuple(recorded(shared))
    assert len(exchanges) == 5
    found = derive_steps(exchanges)
    assert {step.lane for step in found.steps} == {0}
    assert [step.source for step in found.steps] == [
        *("system", "system", "user", "user"),
        *("agent", "agent", "agent"),
    ]
    assert [turn.message for turn in found.agent_steps] == [
        "I will run a command.",
        "Now a second command.",
        "FINAL saw SECOND_REAL_42",
    ]
    assert [(use.tool, use.place) for use in found.tool_uses] == [("exec_command", "local")] * 2
    assert ["REAL_42" in (use.result or "") for use in found.tool_uses] == [True, True]
    assert [placed.missing for placed in found.contexts.values()] == [None] * 5
    for exchange in exchanges[1:]:
        body = exchange.request.body
        for each in read_tool_results(openai_responses, body):
            assert replace_call_results(openai_responses, body, each.call_id, each.text) == ()


def test_which_messages_are_binary_and_how_it_was_closed_come_back() -> None:
    chunks = tuple(Chunk(at=0, data=b"") for _ in range(4))
    kinds = (True, True, False, True)
    answer = Response(
        status=101,
        headers=websocket.make_websocket_headers(kinds[0]),
        chunks=chunks,
        trailers=websocket.make_websocket_trailers(kinds, (1011, "zu spät")),
    )
    assert websocket.read_binary_flags(answer) == kinds
    assert websocket.read_websocket_close(answer) == (1011, "zu spät")
    assert websocket.read_websocket_close(Response(status=101)) is None
