"""What a strike at mcp makes of the message in which a tool's result comes.

A session is played by hand: the tools are listed, a model asks for one, its client calls it, over
HTTP (in JSON or a stream, with a session or without) or over stdio.
"""

import json
from collections.abc import Mapping
from copy import replace
from dataclasses import dataclass
from itertools import count

import pytest

from faults.injector.injector import FaultInjector, RunSeeds
from faults.judging.consumption import decide_consumption
from faults.targeting.bound_fault import bind_without_recording
from faults.targeting.live_observations import LiveObservations
from traces.conversation.derived_steps import derive_steps
from traces.conversation.tracker import ConversationTap
from traces.dialects import mcp, openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Fault, Headers, Injection, Request, Response, Scalar
from traces.taps import TapChain

ORDER = {"id": "ord-7314", "total": 1250.4, "lines": [{"sku": "p-101"}, {"sku": "p-207"}]}
NUMBERS = {
    "type": "object",
    "properties": {"total": {"type": "number", "maximum": 1260}},
    "required": ["id", "total", "lines"],
}
WAYS = ("json", "stream", "stateless", "stdio")
TOKEN = {"progressToken": 7}


@dataclass(kw_only=True)
class Server:
    """One tool of a server, and how it says what it returns."""

    way: str = "json"
    text: str | None = json.dumps(ORDER)
    structured: object = None
    error: bool = False
    schema: object = None
    hints: object = None
    meta: Mapping[str, object] | None = None
    session: str | None = None

    def result(self) -> dict[str, object]:
        table: dict[str, object] = {"_meta": {"took": 3}}
        table["content"] = [] if self.text is None else [{"type": "text", "text": self.text}]
        if self.structured is not None:
            table["structuredContent"] = self.structured
        return table | {"isError": self.error}

    def listed(self) -> dict[str, object]:
        tool = {"name": "get", "outputSchema": self.schema, "annotations": self.hints}
        return {"tools": [{k: v for k, v in tool.items() if v is not None}]}


class Run:
    """What a client of that server hears while a fault strikes."""

    def __init__(self, server: Server, *faults: Fault, world: bool = True, seed: int = 3) -> None:
        self.server, self.seqs, self.ids = server, count(), count()
        self.injections, watch = list[Injection](), ConversationTap()
        seen = LiveObservations(watch, world=world)
        self.nemesis = FaultInjector(
            [bind_without_recording(each) for each in faults],
            watch,
            self.injections.append,
            seeds=RunSeeds(run="r", trace="t", seed=seed),
            seen=seen,
        )
        self.taps = TapChain([watch, seen, self.nemesis])
        self.seen = list[Exchange]()
        self.asked = list[str]()
        """What reached the server."""
        self.told: list[dict[str, object]] = [{"role": "user", "content": "go"}]
        self.say("tools/list", {}, server.listed())

    def call(self, id: str = "c1") -> Exchange:
        """The model asks for the tool, and the client calls it."""
        self.model(ToolCall(id=id, name="get", arguments='{"id": "ord-7314"}'))
        meta = dict(self.server.meta or {})
        if self.server.way == "stateless":
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
        params = {"name": "get", "arguments": {"id": "ord-7314"}} | (
            {"_meta": meta} if meta else {}
        )
        return self.say("tools/call", params, self.server.result())

    def model(self, *calls: ToolCall) -> None:
        answer = ModelAnswer(message="" if calls else "done", calls=calls, model="m")
        headers, chunks = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)
        body = json.dumps({"model": "m", "messages": self.told}).encode()
        request = Request(method="POST", url="http://m/v1/chat/completions", body=body)
        self.exchange(request, "http", Response(status=200, headers=headers, chunks=chunks))
        for call in calls:
            function = {"name": call.name, "arguments": call.arguments}
            self.told.append(
                {"role": "assistant", "tool_calls": [{"id": call.id, "function": function}]}
            )
            self.told.append({"role": "tool", "tool_call_id": call.id, "content": "?"})

    def say(self, method: str, params: object, result: object) -> Exchange:
        said = {"jsonrpc": "2.0", "id": f"q{next(self.ids)}", "method": method, "params": params}
        body = json.dumps(said).encode()
        answer = json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": result}).encode()
        if self.server.way == "stdio":
            request = Request(method="MESSAGE", url="stdio://shop/", body=body)
            return self.exchange(request, "stdio", answered((), answer))
        sent: Headers = (("mcp-session-id", self.server.session),) if self.server.session else ()
        request = Request(method="POST", url="http://shop/mcp", headers=sent, body=body)
        headers: Headers = (("content-type", "application/json"),)
        if self.server.way == "stream":
            answer = b"event: message\r\ndata: " + answer + b"\r\n\r\n"
            headers = (("content-type", "text/event-stream"), ("mcp-session-id", "s1"))
        else:
            headers = (*headers, ("content-length", str(len(answer))))
        return self.exchange(request, "http", answered(headers, answer))

    def exchange(self, request: Request, transport, answer: Response) -> Exchange:
        at = float(next(self.seqs))
        asked = Exchange(seq=int(at), request=request, transport=transport, started=at)
        x = self.taps.request(asked)
        if x.response is None and x.error is None:
            self.asked.append(request.body.decode())
            chunks = tuple(replace(chunk, at=at) for chunk in answer.chunks)
            whole = replace(x, response=replace(answer, chunks=chunks, at=at, ended=at))
            x = self.taps.response(whole) if self.taps.holds(x) else whole
        self.taps.done(x)
        self.seen.append(x)
        return x


def answered(headers: Headers, body: bytes) -> Response:
    return Response(status=200, headers=headers, chunks=(Chunk(at=0.0, data=body),))


def struck(name: str, server: Server | None = None, **params: Scalar) -> tuple[Exchange, Run]:
    fault = Fault(name=name, at="mcp", params=params)
    run = Run(server or Server(), fault)
    return run.call(), run


def status(exchange: Exchange) -> int:
    assert exchange.response is not None
    return exchange.response.status


def response(exchange: Exchange) -> dict[str, object]:
    """The response message in an answer; its id is that of the request."""
    assert exchange.response is not None
    answer = exchange.response
    (body,) = [m for m in mcp.read_server_messages(answer.headers, answer.body) if b'"id"' in m]
    document: dict[str, object] = json.loads(body)
    assert document.pop("jsonrpc") == "2.0"
    assert document.pop("id") == json.loads(exchange.request.body)["id"]
    length = dict(answer.headers).get("content-length")
    assert length in (None, str(len(answer.body)))
    return document


def result(exchange: Exchange) -> dict[str, object]:
    (found,) = response(exchange).values()
    assert isinstance(found, dict)
    return found


def reply(exchange: Exchange) -> mcp.McpReply:
    assert exchange.response is not None
    found = mcp.parse_mcp_reply(exchange.response.headers, exchange.response.body)
    assert found is not None
    return found


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_value_is_in_both_copies_and_nothing_else_is_touched(way: str) -> None:
    server = Server(way=way, structured=ORDER)
    exchange, run = struck("digit", server, path="$.total")
    (injection,) = run.injections
    said = reply(exchange)
    assert said.text == (injection.mutated or b"").decode() != json.dumps(ORDER)
    assert json.loads(said.structured or "") == json.loads(said.text)
    assert injection.original == json.dumps(ORDER).encode()
    assert (injection.place, injection.error_channel) == ("mcp", "none")
    wrong_value = json.loads(said.text)
    assert wrong_value | {"total": ORDER["total"]} == ORDER
    texts = [{"type": "text", "text": said.text}]
    assert result(exchange) == server.result() | {
        "content": texts,
        "structuredContent": wrong_value,
    }


@pytest.mark.parametrize("way", WAYS)
def test_a_sham_changes_no_byte(way: str) -> None:
    server = Server(way=way, structured=ORDER)
    (exchange, run), clean = struck("sham", server), Run(server).call()
    assert exchange.response == clean.response
    assert (exchange.answered_by, exchange.edits) == ("live", ())
    (injection,) = run.injections
    assert injection.sham
    assert injection.original == injection.mutated == json.dumps(ORDER).encode()


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_error_and_a_protocol_error_are_two_things(way: str) -> None:
    exchange, run = struck("tool_error", Server(way=way), how="transient")
    said = result(exchange)
    assert said["isError"] is True
    assert "Temporarily unavailable" in reply(exchange).text
    assert ("resultType" in said) == (way == "stateless")
    assert run.injections[0].error_channel == "flag"

    exchange, run = struck("protocol_error", Server(way=way), code=-32602)
    assert response(exchange) == {"error": {"code": -32602, "message": "Invalid params"}}
    assert (run.injections[0].error_channel, run.injections[0].detect) == ("jsonrpc", "D0")
    assert not any("tools/call" in asked for asked in run.asked), "the server was asked"


def test_a_status_is_one_of_the_post_and_over_stdio_there_is_none() -> None:
    exchange, run = struck("http_status", code=529, retry_after=3)
    assert exchange.response is not None
    assert exchange.response.status == 529
    assert ("retry-after", "3") in exchange.response.headers
    assert run.injections[0].error_channel == "http"

    exchange, run = struck("http_status", Server(way="stdio"))
    assert run.injections == []
    assert "no HTTP status; use tool_error" in run.nemesis.no_site[0]


def test_a_lost_session_is_unknown_until_the_client_begins_another() -> None:
    exchange, run = struck("session_lost", Server(way="json", session="s1"))
    assert (status(exchange), status(run.call("c2"))) == (404, 404)
    assert not any("tools/call" in asked for asked in run.asked)
    assert [each.error_channel for each in run.injections] == ["http"]
    run.server.session = "s2"
    assert status(run.call("c3")) == 200
    for way in ("stateless", "stdio"):
        exchange, run = struck("session_lost", Server(way=way))
        assert (run.injections, status(exchange)) == ([], 200)
        assert "session" in run.nemesis.no_site[0] or "stdio" in run.nemesis.no_site[0]


@pytest.mark.parametrize(("way", "channel"), [("json", "http"), ("stdio", "flag")])
def test_access_is_denied_by_what_the_transport_has(way: str, channel: str) -> None:
    exchange, run = struck("auth", Server(way=way), code=403, why="scope")
    assert run.injections[0].error_channel == channel
    assert exchange.response is not None
    if way == "json":
        assert exchange.response.status == 403
    else:
        assert result(exchange)["isError"] is True
        assert "insufficient_scope" in reply(exchange).text


@pytest.mark.parametrize(
    ("copy", "text", "structured"),
    [("content", False, True), ("structuredContent", True, False), ("both", False, False)],
)
def test_one_copy_may_be_bent_and_then_they_contradict_each_other(
    copy: str, text: bool, structured: bool
) -> None:
    exchange, run = struck("digit", Server(structured=ORDER), copy=copy, path="$.total")
    said = result(exchange)
    assert (reply(exchange).text == json.dumps(ORDER)) is text
    assert (said["structuredContent"] == ORDER) is structured
    (injection,) = run.injections
    assert injection.detect == ("D3" if copy == "both" else "D2")
    assert injection.params.get("copy") == copy


def test_copies_that_say_different_things_are_bent_one_by_one() -> None:
    prose = Server(text="Order ord-7314 is 1250.40 EUR", structured=ORDER)
    exchange, run = struck("sham", prose)
    assert result(exchange) == prose.result()
    assert len(run.injections) == 1
    _, run = struck("digit", prose)
    assert run.injections == []
    assert "name the one to bend, as in digit:copy=content" in run.nemesis.no_site[0]
    exchange, run = struck("digit", prose, copy="content")
    assert reply(exchange).text == (run.injections[0].mutated or b"").decode()
    assert result(exchange)["structuredContent"] == ORDER


@pytest.mark.parametrize(
    ("text", "inner", "type"),
    [("1250", 1250, int), ("1250", "1250", str), ("in 12501 steps", "in 12501 steps", str)],
)
def test_what_is_no_object_stands_in_a_member_of_its_own(text: str, inner: object, type) -> None:
    exchange, _ = struck("digit", Server(text=text, structured={"result": inner}))
    said = result(exchange)["structuredContent"]
    assert isinstance(said, dict)
    assert isinstance(said["result"], type)
    assert str(said["result"]) == reply(exchange).text != text


def test_what_is_no_json_leaves_no_structured_copy_but_where_one_is_declared() -> None:
    exchange, _ = struck("truncate", Server(structured=ORDER), keep=0.5)
    assert "structuredContent" not in result(exchange)
    assert set(result(exchange)) == {"content", "isError", "_meta"}
    exchange, run = struck("truncate", Server(structured=ORDER, schema=NUMBERS), keep=0.5)
    assert result(exchange)["structuredContent"] == ORDER
    assert run.injections[0].detect == "D1"
    _, run = struck("truncate", Server(structured=ORDER), keep=0.5, copy="structuredContent")
    assert "can hold nothing that is no JSON" in run.nemesis.no_site[0]


def test_a_wrong_value_keeps_to_what_the_tool_declares() -> None:
    """Of 1250.4 the second digit may not grow: more than 1260 is not allowed."""
    for seed in range(12):
        server = Server(structured=ORDER, schema=NUMBERS)
        run = Run(server, Fault(name="digit", params={"path": "$.total"}), seed=seed)
        said = result(run.call())["structuredContent"]
        assert isinstance(said, dict)
        assert said["total"] <= 1260

    closed = NUMBERS | {"properties": {"total": {"const": 1250.4}}}
    _, run = struck("digit", Server(structured=ORDER, schema=closed), path="$.total")
    assert run.injections == []
    assert "and that its outputSchema allows" in run.nemesis.no_site[0]


def test_another_shape_may_break_what_the_tool_declares() -> None:
    server = Server(structured=ORDER, schema=NUMBERS)
    exchange, run = struck("schema_drift", server, how="rename", path="$.total")
    assert "total" not in json.loads(reply(exchange).text)
    assert run.injections[0].detect == "D1"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ({"error": {"code": -32602, "message": "no"}}, "an error of the protocol, -32602"),
        ({"result": {"resultType": "input_required"}}, "asked for more"),
    ],
)
def test_what_is_no_result_is_no_site(error: dict[str, object], says: str) -> None:
    run = Run(Server(), Fault(name="digit", at="mcp"))
    run.model(ToolCall(id="c1", name="get", arguments="{}"))
    asked = {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "get"}}
    request = Request(method="POST", url="http://shop/mcp", body=json.dumps(asked).encode())
    body = json.dumps({"jsonrpc": "2.0", "id": 4} | error).encode()
    exchange = run.exchange(request, "http", answered((), body))
    assert exchange.response is not None
    assert exchange.response.body == body
    assert says in run.nemesis.no_site[0]


def test_a_hang_with_progress_tells_of_it_for_ever_and_never_has_a_result() -> None:
    exchange, _ = struck("hang", Server(meta=TOKEN), progress=True, cap_ms=3500)
    assert exchange.response is not None
    answer = exchange.response
    told = [json.loads(each) for each in mcp.read_server_messages(answer.headers, answer.body)]
    assert [each["params"] for each in told] == [
        {"progressToken": 7, "progress": step} for step in range(4)
    ]
    assert {each["method"] for each in told} == {"notifications/progress"}
    assert [chunk.at - exchange.started for chunk in answer.chunks] == [0, 1, 2, 3]
    assert exchange.error == "timeout: 0.5 s"

    exchange, _ = struck("hang", Server(), progress=True, cap_ms=1500)
    assert exchange.response is not None
    assert exchange.response.body == b": ping\r\n\r\n" * 2


def test_over_stdio_a_hang_ends_in_the_error_of_a_client_that_timed_out() -> None:
    exchange, run = struck("hang", Server(way="stdio", meta=TOKEN), progress=True, cap_ms=1500)
    assert exchange.response is not None
    *told, last = [json.loads(chunk.data) for chunk in exchange.response.chunks]
    assert [each["params"]["progress"] for each in told] == [0, 1]
    assert last["error"] == {"code": -32001, "message": "Request timed out"}
    assert [c.at - exchange.started for c in exchange.response.chunks] == [0, 1, 1.5]
    assert run.injections[0].error_channel == "jsonrpc"
    _, run = struck("hang", Server(way="stdio"), progress=True)
    assert "wants to hear of no progress" in run.nemesis.no_site[0]


def test_a_cut_breaks_a_stream_off_and_ends_a_server_of_stdio() -> None:
    exchange, _ = struck("cut", Server(way="stream"))
    assert exchange.response is not None
    assert mcp.parse_mcp_reply(exchange.response.headers, exchange.response.body) is None
    assert exchange.error == "reset"
    exchange, _ = struck("cut", Server(way="stdio"))
    assert (exchange.response, exchange.error) == (None, "eof: the server ended")
    _, run = struck("cut", Server(way="stream"), how="sse_error")
    assert "MCP has no error event" in run.nemesis.no_site[0]


@pytest.mark.parametrize("id", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_an_acknowledgement_is_one_of_this_request_and_its_server_is_not_asked(
    way: str, id: int
) -> None:
    writes = Server(way=way, structured=ORDER, hints={"readOnlyHint": False})
    run = Run(writes, Fault(name="silent_noop", nth=2, at="mcp"))
    first = run.call()
    run.model()
    run.ids = count(id)  # a client that counts anew asks with the id of the first
    second = run.call("c2")
    assert response(second) == response(first)
    assert second.response is not None
    assert "mcp-session-id" not in dict(second.response.headers)
    assert sum("tools/call" in asked for asked in run.asked) == 1


def test_a_server_that_failed_acknowledges_nothing_and_has_nothing_to_lose() -> None:
    failing = Server(error=True, hints={"readOnlyHint": False})
    run = Run(failing, Fault(name="silent_noop", nth=2, at="mcp"))
    run.call()
    run.model()
    run.call("c2")
    assert run.nemesis.no_site == ["no acknowledgement of this tool was seen"]
    _, run = struck("lost_ack", failing)
    assert run.nemesis.no_site == ["the tool did not do its work"]


@pytest.mark.parametrize("way", ["json", "stdio"])
def test_a_lost_acknowledgement_is_a_failure_after_the_server_was_asked(way: str) -> None:
    exchange, run = struck("lost_ack", Server(way=way, hints={"destructiveHint": True}))
    assert any("tools/call" in asked for asked in run.asked)
    assert exchange.response is not None
    if way == "json":
        assert exchange.response.status == 504
    else:
        error = {"code": -32001, "message": "Gateway Timeout"}
        assert response(exchange) == {"error": error}


def test_what_a_server_says_of_its_tool_decides_whether_it_writes() -> None:
    reads = Server(hints={"readOnlyHint": True})
    _, run = struck("lost_ack", reads)
    assert "needs a call that writes, and this one reads" in run.nemesis.no_site[0]
    run = Run(Server(hints={"readOnlyHint": False}), Fault(name="digit", where={"side": "write"}))
    run.call()
    assert len(run.injections) == 1, "its name says that it reads"


def test_several_faults_strike_one_result_in_their_order() -> None:
    run = Run(Server(structured=ORDER), Fault(name="cut", at="mcp"), Fault(name="digit", at="mcp"))
    exchange = run.call()
    assert [each.op for each in run.injections] == ["digit", "cut"]
    assert exchange.error == "reset"


@pytest.mark.parametrize(
    ("name", "told", "consumed"),
    [
        ("protocol_error", "MCP error -32603: Internal error", True),
        ("tool_error", "error: A required argument is missing", True),
        ("schema_drift", "error: RuntimeError: the tool did not return what it declares", False),
        ("digit", "the order is fine", None),
    ],
)
def test_it_is_consumed_once_a_model_was_told(name: str, told: str, consumed: bool | None) -> None:
    """A client may keep an error of the protocol to itself, or refuse what was not declared."""
    run = Run(Server(structured=ORDER), Fault(name=name, at="mcp"))
    run.call()
    run.told[-1]["content"] = told
    run.model()
    found = decide_consumption(run.injections[0], derive_steps(run.seen), run.seen)
    assert (found.consumed, found.why in ("absorbed", "undecidable")) == (consumed, not consumed)


def test_a_later_try_that_succeeds_absorbs_an_error_of_the_protocol() -> None:
    run = Run(Server(), Fault(name="protocol_error", at="mcp"))
    run.call()
    again = {"name": "get", "arguments": {"id": "ord-7314"}}
    run.say("tools/call", again, run.server.result())
    run.told[-1]["content"] = "I tried twice, and here it is: " + json.dumps(ORDER)
    run.model()
    assert decide_consumption(run.injections[0], derive_steps(run.seen), run.seen).consumed is False
