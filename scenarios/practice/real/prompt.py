"""Write a chat with tools as turns for a model without tool calls of its own.

The beginning is the same in every request, so that the engine computes it once.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from scenarios.practice.conversation import get_content_text
from scenarios.practice.real.call_schema import SAY, OfferedTool
from scenarios.practice.real.engine import PromptTurn
from scenarios.practice.tools.json_schema import Json, JsonRow

INSTRUCTION = "Reply with one JSON call."
_SOLVED = (
    ("stock-8", "get_stock(product_id)", "stock", "sku-1001", "58"),
    ("tag-8", "get_price(product_id)", "price", "sku-1002", "9.65"),
    ("amount-8", "get_amount(order_id)", "amount", "ord-2002", "731.25"),
    ("weight-8", "get_weight(product_id)", "weight", "sku-1003", "820"),
    ("refunded-8", "get_refunded(refund_id)", "amount", "ref-1004", "46.9"),
)
"""Task, signature of the tool that reads, noun of the number, id, and number."""


def _demonstrate(task: str, tool: str, noun: str, id: str, number: str) -> Iterator[str]:
    order = f"ord-2{id[-3:]}"
    yield (
        f"Tools: {tool}, write_note(order_id, text)\n"
        f"task: {task}\nGet the {noun} of {id} and write it as a note on {order}."
    )
    yield f'["{tool.partition("(")[0]}","{id}"]'
    yield f'{{"{noun}":{number}}}'
    yield f'["write_note","{order}","{number}"]'
    yield f'{{"written":"note-1{id[-1]}"}}'
    yield f'["{SAY}","{number} is written on {order}."]'


DEMONSTRATION: tuple[PromptTurn, ...] = tuple(
    {"role": "user" if nth % 2 == 0 else "assistant", "content": text}
    for solved in _SOLVED
    for nth, text in enumerate(_demonstrate(*solved))
)
"""Solved tasks without any fault: what to do after one is left to the model."""


def write_prompt_turns(
    messages: Sequence[JsonRow], tools: Sequence[OfferedTool]
) -> list[PromptTurn]:
    """Return the turns of a request, the tools' signatures before its first user message."""
    texts = [_text(m) for m in messages if m.get("role") in ("system", "developer")]
    turns: list[PromptTurn] = []
    named = {tool.name: tool for tool in tools}
    heading = f"Tools: {', '.join(tool.signature for tool in tools)}\n" if tools else ""
    for message in messages:
        match message.get("role"):
            case "user":
                turns.append({"role": "user", "content": heading + _text(message)})
                heading = ""
            case "assistant":
                turns += _write_assistant_turns(message, named)
            case "tool":
                turns.append({"role": "user", "content": _text(message)})
    system = "\n".join([*texts, INSTRUCTION] if tools else texts)
    first: list[PromptTurn] = [{"role": "system", "content": system}] if system else []
    return [*first, *(DEMONSTRATION if tools else ()), *turns]


def _text(message: JsonRow) -> str:
    return get_content_text(message.get("content"))


def _write_assistant_turns(
    message: JsonRow, tools: Mapping[str, OfferedTool]
) -> Iterator[PromptTurn]:
    calls = message.get("tool_calls")
    written = [_write_call(call, tools) for call in calls] if isinstance(calls, list) else []
    if text := _text(message):
        written.insert(0, _dump([SAY, text]) if tools else text)
    if written:
        yield {"role": "assistant", "content": "\n".join(written)}


def _write_call(call: Json, tools: Mapping[str, OfferedTool]) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    name, text = (
        (str(function.get("name")), str(function.get("arguments")))
        if isinstance(function, dict)
        else ("", "")
    )
    try:
        arguments = json.loads(text)
    except ValueError:
        return _dump([name, text])
    if not isinstance(arguments, dict) or name not in tools:
        return _dump([name, arguments])
    required = [arguments[key] for key in tools[name].required if key in arguments]
    rest = {k: v for k, v in arguments.items() if k not in tools[name].required}
    return _dump([name, *required, *([rest] if rest else [])])


def _dump(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
