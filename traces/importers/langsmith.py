"""Import LangSmith runs: JSON or JSON lines of its SDKs (`list_runs`, what they post), its API and
its bulk export.

Runs of one trace (`trace_id`) are its spans: those of type `llm` are model requests, those of type
`tool` are calls. What LangSmith calls a run is a span here.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from traces.importers.shared.conversation import ImportedConversation
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.json_values import to_object
from traces.importers.shared.jsonl import iter_any_records
from traces.importers.shared.run_reader import ImportNotes, RawRun, make_refused_run
from traces.importers.spans.plain_messages import Table, parse_json_text
from traces.importers.spans.span_budget import check_span_file_size
from traces.importers.spans.span_files import Span, parse_span_time
from traces.importers.spans.trace_runs import has_agent_content, read_trace

NAME = "LangSmith runs (JSON or JSON lines with run_type and dotted_order)"
_MAX_DEPTH = 40
_STATUS = {"success": "final", "error": "crash"}
_LISTS = ("child_runs", "runs", "data", "post", "patch")
"""Fields with runs; what an SDK posts has those that began, then what they are completed with."""
_JSON_FIELDS = ("inputs", "outputs", "extra")
"""Fields that the bulk export has as texts of JSON."""


def can_import(path: Path) -> bool:
    """Whether a file begins with runs."""
    start = read_file_head(path)
    has_ids = b'"trace_id"' in start or b'"dotted_order"' in start
    return start.lstrip()[:1] in (b"{", b"[") and b'"run_type"' in start and has_ids


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the traces."""
    check_span_file_size(path)
    traces: dict[str, dict[str, Table]] = {}
    for where, document in iter_any_records(path):
        if isinstance(document, ValueError):
            yield make_refused_run(where, str(document))
        else:
            _collect(document, traces, 0)
    if not traces:
        raise ValueError("it has no run of LangSmith with an id and a type")
    for id, runs in traces.items():
        yield RawRun(where=f"trace {id[:40]}", read=partial(_read_trace, id, runs))


def _collect(document: object, traces: dict[str, dict[str, Table]], depth: int) -> None:
    """Add the runs in a document: it is one, a list, or holds them; children may be inside."""
    if depth > _MAX_DEPTH:
        raise ValueError("its values are nested too deeply")
    if isinstance(document, list):
        for each in document:
            _collect(each, traces, depth + 1)
    elif isinstance(document, dict):
        first, last = _find_ids(document)
        id = document.get("id") or last
        trace = str(document.get("trace_id") or first or id)
        known = traces.get(trace, {}).get(id) if isinstance(id, str) else None
        if isinstance(id, str) and (known or isinstance(document.get("run_type"), str)):
            kept = {name: v for name, v in document.items() if name != "child_runs"}
            added = {name: v for name, v in kept.items() if v is not None}
            traces.setdefault(trace, {})[id] = {"id": id} | (known or {}) | added
        for name in _LISTS:
            if isinstance(document.get(name), list):
                _collect(document[name], traces, depth + 1)


def _find_ids(run: Table) -> tuple[str | None, str | None]:
    """Return the ids of the first and the last run of `dotted_order`: times and ids, with dots."""
    names = str(run.get("dotted_order") or "").split(".")
    first, last = (each.partition("Z")[2] or None for each in (names[0], names[-1]))
    return first, last


def _read_trace(id: str, runs: dict[str, Table], notes: ImportNotes) -> ImportedConversation:
    root = runs.get(id) or next(
        (run for run in runs.values() if not run.get("parent_run_id")), dict[str, object]()
    )
    for name in to_object(root.get("feedback_stats")):
        notes.skip(f"feedback named {name}, which no column has")
    spans = [_to_span(id, run) for run in runs.values()]
    if not any(map(has_agent_content, spans)):
        kinds = ", ".join(sorted({str(run["run_type"]) for run in runs.values()}))
        raise ValueError(
            f"none of its {len(spans)} runs is of type llm or tool (they are {kinds}): "
            "export the child runs too"
        )
    ended = _STATUS.get(str(root.get("status")))
    ended = ended or ("crash" if root.get("error") else None)
    ended = ended or ("final" if root.get("end_time") and root.get("outputs") else None)
    facts = {"agent": root.get("name"), "ended": ended, "cost_usd": root.get("total_cost")}
    return read_trace(id, spans, notes, source="langsmith", known=facts)


def _to_span(trace: str, said: Table) -> Span:
    """Return a run as a span with the attributes of OpenInference."""
    run = dict(said)
    for name in _JSON_FIELDS:
        if isinstance(value := run.get(name), str):
            run[name] = parse_json_text(value)
    parent = run.get("parent_run_id")
    kind = run["run_type"]
    known: Table = {}
    if kind == "llm":
        known = _read_model_run(run)
    elif kind == "tool":
        known = _read_tool_run(run)
    return Span(
        trace_id=trace,
        span_id=str(run["id"]),
        parent_id=parent if isinstance(parent, str) else None,
        name=str(run.get("name") or ""),
        start=parse_span_time(run.get("start_time")),
        end=parse_span_time(run.get("end_time")),
        failed=bool(run.get("error")) or run.get("status") == "error",
        attributes={name: value for name, value in known.items() if value is not None},
    )


def _read_model_run(run: Table) -> Table:
    extra, outputs = to_object(run.get("extra")), to_object(run.get("outputs"))
    metadata, asked = to_object(extra.get("metadata")), to_object(extra.get("invocation_params"))
    output = to_object(outputs.get("llm_output"))
    usage = to_object(metadata.get("usage_metadata") or outputs.get("usage_metadata"))
    counted = to_object(output.get("token_usage"))
    details = to_object(usage.get("input_token_details"))
    reasoned = to_object(usage.get("output_token_details"))
    return {
        "openinference.span.kind": "LLM",
        "input.value": run.get("inputs"),
        "output.value": run.get("outputs"),
        "llm.model_name": _first(
            outputs.get("model"), output.get("model_name"), metadata.get("ls_model_name"),
            asked.get("model"), asked.get("model_name"),
        ),
        "llm.token_count.prompt": _first(
            usage.get("input_tokens"), counted.get("prompt_tokens"), run.get("prompt_tokens")
        ),
        "llm.token_count.completion": _first(
            usage.get("output_tokens"), counted.get("completion_tokens"),
            run.get("completion_tokens"),
        ),
        "llm.token_count.prompt_details.cache_read": details.get("cache_read"),
        "llm.token_count.completion_details.reasoning": reasoned.get("reasoning"),
        "llm.cost.total": run.get("total_cost"),
    }  # fmt: skip


def _read_tool_run(run: Table) -> Table:
    outputs = run.get("outputs")
    output = to_object(outputs).get("output", outputs)
    said = to_object(output)
    said = to_object(said.get("kwargs")) or said
    result = said.get("content", output)
    if run.get("error"):
        result = run["error"]
    return {
        "openinference.span.kind": "TOOL",
        "tool.name": run.get("name"),
        "tool.parameters": run.get("inputs"),
        "tool_call.id": said.get("tool_call_id"),
        "output.value": result,
    }


def _first(*values: object) -> object:
    return next((value for value in values if value is not None), None)
