"""Ollama's own API: what its servers and its Python client send (API reference; ollama 0.6.3)."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.model_response import empty_model_output, read_model_output, replace_model_output
from tests.support.request_readings import read_messages, read_tool_results, replace_call_results
from traces.dialects import find_dialect, ollama_chat, ollama_generate
from traces.dialects.errors import is_streaming_request
from traces.dialects.errors.ollama_errors import make_model_error_body, make_stream_error
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Request, Response, apply_body_edits

TORONTO = {"function": {"name": "get_temperature", "arguments": {"city": "Toronto"}}}
PARIS = {"function": {"name": "get_temperature", "arguments": {"city": "Paris"}}}


def ask(*messages: Mapping[str, object], **rest: object) -> bytes:
    return json.dumps({"model": "qwen3", "messages": messages, **rest}).encode()


def results(body: bytes) -> list[tuple[str, str]]:
    return [(each.call_id, each.text) for each in read_tool_results(ollama_chat, body)]


def lines(*values: Mapping[str, object]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_calls_without_ids_and_their_results_are_joined() -> None:
    asked = lines(
        {"model": "qwen3", "message": {"role": "assistant", "content": "", "thinking": "hm"}},
        {"model": "qwen3", "message": {"tool_calls": [TORONTO, PARIS]}, "done": False},
        {"model": "qwen3", "message": {"tool_calls": [PARIS]}, "done": False},
        {
            "model": "qwen3",
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 26,
            "eval_count": 9,
        },
    )
    answer = ollama_chat.parse_model_answer((), asked)
    assert answer is not None
    assert (answer.reasoning, answer.finish, answer.model) == ("hm", "stop", "qwen3")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (26, 9)
    ids = [call.id for call in answer.calls]
    assert ids[2] == ids[1]
    ids[2] += "#2"  # as a conversation numbers its calls

    said = {"role": "assistant", "tool_calls": [TORONTO, PARIS, PARIS]}
    told = [{"role": "tool", "content": text} for text in ("11", "22", "23")]
    named = [each | {"tool_name": "get_temperature"} for each in told]
    for given_back in (told, named):
        assert results(ask(said, *given_back)) == list(zip(ids, ("11", "22", "23"), strict=True))


def test_a_result_with_an_id_belongs_to_the_call_of_that_id() -> None:
    said = {
        "role": "assistant",
        "tool_calls": [TORONTO | {"id": "call_1"}, PARIS | {"id": "call_2"}],
    }
    told = [
        {"role": "tool", "tool_call_id": "call_2", "content": "22"},
        {"role": "tool", "tool_call_id": "call_1", "content": "11"},
    ]
    paris, toronto = results(ask(said, *told))
    in_order = results(ask(said, *told[::-1]))
    assert in_order == [toronto, paris]


def test_what_only_loads_a_model_is_no_conversation() -> None:
    def generate(**body: object) -> Request:
        data = json.dumps({"model": "m", **body}).encode()
        return Request(method="POST", url="http://h:11434/api/generate", body=data)

    assert find_dialect(generate(keep_alive=0)) is None
    assert find_dialect(generate(prompt="x")) is ollama_generate
    assert is_streaming_request(generate(prompt="x"))
    assert not is_streaming_request(generate(prompt="x", stream=False))
    messages = read_messages(ollama_generate, generate(prompt="x", system="be brief").body)
    assert [(each.role, each.content) for each in messages] == [
        ("system", "be brief"),
        ("user", "x"),
    ]


@pytest.mark.parametrize("body", [make_model_error_body(404), b"", b"\n", b"[1]\n", b"null"])
def test_what_is_no_answer_is_none(body: bytes) -> None:
    assert ollama_chat.parse_model_answer((), body) is None
    assert ollama_generate.parse_model_answer((), body) is None


def test_a_stream_that_is_cut_or_ends_with_an_error_has_no_finish() -> None:
    _, chunks = ollama_chat.write_model_answer(
        ModelAnswer(message="a text in several pieces", model="m"), stream=True, id="x", created=0
    )
    whole = [chunk.data for chunk in chunks]
    for body in (b"".join(whole[:-1]), b"".join([*whole[:-1], make_stream_error()])):
        answer = ollama_chat.parse_model_answer((), body)
        assert answer is not None
        assert (answer.message, answer.finish) == ("a text in several pieces", None)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(texts, st.booleans(), st.sampled_from([ollama_chat, ollama_generate]))
def test_the_text_of_an_answer_is_replaced_and_nothing_else(
    text: str, stream: bool, dialect: object
) -> None:
    path, lens = (
        ("/api/chat", ollama_chat) if dialect is ollama_chat else ("/api/generate", ollama_generate)
    )
    answer = ModelAnswer(message="It is done, and it is paid. " * 3, model="m")
    headers, chunks = lens.write_model_answer(answer, stream=stream, id="x", created=0)
    body = ask(prompt="x", stream=stream)
    exchange = Exchange(
        seq=0,
        request=Request(method="POST", url=f"http://h{path}", body=body),
        response=Response(
            status=200,
            headers=headers,
            chunks=tuple(Chunk(at=n / 10, data=c.data) for n, c in enumerate(chunks)),
            ended=9.0,
        ),
    )
    assert replace_model_output(exchange, read_model_output(exchange)) == exchange
    changed = replace_model_output(exchange, text)
    assert changed.response is not None
    read = lens.parse_model_answer(changed.response.headers, changed.response.body)
    assert read is not None
    assert (read.message, read.finish, read.model) == (text, "stop", "m")
    emptied = empty_model_output(exchange).response
    assert emptied is not None
    empty = lens.parse_model_answer(emptied.headers, emptied.body)
    assert empty is not None
    assert empty.message == ""


@given(texts, texts)
def test_a_result_is_replaced_in_place(old: str, new: str) -> None:
    body = ask(
        {"role": "assistant", "tool_calls": [TORONTO]},
        {"role": "tool", "content": old, "tool_name": "get_temperature"},
    )
    ((call_id, text),) = results(body)
    assert replace_call_results(ollama_chat, body, call_id, text) == ()
    edits = replace_call_results(ollama_chat, body, call_id, new)
    assert results(apply_body_edits(body, edits)) == [(call_id, new)]


@given(st.binary(max_size=80))
def test_bytes_that_are_no_answer_raise_nothing(junk: bytes) -> None:
    _, chunks = ollama_chat.write_model_answer(
        ModelAnswer(calls=(ToolCall(id="a", name="n", arguments="{}"),)),
        stream=True,
        id="x",
        created=0,
    )
    whole = b"".join(chunk.data for chunk in chunks)
    for body in (junk, whole + junk, junk + whole):
        ollama_chat.parse_model_answer((), body)
        ollama_generate.parse_model_answer((), body)
