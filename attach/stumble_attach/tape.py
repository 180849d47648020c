"""Tape writer for processes without `stumble`: frames of tape format 2.

The format is specified in `traces/tape/__init__.py` of `stumble`. This writes the kinds trajectory,
request, head, chunk, done and ending, uncompressed, so that msgpack is its only dependency. A test
of `stumble` compares its output with that of `stumble`'s own writer.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import msgpack

from stumble_attach.redaction import SecretRedactor

MAGIC, FORMAT = b"STUMBLE", 2
TRAJECTORY_FRAME, REQUEST_FRAME, HEAD_FRAME, CHUNK_FRAME, DONE_FRAME, ENDING_FRAME = (
    1,
    2,
    3,
    4,
    5,
    7,
)
_FRAME_HEADER = struct.Struct("<IIB")

HeaderPairs = Sequence[tuple[str, str]]


def pack_tape_frame(kind: int, value: object) -> bytes:
    """Encode one frame for a single write."""
    payload: bytes = msgpack.packb(value)
    return _FRAME_HEADER.pack(len(payload), crc32(payload, crc32(bytes((kind,)))), kind) + payload


class AttachTape:
    """An append-only tape; each frame is written to the file completely and immediately.

    Raises FileExistsError if the path exists. Times are seconds since the start of the trajectory.
    """

    def __init__(
        self, path: Path, trajectory: Mapping[str, object], secrets: SecretRedactor
    ) -> None:
        self._secrets, self._turn = secrets, threading.Lock()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._file = os.open(path, flags, 0o600)
        clean = {key: self._redact_value(value) for key, value in trajectory.items()}
        self._write(MAGIC + bytes((FORMAT,)) + pack_tape_frame(TRAJECTORY_FRAME, clean))

    def write_request(
        self, seq: int, started: float, method: str, url: str, headers: HeaderPairs, body: bytes
    ) -> None:
        """Write a request before it is sent; without its body if that cannot be searched for
        secrets.
        """
        with self._turn:
            fields = self._secrets.redact_headers(headers)
            clean_url = self._secrets.redact_url(url)
            try:
                clean = self._secrets.redact_body(headers, body)
            except ValueError:
                clean = b""  # a body that cannot be searched is not written
            value: dict[str, object] = {
                "seq": seq,
                "connection": 0,
                "stream": 0,
                "transport": "http",
                "started": started,
                "by": "live",
                "method": method,
                "url": clean_url,
                "headers": fields
                if len(clean) == len(body)
                else _set_content_length(fields, len(clean)),
                "body": clean,
            }
            if (clean_url, clean) != (url, body):
                value["redacted"] = True
            self._write(pack_tape_frame(REQUEST_FRAME, value))

    def write_response(
        self, seq: int, at: float, status: int, reason: str, headers: HeaderPairs, body: bytes
    ) -> None:
        """Write a response as one chunk: the time it was complete is the only one known."""
        with self._turn:
            fields = self._secrets.redact_headers(headers)
            clean = self._secrets.redact_body(headers, body)
            if len(clean) != len(body):
                fields = _set_content_length(fields, len(clean))
            head = {
                "seq": seq,
                "at": at,
                "status": status,
                "reason": reason,
                "version": "HTTP/1.1",
                "headers": fields,
                "by": "live",
            }
            done = {"seq": seq, "by": "live", "bytes": len(clean)}
            if clean != body:
                done["redacted"] = True
            chunk = pack_tape_frame(CHUNK_FRAME, [seq, at, clean]) if clean else b""
            self._write(
                pack_tape_frame(HEAD_FRAME, head)
                + chunk
                + pack_tape_frame(DONE_FRAME, done | {"ended": at})
            )

    def write_error(self, seq: int, error: str) -> None:
        """Write that no response came."""
        with self._turn:
            done = {"seq": seq, "by": "live", "error": self._redact_value(error)}
            self._write(pack_tape_frame(DONE_FRAME, done))

    def write_ending(self, ended: str, at: float, detail: str | None) -> None:
        """Write how the run ended, as the last fact, and close the tape."""
        with self._turn:
            value: dict[str, object] = {"ended": ended, "at": at}
            if detail:
                value["detail"] = self._redact_value(detail)
            self._write(pack_tape_frame(ENDING_FRAME, value))
            os.fsync(self._file)
            os.close(self._file)

    def _redact_value(self, value: object) -> object:
        if isinstance(value, list):
            return [self._redact_value(each) for each in value]
        if isinstance(value, str):
            redacted = self._secrets.redact_bytes(value.encode("utf-8", "replace"))
            return redacted.decode("utf-8", "replace")
        return value

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]


def _set_content_length(headers: HeaderPairs, length: int) -> HeaderPairs:
    return [
        (name, str(length) if name.lower() == "content-length" else value)
        for name, value in headers
    ]
