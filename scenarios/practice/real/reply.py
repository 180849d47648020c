"""Turn the text of a small model into an answer with native tool calls, whatever the text is.

Each reply has one class: `call` or `words` are the two that were asked for. `ran_on` ended at the
limit of tokens. `no_call` is text in another form. `repeat` is a call that the conversation has
twice already, one after the other, with the same arguments.
"""

import json
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from scenarios.practice.conversation import to_call_key
from scenarios.practice.real.call_schema import SAY, OfferedTool
from scenarios.practice.real.engine import Completion
from scenarios.practice.tools.json_schema import Json
from traces.dialects.types import ModelAnswer, ToolCall

type ReplyClass = Literal["call", "words", "ran_on", "no_call", "repeat"]
REPEATS = 2
"""So many equal calls in a row make the next one a `repeat`."""


class Reply(Struct, frozen=True, kw_only=True):
    """An answer and its class."""

    answer: ModelAnswer
    kind: ReplyClass


def read_reply(
    completion: Completion,
    tools: Sequence[OfferedTool],
    *,
    call_id: str,
    earlier: Sequence[str] = (),
) -> Reply:
    """Return the reply in a completion; `earlier` has the keys of the calls so far."""
    if not completion.whole:
        return Reply(
            answer=ModelAnswer(message=completion.text, finish="length", usage=completion.usage),
            kind="ran_on",
        )
    if not tools:
        text = _read_words(completion.text) or completion.text
        return Reply(answer=ModelAnswer(message=text, usage=completion.usage), kind="words")
    call = _read_call(completion.text, tools)
    if call is not None:
        name, arguments = call
        answer = ModelAnswer(
            calls=(ToolCall(id=call_id, name=name, arguments=arguments),), usage=completion.usage
        )
        last = [*earlier[-REPEATS:], to_call_key(name, arguments)]
        repeats = len(last) > REPEATS and len(set(last)) == 1
        return Reply(answer=answer, kind="repeat" if repeats else "call")
    words = _read_words(completion.text)
    message = completion.text if words is None else words
    return Reply(
        answer=ModelAnswer(message=message, usage=completion.usage),
        kind="no_call" if words is None else "words",
    )


def _read_words(text: str) -> str | None:
    match _parse(text):
        case [kind, str(words)] if kind == SAY:
            return words
        case _:
            return None


def _read_call(text: str, tools: Sequence[OfferedTool]) -> tuple[str, str] | None:
    items = _parse(text)
    if not isinstance(items, list) or not items:
        return None
    tool = next((tool for tool in tools if tool.name == items[0]), None)
    if tool is None or len(items) - 1 - len(tool.required) not in (0, 1):
        return None
    arguments: dict[str, Json] = dict(zip(tool.required, items[1:], strict=False))
    optional = items[1 + len(tool.required) :]
    if optional and not isinstance(optional[0], dict):
        return None
    for each in optional:
        arguments |= each if isinstance(each, dict) else {}
    return tool.name, json.dumps(arguments)


def _parse(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except ValueError:
        return None
    return value
