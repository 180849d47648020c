"""An agent's turns with a provider that stores the conversation, as exchanges."""

import json
from copy import replace
from itertools import count

from traces.dialects import openai_responses
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Request, Response

type Item = dict[str, object]

URL = "http://h/v1/responses"
UPGRADE = Request(method="GET", url=URL, headers=(("Upgrade", "websocket"),))


def user(text: str) -> Item:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def result(call: str, text: str) -> Item:
    return {"type": "function_call_output", "call_id": call, "output": text}


ORDER = ToolCall(id="c1", name="get_order", arguments='{"id": "ord-7314"}')
RATE = ToolCall(id="c2", name="get_rate", arguments='{"pair": "EURUSD-2026"}')


class Play:
    """Writes an agent's exchanges, over a WebSocket or over HTTP, with or without the history."""

    def __init__(self, *, socket: bool, whole: bool) -> None:
        self.socket, self.whole = socket, whole
        self.exchanges: list[Exchange] = []
        self._items: list[Item] = []
        self._previous: str | None = None
        self._seqs, self._now, self._ids = count(), count(1), count()
        if socket:
            self._add(UPGRADE, (), status=101)

    def ask(self, *items: Item, say: ModelAnswer | None = None, **more: object) -> str:
        """Write one turn: the new items and the model's answer; return the answer's id."""
        said, id = say or ModelAnswer(message="hm"), f"resp_{next(self._ids)}"
        self._items += items
        body: dict[str, object] = {"model": "m", "instructions": "be brief", **more}
        if self.whole or self._previous is None:
            body["input"] = list(self._items)
        else:
            body |= {"previous_response_id": self._previous, "input": list(items)}
        if self.socket:
            body = {"type": "response.create", **body}
            chunks = openai_responses.write_websocket_turn(said, id=id, created=0)
        else:
            _, chunks = openai_responses.write_model_answer(said, stream=True, id=id, created=0)
        self._add(self._request(body), chunks)
        self._previous = id
        self._items += json.loads(
            openai_responses.write_model_answer(said, stream=False, id=id, created=0)[1][0].data
        )["output"]
        return id

    def _request(self, body: dict[str, object]) -> Request:
        method = "TEXT" if self.socket else "POST"
        return Request(method=method, url=URL, body=json.dumps(body).encode())

    def error(self, body: dict[str, object], event: dict[str, object]) -> None:
        data = json.dumps({"type": "error", **event}).encode()
        self._add(self._request({"type": "response.create", **body}), (Chunk(at=0, data=data),))

    def _add(self, request: Request, chunks: tuple[Chunk, ...], status: int = 0) -> None:
        at = float(next(self._now))
        answer = Response(
            status=status or (101 if self.socket else 200),
            chunks=tuple(replace(chunk, at=at + 0.5) for chunk in chunks),
            at=at + 0.5,
            ended=at + 0.6,
        )
        self.exchanges.append(
            Exchange(
                seq=next(self._seqs),
                request=request,
                response=answer,
                started=at,
                connection=1,
                transport="websocket" if self.socket else "http",
            )
        )
