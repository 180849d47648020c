"""Read the messages in what a model request was given or gave, whatever framework wrote it.

The value is JSON of OpenAI (chat completions, responses), Anthropic, Gemini, LangChain (messages as
objects or as constructors, batches, generations), Vercel's SDK, or of the GenAI conventions.
"""

from collections.abc import Iterator
from copy import replace

from traces.importers.shared.conversation import ConversationCall, ConversationMessage
from traces.importers.shared.finish_reason import find_finish_reason
from traces.importers.shared.json_values import join_text_parts, to_json_text, to_object, to_objects
from traces.importers.spans.plain_messages import (
    Table,
    parse_json_text,
    read_call_part,
    read_genai_message,
    read_plain_message,
)

_LISTS = ("messages", "input", "contents", "prompt", "request")
_RULES = ("system", "instructions", "system_instruction", "systemInstruction")
_TYPES = {
    "human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool",
    "HumanMessage": "user", "AIMessage": "assistant", "AIMessageChunk": "assistant",
    "SystemMessage": "system", "ToolMessage": "tool", "FunctionMessage": "tool",
    "ChatMessage": "user", "HumanMessageChunk": "user",
}  # fmt: skip
"""Roles of LangChain's types and classes of messages."""
MAX_DEPTH = 12
type Messages = list[ConversationMessage]


def read_message_value(value: object, side: str) -> Messages:
    """Return the messages of a value; empty if it has none. `side` is `input` or `output`."""
    found = list(_read_value(value, side, 0))
    return found if any(each.text or each.calls for each in found) else []


def _read_value(value: object, side: str, depth: int) -> Iterator[ConversationMessage]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        parsed = parse_json_text(value) if value.lstrip()[:1] in ("{", "[") else None
        if isinstance(parsed, dict | list):
            yield from _read_value(parsed, side, depth + 1)
    elif isinstance(value, list):
        if calls := tuple(read_call_part(each) for each in to_objects(value) if _is_call(each)):
            yield ConversationMessage(role="assistant", calls=calls)
            return
        yield from _read_list(value, side, depth)
    elif isinstance(value, dict):
        yield from _read_object(value, side, depth)


def _read_list(value: list[object], side: str, depth: int) -> Iterator[ConversationMessage]:
    """Yield the messages of a list. One whose role is a tool that was called is its result."""
    tools = set[str]()
    for each in value:
        if not isinstance(each, dict | list):
            continue
        if isinstance(each, dict) and each.get("role") in tools:
            each = {**each, "role": "tool"}
        for message in _read_value(each, side, depth + 1):
            tools |= {call.tool for call in message.calls}
            yield message


def _is_call(said: Table) -> bool:
    return "toolCallId" in said and "toolName" in said and "role" not in said


def _read_object(said: Table, side: str, depth: int) -> Iterator[ConversationMessage]:
    """Yield the messages of an object: it is one, or holds a list of them."""
    if (message := _unwrap_constructor(said)) is not None:
        yield from _read_message(message, side)
        return
    if _is_message(said):
        yield from _read_message(said, side)
        return
    inner = _find_inner(said, side)
    if inner is None:
        return
    if side == "input":
        yield from _read_rules(said, inner)
    if isinstance(inner, str) and inner.lstrip()[:1] not in ("{", "["):
        yield ConversationMessage(role="user" if side == "input" else "assistant", text=inner)
        return
    for each in _read_value(inner, side, depth + 1):
        is_own = each.role == "assistant" and each.finish is None
        yield replace(each, finish=find_finish_reason(said)) if is_own else each


def _unwrap_constructor(said: Table) -> Table | None:
    """Return the fields of a message that LangChain dumped, with its role; None if it is none."""
    path = said.get("id")
    name = path[-1] if isinstance(path, list) and path else None
    fields = to_object(said.get("kwargs"))
    if said.get("type") == "constructor" and str(name) in _TYPES and fields:
        return {**fields, "role": fields.get("role") or _TYPES[str(name)], "type": None}
    kind = said.get("type")
    if isinstance(kind, str) and kind in _TYPES and ("content" in said or "data" in said):
        fields = to_object(said.get("data")) or said
        return {**fields, "role": fields.get("role") or _TYPES[kind], "type": None}
    return None


def _is_message(said: Table) -> bool:
    if said.get("type") in ("function_call", "function_call_output"):
        return True
    has_content = "content" in said or "parts" in said or "tool_calls" in said
    return has_content and isinstance(said.get("role"), str)


def _find_inner(said: Table, side: str) -> object:
    """Return the part of a request or response that holds its messages."""
    if side == "input":
        names: tuple[str, ...] = _LISTS
    else:
        names = ("choices", "generations", "candidates", "output", "messages", "message", "content")
    for name in (*names, "kwargs"):
        if isinstance(said.get(name), dict | list | str) and said.get(name):
            return said[name]
    return said.get("text") if side == "output" else None


def _read_rules(said: Table, inner: object) -> Iterator[ConversationMessage]:
    """Yield the instructions of a request that stand beside its messages."""
    first = to_objects(inner)[:1]
    if first and first[0].get("role") in ("system", "developer"):
        return
    for known in (said, to_object(said.get("config"))):
        for name in _RULES:
            rules = known.get(name)
            rules = to_object(rules).get("parts", rules)
            text = join_text_parts(rules)
            if text:
                yield ConversationMessage(role="system", text=text)
                return


def _read_message(said: Table, side: str) -> Iterator[ConversationMessage]:
    if said.get("type") == "function_call":
        yield ConversationMessage(role="assistant", calls=(_read_function_call(said),))
        return
    if said.get("type") == "function_call_output":
        text = to_json_text(said.get("output"))
        yield ConversationMessage(role="tool", text=text, call_id=str(said.get("call_id") or ""))
        return
    if isinstance(said.get("parts"), list):
        parts = to_objects(said["parts"])
        if any(isinstance(part.get("type"), str) for part in parts):
            yield from read_genai_message(said)
        else:
            yield from _read_gemini_parts(said, parts)
        return
    if said.get("role") == "tool" and _is_definition(said.get("content")):
        return
    extra = to_object(said.get("additional_kwargs"))
    message = {**said, "tool_calls": said.get("tool_calls") or extra.get("tool_calls")}
    failed = True if said.get("status") == "error" else None
    if said.get("role") == "assistant" and (calls := _find_written_calls(said.get("content"))):
        message = {**message, "content": None, "tool_calls": calls}
    for each in read_plain_message(_name_arguments(message)):
        if each.role == "tool" and failed:
            each = replace(each, is_error=failed)
        is_own = each.role == "assistant" and each.finish is None
        yield replace(each, finish=find_finish_reason(said)) if is_own else each


def _name_arguments(message: Table) -> Table:
    """Return a message whose calls have `arguments`, which LangChain calls `args`."""
    calls = message.get("tool_calls")
    calls = parse_json_text(calls) if isinstance(calls, str) else calls
    named = [
        {**each, "arguments": each["args"]} if "args" in each and "function" not in each else each
        for each in to_objects(calls)
    ]
    return {**message, "tool_calls": named}


def _find_written_calls(content: object) -> list[Table]:
    """Return the calls in a text that is a list of them, as Koog writes messages with calls."""
    if not isinstance(content, str) or content[:1] != "[":
        return []
    calls = to_objects(parse_json_text(content))
    is_call = all(each.get("type") == "function" and "function" in each for each in calls)
    return calls if is_call else []


def _is_definition(content: object) -> bool:
    """Whether this is the definition of a tool, which Langfuse lists as a message of a tool."""
    said = to_object(content)
    return said.get("type") == "function" and "function" in said


def _read_function_call(said: Table) -> ConversationCall:
    return ConversationCall(
        id=str(said.get("call_id") or said.get("id") or ""),
        tool=str(said.get("name") or ""),
        arguments=to_json_text(said.get("arguments")),
    )


def _read_gemini_parts(said: Table, parts: list[Table]) -> Iterator[ConversationMessage]:
    role = "assistant" if said.get("role") in ("model", "assistant") else "user"
    calls, texts = list[ConversationCall](), list[str]()
    for part in parts:
        asked = to_object(part.get("functionCall") or part.get("function_call"))
        answer = to_object(part.get("functionResponse") or part.get("function_response"))
        if asked:
            arguments = to_json_text(asked.get("args") or {})
            calls.append(
                ConversationCall(
                    id=str(asked.get("id") or ""),
                    tool=str(asked.get("name") or ""),
                    arguments=arguments,
                )
            )
        elif answer:
            text = to_json_text(answer.get("response"))
            yield ConversationMessage(role="tool", text=text, call_id=str(answer.get("id") or ""))
        elif isinstance(part.get("text"), str):
            texts.append(str(part["text"]))
    if calls or texts:
        yield ConversationMessage(role=role, text="\n".join(texts), calls=tuple(calls))
