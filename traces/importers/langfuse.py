"""Import Langfuse traces: as its API, its UI and its exports to a bucket give them.

A trace has observations inside or beside it (`traceId`, or `trace_id` in exports); each trace is a
run. Inputs and outputs are what the framework of the traced agent wrote, so they are read like the
spans of OpenTelemetry, which most of them were.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from traces.importers.shared.conversation import ImportedConversation
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.json_values import to_object, to_objects
from traces.importers.shared.jsonl import iter_any_records
from traces.importers.shared.run_reader import ImportNotes, RawRun, make_refused_run
from traces.importers.spans.message_values import read_message_value
from traces.importers.spans.plain_messages import Table, parse_json_text
from traces.importers.spans.span_budget import check_span_file_size
from traces.importers.spans.span_files import Span, parse_span_time, to_plain_attributes
from traces.importers.spans.trace_runs import has_agent_content, read_trace

NAME = "Langfuse traces (JSON or JSON lines with observations)"
_TYPES = (
    "SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR",
    "EMBEDDING", "GUARDRAIL",
)  # fmt: skip
_SIGNS = (b'"observations"', b'"parentObservationId"', b'"parent_observation_id"')
_CONTENT = (
    "llm.input_messages", "llm.output_messages", "gen_ai.prompt", "gen_ai.completion",
    "gen_ai.input", "gen_ai.output", "ai.prompt", "ai.response.text", "ai.response.toolCalls",
)  # fmt: skip
"""Beginnings of attributes with messages, which Langfuse also gives as input and output."""
_MAX_DEPTH = 6


class _Trace(Struct):
    """A trace, of which the file may have the observations only."""

    said: Table = field(default_factory=dict)
    observations: dict[str, Table] = field(default_factory=dict)


def can_import(path: Path) -> bool:
    """Whether a file begins with a trace or an observation."""
    start = read_file_head(path)
    if start.lstrip()[:1] not in (b"{", b"["):
        return False
    has_ids = b'"traceId"' in start or b'"trace_id"' in start or b'"sessionId"' in start
    is_trace = b'"timestamp"' in start and b'"bookmarked"' in start
    return is_trace or (has_ids and any(sign in start for sign in _SIGNS))


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the traces."""
    check_span_file_size(path)
    traces: dict[str, _Trace] = {}
    for where, document in iter_any_records(path):
        if isinstance(document, ValueError):
            yield make_refused_run(where, str(document))
        else:
            _collect(document, traces, 0)
    if not traces:
        raise ValueError("it has no trace and no observation of Langfuse")
    for id, trace in traces.items():
        yield RawRun(where=f"trace {id[:40]}", read=partial(_read_run, id, trace))


def _collect(document: object, traces: dict[str, _Trace], depth: int) -> None:
    """Add the traces and observations anywhere in a document."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(document, list):
        for each in document:
            _collect(each, traces, depth + 1)
    elif isinstance(document, dict):
        id, trace = document.get("id"), document.get("traceId", document.get("trace_id"))
        if document.get("type") in _TYPES and isinstance(id, str) and isinstance(trace, str):
            traces.setdefault(trace, _Trace()).observations[id] = document
            return
        is_trace = "timestamp" in document and not isinstance(trace, str)
        if isinstance(id, str) and is_trace and ("input" in document or "name" in document):
            traces.setdefault(id, _Trace()).said = document
        for name in ("trace", "observations", "data", "traces"):
            if isinstance(document.get(name), dict | list):
                _collect(document[name], traces, depth + 1)


def _read_run(id: str, trace: _Trace, notes: ImportNotes) -> ImportedConversation:
    said = trace.said
    for each in to_objects(said.get("scores")):
        notes.skip(f"scores named {each.get('name')}, which no column has")
    spans = [_to_span(id, each, notes) for each in trace.observations.values()]
    if not any(map(has_agent_content, spans)):
        n = len(spans)
        raise ValueError(
            f"none of its {n} observations is of a model or a tool"
            if n
            else "it has no observations: export them too, for example by the API's trace by id"
        )
    cost = said.get("totalCost", said.get("total_cost"))
    agent = said.get("name") if isinstance(said.get("name"), str) else None
    return read_trace(id, spans, notes, source="langfuse", known={"agent": agent, "cost_usd": cost})


def _first(said: Table, *names: str) -> object:
    return next((said[name] for name in names if said.get(name) is not None), None)


def _to_span(trace: str, said: Table, notes: ImportNotes) -> Span:
    """Return an observation as a span with the attributes of OpenInference."""
    metadata = said.get("metadata")
    metadata = to_object(parse_json_text(metadata) if isinstance(metadata, str) else metadata)
    attributes = metadata.get("attributes")
    attributes = parse_json_text(attributes) if isinstance(attributes, str) else attributes
    known, values = to_plain_attributes(attributes), _parse_values(said)
    if any(read_message_value(values[side], side) for side in ("input", "output")):
        known = {name: v for name, v in known.items() if not name.startswith(_CONTENT)}
    parent = _first(said, "parentObservationId", "parent_observation_id")
    return Span(
        trace_id=trace,
        span_id=str(said["id"]),
        parent_id=parent if isinstance(parent, str) else None,
        name=str(said.get("name") or ""),
        start=parse_span_time(_first(said, "startTime", "start_time")),
        end=parse_span_time(_first(said, "endTime", "end_time")),
        failed=said.get("level") == "ERROR",
        attributes=known | _read_own_attributes(said, values, notes),
    )


def _parse_values(said: Table) -> Table:
    """Return input and output; exports have them as texts of JSON."""
    values: Table = {}
    for side in ("input", "output"):
        value = said.get(side)
        parsed = parse_json_text(value) if isinstance(value, str) else None
        values[side] = value if parsed is None else parsed
    return values


def _read_own_attributes(said: Table, values: Table, notes: ImportNotes) -> Table:
    kind = said["type"]
    if kind not in ("GENERATION", "TOOL"):
        return {}
    own: Table = {"openinference.span.kind": "LLM" if kind == "GENERATION" else "TOOL"}
    for side in ("input", "output"):
        if values[side] is not None:
            own[f"{side}.value"] = values[side]
    if kind == "TOOL":
        name = str(said.get("name") or "").removeprefix("execute_tool ")
        return own | {"tool.name": name, "tool.parameters": values["input"]}
    usage = _parse_object(said, "usageDetails", "usage_details") or to_object(said.get("usage"))
    cost = _parse_object(said, "costDetails", "cost_details").get("total")
    counts = {
        "llm.model_name": _first(said, "model", "providedModelName", "provided_model_name"),
        "llm.token_count.prompt": _first(usage, "input", "promptTokens"),
        "llm.token_count.completion": _first(usage, "output", "completionTokens"),
        "llm.token_count.prompt_details.cache_read": _first(
            usage, "input_cache_read", "input_cached_tokens", "prompt_details.cache_read"
        ),
        "llm.token_count.completion_details.reasoning": _first(
            usage, "output_reasoning", "output_reasoning_tokens", "completion_details.reasoning"
        ),
        "llm.cost.total": _first(said, "calculatedTotalCost", "totalCost", "total_cost") or cost,
    }
    for name, count in counts.items():
        if name.startswith("llm.token_count") and not isinstance(count, int | None):
            notes.skip(f"values of {name} that are no numbers")
    return own | {name: value for name, value in counts.items() if value is not None}


def _parse_object(said: Table, *names: str) -> Table:
    value = _first(said, *names)
    return to_object(parse_json_text(value) if isinstance(value, str) else value)
