"""Small runs told by hand: what tools said, what the agent told its model, and how it ended."""

import json
from pathlib import Path

from faults.judge import Run, run
from traces.dialects import openai_chat
from traces.model import (
    Chunk,
    Ended,
    Ending,
    Exchange,
    Headers,
    Injection,
    Request,
    Response,
    Trajectory,
)
from traces.step import Answer, ToolCall
from traces.tape import Tape

ORDER = '{"id": "ord-7314", "total": 1250.4}'
BENT = '{"id": "ord-7314", "total": 1259.4}'
FAILED = '{"error": {"code": 503, "message": "Service Unavailable"}}'
ARGUMENTS = '{"id": "ord-7314"}'


class Telling:
    """A run as far as it is told."""

    def __init__(self, prompt: str = "refund ord-7314") -> None:
        self.exchanges: list[Exchange] = []
        self._messages: list[dict[str, object]] = [{"role": "user", "content": prompt}]
        self._calls = 0

    def calls(self, *said: str, told: str | None = None) -> "Telling":
        """The model asks for the order, the shop says this, and the model is `told` one thing.

        What is said first is repeated by a client that tries again; what was told is the last
        of it unless another text is given.
        """
        self._calls += 1
        call = ToolCall(id=f"c{self._calls}", name="get_order", arguments=ARGUMENTS)
        self._model(Answer(calls=(call,), model="m"))
        for text in said:
            status = 503 if text == FAILED else 200
            self._exchange("http://shop/get_order", ARGUMENTS.encode(), status, (), text.encode())
        function = {"name": call.name, "arguments": call.arguments}
        calls = [{"id": call.id, "function": function}]
        content = said[-1] if told is None else told
        self._messages.append({"role": "assistant", "tool_calls": calls})
        self._messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        return self

    def asks(self, tool: str, said: str, text: str = "", **arguments: object) -> "Telling":
        """The model asks any tool, perhaps with some words, and is told this."""
        self._calls += 1
        call = ToolCall(id=f"c{self._calls}", name=tool, arguments=json.dumps(arguments))
        self._model(Answer(message=text, calls=(call,), model="m"))
        self._exchange(f"http://shop/{tool}", call.arguments.encode(), 200, (), said.encode())
        function = {"name": call.name, "arguments": call.arguments}
        calls = [{"id": call.id, "function": function}]
        self._messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        self._messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
        return self

    def unanswered(self) -> None:
        """The model is told the latest result, and its answer never comes."""
        body = json.dumps({"model": "m", "messages": self._messages}).encode()
        request = Request(method="POST", url="http://m/v1/chat/completions", body=body)
        seq = len(self.exchanges)
        self.exchanges.append(
            Exchange(seq=seq, request=request, error="cancelled", started=float(seq))
        )

    def says(self, message: str) -> "Telling":
        """The model's final answer."""
        self._model(Answer(message=message, model="m"))
        return self

    def over(self, *, passed: bool | None = True, ended: Ended = "final") -> Run:
        """The run with its end."""
        return run(
            Tape(
                path=Path("a.tape"),
                trajectory=Trajectory(id="r", recorded_at=0.0),
                exchanges=tuple(self.exchanges),
                ending=Ending(ended=ended, passed=passed),
                spans={},
            )
        )

    def _model(self, answer: Answer) -> None:
        headers, (chunk,) = openai_chat.write(answer, stream=False, id="x", created=0)
        body = json.dumps({"model": "m", "messages": self._messages}).encode()
        self._exchange("http://m/v1/chat/completions", body, 200, headers, chunk.data)

    def _exchange(self, url: str, body: bytes, status: int, headers: Headers, said: bytes) -> None:
        seq = len(self.exchanges)
        at = float(seq)
        chunks = (Chunk(at=at + 0.5, data=said),)
        answer = Response(
            status=status, headers=headers, chunks=chunks, at=at + 0.5, ended=at + 0.5
        )
        request = Request(method="POST", url=url, body=body)
        self.exchanges.append(Exchange(seq=seq, request=request, response=answer, started=at))


def struck(family: str, mutated: str, *, op: str | None = None, original: str = ORDER) -> Injection:
    """The first answer of the shop, which is always exchange 1, was replaced by this."""
    return Injection(
        id="r/1",
        seq=1,
        side="response",
        op=op or {"E": "http_status", "V": "digit", "sham": "sham"}[family],
        family=family,
        place="http",
        address="",
        tool="get_order",
        call_id="c1",
        arguments=ARGUMENTS,
        original=original.encode(),
        mutated=mutated.encode(),
        sham=family == "sham",
    )


def clean() -> Run:
    """What an agent does that is struck by nothing."""
    return Telling().calls(ORDER).says("DONE: refunded").over()
