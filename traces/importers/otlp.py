"""Convert OTLP in JSON, as collectors write it, to the spans that OpenTelemetry SDKs print.

A document has `resourceSpans`, these have `scopeSpans`, and these have spans. Ids are hexadecimal,
times are nanoseconds since the epoch as text, and each value is under the name of its type.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

type Table = dict[str, object]

SIGN = b'"resourceSpans"'
_FAILED = (2, "STATUS_CODE_ERROR")


def read_otlp_spans(document: Table) -> Iterator[Table]:
    """Yield the spans of a document in file order."""
    for resource in _to_otlp_objects(document.get("resourceSpans")):
        for scope in _to_otlp_objects(resource.get("scopeSpans")):
            yield from (_to_printed_span(each) for each in _to_otlp_objects(scope.get("spans")))


def _to_printed_span(said: Table) -> Table:
    status = said.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    return {
        "name": said.get("name"),
        "context": {"trace_id": said.get("traceId"), "span_id": said.get("spanId")},
        "parent_id": said.get("parentSpanId") or None,
        "start_time": _format_unix_nanos(said.get("startTimeUnixNano")),
        "end_time": _format_unix_nanos(said.get("endTimeUnixNano")),
        "status": {"status_code": "ERROR" if code in _FAILED else "UNSET"},
        "attributes": _to_attribute_dict(said.get("attributes")),
    }


def _to_attribute_dict(said: object) -> Table:
    return {
        str(each.get("key")): _to_attribute_value(each.get("value"))
        for each in _to_otlp_objects(said)
    }


def _to_attribute_value(said: object) -> object:
    for kind, value in (said if isinstance(said, dict) else {}).items():
        match kind:
            case "intValue":
                return int(value)
            case "arrayValue":
                return [_to_attribute_value(each) for each in _to_otlp_objects(value.get("values"))]
            case "kvlistValue":
                return _to_attribute_dict(value.get("values"))
            case _:
                return value
    return None


def _format_unix_nanos(nanoseconds: object) -> str | None:
    if not isinstance(nanoseconds, str | int) or not int(nanoseconds):
        return None
    return datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC).isoformat()


def _to_otlp_objects(said: object) -> list[Table]:
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []
