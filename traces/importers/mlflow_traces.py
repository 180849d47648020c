"""Import MLflow traces: documents with `info` and `data.spans`, as `Trace.to_json` writes them.

Attributes of a span are texts of JSON; ids are base64 in traces of MLflow 3, hexadecimal before.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from traces.importers.shared.conversation import ImportedConversation
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.json_values import require_objects, to_object, to_objects
from traces.importers.shared.jsonl import iter_any_records
from traces.importers.shared.run_reader import ImportNotes, RawRun
from traces.importers.spans.plain_messages import Table, parse_json_text
from traces.importers.spans.span_budget import check_span_file_size
from traces.importers.spans.span_files import Span, parse_span_time
from traces.importers.spans.trace_runs import has_agent_content, read_trace

NAME = "MLflow traces (JSON or JSON lines with info and spans)"
_STATES = {"OK": "final", "ERROR": "crash"}
_KINDS = {"LLM": "LLM", "CHAT_MODEL": "LLM", "TOOL": "TOOL"}
_ERRORS = ("ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR")


def can_import(path: Path) -> bool:
    """Whether a file begins with a trace of MLflow."""
    start = read_file_head(path)
    names = (b"mlflow.spanType", b"mlflow.traceRequestId", b'"mlflow.trace', b"trace_location")
    has_spans = b'"info"' in start and (b'"spans"' in start or b'"request_preview"' in start)
    is_trace = has_spans or b'"spans"' in start[:200]
    return start.lstrip()[:1] in (b"{", b"[") and is_trace and any(n in start for n in names)


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the traces."""
    check_span_file_size(path)
    for where, document in iter_any_records(path):
        traces: list[object] = [*to_objects(to_object(document).get("traces"))]
        for trace in traces or [document]:
            yield RawRun(where=where, read=partial(_read_trace, trace))


def _read_trace(document: object, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    trace = to_object(document)
    info, data = to_object(trace.get("info")), to_object(trace.get("data"))
    listed = data.get("spans", trace.get("spans"))
    spans = [_to_span(each) for each in require_objects(listed, "spans")]
    if not any(map(has_agent_content, spans)):
        raise ValueError(f"none of its {len(spans)} spans is of a model or a tool")
    id = str(info.get("trace_id") or info.get("request_id") or spans[0].trace_id)
    for each in to_objects(info.get("assessments")):
        notes.skip(f"assessments named {each.get('assessment_name')}, which no column has")
    roots = [span for span in spans if not span.parent_id]
    facts = {
        "agent": roots[0].name if roots else None,
        "ended": _STATES.get(str(info.get("state") or info.get("status"))),
    }
    return read_trace(id, spans, notes, source="mlflow", known=facts)


def _to_span(said: Table) -> Span:
    """Return a span of MLflow with the attributes of OpenInference."""
    context = to_object(said.get("context"))
    parsed = to_object(said.get("attributes"))
    known = {name: _parse(value) for name, value in parsed.items()}
    kind = _KINDS.get(str(known.get("mlflow.spanType")))
    own: Table = {"openinference.span.kind": kind} if kind else {}
    if kind == "LLM":
        own |= _read_model_span(known)
    elif kind == "TOOL":
        own |= {
            "tool.name": said.get("name"),
            "tool.parameters": known.get("mlflow.spanInputs"),
            "output.value": _find_result(said, known),
        }
    status = said.get("status")
    code = to_object(status).get("code") or said.get("status_code") or status
    parent = said.get("parent_span_id") or said.get("parent_id")
    times = [
        next((said[name] for name in (f"{edge}_time_unix_nano", f"{edge}_time") if name in said), 0)
        for edge in ("start", "end")
    ]
    return Span(
        trace_id=str(context.get("trace_id") or said.get("trace_id") or ""),
        span_id=str(context.get("span_id") or said["span_id"]),
        parent_id=str(parent) if parent else None,
        name=str(said.get("name") or ""),
        start=parse_span_time(times[0]),
        end=parse_span_time(times[1]),
        failed=str(code) in _ERRORS,
        attributes={name: value for name, value in own.items() if value is not None},
    )


def _parse(value: object) -> object:
    parsed = parse_json_text(value) if isinstance(value, str) else value
    return value if parsed is None else parsed


def _find_result(said: Table, known: Table) -> object:
    """Return a tool's output; of one that raised, the message of its exception."""
    if (output := known.get("mlflow.spanOutputs")) is not None:
        return output
    failures = [
        to_object(each.get("attributes")).get("exception.message")
        for each in to_objects(said.get("events"))
        if each.get("name") == "exception"
    ]
    return next((_parse(each) for each in failures if each is not None), None)


def _read_model_span(known: Table) -> Table:
    asked, given = known.get("mlflow.spanInputs"), known.get("mlflow.spanOutputs")
    usage = to_object(known.get("mlflow.chat.tokenUsage"))
    cost = to_object(known.get("mlflow.llm.cost"))
    model = (
        known.get("mlflow.llm.model"),
        to_object(given).get("model"),
        to_object(asked).get("model"),
    )
    return {
        "input.value": asked,
        "output.value": given,
        "llm.model_name": next((each for each in model if isinstance(each, str)), None),
        "llm.token_count.prompt": usage.get("input_tokens"),
        "llm.token_count.completion": usage.get("output_tokens"),
        "llm.token_count.prompt_details.cache_read": usage.get("cache_read_input_tokens"),
        "llm.cost.total": cost.get("total_cost"),
    }
