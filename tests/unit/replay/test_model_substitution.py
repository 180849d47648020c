"""The model's name in live requests, and no other byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.model_substitution import ModelSubstitution, find_model_bound_keys, find_model_name
from traces.model import BodyEdit, Exchange, Request, Response

MESSAGES = [{"role": "user", "content": 'refund "model": "gpt-4" please'}]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def chat(body: bytes, *headers: tuple[str, str], path: str = "/v1/chat/completions") -> Exchange:
    url = f"https://api.example.org{path}"
    request = Request(method="POST", url=url, headers=headers, body=body)
    return Exchange(seq=0, request=request)


@given(extra=st.dictionaries(st.text(), JSON, max_size=4), indent=st.sampled_from([None, 2]))
def test_only_the_name_changes(extra: dict[str, object], indent: int | None) -> None:
    given = {**extra, "model": "gpt-5", "messages": MESSAGES}
    exchange = chat(json.dumps(given, indent=indent).encode())
    sent = ModelSubstitution("gpt-5-mini").request(exchange)
    assert sent.request == exchange.request
    forwarded = sent.forwarded.body
    assert json.loads(forwarded) == {**given, "model": "gpt-5-mini"}
    assert len(forwarded) - len(exchange.request.body) == len("-mini")


def test_edits_of_others_stay() -> None:
    body = json.dumps({"messages": MESSAGES, "model": "gpt-5"}).encode()
    at = body.index(b"refund")
    exchange = chat(body)
    edited = Exchange(
        seq=0, request=exchange.request, edits=(BodyEdit(start=at, stop=at + 6, data=b"REFUND"),)
    )
    sent = ModelSubstitution("o").request(edited).forwarded.body
    assert b'"REFUND' in sent
    assert json.loads(sent)["model"] == "o"


def test_an_answer_of_the_recording_stays_the_recorded_models() -> None:
    body = json.dumps({"model": "gpt-5", "messages": MESSAGES}).encode()
    answered = Exchange(seq=0, request=chat(body).request, response=Response(status=200))
    assert ModelSubstitution("other").request(answered) is answered


@pytest.mark.parametrize(
    "exchange",
    [
        chat(b'{"order": "7", "model": "T"}', path="/orders"),  # a tool's own model of something
        chat(b'{"messages": [], "model": 7}'),
        chat(b'{"messages": []}'),
        chat(b"\x1f\x8b", ("content-encoding", "gzip")),
        chat(b"not json"),
        chat(b'["model"]'),
    ],
)
def test_what_names_no_model_is_left_alone(exchange: Exchange) -> None:
    assert find_model_name(exchange.request) is None
    assert ModelSubstitution("other").request(exchange) is exchange


def test_values_that_another_model_may_refuse_are_found() -> None:
    thinking = {"type": "thinking", "thinking": "x", "signature": "Ep=="}
    body = json.dumps({"model": "m", "messages": [{"role": "assistant", "content": [thinking]}]})
    assert find_model_bound_keys(chat(body.encode()).request) == ("signature",)
    assert find_model_bound_keys(chat(b'{"previous_response_id": null}').request) == ()
