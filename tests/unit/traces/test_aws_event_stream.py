"""Amazon's event streams, with botocore's decoder as the second reader of every stream."""

import json
import zlib
from random import Random

import pytest
from botocore.eventstream import EventStreamBuffer  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.errors import NoInjectionSite
from faults.model_response import empty_model_output, read_model_output, replace_model_output
from faults.response_body import check_rewritable_request, replace_response_body
from traces.bodies import aws_event_stream as stream
from traces.dialects import bedrock_anthropic, bedrock_converse
from traces.dialects.types import DialectLens, ModelAnswer, ToolCall
from traces.model import BodyEdit, Chunk, Exchange, Request, Response, apply_body_edits

ARGUMENTS = '{"order_id": "ord-7314", "fields": ["total", "lines"]}'
ANSWER = ModelAnswer(
    message="I look the order up, then its lines.",
    calls=(ToolCall(id="tooluse_1", name="get_order", arguments=ARGUMENTS),),
)
BODIES = {
    bedrock_converse.NAME: ("converse-stream", b'{"messages": []}'),
    bedrock_anthropic.NAME: (
        "invoke-with-response-stream",
        b'{"messages": [], "anthropic_version": "bedrock-2023-05-31"}',
    ),
}
each_lens = pytest.mark.parametrize("lens", [bedrock_converse, bedrock_anthropic])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


def decoded(data: bytes) -> list[tuple[dict[str, object], bytes]]:
    """What botocore reads; it raises ChecksumMismatch for either of the two checksums."""
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return [(event.headers, event.payload) for event in buffer]


def exchange(lens: DialectLens, answer: ModelAnswer = ANSWER) -> Exchange:
    headers, chunks = lens.write_model_answer(answer, stream=True, id="x", created=0)
    path, body = BODIES[lens.NAME]
    timed = tuple(Chunk(at=n / 10, data=chunk.data) for n, chunk in enumerate(chunks))
    return Exchange(
        seq=0,
        request=Request(method="POST", url=f"https://h/model/m/{path}", body=body),
        response=Response(status=200, headers=headers, chunks=timed, ended=9.0),
    )


def read(lens: DialectLens, exchange: Exchange) -> ModelAnswer:
    assert exchange.response is not None
    answer = lens.parse_model_answer(exchange.response.headers, exchange.response.body)
    assert answer is not None
    return answer


def body(exchange: Exchange) -> bytes:
    assert exchange.response is not None
    return exchange.response.body


messages = st.lists(st.tuples(st.binary(max_size=90), st.binary(max_size=200)), max_size=5)


@given(messages)
def test_what_is_written_reads_back_here_and_in_botocore(parts: list[tuple[bytes, bytes]]) -> None:
    whole = b"".join(stream.write_event_message(headers, payload) for headers, payload in parts)
    found = list(stream.read_event_messages(whole))
    assert [(each.raw_headers, each.payload) for each in found] == parts
    assert b"".join(whole[each.start : each.stop] for each in found) == whole
    for each in found:
        assert each.headers is not None  # malformed headers are left out, and raise nothing
    events = b"".join(stream.make_event("chunk", {"bytes": "eA=="}) for _ in parts)
    assert [payload for _, payload in decoded(events)] == [b'{"bytes":"eA=="}'] * len(parts)


@each_lens
def test_botocore_reads_each_event_and_its_headers(lens: DialectLens) -> None:
    events = decoded(body(exchange(lens)))
    assert len(events) == len(exchange(lens).response.chunks)  # type: ignore[union-attr]
    ours = list(stream.read_event_messages(body(exchange(lens))))
    assert [headers for headers, _ in events] == [dict(each.headers) for each in ours]
    assert all(headers[":message-type"] == "event" for headers, _ in events)


@each_lens
@settings(deadline=None)
@given(text=texts)
def test_a_text_is_replaced_and_every_other_message_keeps_its_bytes(
    lens: DialectLens, text: str
) -> None:
    was = exchange(lens, ModelAnswer(message="It is done, and it is paid. " * 2))
    now = replace_model_output(was, text)
    assert read(lens, now).message == text
    assert len(decoded(body(now))) == len(decoded(body(was)))
    assert replace_model_output(was, read_model_output(was)) == was
    assert was.response is not None
    assert now.response is not None
    assert [chunk.at for chunk in now.response.chunks] == [
        chunk.at for chunk in was.response.chunks
    ]
    kept = {chunk.data for chunk in was.response.chunks}
    changed = [chunk for chunk in now.response.chunks if chunk.data not in kept]
    assert len(changed) <= len("It is done, and it is paid. " * 2) // 24 + 1


@each_lens
def test_arguments_end_too_soon_and_an_answer_is_emptied(lens: DialectLens) -> None:
    was = exchange(lens)
    cut = replace_model_output(was, ARGUMENTS[:20])
    assert read(lens, cut).calls[0].arguments == ARGUMENTS[:20]
    assert decoded(body(cut))
    empty = empty_model_output(was)
    assert (read(lens, empty).message, read(lens, empty).calls) == ("", ())
    assert read(lens, empty).finish == "end_turn"
    assert len(decoded(body(empty))) < len(decoded(body(was)))


@each_lens
def test_each_flipped_bit_is_found_and_all_before_it_is_kept(lens: DialectLens) -> None:
    whole = body(exchange(lens))
    ends = stream.find_message_ends(whole)
    assert ends[-1] == len(whole)
    for at in Random("flips").sample(range(len(whole)), 300):
        damaged = whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]
        assert stream.find_message_ends(damaged) == [end for end in ends if end <= at]
        lens.parse_model_answer((), damaged)


@each_lens
def test_a_cut_stream_has_its_whole_messages_and_no_finish(lens: DialectLens) -> None:
    whole = body(exchange(lens))
    ends = stream.find_message_ends(whole)
    for cut in range(0, len(whole), 7):
        assert stream.find_message_ends(whole[:cut]) == [end for end in ends if end <= cut]
        lens.parse_model_answer((), whole[:cut])
    answer = lens.parse_model_answer((), whole[: ends[3]])
    assert answer is not None
    assert answer.finish is None


@pytest.mark.parametrize("size", [0, 15, 16, 1 << 20, 1 << 31, (1 << 32) - 1])
@pytest.mark.parametrize("headers", [0, 1, 1 << 20, (1 << 32) - 1])
def test_lengths_that_lie_end_the_stream(size: int, headers: int) -> None:
    lengths = size.to_bytes(4) + headers.to_bytes(4)
    prelude = lengths + zlib.crc32(lengths).to_bytes(4)
    good = stream.make_event("messageStart", {"role": "assistant"})
    assert stream.find_message_ends(good + prelude + b"\0" * 64) == [len(good)]


@given(st.binary(max_size=120))
def test_bytes_that_are_no_stream_are_none(junk: bytes) -> None:
    assert stream.find_message_ends(junk) == []
    good = stream.make_event("messageStart", {"role": "assistant"})
    assert stream.find_message_ends(good + junk)[0] == len(good)
    headers = stream.write_event_message(junk, b"{}")
    assert stream.show_as_sse(headers).endswith(b"data: {}\n\n")
    chunk = stream.make_event("chunk", {"bytes": junk.decode("latin-1")})
    stream.show_as_sse(chunk)


def test_an_edit_of_what_is_shown_is_one_of_the_message() -> None:
    first, second = (stream.make_event("delta", {"text": text}) for text in ("one", "two"))
    shown = stream.show_as_sse(first + second)
    at = shown.index(b"two")
    edits = stream.edit_shown_stream(first + second, [BodyEdit(start=at, stop=at + 3, data=b"2")])
    assert [(edit.start, edit.stop) for edit in edits] == [(len(first), len(first + second))]
    changed = apply_body_edits(first + second, edits)
    assert [json.loads(payload) for _, payload in decoded(changed)] == [
        {"text": "one"},
        {"text": "2"},
    ]


def test_bodies_that_count_themselves_are_not_changed_as_plain_bytes() -> None:
    with pytest.raises(NoInjectionSite, match="counts its own bytes"):
        replace_response_body(exchange(bedrock_converse), b"x")


@pytest.mark.parametrize(
    "signed",
    ["AWS4-HMAC-SHA256 Credential=AKIA/20261124/us-east-1/bedrock/aws4_request", "AWS4-ECDSA-P256"],
)
def test_a_signed_request_is_no_site(signed: str) -> None:
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"
    request = Request(method="POST", url=url, headers=(("Authorization", signed),), body=b"{}")
    with pytest.raises(NoInjectionSite, match="SigV4"):
        check_rewritable_request(request)
    bearer = (("Authorization", "Bearer bedrock-api-key"),)
    check_rewritable_request(Request(method="POST", url=url, headers=bearer, body=b"{}"))


def test_the_error_that_ends_a_stream_is_an_exception_to_botocore() -> None:
    from traces.dialects.errors.bedrock_errors import make_stream_error

    ((headers, payload),) = decoded(make_stream_error())
    assert headers[":message-type"] == "exception"
    assert headers[":exception-type"] == "modelStreamErrorException"
    assert json.loads(payload).keys() == {"message"}
