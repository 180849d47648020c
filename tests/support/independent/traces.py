"""Counts of spans and traces of observability tools."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support.independent.counts import Counts, read_all, read_document, read_lines

_KINDS = ("openinference.span.kind", "traceloop.span.kind", "gen_ai.operation.name")
_MODELS = ("LLM", "chat", "generate_content", "text_completion", "call_llm")
_CALL_ID = re.compile(
    r"(?:llm\.output_messages|gen_ai\.completion)\..*tool_calls\.\d+\.(tool_call\.)?id"
)
_TOOLS = ("TOOL", "tool", "execute_tool")


def count_spans(paths: Sequence[Path]) -> Counts:
    """Spans say in an attribute of their convention whether they are of a model or a tool.

    A request that two instrumentations report, one inside the other, counts once.
    """
    spans = [span for path in paths for span in _iter_spans(path)]
    models = {span["context"]["span_id"] for span in spans if _find_kind(span) in _MODELS}
    found, calls = Counts(runs=len({span["context"]["trace_id"] for span in spans})), set[object]()
    for span in spans:
        known, kind = span["attributes"], _find_kind(span)
        if kind in _MODELS and span.get("parent_id") not in models:
            found.steps += 1
            for side in ("input", "prompt"), ("output", "completion"):
                names = [f"gen_ai.usage.{x}_tokens" for x in side]
                names.append(f"llm.token_count.{side[1]}")
                found.add_tokens(next((known[name] for name in names if name in known), None))
        elif kind in _TOOLS:
            id = known.get("gen_ai.tool.call.id", span["context"]["span_id"])
            calls.add((span["context"]["trace_id"], id))
            found.errors += span["status"]["status_code"] in ("ERROR", "StatusCode.ERROR", 2)
        trace = span["context"]["trace_id"]
        calls |= {(trace, known[name]) for name in known if _CALL_ID.fullmatch(name)}
        for each in json.loads(str(known.get("gen_ai.output.messages", "[]"))):
            calls |= {(trace, x["id"]) for x in each["parts"] if x["type"] == "tool_call"}
    found.calls = len(calls)
    return found


def _find_kind(span: Any) -> object:
    known = span["attributes"]
    kind = next((known[name] for name in _KINDS if known.get(name)), None)
    return "chat" if kind is None and "llm.request.type" in known else kind


def _iter_spans(path: Path) -> Iterator[Any]:
    if path.suffix == ".jsonl":
        yield from read_lines(path)
    else:
        document = read_document(path)
        yield from document if isinstance(document, list) else document["spans"]


def count_langfuse(paths: Sequence[Path]) -> Counts:
    """A generation inside another one is the same request, reported by two instrumentations."""
    found, seen = Counts(lacks=("calls", "errors")), set[str]()
    for document in read_all(paths):
        trace = document.get("trace", document)
        observations = document.get("observations") or trace["observations"]
        if trace["id"] in seen:
            continue
        seen.add(trace["id"])
        found.runs += 1
        parents = {each["id"]: each.get("parentObservationId") for each in observations}
        generations = [each for each in observations if each["type"] == "GENERATION"]
        outer = {at for each in generations for at in _iter_parents(each["id"], parents)}
        for each in generations:
            if each["id"] not in outer:
                found.steps += 1
                usage = each.get("usageDetails") or {}
                found.add_tokens(usage.get("input"), usage.get("output"))
    return found


def _iter_parents(id: str, parents: dict[str, str | None]) -> Iterator[str]:
    at = parents.get(id)
    while at is not None:
        yield at
        at = parents.get(at)


def count_langsmith(paths: Sequence[Path]) -> Counts:
    """A run is posted when it begins, and completed by another post."""
    runs = dict[str, Any]()
    for document in read_all(paths):
        posts = document if isinstance(document, list) else [document]
        for post in posts:
            for run in [*(post.get("post") or ()), *(post.get("patch") or ())] or [post]:
                id = run.get("id") or run["dotted_order"].rpartition("Z")[2]
                runs.setdefault(id, {}).update(run)
    found = Counts(runs=len({run["trace_id"] for run in runs.values()}))
    for run in runs.values():
        found.steps += run["run_type"] == "llm"
        found.calls += run["run_type"] == "tool"
        found.errors += run["run_type"] == "tool" and bool(run.get("error"))
        if run["run_type"] == "llm":
            metadata = (run.get("extra") or {}).get("metadata") or {}
            usage = metadata.get("usage_metadata") or (run.get("outputs") or {}).get(
                "usage_metadata"
            )
            usage = usage or {}
            found.add_tokens(usage.get("input_tokens"), usage.get("output_tokens"))
    return found


def count_mlflow(paths: Sequence[Path]) -> Counts:
    found = Counts()
    for trace in (trace for path in paths for trace in read_lines(path)):
        found.runs += 1
        for span in trace["data"]["spans"]:
            known = {name: json.loads(value) for name, value in span["attributes"].items()}
            kind = known.get("mlflow.spanType")
            found.steps += kind in ("LLM", "CHAT_MODEL")
            found.calls += kind == "TOOL"
            code = (span.get("status") or {}).get("code") or span.get("status_code")
            found.errors += kind == "TOOL" and "ERROR" in str(code)
            if kind in ("LLM", "CHAT_MODEL"):
                usage = known.get("mlflow.chat.tokenUsage") or {}
                found.add_tokens(usage.get("input_tokens"), usage.get("output_tokens"))
    return found
