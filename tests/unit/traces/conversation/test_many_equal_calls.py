"""Two hundred parallel calls of one tool are as many calls, whatever their ids are."""

import json
from collections.abc import Callable, Sequence
from copy import replace
from pathlib import Path

import pytest

from traces.conversation.derived_steps import derive_tape_steps
from traces.model import Chunk, Exchange, Request, Response
from traces.tape.reader import read_tape

COUNT = 200
type Objects = list[dict[str, object]]
type Talk = tuple[str, str, Objects, Callable[[Objects], object]]
"""URL, name of the list, its items with calls and results, and an answer with items."""


def chat(ids: Sequence[str | None]) -> Talk:
    keys = [{} if id is None else {"id": id} for id in ids]
    calls = [
        {"type": "function", "function": {"name": "roll", "arguments": "{}"}, **key} for key in keys
    ]
    results: Objects = [
        {"role": "tool", "content": str(n), **({} if id is None else {"tool_call_id": id})}
        for n, id in enumerate(ids)
    ]
    asked: Objects = [{"role": "assistant", "content": None, "tool_calls": calls}]
    return (
        "https://api.openai.com/v1/chat/completions",
        "messages",
        [*asked, *results],
        lambda items: {"choices": [{"message": items[0], "finish_reason": "tool_calls"}]},
    )


def gemini(ids: Sequence[str | None]) -> Talk:
    keys = [{} if id is None else {"id": id} for id in ids]
    calls = [{"functionCall": {"name": "roll", "args": {}, **key}} for key in keys]
    results = [
        {"functionResponse": {"name": "roll", "response": {"output": str(n)}, **key}}
        for n, key in enumerate(keys)
    ]
    return (
        "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent",
        "contents",
        [{"role": "model", "parts": calls}, {"role": "user", "parts": results}],
        lambda items: {"candidates": [{"content": items[0], "finishReason": "STOP"}]},
    )


def responses(ids: Sequence[str | None]) -> Talk:
    calls: Objects = [
        {"type": "function_call", "id": f"i{n}", "call_id": id, "name": "roll", "arguments": "{}"}
        for n, id in enumerate(ids)
    ]
    results: Objects = [
        {"type": "function_call_output", "call_id": id, "output": str(n)}
        for n, id in enumerate(ids)
    ]
    return (
        "https://api.openai.com/v1/responses",
        "input",
        [*calls, *results],
        lambda items: {"status": "completed", "output": items[:COUNT]},
    )


def exchange(seq: int, url: str, body: object, answer: object) -> Exchange:
    chunk = Chunk(at=seq + 0.1, data=json.dumps(answer).encode())
    return Exchange(
        seq=seq,
        started=float(seq),
        request=Request(method="POST", url=url, body=json.dumps(body).encode()),
        response=Response(status=200, chunks=(chunk,), at=seq + 0.1, ended=seq + 0.2),
    )


@pytest.mark.parametrize(
    ("talk", "id"),
    [(chat, None), (chat, ""), (chat, "a"), (gemini, None), (gemini, ""), (responses, ""),
     (responses, "a")],
)  # fmt: skip
def test_each_call_has_its_result(
    talk: Callable[[Sequence[str | None]], Talk], id: str | None
) -> None:
    url, key, items, answer = talk([id] * COUNT)
    start: Objects = [{"role": "user", "content": "go", "parts": [{"text": "go"}]}]
    asked = exchange(0, url, {"model": "m", key: start}, answer(items))
    told = exchange(1, url, {"model": "m", key: [*start, *items]}, answer(items))
    tape = read_tape(Path(__file__).parents[3] / "data" / "golden" / "http.tape")
    uses = derive_tape_steps(replace(tape, exchanges=(asked, told))).tool_uses[:COUNT]
    results = [json.loads(use.result or "null") for use in uses]
    numbers = [each["output"] if isinstance(each, dict) else each for each in results]
    assert list(map(int, numbers)) == list(range(COUNT))
