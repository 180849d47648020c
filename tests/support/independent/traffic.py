"""Counts of recorded HTTP traffic: runs are files, steps exchanges, errors statuses from 400."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from tests.support.independent.counts import Counts, read_bytes, read_document


def count_vcr(paths: Sequence[Path]) -> Counts:
    """Cassettes of vcrpy, go-vcr and Ruby VCR, and of a serialiser with two lists."""
    return _count_statuses(paths, _iter_vcr_statuses)


def _iter_vcr_statuses(path: Path) -> Iterator[int]:
    document = yaml.load(read_bytes(path), yaml.CSafeLoader)
    pairs = document.get("interactions") or document.get("http_interactions") or ()
    answers = [x["response"] for x in pairs if "response" in x] or document.get("responses") or ()
    for answer in answers:
        status = answer.get("status", answer.get("status_code", answer.get("code")))
        yield int(status["code"] if isinstance(status, dict) else str(status).split()[0])


def count_har(paths: Sequence[Path]) -> Counts:
    return _count_statuses(paths, _iter_har_statuses)


def _iter_har_statuses(path: Path) -> Iterator[int]:
    """Entries without a response have status 0."""
    for entry in read_document(path)["log"]["entries"]:
        yield int(entry["response"]["status"])


def count_nock(paths: Sequence[Path]) -> Counts:
    return _count_statuses(paths, lambda path: (each["status"] for each in read_document(path)))


def count_hoverfly(paths: Sequence[Path]) -> Counts:
    return _count_statuses(paths, _iter_hoverfly_statuses)


def _iter_hoverfly_statuses(path: Path) -> Iterator[int]:
    for pair in read_document(path)["data"]["pairs"]:
        yield int(pair["response"].get("status", 200))


def count_flows(paths: Sequence[Path]) -> Counts:
    """Flow files of mitmproxy are a sequence of netstrings."""
    return _count_statuses(paths, _iter_flow_statuses)


def _iter_flow_statuses(path: Path) -> Iterator[int]:
    data = read_bytes(path)
    while data:
        flow, data = _read_netstring(data)
        if "request" in flow and flow["request"] is not None:
            answer = flow.get("response") or {}
            yield int(answer.get("status_code", answer.get("code", 0)))


def _read_netstring(data: bytes) -> tuple[Any, bytes]:
    size, _, rest = data.partition(b":")
    body, kind, rest = rest[: int(size)], rest[int(size) : int(size) + 1], rest[int(size) + 1 :]
    if kind in b"}]":
        items = []
        while body:
            item, body = _read_netstring(body)
            items.append(item)
        pairs = zip(items[::2], items[1::2], strict=True)
        return ({_to_text(k): v for k, v in pairs} if kind == b"}" else items), rest
    match kind:
        case b"#":
            return int(body), rest
        case b"^":
            return float(body), rest
        case b"!":
            return body == b"true", rest
        case b"~":
            return None, rest
    return (body.decode() if kind == b";" else body), rest


def _to_text(key: object) -> object:
    return key.decode() if isinstance(key, bytes) else key


def _count_statuses(paths: Sequence[Path], read: Any) -> Counts:
    found, seen = Counts(lacks=("calls",)), set[bytes]()
    for path in paths:
        if (digest := sha256(path.read_bytes()).digest()) in seen:
            continue
        seen.add(digest)
        found.runs += 1
        statuses = list(read(path))
        found.steps += sum(status > 0 for status in statuses)
        found.errors += sum(status >= 400 for status in statuses)
    return found
