"""Turns of a WebSocket that go live are asked with the whole conversation, as it went on."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, cast

from recorder.proxy.http1_response import AnswerEnd
from recorder.proxy.origin_connection import TakePart
from recorder.proxy.upstream import AgentLine, ChunkCallback, HeadCallback
from recorder.proxy.websocket_over_http import WebSocketOverHttp
from traces.model import BodyEdit, Chunk, Exchange, Request, Response

type Item = dict[str, Any]

URL = "wss://api.openai.com/v1/responses"
CALL = {"type": "function_call", "call_id": "c1", "name": "price", "arguments": "{}"}


def result(output: str) -> Item:
    return {"type": "function_call_output", "call_id": "c1", "output": output}


def turn(seq: int, *items: Item, after: str | None = None) -> Exchange:
    """What an agent sends, which holds only what is new."""
    previous = {"previous_response_id": after} if after else {}
    asked = {"type": "response.create", **previous, "model": "m", "input": list(items)}
    request = Request(method="TEXT", url=URL, body=json.dumps(asked).encode())
    return Exchange(seq=seq, request=request, transport="websocket")


def answer(id: str, *items: Item) -> Response:
    told = [{"type": "response.output_item.done", "item": item} for item in items]
    events = [*told, {"type": "response.completed", "response": {"id": id, "output": []}}]
    chunks = tuple(Chunk(at=0.0, data=json.dumps(event).encode()) for event in events)
    return Response(status=101, at=0.0, chunks=chunks)


@dataclass
class Provider:
    """Answers nothing, and keeps what it is asked."""

    asked: list[Exchange] = field(default_factory=list)

    def attach(self, line: AgentLine) -> None:
        pass

    def release(self, line: AgentLine, *, reset: bool) -> None:
        pass

    async def relay(self, exchange: Exchange, version: str, take: TakePart) -> AnswerEnd:
        raise NotImplementedError

    async def send(self, exchange: Exchange, head: HeadCallback, chunk: ChunkCallback) -> Exchange:
        self.asked.append(exchange)
        return exchange


def sent_live(exchange: Exchange) -> list[Item]:
    """The items that a provider is asked for the turn after `struck`, which stood on the tape."""
    provider = Provider()
    bridge = WebSocketOverHttp(provider)
    first = turn(0, {"type": "message", "role": "user", "content": "price?"})
    bridge.done(first.with_response(answer("r1", CALL), None))
    bridge.done(exchange.with_response(answer("r2"), None))
    live = turn(2, {"type": "message", "role": "user", "content": "thanks"}, after="r2")
    asyncio.run(bridge.send(live, lambda _: None, lambda _: None))
    (post,) = provider.asked
    assert post.request.method == "POST"
    return cast(list[Item], json.loads(post.request.body)["input"])


def test_a_turn_is_asked_with_all_that_came_before_it() -> None:
    asked = sent_live(turn(1, result("12 EUR"), after="r1"))
    assert [item.get("content", item["type"]) for item in asked] == [
        "price?",
        "function_call",
        "function_call_output",
        "thanks",
    ]


def test_a_struck_result_stays_struck_in_the_turns_after_it() -> None:
    true = turn(1, result("12 EUR"), after="r1")
    at = true.request.body.index(b"12 EUR")
    struck = Exchange(
        seq=1,
        request=true.request,
        transport="websocket",
        edits=(BodyEdit(start=at, stop=at + 2, data=b"99"),),
    )
    assert sent_live(struck)[2] == result("99 EUR")
