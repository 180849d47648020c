"""Cassettes of vcrpy: every interaction comes out, in whichever way a project writes them."""

import base64
import gzip
import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stumble.imports.safe_yaml import parse_safe_yaml
from traces.bodies.websocket import read_binary_flags
from traces.dialects import find_dialect
from traces.importers import vcr as cassettes
from traces.importers.shared.http_traffic import ImportRemark
from traces.model import Exchange, find_header

ASKED = {
    "method": "POST",
    "uri": "https://api.example.com/v1/chat/completions",
    "body": '{"messages":[]}',
    "headers": {"Content-Type": ["application/json"], "Content-Length": ["15"]},
}
SAID = {
    "status": {"code": 200, "message": "OK"},
    "headers": {"content-type": ["application/json"], "X-Two": ["a", "b"]},
    "body": {"string": '{"choices":[]}'},
}


def pieces(*interactions: object) -> list[Exchange | ImportRemark]:
    return list(cassettes.read_vcr_traffic({"interactions": list(interactions)}).pieces)


def only(*interactions: object) -> Exchange:
    [found] = pieces(*interactions)
    assert isinstance(found, Exchange)
    return found


def pair(said: dict[str, Any] | None = None, asked: dict[str, Any] | None = None) -> object:
    return {"request": asked or ASKED, "response": said or SAID}


def test_an_interaction_is_an_exchange() -> None:
    found = only(pair())
    assert found.request.method == "POST"
    assert found.request.url == "https://api.example.com/v1/chat/completions"
    assert found.request.body == b'{"messages":[]}'
    assert found.response is not None
    assert (found.response.status, found.response.reason) == (200, "OK")
    assert found.response.body == b'{"choices":[]}'
    assert found.response.headers[1:] == (("X-Two", "a"), ("X-Two", "b"))
    assert found.response.ended is not None


def test_two_lists_are_pairs_and_what_lacks_its_half_is_named() -> None:
    document = {"requests": [ASKED, ASKED], "responses": [SAID]}
    first, second, remark = cassettes.read_vcr_traffic(document).pieces
    assert isinstance(first, Exchange)
    assert isinstance(second, Exchange)
    assert first.response is not None
    assert second.response is None
    assert remark == ImportRemark(where="interaction 2", why="it has no response")


@pytest.mark.parametrize(
    "body",
    [
        '{"a":1}',
        b'{"a":1}',
        {"string": '{"a":1}'},
        {"string": b'{"a":1}'},
        {"encoding": "utf-8", "base64_string": base64.b64encode(b'{"a":1}').decode()},
        [b'{"a"', ":1}"],
    ],
)
def test_a_body_may_stand_in_many_ways(body: object) -> None:
    found = only(pair(SAID | {"body": body}, ASKED | {"body": body}))
    assert found.response is not None
    assert found.request.body == found.response.body == b'{"a":1}'


def test_a_parsed_body_is_the_json_that_an_sdk_sends() -> None:
    asked = {name: ASKED[name] for name in ("method", "uri", "headers")}
    found = only(pair(SAID, asked | {"parsed_body": {"text": "grün", "n": 2**70}}))
    assert found.request.body == b'{"text":"gr\xc3\xbcn","n":1180591620717411303424}'
    assert find_header(found.request.headers, "content-length") == str(len(found.request.body))


def test_fields_that_are_not_true_of_the_body_are_set_right() -> None:
    fields = {
        "Content-Encoding": ["gzip"],
        "Transfer-Encoding": ["**REDACTED**"],
        "Content-Length": ["**REDACTED**"],
    }
    inflated = only(pair(SAID | {"headers": fields}))
    assert inflated.response is not None
    assert inflated.response.headers == (("Content-Length", "14"),)

    packed = gzip.compress(b"{}")
    kept = only(pair(SAID | {"headers": fields, "body": {"string": packed}}))
    assert kept.response is not None
    assert find_header(kept.response.headers, "content-encoding") == "gzip"
    assert kept.response.body == packed


def test_bytes_that_were_inflated_are_not_said_to_be_packed() -> None:
    fields = {"Content-Encoding": ["gzip"]}
    found = only(pair(SAID | {"headers": fields, "body": {"string": b"\xff not gzip"}}))
    assert found.response is not None
    assert found.response.headers == ()


def test_an_answer_to_head_keeps_the_length_it_names() -> None:
    said = {"status": {"code": 200}, "headers": {"Content-Length": "7"}, "body": {"string": ""}}
    found = only(pair(said, ASKED | {"method": "HEAD"}))
    assert found.response is not None
    assert find_header(found.response.headers, "content-length") == "7"


def test_gzip_that_does_not_inflate_stays_as_it_is() -> None:
    broken = gzip.compress(b"x" * 100)[:20]
    said = SAID | {"headers": {"Content-Encoding": "gzip"}, "body": {"string": broken}}
    found = only(pair(said))
    assert found.response is not None
    assert found.response.body == broken


def test_an_address_that_was_redacted_is_told_by_the_answer() -> None:
    asked = ASKED | {"uri": "**REDACTED**"}
    found = only(pair(SAID | {"body": {"string": '{"object": "chat.completion"}'}}, asked))
    assert found.request.url == "https://unknown.invalid/v1/chat/completions"
    assert find_dialect(found.request) is not None
    assert only(pair(SAID, asked)).request.url == "https://unknown.invalid/"


def test_the_messages_of_a_websocket_are_turns() -> None:
    said = [("received", {"hello": 1}), ("sent", "a"), ("received", b"\0"), ("received", "b")]
    rows = [{"kind": "message", "direction": way, "data": data} for way, data in said]
    upgrade, turn = pieces(*rows)
    assert isinstance(upgrade, Exchange)
    assert isinstance(turn, Exchange)
    assert upgrade.response is not None
    assert turn.response is not None
    assert [chunk.data for chunk in upgrade.response.chunks] == [b'{"hello":1}']
    assert (turn.request.method, turn.request.body) == ("TEXT", b"a")
    assert [chunk.data for chunk in turn.response.chunks] == [b"\0", b"b"]
    assert read_binary_flags(turn.response) == (True, False)


def test_what_cannot_be_read_is_named_and_the_rest_comes_in() -> None:
    odd = SAID | {"body": {"string": 5}}
    nothing = {"status": {"code": 204}, "headers": {}}
    found = pieces({"response": SAID}, pair(odd), pair(SAID | {"status": {}}), pair(nothing))
    assert [each for each in found if isinstance(each, ImportRemark)] == [
        ImportRemark(where="interaction 1", why="it has no request"),
        ImportRemark(
            where="interaction 2", why="the body of its response is a int, not text or bytes"
        ),
        ImportRemark(where="interaction 3", why="its response has no status but None"),
        ImportRemark(where="interaction 4", why="the body of its response was not kept"),
    ]
    assert sum(isinstance(each, Exchange) for each in found) == 1


@pytest.mark.parametrize("document", [None, [], {}, "text", {"interactions": {}}])
def test_what_is_no_cassette_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match="no list of interactions"):
        cassettes.read_vcr_traffic(document)


def test_the_date_of_an_answer_is_all_that_is_known_of_the_time() -> None:
    dated = SAID | {"headers": {"Date": ["Sat, 01 Jan 2000 00:00:10 GMT"]}}
    found = cassettes.read_vcr_traffic({"interactions": [pair(), pair(dated)]})
    assert (found.timed, found.recorded_at) == (False, 946684810.0)
    assert cassettes.read_vcr_traffic({"interactions": [pair()]}).recorded_at is None


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8).map(lambda name: f"x-{name}")
VALUES = st.text(string.ascii_letters + string.digits + " ;=", max_size=10).map(str.strip)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GET", "POST", "DELETE"]),
            TEXT | st.binary(max_size=20),
            st.dictionaries(NAMES, VALUES, max_size=3),
            st.sampled_from([200, 404, 529]),
            TEXT.map(str.encode) | st.binary(max_size=20),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_what_vcrpy_writes_comes_out_byte_for_byte(said: list[tuple[Any, ...]]) -> None:
    import vcr.serialize
    from vcr.request import Request as Recorded
    from vcr.serializers import yamlserializer

    url = "https://api.example.com/v1"
    cassette = {
        "requests": [Recorded(each[0], url, each[1], each[2]) for each in said],
        "responses": [
            {
                "status": {"code": each[3], "message": "M"},
                "headers": {name: [value] for name, value in each[2].items()},
                "body": {"string": each[4]},
            }
            for each in said
        ],
    }
    written = vcr.serialize.serialize(cassette, yamlserializer)
    found = list(cassettes.read_vcr_traffic(parse_safe_yaml(written.encode())).pieces)
    assert len(found) == len(said)
    for (method, body, headers, status, answer), each in zip(said, found, strict=True):
        assert isinstance(each, Exchange)
        assert each.response is not None
        assert each.request.method == method
        assert each.request.body == (body.encode() if isinstance(body, str) else body)
        assert dict(each.request.headers) == headers
        assert (each.response.status, each.response.body) == (status, answer)
        assert dict(each.response.headers) == headers


def refused(text: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_safe_yaml(text)


def test_yaml_runs_nothing_and_unfolds_nothing() -> None:
    refused(b'!!python/object/apply:os.system ["true"]', "an object that is not made here")
    refused(b"[" * 100_000, "nested more than 200 levels")
    refused(b"&a [*a]", "the alias a stands for itself")
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    refused("\n".join(lines).encode(), "unfold to more than it can mean")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"interactions: [", "line 2: did not find"),
        (b"a: b: c", "line 1: mapping values are not allowed"),
        (b"interactions: \xff\xfe", "it is no text: .* at byte 14"),
        (b"a\0b", "it is no text"),
        (b"a: *b", "alias"),
    ],
)
def test_what_is_no_yaml_says_where(text: bytes, why: str) -> None:
    refused(text, why)


def test_aliases_of_what_is_small_are_what_they_stand_for() -> None:
    text = b"a: &a [1]\nb: *a\nc: {<<: {d: *a}}"
    assert parse_safe_yaml(text) == {"a": [1], "b": [1], "c": {"d": [1]}}
    assert parse_safe_yaml(json.dumps({"interactions": []}).encode()) == {"interactions": []}
