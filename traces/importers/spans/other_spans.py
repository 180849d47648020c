"""Spans of Jaeger and Zipkin in the form of OpenTelemetry's SDKs."""

from collections.abc import Iterator

from traces.importers.shared.json_values import to_object, to_objects

type Table = dict[str, object]


def to_opentelemetry(said: Table) -> Table:
    """Return a span of Jaeger or Zipkin with the names of OpenTelemetry; anything else as it is."""
    if isinstance(said.get("traceID"), str) and "operationName" in said:
        tags = _read_fields(said.get("tags"))
        before = (x for x in to_objects(said.get("references")) if x.get("refType") == "CHILD_OF")
        named = {
            "trace_id": said["traceID"],
            "span_id": said.get("spanID"),
            "parent_id": next(before, dict[str, object]()).get("spanID")
            or said.get("parentSpanID"),
            "name": said["operationName"],
            "events": list(_iter_events(said.get("logs"))),
        }
    elif isinstance(said.get("traceId"), str) and "timestamp" in said and "duration" in said:
        tags = dict(to_object(said.get("tags")))
        named = {
            "trace_id": said["traceId"],
            "span_id": said.get("id"),
            "parent_id": said.get("parentId"),
            "name": said.get("name"),
        }
    else:
        return said
    start, took = said.get("startTime", said.get("timestamp")), said.get("duration")
    is_timed = isinstance(start, int) and isinstance(took, int)
    return named | {
        "start_time": start,
        "end_time": start + took if is_timed else None,  # type: ignore[operator]
        "status": {"code": tags.get("otel.status_code") or _read_error(tags)},
        "attributes": tags,
    }


def _read_error(tags: Table) -> str | None:
    """Return the status that a tag `error` says: Zipkin has its message, and none for success."""
    return "ERROR" if tags.get("error") not in (None, False, "false") else None


def _read_fields(listed: object) -> Table:
    return {str(each.get("key")): each.get("value") for each in to_objects(listed)}


def _iter_events(logs: object) -> Iterator[Table]:
    for each in to_objects(logs):
        fields = _read_fields(each.get("fields"))
        yield {"name": fields.get("event"), "attributes": fields}
