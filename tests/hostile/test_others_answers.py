"""Clients that try to get an answer that was recorded for somebody else: none does.

Each pair is what one client sent when it was recorded, and what another sends now.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from replay.matching.rules import MatchRules, parse_match_rule
from tests.support.strict_replay import StrictReplay, asked, recorded
from traces.model import Headers, Request

A, B = "3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a", "9d8c7b6a-5f4e-4d3c-8b2a-190817263545"
X, Y = "0a1b2c3d-4e5f-4a6b-8c7d-9e8f7a6b5c4d", "77e6d5c4-b3a2-4190-8f7e-6d5c4b3a2910"
SHOP, CHAT = "http://shop", "http://m/v1/chat/completions"


def post(path: str, body: object, **fields: str) -> Request:
    headers: Headers = (("content-type", "application/json"),)
    return asked("POST", f"{SHOP}{path}", json.dumps(body), headers, **fields)


def get(path: str, **fields: str) -> Request:
    return asked("GET", f"{SHOP}{path}", b"", (), **fields)


def talk(*texts: str, session: str = "", results: Sequence[str] = ()) -> Request:
    """A model request with these user messages, and then results of parallel calls."""
    messages: list[dict[str, object]] = [{"role": "user", "content": text} for text in texts]
    calls = [{"id": f"c{n}", "function": {"name": "sh"}} for n in range(len(results))]
    messages += [{"role": "assistant", "tool_calls": calls}] if calls else []
    messages += [
        {"role": "tool", "tool_call_id": f"c{n}", "content": text} for n, text in enumerate(results)
    ]
    fields = {"x_session_id": session} if session else {}
    return asked("POST", CHAT, json.dumps({"model": "m", "messages": messages}), (), **fields)


type Attack = tuple[list[Request], list[Request], list[int | None]]
"""Recorded requests, those of another client, and the only answers that it may get."""

ATTACKS: dict[str, Attack] = {
    "two users in the other order": (
        [get("/me", cookie="user=ann"), get("/me", cookie="user=bob")],
        [get("/me", cookie="user=bob"), get("/me", cookie="user=ann"), get("/me")],
        [1, 0, None],
    ),
    "a transfer the other way": (
        [get(f"/of/{A}", x_session_id=A), get(f"/of/{B}", x_session_id=B),
         post("/pay", {"from": A, "to": B}, x_session_id=A)],
        [get(f"/of/{A}", x_session_id=A), get(f"/of/{B}", x_session_id=B),
         post("/pay", {"from": B, "to": A}, x_session_id=A)],
        [0, 1, None],
    ),
    "ids of this run in the other roles": (
        [talk("ann", session=A), talk("bob", session=B), post("/pay", {"from": A, "to": B})],
        [talk("ann", session=X), talk("bob", session=Y), post("/pay", {"from": Y, "to": X}),
         post("/pay", {"from": X, "to": Y})],
        [0, 1, None, 2],
    ),
    "a retry with another login": (
        [get("/me", authorization="Bearer of-ann-00000001"),
         get("/me", authorization="Bearer of-bob-00000002")],
        [get("/me", authorization="Bearer of-bob-00000002"),
         get("/me", authorization="Bearer of-eve-00000003")],
        [1, None],
    ),
    "a retry with no login": (
        [get("/me", authorization="Bearer of-ann-00000001")], [get("/me")], [None]
    ),
    "a session that carries a tenant": (
        [talk("go", session=f"ann.{A}")],
        [talk("go", session=f"bob.{X}"), talk("go", session=X), talk("go", session=f"ann.{X}.bob")],
        [None, None, None],
    ),
    "a session of one with the words of the other": (
        [talk("ann", session=A), talk("bob", session=B), talk("ann", "more", session=A),
         talk("bob", "more", session=B)],
        [talk("ann", session=X), talk("bob", "more", session=X), talk("bob", session=X)],
        [0, None, None],
    ),
    "one session for two agents": (
        [talk("go", session=A), talk("go", session=B), talk("end", session=A)],
        [talk("go", session=X), talk("go", session=X)],
        [0, None],
    ),
    "outputs of parallel shells changed places": (
        [talk("go", results=["ann <shellId: 1>", "bob <shellId: 2>"])],
        [talk("go", results=["bob <shellId: 2>", "ann <shellId: 1>"]),
         talk("go", results=["bob <shellId: 1>", "ann <shellId: 2>"])],
        [None, None],
    ),
    "the user's words with a shell's number": (
        [talk("kill taskId: 1, keep taskId: 2", results=["a", "b"])],
        [talk("kill taskId: 2, keep taskId: 1", results=["a", "b"])],
        [None],
    ),
    "an order of parallel results by their numbers": (
        [talk("go", results=["jobId: 1 paid", "jobId: 2 open"])],
        [talk("go", results=["jobId: 2 open", "jobId: 1 paid"])],
        [None],
    ),
    "an id in other letters": (
        [talk("ann", session=A), post("/pay", {"from": A})],
        [talk("ann", session=X), post("/pay", {"from": X.upper()}), post("/pay", {"from": X})],
        [0, None, 1],
    ),
    "half an id": (
        [talk("ann", session=A), post("/pay", {"from": A[:23]})],
        [talk("ann", session=X), post("/pay", {"from": X[:23]})],
        [0, None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_nobody_gets_an_answer_that_was_recorded_for_somebody_else(
    name: str, tmp_path: Path
) -> None:
    requests, others, answers = ATTACKS[name]
    replay = StrictReplay(recorded(tmp_path / "a.tape", requests))
    assert [replay.ask(each) for each in others] == answers
    again = StrictReplay(recorded(tmp_path / "b.tape", requests))
    assert [again.ask(each) for each in requests] == list(range(len(requests)))


def test_a_learnt_id_in_a_body_stands_for_one_agent_too(tmp_path: Path) -> None:
    """Two agents with equal words, and ids in a body that a control replay has found to differ."""
    rules = MatchRules([parse_match_rule("uuid:body.agent")])
    turns = [post("/ask", {"agent": id, "q": q}) for q in ("one", "two") for id in (A, B)]
    now = {(id, q): post("/ask", {"agent": id, "q": q}) for q in ("one", "two") for id in (X, Y)}
    replay = StrictReplay(recorded(tmp_path / "a.tape", turns), rules=rules)
    order = [(X, "one"), (Y, "one"), (Y, "two"), (X, "two")]
    assert [replay.ask(now[each]) for each in order] == [0, 1, 3, 2]
    assert replay.ask(now[X, "two"]) is None
