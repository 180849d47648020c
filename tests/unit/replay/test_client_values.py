"""Values that a client chose: one renaming for all requests of a run, and never two as one."""

import json
from collections.abc import Mapping, Sequence
from copy import replace
from itertools import permutations

import pytest

from replay.matching.index import RecordingIndex
from replay.player import TapePlayer
from tests.unit.replay.test_replay_player import Stage, tape
from traces.model import Chunk, Exchange, Request, Response

A, B = "3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a", "9d8c7b6a-5f4e-4d3c-8b2a-190817263545"
X, Y = "0a1b2c3d-4e5f-4a6b-8c7d-9e8f7a6b5c4d", "77e6d5c4-b3a2-4190-8f7e-6d5c4b3a2910"
CHAT = "http://m/v1/chat/completions"


def asked(session: str, text: str = "go") -> Request:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    return Request(method="POST", url=CHAT, headers=(("x-session-id", session),), body=body)


def exchange(
    request: Request, answer: str, started: float = 0.0, ended: float | None = None
) -> Exchange:
    ended = started + 0.5 if ended is None else ended
    chunk = Chunk(at=ended, data=answer.encode())
    response = Response(status=200, chunks=(chunk,), at=started, ended=ended)
    return Exchange(seq=int(started), request=request, response=response, started=started)


def index(*exchanges: Exchange) -> RecordingIndex:
    return RecordingIndex(exchanges)


def seqs(made: RecordingIndex, requests: Sequence[Request]) -> list[int | None]:
    found = [made.find(request) for request in requests]
    return [None if each is None else each.exchange.seq for each in found]


TURNS = [asked(A, "1"), asked(B, "2"), asked(A, "3"), asked(A, "same"), asked(B, "same")]
RECORDED = [exchange(each, f"{n}", float(n)) for n, each in enumerate(TURNS)]


def test_a_session_of_this_run_stands_for_one_recorded_session() -> None:
    made = index(*RECORDED)
    turns = [asked(X, "1"), asked(Y, "2"), asked(Y, "same"), asked(X, "same"), asked(X, "3")]
    assert seqs(made, turns) == [0, 1, 4, 3, 2]
    assert made.values.names == {A: X, B: Y}


@pytest.mark.parametrize(
    ("turns", "answers"),
    [
        ([asked(X, "1"), asked(Y, "3")], [0, None]),
        ([asked(X, "1"), asked(X, "2")], [0, None]),
        ([asked(X, "1"), asked(X, "same"), asked(X, "same")], [0, 3, None]),
        ([asked(X, "1"), asked(B, "3")], [0, None]),
    ],
    ids=["one stands for two", "two stand for one", "none gets the other's", "another recorded"],
)
def test_no_session_stands_for_two(turns: list[Request], answers: list[int | None]) -> None:
    made = index(*RECORDED)
    assert seqs(made, turns) == answers


def test_a_conflict_says_which_value_is_taken() -> None:
    stage = Stage(tape(*RECORDED))
    stage.ask(replace(RECORDED[0], request=asked(X, "1")))
    refused = stage.ask(replace(RECORDED[1], request=asked(X, "2")))
    assert refused.answered_by == "refused"
    assert X in stage.player.diverged[0]
    assert "stands for another value" in stage.player.diverged[0]


def begun_at_once(*answers: str) -> RecordingIndex:
    """Two agents begin with equal requests at once, and each goes on in its own way."""
    firsts = [exchange(asked(id), answers[n], n * 0.1, 3.0) for n, id in enumerate((A, B))]
    firsts = [replace(each, seq=n) for n, each in enumerate(firsts)]
    return index(
        *firsts, exchange(asked(A, "of a"), "a", 4.0), exchange(asked(B, "of b"), "b", 5.0)
    )


def test_of_two_agents_that_begin_at_once_neither_is_guessed() -> None:
    made = begun_at_once("one", "two")
    assert made.find(asked(X)) is None
    assert made.conflict is not None
    assert A in made.conflict
    assert B in made.conflict
    assert [made.find(asked(id)) is not None for id in (B, A)] == [True, True]


@pytest.mark.parametrize("order", list(permutations((X, Y))))
@pytest.mark.parametrize("later", list(permutations(((X, "of a"), (Y, "of b")))))
def test_equal_answers_leave_open_which_agent_is_which(
    order: tuple[str, ...], later: tuple[tuple[str, str], ...]
) -> None:
    made = begun_at_once("same", "same")
    assert None not in seqs(made, [asked(id) for id in order])
    assert None not in seqs(made, [asked(*each) for each in later])
    assert made.values.names == {A: X, B: Y}


def test_agents_one_after_the_other_keep_their_order() -> None:
    made = index(*(exchange(asked(id, t), t, n) for n, (id, t) in enumerate(
        [(A, "go"), (A, "on"), (B, "go"), (B, "on")]
    )))  # fmt: skip
    turns = [asked(X), asked(X, "on"), asked(Y), asked(Y, "on")]
    assert seqs(made, turns) == [0, 1, 2, 3]


def test_ids_of_single_requests_are_of_no_agent() -> None:
    """Polls at once, each with an id of its own, as they always were: by order."""
    polls = [Request(method="GET", url="http://h/", headers=(("x-request-id", i),)) for i in (A, B)]
    made = index(*(exchange(each, f"{n}", n * 0.1, 3.0) for n, each in enumerate(polls)))
    again = [
        replace(each, headers=(("x-request-id", i),)) for each, i in zip(polls, (X, Y), strict=True)
    ]
    assert None not in seqs(made, again)


def test_a_recorded_answer_and_what_repeats_it_have_the_id_of_this_run() -> None:
    url = f"http://h/sessions/{A}/steps"
    started = exchange(asked(A), json.dumps({"next": url, "other": f"x{A}", "text": f"id={A}!"}))
    step = exchange(Request(method="GET", url=url, headers=(("x-tenant", "t"),)), "ok", 1.0)
    stage = Stage(tape(started, step))
    answered = stage.ask(replace(started, request=asked(X)))
    assert answered.response is not None
    document = json.loads(answered.response.body)
    assert document == {
        "next": f"http://h/sessions/{X}/steps",
        "other": f"x{A}",
        "text": f"id={X}!",
    }
    assert answered.renamed == (A, X)
    assert answered.forwarded == answered.request
    there = replace(step.request, url=document["next"])
    assert stage.ask(replace(step, request=there)).answered_by == "recorded"
    assert stage.player.diverged == []


TOOL = "shell"


def shells(*numbers: int, frame: str = "<shellId: {} completed>", role: str = "tool") -> Request:
    """A conversation whose two parallel calls ran in shells of these numbers."""
    return talk([(f"out {n}\n" + frame.format(id)) for n, id in enumerate(numbers)], role)


def talk(results: list[str], role: str = "tool", *more: Mapping[str, object]) -> Request:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": TOOL, "arguments": "{}"}}
        for n in range(len(results))
    ]
    told = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": text}
        if role == "tool"
        else {"role": "user", "content": text}
        for n, text in enumerate(results)
    ]
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": calls}]
    body = json.dumps({"model": "m", "messages": [*messages, *told, *more]}).encode()
    return Request(method="POST", url=CHAT, body=body)


def answer(text: str) -> str:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]})


def test_numbers_of_parallel_shells_may_change_places() -> None:
    call = {"id": "c9", "type": "function", "function": {"name": "read", "arguments": ""}}
    call["function"] = {"name": "read", "arguments": '{"shellId":"2","lines":2}'}
    asks = {"role": "assistant", "tool_calls": [call]}
    said = json.dumps({"choices": [{"message": asks}]})
    reads = {"role": "tool", "tool_call_id": "c9", "content": "<shellId: 2 completed>"}
    recorded = talk(["a <shellId: 2>", "b <shellId: 3>"])
    on = talk(["a <shellId: 2>", "b <shellId: 3>"], "tool", asks, reads)
    stage = Stage(tape(exchange(recorded, said), exchange(on, answer("done"), 1.0)))
    first = stage.ask(replace(RECORDED[0], request=talk(["a <shellId: 3>", "b <shellId: 2>"])))
    assert first.response is not None
    assert first.renamed == ("shellId 2", "shellId 3", "shellId 3", "shellId 2")
    message = json.loads(first.response.body)["choices"][0]["message"]
    arguments = message["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"shellId": "3", "lines": 2}
    reads = {"role": "tool", "tool_call_id": "c9", "content": "<shellId: 3 completed>"}
    request = talk(["a <shellId: 3>", "b <shellId: 2>"], "tool", message, reads)
    assert stage.ask(replace(RECORDED[0], request=request)).answered_by == "recorded"
    assert stage.player.diverged == []


@pytest.mark.parametrize("order", list(permutations((4, 5, 6))))
def test_three_numbers_change_places_in_any_way(order: tuple[int, ...]) -> None:
    made = index(exchange(shells(4, 5, 6), "ok"))
    assert seqs(made, [shells(*order)]) == [0]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (shells(2, 3), shells(3, 4)),
        (shells(2, 3), shells(3, 3)),
        (shells(2, 2), shells(2, 3)),
        (shells(2, 3, frame="user_id: {}"), shells(3, 2, frame="user_id: {}")),
        (shells(2, 3, frame="exit code: {}"), shells(3, 2, frame="exit code: {}")),
        (shells(2, 3, role="user"), shells(3, 2, role="user")),
        (talk(["<shellId: 2> 7", "<shellId: 3> 8"]), talk(["<shellId: 3> 8", "<shellId: 2> 7"])),
        (talk(["taskId: 1 shellId: 2"]), talk(["taskId: 2 shellId: 1"])),
        (talk(["shellId: 1, shellId: 2"]), talk(["shellId: 2, shellId: 1"])),
    ],
    ids=[
        "others", "one number for two", "two for one", "no name of the client's", "exit code",
        "not in results", "the outputs too", "another name", "within one result",
    ],
)  # fmt: skip
def test_other_numbers_count(was: Request, now: Request) -> None:
    made = index(exchange(was, "ok"))
    assert seqs(made, [now]) == [None]
    assert seqs(made, [was]) == [0]


def test_numbers_that_an_answer_gave_count() -> None:
    given = exchange(asked(A, "which?"), '{"sessionId": 2}')
    frame = "sessionId: {}"
    made = index(given, exchange(shells(2, 3, frame=frame), "ok", 1.0))
    assert seqs(made, [shells(3, 2, frame=frame)]) == [None]


def test_the_exact_request_goes_before_one_with_other_places() -> None:
    made = index(exchange(shells(2, 3), "a"), exchange(shells(3, 2), "b", 1.0))
    assert seqs(made, [shells(3, 2), shells(2, 3)]) == [1, 0]
    assert made.values.names == {}


def test_a_renaming_that_is_not_the_only_one_is_refused() -> None:
    """Three shells, recorded by two agents in two orders: a third order fits both."""
    made = index(exchange(shells(1, 2, 3), "a"), exchange(shells(2, 3, 1), "b", 1.0))
    assert seqs(made, [shells(3, 1, 2)]) == [None]
    assert made.conflict == "its numbers of parallel calls fit two requests"


def test_the_players_names_are_those_of_its_run() -> None:
    stages = [Stage(tape(*RECORDED)) for _ in range(2)]
    for stage, id in zip(stages, (X, Y), strict=True):
        stage.ask(replace(RECORDED[0], request=asked(id, "1")))
    players: list[TapePlayer] = [stage.player for stage in stages]
    assert [players[n].matched[0].renamed for n in (0, 1)] == [((A, X),), ((A, Y),)]
