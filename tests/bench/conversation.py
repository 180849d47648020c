"""A long conversation as clients send it: the full history with each request.

12 tools, 1.2 KB of new text per step (or as many bytes as asked) from the standard library's
sources, a cache marker that moves with the last message and a reminder inserted at the front.
Seeded.
"""

import json
from collections.abc import Iterator
from random import Random

from tests.bench.traffic import SOURCES
from traces.dialects import openai_chat
from traces.dialects.types import ModelAnswer, TokenUsage, ToolCall
from traces.model import Chunk, Exchange, Request, Response

SEED = 7


def conversation(
    steps: int, seed: int = SEED, *, text: str = SOURCES, results: range = range(1000, 1001)
) -> Iterator[Exchange]:
    """Yield `steps` model exchanges, each with the full history and one more tool call and
    result, of a size in `results`, from `text`.
    """
    chance = Random(seed)
    tools = [
        {
            "type": "function",
            "function": {
                "name": f"tool_{i}",
                "description": text[i * 400 :][:400],
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            },
        }
        for i in range(12)
    ]
    messages: list[dict[str, object]] = [{"role": "user", "content": text[9000:10200]}]
    for step in range(steps):
        reminder = {"role": "system", "content": f"reminder {chance.randrange(9)}: keep a list"}
        sent = [reminder, *messages[:-1], messages[-1] | {"cache_control": {"type": "ephemeral"}}]
        body = json.dumps({"model": "m", "tools": tools, "messages": sent}).encode()
        call = ToolCall(
            id=f"call_{chance.getrandbits(64):x}",
            name=f"tool_{step % 12}",
            arguments=json.dumps({"path": f"/src/{chance.getrandbits(32):x}.py"}),
        )
        at = chance.randrange(len(text) - results[-1] - 200)
        size = chance.choice(results) if len(results) > 1 else results[0]
        answer = ModelAnswer(
            message=text[at : at + 200],
            calls=(call,),
            model="m",
            usage=TokenUsage(prompt_tokens=len(body) // 4, completion_tokens=60),
        )
        yield _exchange(step, body, answer)
        function = {"name": call.name, "arguments": call.arguments}
        calls = [{"id": call.id, "type": "function", "function": function}]
        messages += [
            {"role": "assistant", "content": answer.message, "tool_calls": calls},
            {"role": "tool", "tool_call_id": call.id, "content": text[at + 200 :][:size]},
        ]


def _exchange(step: int, body: bytes, answer: ModelAnswer) -> Exchange:
    started = step * 2.0
    headers, chunks = openai_chat.write_model_answer(answer, stream=False, id=f"x{step}", created=0)
    chunks = tuple(Chunk(at=started + 1, data=chunk.data) for chunk in chunks)
    url = "https://api.example/v1/chat/completions"
    fields = (("content-type", "application/json"), ("content-length", str(len(body))))
    return Exchange(
        seq=step,
        started=started,
        request=Request(method="POST", url=url, headers=fields, body=body),
        response=Response(
            status=200, headers=headers, chunks=chunks, at=started + 1, ended=started + 1
        ),
    )
