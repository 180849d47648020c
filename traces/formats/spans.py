"""OpenTelemetry spans of agents: GenAI's names and OpenInference's.

As JSON lines, of the form in which SDKs print them or of OTLP, in which collectors write them.

A trace is a run. A span with messages is a request to a model; each has the whole conversation so
far, so of its input only what is new is told, and then its output. A result that no later request
holds is taken of an `execute_tool` span. Instrumentation leaves content out unless it is asked for
it, and two of them may tell of one request: spans without content count only where none has any.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import orjson
import pyarrow as pa

from traces.formats import otlp
from traces.formats.files import head
from traces.formats.lines import documents
from traces.formats.rows import Rows
from traces.formats.talk import Asked, Said, Talk, add

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


def fits(path: Path) -> bool:
    """Whether a file begins with spans."""
    start = head(path)
    printed = all(key in start for key in (b'"trace_id"', b'"span_id"', b'"attributes"'))
    return start.lstrip()[:1] == b"{" and (printed or otlp.SIGN in start)


def tables(path: Path) -> Mapping[str, pa.Table]:
    """The traces as trajectories, steps, tool calls, messages and usage."""
    traces: dict[str, list[Table]] = {}
    for span in _spans(path):
        trace = str(_table(span.get("context")).get("trace_id"))
        traces.setdefault(trace, []).append(span)
    rows = Rows()
    for trace, spans in traces.items():
        add(rows, _talk(trace, sorted(spans, key=lambda span: str(span.get("start_time")))))
    return rows.tables()


def _spans(path: Path) -> Iterator[Table]:
    for each in documents(path):
        document = _table(each)
        if "resourceSpans" in document:
            yield from otlp.spans(document)
        else:
            yield document


def _talk(trace: str, spans: list[Table]) -> Talk:
    times = [at for span in spans if (at := _when(span.get("start_time"))) is not None]
    ends = [at for span in spans if (at := _when(span.get("end_time"))) is not None]
    named = (_attributes(span).get("gen_ai.agent.name") for span in spans)
    facts = {
        "agent": next((name for name in named if name), None),
        "recorded_at": min(times, default=None),
        "seconds": max(ends) - min(times) if times and ends else None,
    }
    said = tuple(_said(spans))
    return Talk(source="otel", said=said, facts=facts, whole=[trace, spans])


def _said(spans: list[Table]) -> Iterator[Said]:
    requests = [span for span in spans if _is_request(span)]
    told = [span for span in requests if _messages(_attributes(span), "output")]
    results = _results(spans)
    seen, answered = 0, set[str]()
    for span in told or requests:
        known = _attributes(span)
        before, answer = _messages(known, "input"), _messages(known, "output")
        new = before[seen:] if len(before) >= seen else before
        for each in new:
            if each.role == "tool":
                answered.add(each.answers or "")
            yield _marked(each, results)
        seen = len(before) + len(answer)
        last = len(answer) - 1
        for place, each in enumerate(answer or [Said(role="assistant")]):
            usage = _usage(known) if place == max(last, 0) else {}
            yield Said(
                role="assistant", text=each.text, model=_model(known), calls=each.calls, usage=usage
            )
    for id, (text, failed) in results.items():
        if id not in answered:
            yield Said(role="tool", text=text, answers=id, is_error=failed)


def _is_request(span: Table) -> bool:
    known = _attributes(span)
    operation = known.get("gen_ai.operation.name")
    return operation in ("chat", "generate_content", "text_completion") or (
        known.get("openinference.span.kind") == "LLM"
    )


def _results(spans: list[Table]) -> dict[str, tuple[str, bool | None]]:
    """What `execute_tool` spans tell of results, by the id of the call."""
    found: dict[str, tuple[str, bool | None]] = {}
    for span in spans:
        known = _attributes(span)
        id = known.get("gen_ai.tool.call.id")
        if known.get("gen_ai.operation.name") == "execute_tool" and isinstance(id, str):
            failed = _table(span.get("status")).get("status_code") == "ERROR" or None
            found[id] = (_plain(known.get("gen_ai.tool.call.result")), failed)
    return found


def _marked(said: Said, results: Mapping[str, tuple[str, bool | None]]) -> Said:
    """A result with whether its span failed."""
    if said.role != "tool" or said.answers is None or said.answers not in results:
        return said
    failed = results[said.answers][1]
    return Said(role="tool", text=said.text, answers=said.answers, is_error=failed)


def _messages(known: Table, side: str) -> list[Said]:
    said = known.get(f"gen_ai.{side}.messages")
    if isinstance(said, str):
        try:
            said = orjson.loads(said)
        except orjson.JSONDecodeError:
            said = None  # an attribute may be cut at a length that the exporter was given
    if isinstance(said, list):
        return [each for message in said for each in _parts(_table(message))]
    return _flat(known, side)


def _parts(message: Table) -> Iterator[Said]:
    """A message of GenAI's form: its results first, each on its own."""
    parts = message.get("parts")
    known = [_table(each) for each in parts] if isinstance(parts, list) else []
    for each in known:
        if each.get("type") == "tool_call_response":
            text = _plain(each.get("result", each.get("response")))
            yield Said(role="tool", text=text, answers=str(each.get("id") or ""))
    calls = tuple(_asked(each) for each in known if each.get("type") == "tool_call")
    texts = [_plain(each.get("content")) for each in known if each.get("type") == "text"]
    if calls or texts:
        role = str(message.get("role") or "user")
        role = role if role in ("system", "user", "assistant") else "user"
        yield Said(role=role, text="\n".join(texts), calls=calls)


def _asked(part: Table) -> Asked:
    return Asked(
        id=str(part.get("id") or ""),
        tool=str(part.get("name") or ""),
        arguments=_plain(part.get("arguments")),
    )


def _flat(known: Table, side: str) -> list[Said]:
    """Messages of OpenInference's form, whose attributes have paths for names."""
    messages: dict[int, Table] = {}
    for name, value in known.items():
        found = _OPEN.fullmatch(name)
        if found and found[1] == side:
            messages.setdefault(int(found[2]), {})[found[3]] = value
    return [_unflattened(messages[place]) for place in sorted(messages)]


def _unflattened(message: Table) -> Said:
    calls: dict[int, Table] = {}
    texts = [_plain(message["content"])] if "content" in message else []
    for name, value in sorted(message.items()):
        if found := _CALL.fullmatch(name):
            calls.setdefault(int(found[1]), {})[found[2]] = value
        elif _PART.fullmatch(name):
            texts.append(_plain(value))
    role = str(message.get("role") or "user")
    if answers := message.get("tool_call_id"):
        return Said(role="tool", text="\n".join(texts), answers=str(answers))
    asked = tuple(
        Asked(
            id=str(each.get("id") or ""),
            tool=str(each.get("function.name") or ""),
            arguments=_plain(each.get("function.arguments")),
        )
        for _, each in sorted(calls.items())
    )
    role = role if role in ("system", "user", "assistant") else "user"
    return Said(role=role, text="\n".join(texts), calls=asked)


def _usage(known: Table) -> dict[str, object]:
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
    found = {
        column: next((known[name] for name in each if name in known), None)
        for column, each in names.items()
    }
    return found if any(value is not None for value in found.values()) else {}


def _model(known: Table) -> str | None:
    return next((str(known[name]) for name in _MODELS if known.get(name)), None)


def _attributes(span: Table) -> Table:
    return _table(span.get("attributes"))


def _plain(value: object) -> str:
    return (
        value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode()
    )


def _when(said: object) -> float | None:
    try:
        return datetime.fromisoformat(said).timestamp() if isinstance(said, str) else None
    except ValueError:
        return None


def _table(said: object) -> Table:
    return said if isinstance(said, dict) else {}
