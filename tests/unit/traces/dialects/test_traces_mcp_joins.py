"""A call over MCP is found to be the call that the model asked for, and nothing else is a call."""

import json
from copy import replace

from tests.unit.traces.conversation.test_traces_conversation import GO, ORDER, RATE, Play, result
from traces.conversation.derived_steps import DerivedSteps, ToolUse
from traces.dialects import mcp
from traces.dialects.types import ToolCall
from traces.model import Chunk, Headers, Request

URL = "http://shop/mcp"


class Session(Play):
    """An agent that has its tools on an MCP server."""

    def asks(
        self,
        method: str,
        params: object = None,
        *,
        reply: mcp.McpReply | None = None,
        status: int = 200,
        stream: bool = False,
    ) -> int:
        seq = next(self.seqs)
        said = {"jsonrpc": "2.0", "id": seq, "method": method, "params": params}
        request = Request(method="POST", url=URL, body=json.dumps(said).encode())
        found = reply or mcp.McpReply(id=str(seq), text="ok", is_error=False)
        headers, chunks = mcp.write_mcp_reply(found, stream=stream)
        return self.says(request, status, headers, chunks)

    def says(
        self, request: Request, status: int, headers: Headers = (), chunks: tuple[Chunk, ...] = ()
    ) -> int:
        self._add(request, status, headers, chunks)
        return self.exchanges[-1].seq

    def calls(
        self,
        name: str,
        arguments: str,
        *,
        meta: object = None,
        reply: mcp.McpReply | None = None,
        status: int = 200,
    ) -> int:
        params = {"name": name, "arguments": json.loads(arguments), "_meta": meta}
        return self.asks("tools/call", params, reply=reply, status=status)


def told(session: Session, *calls: ToolCall) -> DerivedSteps:
    """The story once the model has the results of these calls."""
    session.model([*GO, *(result(call.id, "ok") for call in calls)], text="done")
    return session.story()


def use(derived_steps: DerivedSteps, call: ToolCall) -> ToolUse:
    found = derived_steps.find_use(call.id)
    assert found is not None
    return found


def named(call: ToolCall, name: str) -> ToolCall:
    return ToolCall(id=call.id, name=name, arguments=call.arguments)


def test_parallel_calls_are_told_apart_by_name_and_arguments() -> None:
    session = Session()
    order, rate = named(ORDER, "mcp__shop__get_order"), named(RATE, "shop__get_rate")
    session.model(GO, order, rate)
    second = session.calls("get_rate", '{ "pair" : "EURUSD-2026" }')
    first = session.calls("get_order", '{"id": "ord-7314"}')
    story = told(session, order, rate)
    assert [
        (x.place, x.join, x.has_strong_join, x.seqs) for x in (use(story, order), use(story, rate))
    ] == [
        ("mcp", "map", True, (first,)),
        ("mcp", "map", True, (second,)),
    ]


def test_calls_of_two_tools_with_equal_arguments_are_told_apart() -> None:
    session = Session()
    refund = ToolCall(id="c9", name="get_refund", arguments=ORDER.arguments)
    session.model(GO, ORDER, refund)
    seqs = {name: session.calls(name, ORDER.arguments) for name in ("get_refund", "get_order")}
    story = told(session, ORDER, refund)
    assert [(use(story, x).join, use(story, x).seqs) for x in (ORDER, refund)] == [
        ("map", (seqs["get_order"],)),
        ("map", (seqs["get_refund"],)),
    ]


def test_a_client_that_has_its_answer_may_hang_up() -> None:
    session = Session()
    session.model(GO, ORDER)
    session.calls("get_order", ORDER.arguments)
    whole = session.exchanges[-1]
    assert whole.response is not None
    open_end = replace(whole.response, ended=None)
    left = replace(whole, response=open_end, error="cancelled: eof by the agent")
    session.exchanges[-1] = left
    again = session.calls("get_order", ORDER.arguments)
    story = told(session, ORDER)
    assert story.contexts[again].attempt_of is None
    assert use(story, ORDER).is_error is False


def test_the_clients_word_for_which_call_it_is_comes_first() -> None:
    session = Session()
    twin = ToolCall(id="c9", name=ORDER.name, arguments=ORDER.arguments)
    session.model(GO, ORDER, twin)
    later = session.calls("get_order", ORDER.arguments, meta={"claudecode/toolUseId": "c9"})
    earlier = session.calls("get_order", ORDER.arguments, meta={"any/one": "c1", "n": 1})
    story = told(session, ORDER, twin)
    assert (use(story, twin).join, use(story, twin).seqs) == ("id", (later,))
    assert (use(story, ORDER).join, use(story, ORDER).seqs) == ("id", (earlier,))


def test_calls_that_say_the_same_are_joined_but_not_relied_upon() -> None:
    session = Session()
    twin = ToolCall(id="c9", name=ORDER.name, arguments=ORDER.arguments)
    session.model(GO, ORDER, twin)
    seqs = [session.calls("get_order", ORDER.arguments) for _ in range(2)]
    story = told(session, ORDER, twin)
    assert [use(story, call).seqs for call in (ORDER, twin)] == [(seqs[0],), (seqs[1],)]
    assert not use(story, ORDER).has_strong_join


def test_code_that_calls_a_tool_does_so_in_the_only_call_there_is() -> None:
    session = Session()
    bash = ToolCall(id="c1", name="bash", arguments='{"command": "python run.py"}')
    session.model(GO, bash)
    seqs = tuple(session.calls(name, "{}") for name in ("get_order", "get_rate"))
    found = use(told(session, bash), bash)
    assert (found.join, found.seqs, found.place) == ("window", seqs, "mcp")


def test_what_is_no_call_has_no_call_no_lane_and_no_attempts() -> None:
    session = Session()
    session.model(GO, ORDER)
    headers = (("mcp-session-id", "s1"),)
    listed = [session.asks("tools/list", status=500), session.asks("tools/list")]
    talk = [session.asks("initialize"), session.asks("server/discover"), *listed]
    talk += [
        session.says(Request(method=method, url=URL, headers=headers), 405)
        for method in ("GET", "GET", "DELETE")
    ]
    seq = session.calls("get_order", ORDER.arguments)
    story = told(session, ORDER)
    assert use(story, ORDER).seqs == (seq,)
    for each in talk:
        placed = story.contexts[each]
        assert (placed.kind, placed.lane, placed.call, placed.attempt_of) == (
            "tool",
            None,
            None,
            None,
        )
    assert {placed.lane for placed in story.contexts.values()} == {0, None}
    assert len(story.tool_uses) == 1


def test_the_same_call_under_another_id_is_another_attempt() -> None:
    session = Session()
    session.model(GO, ORDER)
    lost = session.calls("get_order", ORDER.arguments, status=503)
    again = session.calls("get_order", ORDER.arguments)
    story = told(session, ORDER)
    assert story.contexts[again].attempt_of == lost
    assert (use(story, ORDER).seqs, use(story, ORDER).is_error) == ((lost, again), False)


def test_each_way_to_say_error_is_one() -> None:
    good = mcp.McpReply(id="1", text="error", is_error=False)
    bad = mcp.McpReply(id="1", text="no such order", is_error=True)
    none = mcp.McpReply(id="1", text="Unknown tool", is_error=True, code=-32602)
    for reply, status, error in (
        (good, 200, False),
        (bad, 200, True),
        (none, 200, True),
        (none, 400, True),
        (good, 502, True),
    ):
        session = Session()
        session.model(GO, ORDER)
        session.calls("get_order", ORDER.arguments, reply=reply, status=status)
        assert use(told(session, ORDER), ORDER).is_error is error
