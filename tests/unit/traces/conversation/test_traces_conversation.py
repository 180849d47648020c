"""Lanes, attempts and joins come out the same while recording and while reading."""

import gzip
import json
from copy import replace
from itertools import count

import pytest

from traces.conversation.derived_steps import DerivedSteps, derive_steps
from traces.conversation.tracker import ConversationTap
from traces.dialects import openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Request, Response
from traces.taps import TapChain

type Message = dict[str, object]


class Play:
    """Writes exchanges the way an agent makes them."""

    def __init__(self) -> None:
        self.seqs, self.now = count(), count(1)
        self.exchanges: list[Exchange] = []

    def model(
        self, messages: list[Message], *calls: ToolCall, text: str = "", status: int = 200
    ) -> list[Message]:
        body = json.dumps({"model": "m", "messages": messages}).encode()
        answer = ModelAnswer(message=text, calls=calls, model="m")
        headers, chunks = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)
        if status >= 400:
            headers, chunks = (), (Chunk(at=0, data=b'{"error":{}}'),)
        self._add(
            Request(method="POST", url="http://m/v1/chat/completions", body=body),
            status,
            headers,
            chunks,
        )
        said: Message = {"role": "assistant", "content": text or None}
        if calls:
            said["tool_calls"] = [
                {"id": c.id, "function": {"name": c.name, "arguments": c.arguments}} for c in calls
            ]
        return [*messages, said]

    def tool(self, path: str, body: bytes = b"{}", said: bytes = b"{}", status: int = 200) -> None:
        request = Request(method="POST", url=f"http://shop/{path}", body=body)
        self._add(request, status, (), (Chunk(at=0, data=said),))

    def _add(self, request: Request, status: int, headers, chunks) -> None:
        started = float(next(self.now))
        at = started + 0.5
        chunks = tuple(Chunk(at=at, data=chunk.data) for chunk in chunks)
        answer = Response(status=status, headers=headers, chunks=chunks, at=at, ended=at)
        self.exchanges.append(
            Exchange(seq=next(self.seqs), request=request, response=answer, started=started)
        )

    def story(self, **tools: str) -> DerivedSteps:
        return derive_steps(self.exchanges, tools)


def result(call: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call, "content": text}


ORDER = ToolCall(id="c1", name="get_order", arguments='{"id": "ord-7314"}')
RATE = ToolCall(id="c2", name="get_rate", arguments='{"pair": "EURUSD-2026"}')
GO: list[Message] = [{"role": "system", "content": "s"}, {"role": "user", "content": "go"}]


def test_a_tool_request_between_a_call_and_its_result_is_that_call() -> None:
    play = Play()
    told = play.model(GO, ORDER)
    play.tool("orders", said=b'{"total": 1250}')
    play.model([*told, result("c1", '{"total": 1250}')], text="done")

    (use,) = play.story().tool_uses
    assert (use.tool, use.join, use.place, use.seqs) == ("get_order", "window", "http", (1,))
    assert use.result == '{"total": 1250}'
    assert use.result_seq == 2
    assert use.is_error is False


def test_steps_are_what_was_said_and_answered_each_with_its_proof() -> None:
    play = Play()
    told = play.model(GO, ORDER)
    play.tool("orders")
    play.model([*told, result("c1", "{}")], text="done")

    steps = play.story().steps
    assert [(s.number, s.source, s.seqs) for s in steps] == [
        (1, "system", (0,)),
        (2, "user", (0,)),
        (3, "agent", (0,)),
        (4, "agent", (2,)),
    ]


def test_two_open_calls_are_told_apart_by_an_id_like_word() -> None:
    play = Play()
    told = play.model(GO, ORDER, RATE)
    play.tool("orders", b'{"id":"ord-7314"}')
    play.tool("anything")
    play.model([*told, result("c1", "1"), result("c2", "2")], text="done")

    order, rate = play.story().tool_uses
    assert (order.join, order.seqs) == ("args", (1,))
    assert (rate.join, rate.place) == (None, "local")
    assert not order.has_strong_join


def test_a_map_is_stronger_than_the_window() -> None:
    play = Play()
    told = play.model(GO, ORDER, RATE)
    play.tool("v1/rates", b"{}")
    play.model([*told, result("c1", "1"), result("c2", "2")], text="done")

    rate = play.story(get_rate="POST */rates").tool_uses[1]
    assert (rate.join, rate.seqs) == ("map", (1,))


def test_the_same_request_after_a_failure_is_an_attempt_and_not_a_step() -> None:
    play = Play()
    play.model(GO, status=429)
    told = play.model(GO, ORDER)
    play.tool("orders", status=503)
    play.tool("orders")
    play.model([*told, result("c1", "{}")], text="done")

    told_story = play.story()
    assert told_story.contexts[1].attempt_of == 0
    assert told_story.contexts[3].attempt_of == 2
    assert [turn.seqs for turn in told_story.agent_steps] == [(0, 1), (4,)]
    assert told_story.tool_uses[0].seqs == (2, 3)


def test_the_same_request_after_a_success_is_asked_anew() -> None:
    play = Play()
    told = play.model(GO, ORDER)
    play.tool("orders")
    play.tool("orders")
    play.model([*told, result("c1", "{}")], text="done")
    assert play.story().contexts[2].attempt_of is None


def test_conversations_that_grow_apart_are_lanes() -> None:
    play = Play()
    title: list[Message] = [{"role": "user", "content": "a title, please"}]
    told = play.model(GO, ORDER)
    play.model(title, text="Title")
    play.model([*told, result("c1", "{}")], text="done")

    placed = play.story().contexts
    assert [placed[seq].lane for seq in (0, 1, 2)] == [0, 1, 0]


@pytest.mark.parametrize(
    ("said", "is_error"),
    [
        ("Error: no such order", True),
        ('{"error": {"code": 404}}', True),
        ('{"returncode": 2, "output": ""}', True),
        ('{"returncode": 0, "output": "x"}', False),
        ('{"total": 3}', None),
        ("just words", None),
    ],
)
def test_a_local_result_says_of_itself_whether_it_is_an_error(
    said: str, is_error: bool | None
) -> None:
    play = Play()
    told = play.model(GO, ORDER)
    play.model([*told, result("c1", said)], text="done")
    assert play.story().tool_uses[0].is_error is is_error


def test_while_it_happens_the_same_comes_out_as_afterwards() -> None:
    play = Play()
    play.model(GO, status=500)
    told = play.model(GO, ORDER)
    play.tool("orders", status=503)
    play.tool("orders")
    play.model([*told, result("c1", "{}")], text="done")

    watch = ConversationTap()
    taps = TapChain([watch])
    after = play.story()
    for exchange in play.exchanges:
        taps.request(exchange)
        live = watch.find_context(exchange)
        taps.done(exchange)
        told_after = after.contexts[exchange.seq]
        assert (live.kind, live.lane, live.attempt_of, live.join) == (
            told_after.kind, told_after.lane, told_after.attempt_of, told_after.join,
        )  # fmt: skip


def test_a_client_may_act_before_the_stream_is_over() -> None:
    play = Play()
    play.model(GO, ORDER)
    play.tool("orders")
    asked, tool = play.exchanges
    assert asked.response is not None
    head = Response(status=200, headers=asked.response.headers, at=1.0)

    watch = ConversationTap()
    taps = TapChain([watch])
    taps.request(asked)
    taps.head(Exchange(seq=0, request=asked.request, response=head, started=1.0))
    for chunk in asked.response.chunks:
        taps.chunk(asked, chunk)
    taps.request(tool)  # before done(asked)
    taps.done(asked)

    assert watch.find_context(tool).join == "window"
    assert len(watch.conversations.calls) == 1


def test_who_rewrites_what_was_said_stays_in_the_lane_by_answering_its_call() -> None:
    play = Play()
    title: list[Message] = [{"role": "user", "content": "a title, please"}]
    play.model(title, text="Orders")
    _, asked, said = play.model(GO, ORDER)
    now: Message = {"role": "system", "content": "s, and it is ten past nine"}
    play.model([now, asked, said, result("c1", "{}")], text="done")

    told = play.story()
    assert [turn.lane for turn in told.agent_steps] == [0, 1, 1]
    assert told.tool_uses[0].result == "{}"


def test_who_answers_what_two_lanes_wait_for_is_a_lane_of_its_own() -> None:
    play = Play()
    other: Message = {"role": "system", "content": "another"}
    play.model(GO, ORDER)
    play.model([other, *GO], ORDER)
    play.model([{"role": "user", "content": "new"}, result("c1", "{}")], text="done")
    assert [turn.lane for turn in play.story().agent_steps] == [0, 1, 2]


def test_an_id_that_comes_again_after_its_result_is_another_call() -> None:
    play = Play()
    told = play.model(GO, ORDER)
    told = play.model([*told, result("c1", "one")], ORDER)
    play.tool("orders")
    play.model([*told, result("c1", "two")], text="done")

    first, second = play.story().tool_uses
    assert (first.call_id, first.result, first.seqs) == ("c1", "one", ())
    assert (second.call_id, second.result, second.seqs) == ("c1#2", "two", (2,))


def test_cache_marks_that_move_leave_a_conversation_whole() -> None:
    play = Play()
    mark = {"cache_control": {"type": "ephemeral"}}
    marked: Message = {"role": "user", "content": [{"type": "text", "text": "go", **mark}]}
    play.model([GO[0], marked], text="what?")
    play.model([*GO, {"role": "user", "content": "go on"}], text="done")
    assert [turn.lane for turn in play.story().agent_steps] == [0, 0]


def test_requests_that_are_compressed_make_one_conversation() -> None:
    play = Play()
    told = play.model(GO, ORDER)
    play.model([*told, result("c1", "{}")], text="done")
    packed = []
    for exchange in play.exchanges:
        body, headers = gzip.compress(exchange.request.body), (("content-encoding", "gzip"),)
        request = Request(method="POST", url=exchange.request.url, headers=headers, body=body)
        packed.append(replace(exchange, request=request))

    told_story = derive_steps(packed)
    assert [turn.lane for turn in told_story.agent_steps] == [0, 0]
    assert told_story.tool_uses[0].result == "{}"
