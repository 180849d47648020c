"""Import OpenTelemetry spans of agents: each trace is a run.

The file is JSON or JSON lines: spans as SDKs print them, lists of spans, OTLP of collectors (in
protobuf too), spans of Jaeger and Zipkin, or documents of Phoenix, Logfire and others that hold
spans. See `traces/importers/spans`.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from traces.importers.shared.file_reader import read_file_head, read_unpacked_file
from traces.importers.shared.jsonl import iter_any_records
from traces.importers.shared.run_reader import RawRun, make_refused_run
from traces.importers.spans.span_budget import check_span_file_size
from traces.importers.spans.span_files import SIGNS, Span, find_spans
from traces.importers.spans.trace_runs import group_by_trace, has_agent_content, read_trace
from traces.otlp.messages import TRACES
from traces.otlp.protobuf import decode_protobuf

NAME = "OpenTelemetry spans (JSON or JSON lines with trace_id and attributes, or OTLP)"


def can_import(path: Path) -> bool:
    """Whether a file begins with spans."""
    start = read_file_head(path)
    if _is_protobuf(start):
        return True
    if start.lstrip()[:1] not in (b"{", b"["):
        return False
    if SIGNS[0] in start or SIGNS[1] in start:
        return True
    if not any(sign in start for sign in SIGNS[2:]):
        return False
    is_zipkin = all(key in start for key in (b'"traceId"', b'"id"', b'"timestamp"', b'"duration"'))
    has_ids = any(key in start for key in (b"span_id", b"spanId", b"spanID")) or is_zipkin
    return has_ids and any(key in start for key in (b'"attributes', b'"name"', b'"operationName"'))


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the traces of a file that have a model request or a tool call."""
    check_span_file_size(path)
    refused: list[RawRun] = []
    traces = group_by_trace(_read_spans(path, refused))
    yield from refused
    found = {id: spans for id, spans in traces.items() if any(map(has_agent_content, spans))}
    if not traces:
        raise ValueError("no span is in it")
    if not found:
        raise ValueError(
            f"none of its {len(traces):,} traces has a model request or a tool call with content"
        )
    for id, spans in found.items():
        yield RawRun(where=f"trace {id[:32]}", read=partial(read_trace, id, spans))
    if len(found) < len(traces):
        yield make_refused_run(f"{len(traces) - len(found):,} other traces", "no model")


def _is_protobuf(start: bytes) -> bool:
    """Whether this begins a message whose first field is one, and has a trace id of 16 bytes."""
    return start[:1] == b"\n" and b"\n\x10" in start


def _read_spans(path: Path, refused: list[RawRun]) -> Iterator[Span]:
    if _is_protobuf(read_file_head(path)):
        yield from find_spans(decode_protobuf(read_unpacked_file(path), TRACES))
        return
    for where, document in iter_any_records(path):
        if isinstance(document, ValueError):
            refused.append(make_refused_run(where, str(document)))
            continue
        yield from find_spans(document)
