"""Small runs built by hand: tool results, the agent's messages to its model, and the outcome."""

import json
from pathlib import Path

from faults.judging.judge import RunEvidence, to_run_evidence
from traces.dialects import openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import (
    Chunk,
    EndReason,
    Exchange,
    Headers,
    Injection,
    Request,
    Response,
    RunEnding,
    Trajectory,
)
from traces.tape.reader import Tape

ORDER = '{"id": "ord-7314", "total": 1250.4}'
BENT = '{"id": "ord-7314", "total": 1259.4}'
FAILED = '{"error": {"code": 503, "message": "Service Unavailable"}}'
ARGUMENTS = '{"id": "ord-7314"}'


class Telling:
    """A run under construction."""

    def __init__(self, prompt: str = "refund ord-7314") -> None:
        self.exchanges: list[Exchange] = []
        self._messages: list[dict[str, object]] = [{"role": "user", "content": prompt}]
        self._calls = 0

    def calls(self, *said: str, told: str | None = None) -> "Telling":
        """Add a model call of the order, the shop's answers, and the text that the model received.

        All answers but the last are retried by the client; the model receives the last one, unless
        `told` gives another text.
        """
        self._calls += 1
        call = ToolCall(id=f"c{self._calls}", name="get_order", arguments=ARGUMENTS)
        self._model(ModelAnswer(calls=(call,), model="m"))
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
        """Add a model call of any tool, with an optional text, and its result."""
        return self._call(tool, said, text, arguments, is_local=False)

    def runs(self, command: str, said: str) -> "Telling":
        """Add a command of a shell, which sends no request, and its output."""
        return self._call("bash", said, "", {"command": command}, is_local=True)

    def _call(
        self, tool: str, said: str, text: str, arguments: dict[str, object], *, is_local: bool
    ) -> "Telling":
        self._calls += 1
        call = ToolCall(id=f"c{self._calls}", name=tool, arguments=json.dumps(arguments))
        self._model(ModelAnswer(message=text, calls=(call,), model="m"))
        if not is_local:
            self._exchange(f"http://shop/{tool}", call.arguments.encode(), 200, (), said.encode())
        function = {"name": call.name, "arguments": call.arguments}
        calls = [{"id": call.id, "function": function}]
        self._messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        self._messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
        return self

    def unanswered(self) -> None:
        """Send the model the latest result, without an answer."""
        body = json.dumps({"model": "m", "messages": self._messages}).encode()
        request = Request(method="POST", url="http://m/v1/chat/completions", body=body)
        seq = len(self.exchanges)
        self.exchanges.append(
            Exchange(seq=seq, request=request, error="cancelled", started=float(seq))
        )

    def says(self, message: str) -> "Telling":
        """Add the model's final answer."""
        self._model(ModelAnswer(message=message, model="m"))
        return self

    def over(self, *, passed: bool | None = True, ended: EndReason = "final") -> RunEvidence:
        """Return the run with its end."""
        return to_run_evidence(
            Tape(
                path=Path("a.tape"),
                trajectory=Trajectory(id="r", recorded_at=0.0),
                exchanges=tuple(self.exchanges),
                ending=RunEnding(ended=ended, passed=passed),
                spans={},
            )
        )

    def _model(self, answer: ModelAnswer) -> None:
        headers, (chunk,) = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)
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
    """Return an injection that replaced the shop's first answer, which is always exchange 1."""
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
        detect="D0" if family == "E" else None,
    )


def clean() -> RunEvidence:
    """Return the run of an agent without a fault."""
    return Telling().calls(ORDER).says("DONE: refunded").over()
