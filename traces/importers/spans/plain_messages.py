"""One message as the SDKs of model providers, Vercel's, and the GenAI conventions write it."""

from collections.abc import Iterator

from traces.dialects.media_parts import list_media
from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    iter_openai_calls,
)
from traces.importers.shared.json_values import (
    join_text_parts,
    parse_json,
    to_json_text,
    to_object,
    to_objects,
)

_ROLES = ("system", "user", "assistant", "tool")
_ALIASES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system"}

type Table = dict[str, object]


def parse_json_text(value: object) -> object:
    """Return what a text of JSON holds; None if it is none, as exporters may truncate it."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value.encode("utf-8", "replace"))
    except ValueError:
        return None


def read_genai_message(message: Table) -> Iterator[ConversationMessage]:
    """Yield the messages in one GenAI message: first its results, each separately."""
    if "parts" not in message:
        yield from read_plain_message(message)
        return
    parts = to_objects(message.get("parts"))
    for each in parts:
        if each.get("type") == "tool_call_response":
            text = to_json_text(each.get("result", each.get("response")))
            yield ConversationMessage(role="tool", text=text, call_id=str(each.get("id") or ""))
    calls = tuple(
        ConversationCall(
            id=str(each.get("id") or ""),
            tool=str(each.get("name") or ""),
            arguments=to_json_text(each.get("arguments")),
        )
        for each in parts
        if each.get("type") == "tool_call"
    )
    texts = [to_json_text(each.get("content")) for each in parts if each.get("type") == "text"]
    if calls or texts:
        role = to_role(message.get("role"))
        role = role if role != "tool" else "user"
        finish = message.get("finish_reason")
        yield ConversationMessage(
            role=role,
            text="\n".join(texts),
            calls=calls,
            finish=finish if isinstance(finish, str) else None,
        )


def to_role(role: object) -> str:
    """Return the role of a message here, `user` if it is unknown."""
    name = str(role or "user").lower()
    name = _ALIASES.get(name, name)
    return name if name in _ROLES else "user"


def read_plain_message(message: Table) -> Iterator[ConversationMessage]:
    """Yield the messages in one message as the OpenAI and Vercel SDKs write it."""
    role, content = to_role(message.get("role")), message.get("content")
    given = message.get("tool_call_id") or message.get("id")
    if role == "tool" and not _has_result_parts(content):
        text = (
            join_text_parts(content) if isinstance(content, str | list) else to_json_text(content)
        )
        yield ConversationMessage(role="tool", text=text, call_id=str(given or ""))
        return
    calls = list(iter_openai_calls(parse_json_text(message.get("tool_calls"))))
    texts = [content] if isinstance(content, str) else []
    for part in to_objects(content):
        match part.get("type"):
            case "tool-call" | "tool_call" | "tool_use":
                calls.append(read_call_part(part))
            case "tool-result" | "tool_result":
                result = part.get("output", part.get("result", part.get("content")))
                result = to_object(result).get("value", result)
                given = part.get("toolCallId") or part.get("tool_use_id") or part.get("id")
                yield ConversationMessage(
                    role="tool", text=to_json_text(result), call_id=str(given or "")
                )
            case _ if isinstance(part.get("text"), str):
                texts.append(str(part["text"]))
    if calls or texts or not isinstance(content, list):
        finish = message.get("finish_reason") or message.get("stop_reason")
        yield ConversationMessage(
            role=role if role != "tool" else "user",
            text="\n".join(texts),
            calls=tuple(calls),
            finish=finish if isinstance(finish, str) else None,
            media=list_media(content),
        )


def _has_result_parts(content: object) -> bool:
    return any(each.get("type") in ("tool-result", "tool_result") for each in to_objects(content))


def read_call_part(part: Table) -> ConversationCall:
    """Return the call in a part of a message, as Vercel and Anthropic write it."""
    arguments = part.get("input", part.get("args", part.get("arguments")))
    return ConversationCall(
        id=str(part.get("toolCallId") or part.get("id") or ""),
        tool=str(part.get("toolName") or part.get("name") or ""),
        arguments=to_json_text(arguments),
    )
