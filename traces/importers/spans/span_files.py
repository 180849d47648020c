"""Find the spans of a document and bring them to one form, whatever wrote them.

SDKs print a span with `context.trace_id`, OTLP in JSON has `resourceSpans` and typed values, others
have `trace_id` or `traceId` at the top, columns such as `attributes.llm.model_name`, or nested
attributes. Documents are spans, lists of them, or objects that hold them at any depth.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from msgspec import Struct, field

from traces.importers.shared.json_values import to_object, to_objects
from traces.importers.spans.other_spans import to_opentelemetry

type Table = dict[str, object]

SIGNS = (b"resourceSpans", b"resource_spans", b"trace_id", b"traceId", b"traceID")
MAX_DEPTH = 8
_NESTED = ("llm", "tool", "input", "output", "openinference", "gen_ai", "ai", "agent", "session")
"""First parts of attribute names that some exporters write as nested objects."""
_LOG_FIELDS = {"observedTimeUnixNano", "severityNumber", "eventName", "body"}
"""Fields that a log record has, and no span."""
_ERRORS = ("ERROR", "STATUSCODE.ERROR", "STATUS_CODE_ERROR", "2")
_SUCCESSES = ("OK", "STATUSCODE.OK", "STATUS_CODE_OK", "1")


class Span(Struct, frozen=True, kw_only=True):
    """One span; times are seconds since the epoch."""

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    start: float | None = None
    end: float | None = None
    failed: bool | None = None
    """False if its status is OK; None if it has none, as most that did not fail."""
    attributes: Table = field(default_factory=dict)
    events: tuple[tuple[str, Table], ...] = ()
    """Names and attributes."""
    is_log_record: bool = False
    """Whether it is no span but a log record, the only event in it, of the span with its id."""

    @property
    def seconds(self) -> float | None:
        """How long it lasted; None if it has not ended, or ended before it began."""
        if self.start is None or self.end is None or self.end < self.start:
            return None
        return self.end - self.start


def find_spans(document: object, depth: int = 0) -> Iterator[Span]:
    """Yield the spans anywhere in a document, in their order."""
    if depth > MAX_DEPTH:
        return
    if isinstance(document, list):
        for each in document:
            yield from find_spans(each, depth + 1)
    elif isinstance(document, dict):
        span = to_span(document)
        if span is not None:
            yield span
            return
        for each in document.values():
            yield from find_spans(each, depth + 1)


def to_span(said: Table) -> Span | None:
    """Return an object as a span; None if it is none."""
    said = to_opentelemetry(said)
    context = to_object(said.get("context") or said.get("span_context"))
    trace = _find_id(said, context, "trace_id", "traceId", digits=32)
    id = _find_id(said, context, "span_id", "spanId", digits=16)
    if trace is None or id is None:
        return None
    if _LOG_FIELDS & said.keys():
        event = _read_log_record(said)
        return Span(trace_id=trace, span_id=id, events=(event,), is_log_record=True)
    is_span = {"name", "span_name", "attributes", "start_time", "startTimeUnixNano"} & said.keys()
    if not is_span:
        return None
    parent = _first(said, "parent_id", "parentSpanId", "parent_span_id", "parentId", "parent")
    return Span(
        trace_id=trace,
        span_id=id,
        parent_id=_find_parent_id(parent),
        name=str(_first(said, "name", "span_name") or ""),
        start=parse_span_time(
            _first(said, "start_time", "startTimeUnixNano", "start_timestamp", "startTime", "start")
        ),
        end=parse_span_time(
            _first(said, "end_time", "endTimeUnixNano", "end_timestamp", "endTime", "end")
        ),
        failed=_is_failed(said),
        attributes=_read_attributes(said),
        events=tuple(_read_events(said)),
    )


def _find_id(said: Table, context: Table, *names: str, digits: int) -> str | None:
    own = _first(said, *names, f"context.{names[0]}")
    return _to_hex(_first(context, *names) if own is None else own, digits)


def _find_parent_id(parent: object) -> str | None:
    """Return the id of a span's parent; a root has none, or one of zeros."""
    value = _first(parent, "span_id", "spanId") if isinstance(parent, dict) else parent
    id = _to_hex(value, 16)
    return id if id and id.strip("0") else None


def _to_hex(id: object, digits: int) -> str | None:
    """Return an id as its text; SDKs hold it as an integer, and dumps of their objects have that.

    JSON's readers make a float of an integer of 128 bits: its 53 bits still tell random ids apart.
    """
    if isinstance(id, str):
        return id.removeprefix("0x") or None
    if isinstance(id, bool) or not isinstance(id, int | float) or not 0 <= id < 2.0**128:
        return None
    return f"{int(id):0{digits}x}"


def _read_log_record(said: Table) -> tuple[str, Table]:
    """Return the name and attributes of an event that is a log record, with its body in them."""
    attributes = to_plain_attributes(said.get("attributes"))
    if (body := said.get("body")) is not None:
        attributes["body"] = _to_plain_value(body)
    return str(_first(said, "eventName", "event_name") or attributes.get("event.name") or ""), (
        attributes
    )


def _first(table: Mapping[str, object], *names: str) -> object:
    return next((table[name] for name in names if table.get(name) is not None), None)


def _is_failed(said: Table) -> bool | None:
    status = said.get("status")
    known = to_object(status)
    code = known.get("status_code", known.get("code", said.get("status_code")))
    code = status if isinstance(status, str) else code
    text = str(code).upper()
    return text in _ERRORS if text in (*_ERRORS, *_SUCCESSES) else None


def _read_attributes(said: Table) -> Table:
    attributes = to_plain_attributes(said.get("attributes"))
    for name, value in said.items():
        if name.startswith("attributes.") and value is not None:
            attributes[name.removeprefix("attributes.")] = value
    if isinstance(kind := said.get("span_kind"), str):
        attributes.setdefault("openinference.span.kind", kind)
    flat: Table = {}
    for name, value in attributes.items():
        if name.partition(".")[0] in _NESTED and isinstance(value, dict | list):
            flat |= _flatten(name, value)
    return flat | attributes


def _flatten(name: str, value: object) -> Table:
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        parts = {str(place): each for place, each in enumerate(value)}.items()
    else:
        return {name: value}
    flat: Table = {}
    for key, each in parts:
        flat |= _flatten(f"{name}.{key}", each)
    return flat


def _read_events(said: Table) -> Iterator[tuple[str, Table]]:
    for each in to_objects(said.get("events")):
        name = _first(each, "name", "event_name", "event.name")
        yield str(name or ""), to_plain_attributes(each.get("attributes"))


def to_plain_attributes(said: object) -> Table:
    """Return attributes as a map; OTLP has a list of keys with typed values."""
    if isinstance(said, dict):
        return dict(said)
    return {
        str(each["key"]): _to_plain_value(each.get("value"))
        for each in to_objects(said)
        if "key" in each
    }


def _to_plain_value(said: object) -> object:
    if not isinstance(said, dict):
        return said
    for kind, value in said.items():
        match kind:
            case "intValue" | "int_value":
                return int(value) if isinstance(value, str | int) else None
            case "arrayValue" | "array_value":
                return [
                    _to_plain_value(each) for each in to_objects(to_object(value).get("values"))
                ]
            case "kvlistValue" | "kvlist_value":
                return to_plain_attributes(to_object(value).get("values"))
            case _:
                return value
    return None


def parse_span_time(said: object) -> float | None:
    """Return seconds: of a date as text, of nano-, micro- or milliseconds, or of [s, ns]."""
    if isinstance(said, list) and len(said) == 2 and all(isinstance(n, int | float) for n in said):
        return float(said[0]) + float(said[1]) / 1e9
    try:
        if isinstance(said, str) and not said.isdigit():
            time = datetime.fromisoformat(said.strip())
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
        number = float(said) if isinstance(said, int | float | str) else 0.0
    except ValueError:
        return None
    if not 0 < number < 1e20:
        return None
    for limit, scale in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if number > limit:
            return number / scale
    return number
