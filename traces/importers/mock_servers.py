"""Import what mock servers answer as exchanges: fixtures of nock, mappings of WireMock, and
simulations of hoverfly. They hold requests as patterns, and no times.

Each pair of request and response is given the form of a cassette, which `vcr` reads.
"""

import base64
import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

from traces.importers.shared.file_reader import read_unpacked_file
from traces.importers.shared.http_traffic import UNKNOWN_URL, ImportedTraffic
from traces.importers.shared.json_values import parse_json, to_json_text, to_object, to_objects
from traces.importers.vcr import read_vcr_traffic

type Table = dict[str, object]
type Pair = tuple[Table, Table]

_NOCK = re.compile(rb'\s*\[\s*\{[^{}]*"scope"\s*:')
_HOVERFLY = re.compile(rb'\s*\{\s*"data"\s*:\s*\{\s*"(?:pairs|globalActions)"\s*:')
_WIREMOCK = re.compile(rb'"request"\s*:\s*\{[^{}]*"url(?:Path|Pattern|PathPattern)?"\s*:')
_WIREMOCK_START = re.compile(rb'\s*\{\s*"(?:mappings|id|uuid|name|request|response|priority)"\s*:')
_MATCHERS = ("value", "exactMatch", "globMatch", "regexMatch")


def is_nock(start: bytes) -> bool:
    """Whether a file begins like a recording of nock."""
    return _NOCK.match(start) is not None


def is_hoverfly(start: bytes) -> bool:
    """Whether a file begins like a simulation of hoverfly."""
    return _HOVERFLY.match(start) is not None


def is_wiremock(start: bytes) -> bool:
    """Whether a file begins like a mapping of WireMock, or a list of them."""
    has_request = _WIREMOCK.search(start) is not None and b'"response"' in start
    return has_request and _WIREMOCK_START.match(start) is not None


def read_nock(path: Path) -> ImportedTraffic:
    """Read a recording of nock; ValueError if it has no exchange."""
    return _read_pairs(path, "nock", _iter_nock_pairs)


def read_hoverfly(path: Path) -> ImportedTraffic:
    """Read a simulation of hoverfly; ValueError if it has no pair."""
    return _read_pairs(path, "hoverfly", _iter_hoverfly_pairs)


def read_wiremock(path: Path) -> ImportedTraffic:
    """Read mappings of WireMock; ValueError if there is none."""
    return _read_pairs(path, "wiremock", _iter_wiremock_pairs)


def _read_pairs(
    path: Path, source: str, read: Callable[[object], Iterator[Pair]]
) -> ImportedTraffic:
    pairs = list(read(parse_json(read_unpacked_file(path))))
    if not pairs:
        raise ValueError("it has no request with a response")
    cassette = [{"request": request, "response": response} for request, response in pairs]
    return copy.replace(read_vcr_traffic({"interactions": cassette}), source=source)


def _iter_nock_pairs(document: object) -> Iterator[Pair]:
    for each in to_objects(document):
        listed = each.get("rawHeaders", each.get("headers"))
        if isinstance(listed, list):
            listed = dict(zip(listed[::2], listed[1::2], strict=False))
        uri = str(each.get("scope") or UNKNOWN_URL).replace(":443", "").replace(":80", "")
        path = str(each.get("path") or "/")
        request = {
            "method": each.get("method") or "GET",
            "uri": f"{uri}{path}",
            "headers": to_object(each.get("reqheaders")),
            "body": to_json_text(each.get("body")),
        }
        response = each.get("response")
        body: object = response if isinstance(response, str) else to_json_text(response)
        if isinstance(response, list) and all(isinstance(x, str) for x in response):
            body = _join_hex(response) or body
        yield request, {"status": each.get("status", 200), "headers": listed, "body": body}


def _join_hex(parts: list[object]) -> bytes:
    """Return the bytes of a packed body, which nock writes as hexadecimal pieces; empty if none."""
    try:
        return bytes.fromhex("".join(map(str, parts)))
    except ValueError:
        return b""


def _iter_hoverfly_pairs(document: object) -> Iterator[Pair]:
    for each in to_objects(to_object(to_object(document).get("data")).get("pairs")):
        asked, answer = to_object(each.get("request")), to_object(each.get("response"))
        query = asked.get("query")
        if isinstance(query, dict):
            query = urlencode({name: _read_matcher(value) for name, value in query.items()})
        query = _read_matcher(query)
        host = _read_matcher(asked.get("destination")) or UNKNOWN_URL.partition("//")[2]
        url = f"{_read_matcher(asked.get('scheme')) or 'http'}://{host}"
        url += (_read_matcher(asked.get("path")) or "/") + (f"?{query}" if query else "")
        body: object = answer.get("body") or ""
        if answer.get("encodedBody") and isinstance(body, str):
            body = base64.b64decode(body)
        request: Table = {
            "method": _read_matcher(asked.get("method")) or "GET",
            "uri": url,
            "body": _read_matcher(asked.get("body")),
        }
        yield request, {
            "status": answer.get("status", 200), "headers": answer.get("headers"), "body": body
        }  # fmt: skip


def _read_matcher(value: object) -> str:
    """Return the text that a matcher, or the first of several, stands for."""
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, dict):
        first = next((first[name] for name in _MATCHERS if first.get(name) is not None), "")
    return "" if first is None or isinstance(first, list) else str(first)


def _iter_wiremock_pairs(document: object) -> Iterator[Pair]:
    table = to_object(document)
    for each in to_objects(table["mappings"]) if "mappings" in table else [table]:
        asked, answer = to_object(each.get("request")), to_object(each.get("response"))
        names = ("url", "urlPath", "urlPathPattern", "urlPattern")
        path = next((str(asked[name]) for name in names if asked.get(name)), "/")
        method = str(asked.get("method") or "GET")
        body: object = answer.get("body") or ""
        if "jsonBody" in answer:
            body = to_json_text(answer["jsonBody"])
        elif isinstance(packed := answer.get("base64Body"), str):
            body = base64.b64decode(packed)
        patterns = [to_object(x).get("equalToJson") for x in to_objects(asked.get("bodyPatterns"))]
        request: Table = {
            "method": "GET" if method == "ANY" else method,
            "uri": f"{UNKNOWN_URL}{path}",
            "body": to_json_text(next(iter(patterns), None)),
        }
        yield request, {
            "status": answer.get("status", 200), "headers": answer.get("headers"), "body": body
        }  # fmt: skip
