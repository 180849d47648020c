"""Third-party recordings converted to traces: cassettes of client libraries, flows of real
agents.
"""

import gzip
import json
from collections.abc import Iterator
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from mitmproxy.http import HTTPFlow, Message
from mitmproxy.io import FlowReader

from traces.model import Chunk, Exchange, Headers, Request, Response


def cassettes(shared: Path, *groups: str) -> Iterator[tuple[Path, Exchange]]:
    """Yield every exchange in the cassettes under these globs; a redacted URL stays redacted."""
    for group in groups:
        for path in sorted((shared / "cassettes").glob(group)):
            raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            tape = yaml.load(raw, yaml.CSafeLoader)
            if "requests" in tape:
                pairs = list(zip(tape["requests"], tape["responses"], strict=True))
            else:
                pairs = [(each["request"], each["response"]) for each in tape["interactions"]]
            for seq, (asked, said) in enumerate(pairs):
                yield path, _exchange(seq, asked, said)


def _exchange(seq: int, asked: dict[str, Any], table: dict[str, Any]) -> Exchange:
    headers, body = _said(table)
    chunks = (Chunk(at=0.0, data=body),)
    return Exchange(
        seq=seq,
        request=Request(method=asked["method"], url=asked["uri"], body=_said(asked)[1]),
        response=Response(
            status=table["status"]["code"], headers=headers, chunks=chunks, ended=0.0
        ),
    )


def _said(message: dict[str, Any]) -> tuple[Headers, bytes]:
    if "parsed_body" in message:
        return (), json.dumps(message["parsed_body"]).encode()
    body = message.get("body") or b""
    body = body.get("string") or b"" if isinstance(body, dict) else body
    body = body.encode() if isinstance(body, str) else body
    # Some recorders inflated the body and kept the header.
    return ((("content-encoding", "gzip"),) if body[:2] == b"\x1f\x8b" else ()), body


def flows(shared: Path, name: str) -> tuple[Exchange, ...]:
    """Return a real agent's exchanges, from a mitmproxy capture; time 0 is its first request."""
    file = BytesIO(gzip.decompress((shared / "flows" / f"{name}.mitm.gz").read_bytes()))
    found = [flow for flow in FlowReader(file).stream() if isinstance(flow, HTTPFlow)]
    begin, number = min(flow.request.timestamp_start for flow in found), count()
    return tuple(_flow(next(number), flow, begin) for flow in found)


def _flow(seq: int, flow: HTTPFlow, begin: float) -> Exchange:
    asked, said = flow.request, flow.response
    assert said is not None
    at, ended = said.timestamp_start - begin, (said.timestamp_end or said.timestamp_start) - begin
    return Exchange(
        seq=seq,
        request=Request(
            method=asked.method,
            url=asked.url,
            headers=_headers(asked),
            body=asked.raw_content or b"",
        ),
        response=Response(
            status=said.status_code,
            headers=_headers(said),
            chunks=(Chunk(at=ended, data=said.raw_content or b""),),
            at=at,
            ended=ended,
        ),
        started=asked.timestamp_start - begin,
    )


def _headers(message: Message) -> Headers:
    return tuple(
        (key.decode("latin-1"), value.decode("latin-1")) for key, value in message.headers.fields
    )
