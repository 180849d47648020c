"""Agents that run concurrently, and the world that they are recorded in."""

import json
from collections.abc import Generator, Iterator, Sequence
from copy import replace
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from replay.player import REFUSED_STATUS
from traces.dialects import mcp, openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Headers, Request, Response, Trajectory
from traces.tape.reader import Tape

MODEL = "http://model.test/v1/chat/completions"
SHOP = "http://shop.test/get"
SERVER = "http://shop.test/mcp"
MOST = 12
"""Consecutive failures: more than any script has."""
META = "claudecode/toolUseId"


@dataclass(frozen=True)
class Heard:
    """An answer as a client received it; `whole` is False if it was cut."""

    status: int | None
    body: bytes
    whole: bool

    @property
    def good(self) -> bool:
        return self.whole and self.status == 200


type Agent = Generator[Request, Heard]


def agent(prompt: str, heard: list[bytes], ids: Iterator[int], *, names: bool) -> Agent:
    """Follow the model, retry until answered, and note the answers.

    It ends when it is refused. With `names` each request carries the id of its call.
    """
    messages: list[dict[str, object]] = [{"role": "user", "content": prompt}]
    while True:
        body = json.dumps({"model": "m", "messages": messages}).encode()
        said = yield from _insist(Request(method="POST", url=MODEL, body=body))
        if said is None:
            return
        heard.append(said)
        message = json.loads(said)["choices"][0]["message"]
        if not message.get("tool_calls"):
            return
        messages.append(message)
        for call in message["tool_calls"]:
            document = json.loads(call["function"]["arguments"])
            told = yield from _insist(asked(call["id"] if names else None, document, ids))
            if told is None:
                return
            heard.append(told)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(told)})


def _insist(request: Request) -> Generator[Request, Heard, bytes | None]:
    for _ in range(MOST):
        heard = yield request
        if heard.good:
            return said(heard.body)
        if heard.status == REFUSED_STATUS:
            return None
    raise AssertionError("it is told the same failure for ever")


def said(body: bytes) -> bytes:
    """Return an answer without the number of the message that it answers."""
    if b"jsonrpc" not in body:
        return body
    return json.dumps(json.loads(body)["result"]).encode()


def asked(call_id: str | None, wanted: dict[str, str], ids: Iterator[int]) -> Request:
    """Return the request for a call; over MCP it has a number of the client's."""
    if wanted["by"] == "http":
        named: Headers = (("x-tool-call-id", call_id),) if call_id else ()
        return Request(method="POST", url=SHOP, headers=named, body=wanted["of"].encode())
    meta = {"_meta": {META: call_id}} if call_id else {}
    params = {"name": "get", "arguments": wanted, **meta}
    message = {"jsonrpc": "2.0", "id": next(ids), "method": "tools/call", "params": params}
    return Request(method="POST", url=SERVER, body=json.dumps(message).encode())


def key(request: Request) -> tuple[object, ...]:
    """Return a key that is equal for equal requests: their contents, and the id of the call."""
    if request.url != SERVER:
        return request.url, request.headers, request.body
    message = json.loads(request.body)
    return request.url, json.dumps(message["params"])


@dataclass(frozen=True)
class Script:
    """One conversation: the calls of each turn, and the failures before they succeed."""

    prompt: str
    turns: tuple[tuple[tuple[str, str], ...], ...]
    failing: tuple[str, ...]


class World:
    """Answers the agents while they are recorded; every answer is unique."""

    def __init__(self, scripts: Sequence[Script]) -> None:
        self._scripts = scripts
        self._failing = [list(script.failing) for script in scripts]
        self._turn = [0] * len(scripts)
        self._number = count()

    def answer(self, lane: int, request: Request, at: float) -> tuple[Response | None, str | None]:
        how = self._failing[lane].pop() if self._failing[lane] else "works"
        if how == "reset":
            return None, "reset"
        if how == "busy":
            return plain(b"busy", at, status=503), None
        said = self._model(lane, at) if request.url == MODEL else self._tool(lane, request, at)
        if how == "cut":
            half = tuple(replace(c, data=c.data[: len(c.data) // 2]) for c in said.chunks)
            return replace(said, chunks=half, ended=None), "reset"
        if request.url == MODEL:
            self._turn[lane] += 1
        return said, None

    def _model(self, lane: int, at: float) -> Response:
        turns, turn = self._scripts[lane].turns, self._turn[lane]
        calls = tuple(
            ToolCall(
                id=f"c{next(self._number)}", name="get", arguments=json.dumps({"by": by, "of": of})
            )
            for by, of in (turns[turn] if turn < len(turns) else ())
        )
        answer = ModelAnswer(message=f"{next(self._number)}", calls=calls, model="m")
        headers, chunks = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)
        return plain(chunks[0].data, at, headers)

    def _tool(self, lane: int, request: Request, at: float) -> Response:
        text = f"{lane} is told {next(self._number)}"
        if request.url == SHOP:
            return plain(json.dumps({"said": text}).encode(), at)
        reply = mcp.McpReply(id=str(json.loads(request.body)["id"]), text=text, is_error=False)
        headers, chunks = mcp.write_mcp_reply(reply, stream=False)
        return plain(chunks[0].data, at, headers)


def plain(body: bytes, at: float, headers: Headers = (), status: int = 200) -> Response:
    kept = tuple((k, v) for k, v in headers if k.lower() != "content-length")
    sized = (*kept, ("content-length", str(len(body))))
    return Response(
        status=status,
        reason="OK",
        headers=sized,
        chunks=(Chunk(at=at, data=body),),
        at=at,
        ended=at,
    )


def heard(response: Response | None, error: str | None) -> Heard:
    if response is None:
        return Heard(None, b"", False)
    return Heard(response.status, response.body, error is None)


class Lane:
    """A running agent, the answers it has received, and the request that it waits for."""

    def __init__(self, prompt: str, first: int, *, names: bool) -> None:
        self.kept: list[bytes] = []
        self.waiting = False
        self._names = names
        self._agent = agent(prompt, self.kept, count(first), names=names)
        self.asks: Request | None = next(self._agent)

    @property
    def at_rest(self) -> bool:
        """Return True if another lane may go on: always, or while no call is open."""
        return self._names or self.asks is None or (self.waiting and self.asks.url == MODEL)

    def take(self, heard: Heard) -> None:
        self.waiting = False
        try:
            self.asks = self._agent.send(heard)
        except StopIteration:
            self.asks = None


@dataclass(frozen=True)
class Recorded:
    """A tape of several conversations, the lane of each exchange, and the answers each lane
    received.
    """

    tape: Tape
    owners: tuple[int, ...]
    heard: tuple[tuple[bytes, ...], ...]


def recorded(scripts: Sequence[Script], order: Sequence[int], *, names: bool) -> Recorded:
    """Record the conversations interleaved step by step, with two requests of each in parallel."""
    lanes = [Lane(script.prompt, first=1, names=names) for script in scripts]
    world, clock, turns = World(scripts), count(), iter(order)
    found, owners, under_way = list[Exchange](), list[int](), dict[int, Exchange]()

    def go_on(number: int) -> None:
        lane, at = lanes[number], float(next(clock))
        assert lane.asks is not None
        if not lane.waiting:
            lane.waiting = True
            under_way[number] = Exchange(seq=len(found), request=lane.asks, started=at)
            found.append(under_way[number])
            return owners.append(number)
        exchange = under_way.pop(number)
        response, error = world.answer(number, exchange.request, at)
        found[exchange.seq] = replace(exchange, response=response, error=error)
        return lane.take(heard(response, error))

    while left := [n for n, lane in enumerate(lanes) if lane.asks is not None]:
        number = left[next(turns, 0) % len(left)]
        go_on(number)
        while not lanes[number].at_rest:
            go_on(number)
    run = Trajectory(id="rec", recorded_at=0.0)
    tape = Tape(path=Path("x"), trajectory=run, exchanges=tuple(found), spans={})
    return Recorded(tape, tuple(owners), tuple(tuple(lane.kept) for lane in lanes))
