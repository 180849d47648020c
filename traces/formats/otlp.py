"""OTLP in JSON, as collectors write it, as the spans that the SDKs of OpenTelemetry print.

A document has `resourceSpans`, these have `scopeSpans`, these have spans. Ids are hexadecimal,
times are nanoseconds since the epoch as text, and a value stands under the name of its type.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

type Table = dict[str, object]

SIGN = b'"resourceSpans"'
_FAILED = (2, "STATUS_CODE_ERROR")


def spans(document: Table) -> Iterator[Table]:
    """The spans of a document, in the order in which they stand."""
    for resource in _tables(document.get("resourceSpans")):
        for scope in _tables(resource.get("scopeSpans")):
            yield from (_span(each) for each in _tables(scope.get("spans")))


def _span(said: Table) -> Table:
    status = said.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    return {
        "name": said.get("name"),
        "context": {"trace_id": said.get("traceId"), "span_id": said.get("spanId")},
        "parent_id": said.get("parentSpanId") or None,
        "start_time": _when(said.get("startTimeUnixNano")),
        "end_time": _when(said.get("endTimeUnixNano")),
        "status": {"status_code": "ERROR" if code in _FAILED else "UNSET"},
        "attributes": _attributes(said.get("attributes")),
    }


def _attributes(said: object) -> Table:
    return {str(each.get("key")): _value(each.get("value")) for each in _tables(said)}


def _value(said: object) -> object:
    for kind, value in (said if isinstance(said, dict) else {}).items():
        match kind:
            case "intValue":
                return int(value)
            case "arrayValue":
                return [_value(each) for each in _tables(value.get("values"))]
            case "kvlistValue":
                return _attributes(value.get("values"))
            case _:
                return value
    return None


def _when(nanoseconds: object) -> str | None:
    if not isinstance(nanoseconds, str | int) or not int(nanoseconds):
        return None
    return datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC).isoformat()


def _tables(said: object) -> list[Table]:
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []
