"""A program without a model: each of its requests to a tool is a call, and a step."""

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from traces.conversation.derived_steps import derive_steps
from traces.conversation.program_calls import to_program_call
from traces.conversation.tracker import ConversationTap
from traces.model import Chunk, Exchange, Request, Response, RunEnding

PARTS = st.text("abxyz-", min_size=1, max_size=4)
IDS = st.text("abxyz", max_size=3).map(lambda text: f"{text}7")


def make_exchange(seq: int, url: str, method: str = "GET", body: bytes = b"") -> Exchange:
    at = float(seq)
    answer = Response(
        status=200,
        headers=(("content-type", "text/plain"),),
        chunks=(Chunk(at=at + 0.5, data=b"answer %d" % seq),),
        at=at + 0.5,
        ended=at + 0.5,
    )
    request = Request(method=method, url=url, headers=(), body=body)
    return Exchange(seq=seq, connection=0, request=request, response=answer, started=at)


@given(st.lists(st.tuples(st.sampled_from(["GET", "POST", "DELETE"]), PARTS), max_size=6))
def test_a_live_tap_numbers_calls_as_the_reading_does(sent: list[tuple[str, str]]) -> None:
    tape = [make_exchange(n, f"http://h/{path}", how) for n, (how, path) in enumerate(sent)]
    tap, live = ConversationTap(None, tape), list[str]()
    for exchange in tape:
        tap.request(exchange)
        call = tap.find_context(exchange).call
        assert call is not None
        live.append(call.id)
        tap.done(exchange)
    read = derive_steps(tape, ending=RunEnding(ended="final", printed="the end"))
    assert [use.call_id for use in read.tool_uses] == live
    assert [use.result for use in read.tool_uses] == [f"answer {n}" for n in range(len(tape))]
    assert all(use.is_of_program and use.has_strong_join for use in read.tool_uses)
    messages = [step.message for step in read.steps]
    assert messages == ([""] * len(tape) + ["the end"] if tape else [])


@given(PARTS, IDS, IDS)
def test_two_ids_in_a_path_are_one_tool_with_two_arguments(part: str, one: str, two: str) -> None:
    calls = [
        to_program_call(Request(method="GET", url=f"http://h/v1/{part}/{id}", headers=()), {})
        for id in (one, two)
    ]
    assert {call.name for call in calls} == {f"GET /v1/{part}/*"}
    assert (calls[0].arguments == calls[1].arguments) == (one == two)


@given(st.dictionaries(PARTS, PARTS, min_size=1, max_size=3))
def test_a_query_a_form_and_json_give_the_same_arguments(fields: dict[str, str]) -> None:
    form = "&".join(f"{name}={quote(value)}" for name, value in fields.items())
    json = "{" + ",".join(f'"{name}":"{value}"' for name, value in fields.items()) + "}"
    asked = to_program_call(Request(method="GET", url=f"http://h/p?{form}", headers=()), {})
    for body in (form, json):
        request = Request(method="POST", url="http://h/p", headers=(), body=body.encode())
        assert to_program_call(request, {}).arguments == asked.arguments


def test_a_declared_route_names_the_call() -> None:
    request = Request(method="POST", url="http://h/v1/refunds", headers=())
    assert to_program_call(request, {"issue_refund": "POST */refunds"}).name == "issue_refund"


def test_a_tape_with_a_model_has_no_calls_of_its_program() -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'
    asked = make_exchange(1, "http://h/v1/chat/completions", "POST", body)
    read = derive_steps([make_exchange(0, "http://h/config"), asked])
    assert read.tool_uses == ()
