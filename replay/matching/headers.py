"""Decide which header fields of two requests count, and whether they are equivalent.

All fields count except those unrelated to the request's content: transport fields, client
identification and tracing. Credentials have their rules in `replay.matching.credentials`. Some
values are generated for each run: a field named like a session or request id may differ if both
values look generated and neither occurs elsewhere on the tape. In model traffic this applies to any
field name except those that select something (a tenant, a version): the content of a model request
is in its body.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from traces.bodies.generated_values import (
    GENERATED_VALUE,
    are_of_one_kind,
    is_answer_affecting_name,
    is_run_scoped_name,
)
from traces.model import Headers, Request
from traces.redaction.detection.credential_names import is_auth_header

_TRANSPORT_FIELDS = frozenset(
    ("accept-encoding", "alt-used", "connection", "content-length", "date", "early-data",
     "expect", "grpc-accept-encoding", "grpc-timeout", "host", "http2-settings", "keep-alive",
     "max-forwards", "priority", "proxy-connection", "sec-websocket-extensions",
     "sec-websocket-key", "sec-websocket-version", "te", "trailer", "transfer-encoding",
     "upgrade-insecure-requests", "via")
)  # fmt: skip
_CLIENT_FIELDS = re.compile(
    r".*user-agent\Z|x-stainless-|x-goog-api-client\Z|sec-ch-|sec-fetch-|sec-gpc\Z|dnt\Z"
)
_TRACING_FIELDS = re.compile(
    r"traceparent\Z|tracestate\Z|b3\Z|x-b3-|uber-trace-id\Z|sentry-trace\Z|newrelic\Z"
    r"|x-datadog-|x-amzn-trace-id\Z|x-cloud-trace-context\Z|elastic-apm-|x-instana-"
    r"|amz-sdk-invocation-id\Z|amz-sdk-request\Z|x-amz-date\Z|x-ms-date\Z"
)
_DEFAULT_FIELDS = frozenset(
    ("accept", "accept-language", "cache-control", "content-type", "pragma")
)
type HeaderFields = Mapping[str, str]
"""Lower-case name to value; values of one name are joined, in order."""


@lru_cache(maxsize=4096)
def is_counted_field(name: str) -> bool:
    """Return whether a field (lower-case name) is compared by its value."""
    if (
        name in _TRANSPORT_FIELDS
        or _CLIENT_FIELDS.match(name)
        or _TRACING_FIELDS.match(name)
        or name[:1] == ":"
    ):
        return False
    return name != "cookie" and not is_auth_header(name)


def is_default_field(name: str) -> bool:
    """Return whether clients send this field by default."""
    return name in _DEFAULT_FIELDS


def is_drawn_field(name: str, is_model: Callable[[], bool]) -> bool:
    """Return whether a field of this name has a value generated for each run or request.

    The id of an MCP session does not: the server assigned it.
    """
    if name == "mcp-session-id":
        return False
    return (
        name == "baggage"
        or is_run_scoped_name(name)
        or (not is_answer_affecting_name(name) and is_model())
    )


def select_counted_fields(
    headers: Headers, exact: Iterable[str] = (), *, parted: bool = False
) -> dict[str, str]:
    """Return the fields that count; `exact` are names that count in any case.

    `parted` is True if the named boundary separates the body's parts: then it does not count.
    """
    fields = dict[str, str]()
    for name, value in headers:
        name = name.lower()
        if is_counted_field(name) or name in exact:
            value = value.strip()
            fields[name] = f"{fields[name]}, {value}" if name in fields else value
    if parted:
        fields["content-type"] = _BOUNDARY.sub("boundary=", fields["content-type"])
    return fields


_BOUNDARY = re.compile(r"(?i)boundary=(?:\"([^\"]+)\"|([^\s;,\"]+))")


def find_multipart_delimiter(request: Request) -> re.Pattern[bytes] | None:
    """Return a pattern of the delimiter lines of a multipart body (RFC 2046, 5.1.1), else None.

    The client generates their boundary for each request.
    """
    for name, value in request.headers:
        if name.lower() == "content-type" and value.lower().lstrip().startswith("multipart/"):
            match = _BOUNDARY.search(value)
            text = (match[1] or match[2]).encode("latin-1", "replace") if match else b""
            line = re.compile(rb"(\A|\r?\n)--" + re.escape(text) + rb"(-?-?[ \t]*)(?=\r?\n|\Z)")
            return line if text and line.match(request.body) else None
    return None


def hash_head(request: Request) -> int:
    """Return a hash of all fields that are not of the connection: those of an exact match."""
    fields = ((name.lower(), value.strip()) for name, value in request.headers)
    return hash(tuple(sorted(each for each in fields if each[0] not in _TRANSPORT_FIELDS)))


def find_uncounted_fields(recorded: Headers, asked: Headers) -> list[str]:
    """Return the names of fields that are not of the connection, and differ in any way."""
    one, two = (
        sorted((k.lower(), v) for k, v in each if k.lower() not in _TRANSPORT_FIELDS)
        for each in (recorded, asked)
    )
    return list(dict.fromkeys(name for name, _ in sorted({*one} ^ {*two})))


def find_differing_fields(
    recorded: HeaderFields,
    asked: HeaderFields,
    known: Callable[[], Mapping[str, set[str]]],
    is_model: Callable[[], bool],
) -> list[str]:
    """Return the names of the fields in which two requests differ.

    `known` returns, per name, the generated values of the entire recording; `is_model` whether the
    request is to a model.
    """
    return [
        name
        for name in {**recorded, **asked}
        if (was := recorded.get(name)) != (now := asked.get(name))
        and (was is None or now is None or not _is_drawn_again(name, was, now, known, is_model))
    ]


def _is_drawn_again(
    name: str,
    was: str,
    now: str,
    known: Callable[[], Mapping[str, set[str]]],
    is_model: Callable[[], bool],
) -> bool:
    old, new = find_drawn_values(was), find_drawn_values(now)
    if (
        not old
        or GENERATED_VALUE.split(was) != GENERATED_VALUE.split(now)
        or not is_drawn_field(name, is_model)
    ):
        return False
    return not any(
        a != b and (b in known().get(name, ()) or not are_of_one_kind(a, b))
        for a, b in zip(old, new, strict=True)
    )


def find_drawn_values(value: str) -> list[str]:
    """Return the values in a field that look generated."""
    return GENERATED_VALUE.findall(value)


def is_coding_accepted(asked: Headers, coding: str) -> bool:
    """Return whether a client accepts an answer in this content coding (RFC 9110, 12.5.3)."""
    accepted_text = ",".join(
        value for name, value in asked if name.lower() == "accept-encoding"
    ).lower()
    if not accepted_text or coding in ("", "identity"):
        return coding in ("", "identity") or not accepted_text
    codings = {
        part.partition(";")[0].strip()
        for part in accepted_text.split(",")
        if not _ZERO_QUALITY.search(part)
    }
    return "*" in codings or coding in codings or coding.removeprefix("x-") in codings


_ZERO_QUALITY = re.compile(r";\s*q=0(?:\.0*)?\s*\Z")
