"""Import OpenTelemetry spans of agents, with GenAI or OpenInference attribute names.

The file is JSON lines, either as SDKs print spans or as OTLP, which collectors write.

A trace is a run. A span with messages is a model request. Each has the entire conversation so far,
so only the new part of its input is imported, then its output. A result that no later request
contains is taken from an `execute_tool` span. Instrumentations omit content by default, and two of
them may report one request: spans without content count only if no span has any.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import orjson
import pyarrow as pa

from traces.importers import otlp
from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
    add_conversation,
)
from traces.importers.shared.conversation_rows import ConversationRows
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.jsonl import read_json_documents

NAME = "OpenTelemetry spans (JSON lines with trace_id and attributes, or OTLP with resourceSpans)"

type Table = dict[str, object]

_MODELS = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "llm.response.model_name",
    "llm.request.model_name",
)
_OPEN = re.compile(r"llm\.(input|output)_messages\.(\d+)\.message\.(.+)")
_CALL = re.compile(r"tool_calls\.(\d+)\.tool_call\.(.+)")
_PART = re.compile(r"contents\.(\d+)\.message_content\.text")


def can_import(path: Path) -> bool:
    """Whether a file begins with spans."""
    start = read_file_head(path)
    is_sdk_form = all(key in start for key in (b'"trace_id"', b'"span_id"', b'"attributes"'))
    return start.lstrip()[:1] == b"{" and (is_sdk_form or otlp.SIGN in start)


def read_tables(path: Path) -> Mapping[str, pa.Table]:
    """Read the traces as trajectories, steps, tool calls, messages and usage."""
    traces: dict[str, list[Table]] = {}
    for span in _read_spans(path):
        trace = str(_to_span_object(span.get("context")).get("trace_id"))
        traces.setdefault(trace, []).append(span)
    rows = ConversationRows()
    for trace, spans in traces.items():
        add_conversation(
            rows,
            _to_otel_conversation(
                trace, sorted(spans, key=lambda span: str(span.get("start_time")))
            ),
        )
    return rows.to_tables()


def _read_spans(path: Path) -> Iterator[Table]:
    for each in read_json_documents(path):
        document = _to_span_object(each)
        if "resourceSpans" in document:
            yield from otlp.read_otlp_spans(document)
        else:
            yield document


def _to_otel_conversation(trace: str, spans: list[Table]) -> ImportedConversation:
    times = [at for span in spans if (at := _parse_span_time(span.get("start_time"))) is not None]
    ends = [at for span in spans if (at := _parse_span_time(span.get("end_time"))) is not None]
    names = (_get_span_attributes(span).get("gen_ai.agent.name") for span in spans)
    facts = {
        "agent": next((name for name in names if name), None),
        "recorded_at": min(times, default=None),
        "seconds": max(ends) - min(times) if times and ends else None,
    }
    messages = tuple(_read_trace_messages(spans))
    return ImportedConversation(
        source="otel", messages=messages, facts=facts, source_data=[trace, spans]
    )


def _read_trace_messages(spans: list[Table]) -> Iterator[ConversationMessage]:
    requests = [span for span in spans if _is_model_request_span(span)]
    with_output = [
        span for span in requests if _read_span_messages(_get_span_attributes(span), "output")
    ]
    results = _read_tool_span_results(spans)
    n_seen, answered_ids = 0, set[str]()
    for span in with_output or requests:
        attributes = _get_span_attributes(span)
        inputs, outputs = (
            _read_span_messages(attributes, "input"),
            _read_span_messages(attributes, "output"),
        )
        new = inputs[n_seen:] if len(inputs) >= n_seen else inputs
        for each in new:
            if each.role == "tool":
                answered_ids.add(each.call_id or "")
            yield _mark_span_error(each, results)
        n_seen = len(inputs) + len(outputs)
        last = len(outputs) - 1
        for place, each in enumerate(outputs or [ConversationMessage(role="assistant")]):
            usage = _read_span_usage(attributes) if place == max(last, 0) else {}
            yield ConversationMessage(
                role="assistant",
                text=each.text,
                model=_read_span_model(attributes),
                calls=each.calls,
                usage=usage,
            )
    for id, (text, failed) in results.items():
        if id not in answered_ids:
            yield ConversationMessage(role="tool", text=text, call_id=id, is_error=failed)


def _is_model_request_span(span: Table) -> bool:
    attributes = _get_span_attributes(span)
    operation = attributes.get("gen_ai.operation.name")
    return operation in ("chat", "generate_content", "text_completion") or (
        attributes.get("openinference.span.kind") == "LLM"
    )


def _read_tool_span_results(spans: list[Table]) -> dict[str, tuple[str, bool | None]]:
    """Return the results in `execute_tool` spans, by call id."""
    results: dict[str, tuple[str, bool | None]] = {}
    for span in spans:
        attributes = _get_span_attributes(span)
        id = attributes.get("gen_ai.tool.call.id")
        if attributes.get("gen_ai.operation.name") == "execute_tool" and isinstance(id, str):
            failed = _to_span_object(span.get("status")).get("status_code") == "ERROR" or None
            results[id] = (_to_attribute_text(attributes.get("gen_ai.tool.call.result")), failed)
    return results


def _mark_span_error(
    said: ConversationMessage, results: Mapping[str, tuple[str, bool | None]]
) -> ConversationMessage:
    """Return a result with the error status of its span."""
    if said.role != "tool" or said.call_id is None or said.call_id not in results:
        return said
    failed = results[said.call_id][1]
    return ConversationMessage(role="tool", text=said.text, call_id=said.call_id, is_error=failed)


def _read_span_messages(known: Table, side: str) -> list[ConversationMessage]:
    messages = known.get(f"gen_ai.{side}.messages")
    if isinstance(messages, str):
        try:
            messages = orjson.loads(messages)
        except orjson.JSONDecodeError:
            messages = None  # exporters may truncate attributes
    if isinstance(messages, list):
        return [
            each for message in messages for each in _read_genai_parts(_to_span_object(message))
        ]
    return _read_openinference_messages(known, side)


def _read_genai_parts(message: Table) -> Iterator[ConversationMessage]:
    """Yield the messages in one GenAI message: first its results, each separately."""
    parts = message.get("parts")
    part_objects = [_to_span_object(each) for each in parts] if isinstance(parts, list) else []
    for each in part_objects:
        if each.get("type") == "tool_call_response":
            text = _to_attribute_text(each.get("result", each.get("response")))
            yield ConversationMessage(role="tool", text=text, call_id=str(each.get("id") or ""))
    calls = tuple(
        _read_genai_call(each) for each in part_objects if each.get("type") == "tool_call"
    )
    texts = [
        _to_attribute_text(each.get("content"))
        for each in part_objects
        if each.get("type") == "text"
    ]
    if calls or texts:
        role = str(message.get("role") or "user")
        role = role if role in ("system", "user", "assistant") else "user"
        yield ConversationMessage(role=role, text="\n".join(texts), calls=calls)


def _read_genai_call(part: Table) -> ConversationCall:
    return ConversationCall(
        id=str(part.get("id") or ""),
        tool=str(part.get("name") or ""),
        arguments=_to_attribute_text(part.get("arguments")),
    )


def _read_openinference_messages(known: Table, side: str) -> list[ConversationMessage]:
    """Read messages of OpenInference, whose attribute names are paths."""
    messages: dict[int, Table] = {}
    for name, value in known.items():
        match = _OPEN.fullmatch(name)
        if match and match[1] == side:
            messages.setdefault(int(match[2]), {})[match[3]] = value
    return [_read_openinference_message(messages[place]) for place in sorted(messages)]


def _read_openinference_message(message: Table) -> ConversationMessage:
    calls: dict[int, Table] = {}
    texts = [_to_attribute_text(message["content"])] if "content" in message else []
    for name, value in sorted(message.items()):
        if match := _CALL.fullmatch(name):
            calls.setdefault(int(match[1]), {})[match[2]] = value
        elif _PART.fullmatch(name):
            texts.append(_to_attribute_text(value))
    role = str(message.get("role") or "user")
    if call_id := message.get("tool_call_id"):
        return ConversationMessage(role="tool", text="\n".join(texts), call_id=str(call_id))
    parsed_calls = tuple(
        ConversationCall(
            id=str(each.get("id") or ""),
            tool=str(each.get("function.name") or ""),
            arguments=_to_attribute_text(each.get("function.arguments")),
        )
        for _, each in sorted(calls.items())
    )
    role = role if role in ("system", "user", "assistant") else "user"
    return ConversationMessage(role=role, text="\n".join(texts), calls=parsed_calls)


def _read_span_usage(known: Table) -> dict[str, object]:
    names: dict[str, Iterable[str]] = {
        "prompt_tokens": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
        "completion_tokens": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
        "cached_tokens": (
            "gen_ai.usage.cache_read.input_tokens",
            "llm.token_count.prompt_details.cache_read",
        ),
        "reasoning_tokens": (
            "gen_ai.usage.details.reasoning_tokens",
            "llm.token_count.completion_details.reasoning",
        ),
    }
    usage = {
        column: next((known[name] for name in each if name in known), None)
        for column, each in names.items()
    }
    return usage if any(value is not None for value in usage.values()) else {}


def _read_span_model(known: Table) -> str | None:
    return next((str(known[name]) for name in _MODELS if known.get(name)), None)


def _get_span_attributes(span: Table) -> Table:
    return _to_span_object(span.get("attributes"))


def _to_attribute_text(value: object) -> str:
    return (
        value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode()
    )


def _parse_span_time(said: object) -> float | None:
    try:
        return datetime.fromisoformat(said).timestamp() if isinstance(said, str) else None
    except ValueError:
        return None


def _to_span_object(said: object) -> Table:
    return said if isinstance(said, dict) else {}
