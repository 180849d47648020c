"""MCP messages read, and answers bent without touching another byte."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from traces.conversation.classify import classify_request
from traces.dialects import mcp
from traces.model import (
    BodyEdit,
    Chunk,
    Exchange,
    Headers,
    Request,
    Response,
    apply_body_edits,
    apply_edits_to_chunks,
)

URL = "http://shop/mcp"
NEW: Headers = (("MCP-Protocol-Version", "2025-11-25"),)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
parts = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=12)}),
    st.fixed_dictionaries({"type": st.just("image"), "data": st.text(max_size=5)}),
)
results = st.fixed_dictionaries(
    {"content": st.lists(parts, max_size=3)},
    optional={
        "structuredContent": st.dictionaries(st.text(max_size=5), values, max_size=3),
        "isError": st.booleans(),
        "_meta": st.dictionaries(st.text(max_size=5), values, max_size=2),
        "text": st.text(max_size=5),
    },
)
spaces = st.sampled_from([None, 1])
ascii_only = st.booleans()
NOTICE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "result"}}


def post(method: str, params: object = None, id: object = 1, headers: Headers = ()) -> Request:
    table: dict[str, object] = {"jsonrpc": "2.0", "id": id, "method": method}
    table |= {} if params is None else {"params": params}
    table = {key: value for key, value in table.items() if (key, value) != ("id", None)}
    return Request(method="POST", url=URL, headers=headers, body=json.dumps(table).encode())


def streamed(text: bytes, end: bytes) -> bytes:
    """An answer as an event, its lines as lines of data, behind a comment and a notification."""
    lines = b"".join(b"data: " + line + end for line in text.split(b"\n"))
    before = b": ping" + end * 2 + b"data:" + json.dumps(NOTICE).encode() + end * 2
    return before + b"event: message" + end + b"id: 7" + end + lines + end


@st.composite
def answers(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    result = draw(results)
    said = {"jsonrpc": "2.0", "id": draw(st.integers() | st.text(max_size=4)), "result": result}
    text = json.dumps(said, indent=draw(spaces), ensure_ascii=draw(ascii_only))
    body = text.encode("utf-8", "surrogatepass")
    if draw(st.booleans()):
        return result, streamed(body, draw(st.sampled_from([b"\n", b"\r\n", b"\r"])))
    return result, body


def read(body: bytes) -> mcp.McpReply:
    reply = mcp.parse_mcp_reply((), body)
    assert reply is not None
    return reply


@given(answers())
def test_what_already_says_so_does_not_move(answer: tuple[dict[str, Any], bytes]) -> None:
    _, body = answer
    reply = read(body)
    assert mcp.replace_mcp_result(body, reply.text, reply.structured) == ()


@given(answers(), st.text(min_size=1, max_size=12), values, spaces)
def test_a_new_result_is_read_back_and_nothing_else_has_changed(
    answer: tuple[dict[str, Any], bytes], text: str, structured: object, indent: int | None
) -> None:
    result, body = answer
    mutated = apply_body_edits(
        body, mcp.replace_mcp_result(body, text, json.dumps(structured, indent=indent))
    )
    assert read(mutated).text == text
    now = _result(mutated)
    assert now.keys() == result.keys()
    if "structuredContent" in result:
        assert now["structuredContent"] == structured
    for key in result.keys() - {"content", "structuredContent"}:
        assert now[key] == result[key]
    kept = [part for part in result["content"] if part["type"] == "image"]
    if any(part["type"] == "text" for part in result["content"]):
        assert [part for part in now["content"] if part["type"] == "image"] == kept
    head = body[: body.find(b'"result": {')]
    assert mutated.startswith(head)


def _result(body: bytes) -> dict[str, Any]:
    for view in mcp._find_message_views(body):
        document = json.loads(view.text)
        if "result" in document:
            found: dict[str, Any] = document["result"]
            return found
    raise AssertionError(body)


@given(answers(), st.data())
def test_odd_bytes_are_no_answer_and_no_accident(
    answer: tuple[dict[str, Any], bytes], data: st.DataObject
) -> None:
    _, body = answer
    start = data.draw(st.integers(0, len(body)))
    stop = data.draw(st.integers(start, len(body)))
    odd = body[:start] + data.draw(st.binary(max_size=3)) + body[stop:]
    mcp.parse_mcp_reply((), odd)
    apply_body_edits(odd, mcp.replace_mcp_result(odd, "x", "{}"))
    mcp.read_client_message(Request(method="POST", url=URL, body=odd))


@given(
    st.lists(st.binary(max_size=5), max_size=5),
    st.lists(st.tuples(st.integers(0, 20), st.binary(max_size=3)), max_size=4),
)
def test_edited_chunks_are_the_edited_body(
    pieces: list[bytes], cuts: list[tuple[int, bytes]]
) -> None:
    chunks = tuple(Chunk(at=float(at), data=data) for at, data in enumerate(pieces))
    body = b"".join(pieces)
    at, edits = 0, []
    for length, data in cuts:
        stop = min(at + length, len(body))
        edits.append(BodyEdit(start=at, stop=stop, data=data))
        at = stop
    mutated = apply_edits_to_chunks(chunks, tuple(edits))
    assert [chunk.at for chunk in mutated] == [chunk.at for chunk in chunks]
    if chunks:
        assert b"".join(chunk.data for chunk in mutated) == apply_body_edits(body, tuple(edits))


def test_a_call_is_a_call_and_the_rest_is_talk() -> None:
    params = {
        "name": "get",
        "arguments": {"id": "x1"},
        "_meta": {"claudecode/toolUseId": "toolu_1"},
    }
    message = mcp.read_client_message(post("tools/call", params, id="a"))
    assert message is not None
    assert message.call is not None
    assert (message.call.id, message.call.name, message.call.arguments) == (
        '"a"',
        "get",
        '{"id": "x1"}',
    )
    assert message.meta == {"toolu_1"}
    roles = {
        "call": [post("tools/call", {"name": "get"})],
        "talk": [post("initialize"), post("tools/list"), post("server/discover")],
        "aside": [
            post("notifications/initialized", id=None),
            post("subscriptions/listen"),
            Request(method="GET", url=URL, headers=NEW),
            Request(method="DELETE", url=URL, headers=(("mcp-session-id", "1"),)),
            Request(method="START", url="stdio://shop/", body=b'["server"]'),
            Request(
                method="POST", url=URL, headers=NEW, body=b'{"jsonrpc":"2.0","id":4,"result":{}}'
            ),
        ],
    }
    for role, requests in roles.items():
        for request in requests:
            message = mcp.read_client_message(request)
            assert message is not None
            assert message.role == role
            assert classify_request(request) == "tool"
    assert mcp.read_client_message(post("ping")) is None, "other services of JSON-RPC have it too"
    assert mcp.read_client_message(post("ping", headers=NEW)) is not None
    assert mcp.read_client_message(post("eth_call")) is None
    assert mcp.read_client_message(Request(method="GET", url=URL)) is None


def test_an_error_of_the_tool_is_not_an_error_of_the_protocol() -> None:
    for stream in (False, True):
        for reply in (
            mcp.McpReply(id="1", text="no such order", is_error=True),
            mcp.McpReply(id='"a"', text="Unknown tool: x", is_error=True, code=-32602),
            mcp.McpReply(id="2", text="{}", structured="{}", is_error=False),
        ):
            headers, chunks = mcp.write_mcp_reply(reply, stream=stream)
            assert mcp.parse_mcp_reply(headers, chunks[0].data) == reply
    asks = b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}'
    assert read(asks).is_error is None


def test_a_name_is_known_behind_what_agents_put_before_it() -> None:
    for offered in ("mcp__my_shop__issue-refund", "shop__issue_refund", "shop.issue-refund"):
        assert mcp.is_name_of_tool(offered, "issue-refund")
    assert mcp.is_name_of_tool("issue_refund", "issue.refund")
    assert not mcp.is_name_of_tool("reissue_refund", "issue_refund")
    assert not mcp.is_name_of_tool("issue_refund", "shop_issue_refund")
    assert not mcp.is_name_of_tool("get_order", "")


def test_an_answer_is_given_to_another_message_of_the_same_gist() -> None:
    meta = {"progressToken": 3, "traceparent": "00-1"}
    was = post("tools/call", {"name": "get", "arguments": {"a": 1}, "_meta": meta}, id=3)
    now = post(
        "tools/call",
        {"arguments": {"a": 1}, "name": "get", "_meta": {"progressToken": "b"}},
        id="b",
    )
    assert mcp.to_canonical_message(was) == mcp.to_canonical_message(now)
    assert mcp.to_canonical_message(was) != mcp.to_canonical_message(
        post("tools/call", {"name": "get", "arguments": {"a": 2}})
    )
    progress = {"progressToken": 3, "progress": 1}
    said: list[dict[str, object]] = [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress},
        {"jsonrpc": "2.0", "id": 3, "method": "sampling/createMessage"},
        {"jsonrpc": "2.0", "id": 3, "result": {"content": []}},
    ]
    body = b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in said)
    given = apply_body_edits(body, mcp.readdress_mcp_answer(now, was, body)).decode()
    assert given == body.decode().replace('Token": 3', 'Token": "b"').replace(
        '"id": 3, "result"', '"id": "b", "result"'
    )


def test_a_handshake_is_the_same_whoever_the_client_is() -> None:
    one, newer, other = (
        post("initialize", {"protocolVersion": version, "clientInfo": {"name": name}}, id=name)
        for version, name in (("2025-11-25", "a"), ("2025-11-25", "b"), ("2025-06-18", "b"))
    )
    assert mcp.to_canonical_message(one) == mcp.to_canonical_message(newer)
    assert mcp.to_canonical_message(one) != mcp.to_canonical_message(other)
    assert mcp.to_canonical_message(one, any_client=True) == mcp.to_canonical_message(
        other, any_client=True
    )
    assert mcp.to_canonical_message(one) != mcp.to_canonical_message(post("ping"))


def test_long_numbers_are_told_apart() -> None:
    numbers = (10**24, 10**24 + 1)
    one, two = (post("tools/call", {"name": "get", "arguments": {"n": n}}, id=n) for n in numbers)
    assert mcp.to_canonical_message(one) != mcp.to_canonical_message(two)
    message = mcp.read_client_message(two)
    assert message is not None
    assert message.call is not None
    assert (message.call.id, message.call.arguments) == (f"{numbers[1]}", f'{{"n": {numbers[1]}}}')


def test_a_client_that_hangs_up_with_the_response_in_hand_has_it() -> None:
    headers, chunks = mcp.write_mcp_reply(
        mcp.McpReply(id="1", text="x", is_error=False), stream=True
    )
    answer = Response(status=200, headers=headers, chunks=chunks)
    cut = Exchange(
        seq=0, request=post("tools/call", {"name": "x"}), response=answer, error="cancelled"
    )
    assert mcp.has_mcp_response(cut)
    half = (Chunk(at=0.0, data=chunks[0].data[:-4]),)
    lost = Response(status=200, headers=headers, chunks=half)
    assert not mcp.has_mcp_response(Exchange(seq=0, request=cut.request, response=lost))


def test_progress_is_retold_under_the_token_that_is_asked_for_now() -> None:
    said = b'{ "method":"notifications/progress", "params":{"progress":1,"progressToken": 11 } }'
    mine = said.replace(b"11", b'"mine"')
    assert mcp.replace_progress_token(said, {"11": '"mine"'}) == mine
    assert mcp.replace_progress_token(mine, {'"mine"': "12"}) == said.replace(b"11", b"12")
    for other in (said.replace(b"11", b"13"), said.replace(b'progress"', b'x"', 1), b"no JSON"):
        assert mcp.replace_progress_token(other, {"11": "12"}) == other
