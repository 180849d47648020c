"""A chat of any length, in which each request has what was said before, changed or not."""

import json
import random
from collections.abc import Iterable, Iterator
from typing import Literal

from traces.model import Chunk, Exchange, Request, Response

type Message = dict[str, object]
type Change = Literal["grow", "mark", "reorder", "truncate", "compact", "prepend"]
"""What the client does to its history before a step: it only adds to it; rewrites the last two
messages; swaps two; drops an early one; replaces most by a summary; puts one before all."""

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
URL = "http://model.test/v1/chat/completions"


def make_text(size: int, seed: object) -> str:
    """Return text of `size` characters that no other seed has."""
    chance = random.Random(repr(seed))
    words = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
    text = f"{seed} "
    while len(text) < size:
        text += chance.choice(words) + " "
    return text[:size]


def make_long_conversation(
    steps: int, size: int, changes: Iterable[Change] = (), first: int = 0
) -> Iterator[Exchange]:
    """Yield the exchanges of a chat with one call a step, whose result has `size` characters."""
    pending = iter(changes)
    messages: list[Message] = [
        {"role": "system", "content": make_text(5000, "system")},
        {"role": "user", "content": "read all parts"},
    ]
    for step in range(first, first + steps):
        messages = _change_history(messages, next(pending, "grow"), step)
        body = json.dumps({"model": "m", "tools": TOOLS, "messages": messages}).encode()
        function = {"name": "read", "arguments": json.dumps({"part": step})}
        call: Message = {"id": f"call-{step}", "type": "function", "function": function}
        said: Message = {"role": "assistant", "content": None, "tool_calls": [call]}
        yield _answer_request(step, body, said)
        result: Message = {
            "role": "tool",
            "tool_call_id": f"call-{step}",
            "content": make_text(size, step),
        }
        messages = [*messages, said, result]


def _change_history(messages: list[Message], change: Change, step: int) -> list[Message]:
    kept, last = messages[:-2], [dict(each) for each in messages[-2:]]
    match change:
        case "mark":
            return [*kept, *(each | {"mark": step} for each in last)]
        case "reorder" if len(messages) > 6:
            return [*messages[:3], messages[4], messages[3], *messages[5:]]
        case "truncate" if len(messages) > 6:
            return [*messages[:2], *messages[4:]]
        case "compact":
            return [messages[0], {"role": "user", "content": f"summary {step}"}, *last]
        case "prepend":
            return [{"role": "system", "content": f"it is {step} o'clock"}, *messages]
    return messages


def _answer_request(seq: int, body: bytes, said: Message) -> Exchange:
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
    answer = json.dumps({"id": f"chat-{seq}", "model": "m", "choices": [choice]}).encode()
    headers = (("content-type", "application/json"),)
    return Exchange(
        seq=seq,
        request=Request(method="POST", url=URL, headers=headers, body=body),
        response=Response(
            status=200,
            headers=headers,
            chunks=(Chunk(at=seq + 0.5, data=answer),),
            at=seq + 0.5,
            ended=seq + 0.5,
        ),
        started=float(seq),
    )
