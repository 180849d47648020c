"""Which header fields of two requests count, and whether they say the same.

All count but those that say nothing of what is asked: the transport's own, who the client is,
what traces a request, and credentials (`replay.credentials`). Some are drawn for each run: what
is named like the id of a session or a request may be another id, if both look drawn and neither
stands on the tape elsewhere. Of model traffic that holds whatever the field is called, unless its
name says that it chooses (a tenant, a version): what is asked of a model is in its body.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from traces.credentials import is_auth
from traces.drawn import DRAWN, chooses, is_of_a_run
from traces.model import Headers, Request

_TRANSPORT = frozenset(
    ("accept-encoding", "alt-used", "connection", "content-length", "date", "early-data",
     "expect", "host", "http2-settings", "keep-alive", "max-forwards", "priority",
     "proxy-connection", "sec-websocket-extensions", "sec-websocket-key",
     "sec-websocket-version", "te", "trailer", "transfer-encoding", "upgrade",
     "upgrade-insecure-requests", "via")
)  # fmt: skip
_CLIENT = re.compile(
    r".*user-agent\Z|x-stainless-|x-goog-api-client\Z|sec-ch-|sec-fetch-|sec-gpc\Z|dnt\Z"
)
_TRACING = re.compile(
    r"traceparent\Z|tracestate\Z|baggage\Z|b3\Z|x-b3-|uber-trace-id\Z|sentry-trace\Z|newrelic\Z"
    r"|x-datadog-|x-amzn-trace-id\Z|x-cloud-trace-context\Z|elastic-apm-|x-instana-"
    r"|amz-sdk-invocation-id\Z|amz-sdk-request\Z|x-amz-date\Z|x-ms-date\Z"
    r"|(?:[a-z]+-)*(?:request|correlation)-id\Z"
)
type Fields = Mapping[str, str]
"""Name in lower case to value; values of one name joined, in order."""


@lru_cache(maxsize=4096)
def counts(name: str) -> bool:
    """True for a field, in lower case, that is compared as it stands."""
    if name in _TRANSPORT or _CLIENT.match(name) or _TRACING.match(name) or name[:1] == ":":
        return False
    return name != "cookie" and not is_auth(name)


def is_drawn(name: str, is_model: Callable[[], bool]) -> bool:
    """True if a field of this name holds what is drawn for each run or each request.

    The id of an MCP session is none: the server gave it.
    """
    if name == "mcp-session-id":
        return False
    return is_of_a_run(name) or (not chooses(name) and is_model())


def fields(headers: Headers, exact: Iterable[str] = (), *, parted: bool = False) -> dict[str, str]:
    """The fields that count; `exact` are names that count although they would not.

    `parted` is True if the boundary that they name parts the body: then it does not count.
    """
    found = dict[str, str]()
    for name, value in headers:
        name = name.lower()
        if counts(name) or name in exact:
            value = value.strip()
            found[name] = f"{found[name]}, {value}" if name in found else value
    if parted:
        found["content-type"] = _BOUNDARY.sub("boundary=", found["content-type"])
    return found


_BOUNDARY = re.compile(r"(?i)boundary=(?:\"([^\"]+)\"|([^\s;,\"]+))")


def delimiter(request: Request) -> re.Pattern[bytes] | None:
    """The lines that part a multipart body (RFC 2046, 5.1.1); None for any other body.

    The boundary in them is drawn by the client for each request.
    """
    for name, value in request.headers:
        if name.lower() == "content-type" and value.lower().lstrip().startswith("multipart/"):
            found = _BOUNDARY.search(value)
            text = (found[1] or found[2]).encode("latin-1", "replace") if found else b""
            line = re.compile(rb"(\A|\r?\n)--" + re.escape(text) + rb"(-?-?[ \t]*)(?=\r?\n|\Z)")
            return line if text and line.match(request.body) else None
    return None


def unlike(
    recorded: Fields,
    asked: Fields,
    known: Callable[[], Mapping[str, set[str]]],
    is_model: Callable[[], bool],
) -> list[str]:
    """The names of the fields in which two requests differ.

    `known` gives for each name the drawn values of the whole recording, `is_model` whether a
    model is asked.
    """
    return [
        name
        for name in {**recorded, **asked}
        if (was := recorded.get(name)) != (now := asked.get(name))
        and (was is None or now is None or not _same_drawn(name, was, now, known, is_model))
    ]


def _same_drawn(
    name: str,
    was: str,
    now: str,
    known: Callable[[], Mapping[str, set[str]]],
    is_model: Callable[[], bool],
) -> bool:
    one, two = drawn(was), drawn(now)
    if not one or DRAWN.split(was) != DRAWN.split(now) or not is_drawn(name, is_model):
        return False
    return not any(a != b and b in known().get(name, ()) for a, b in zip(one, two, strict=True))


def drawn(value: str) -> list[str]:
    """The values in a field that look drawn."""
    return DRAWN.findall(value)


def accepts(asked: Headers, coding: str) -> bool:
    """True if a client takes an answer in this content coding (RFC 9110, 12.5.3)."""
    said = ",".join(value for name, value in asked if name.lower() == "accept-encoding").lower()
    if not said or coding in ("", "identity"):
        return coding in ("", "identity") or not said
    taken = {part.partition(";")[0].strip() for part in said.split(",") if not _NEVER.search(part)}
    return "*" in taken or coding in taken or coding.removeprefix("x-") in taken


_NEVER = re.compile(r";\s*q=0(?:\.0*)?\s*\Z")
