"""A writer of tapes for processes that have no `stumble`: the frames of its format 2.

The format is told in `stumble`'s own documentation of tapes. This writes the kinds trajectory,
request, head, chunk, done and ending, never packed, so that msgpack is all it needs; a test of
`stumble` holds what it writes against what `stumble` itself does.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import msgpack

from stumble_attach.secrets import Secrets

MAGIC, FORMAT = b"STUMBLE", 2
TRAJECTORY, REQUEST, HEAD, CHUNK, DONE, ENDING = 1, 2, 3, 4, 5, 7
_HEAD = struct.Struct("<IIB")

Headers = Sequence[tuple[str, str]]


def frame(kind: int, value: object) -> bytes:
    """One frame, ready for one write."""
    payload: bytes = msgpack.packb(value)
    return _HEAD.pack(len(payload), crc32(payload, crc32(bytes((kind,)))), kind) + payload


class Tape:
    """A tape that grows; what is written is flushed to the disk at once, whole frames only.

    FileExistsError if the path is taken. Times are seconds since the trajectory began.
    """

    def __init__(self, path: Path, trajectory: Mapping[str, object], secrets: Secrets) -> None:
        self._secrets, self._turn = secrets, threading.Lock()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._file = os.open(path, flags, 0o600)
        clean = {key: self._clean(value) for key, value in trajectory.items()}
        self._write(MAGIC + bytes((FORMAT,)) + frame(TRAJECTORY, clean))

    def asked(
        self, seq: int, started: float, method: str, url: str, headers: Headers, body: bytes
    ) -> None:
        """What was asked, before it goes out; without its body where that cannot be looked into."""
        with self._turn:
            fields = self._secrets.headers(headers)
            address = self._secrets.url(url)
            try:
                said = self._secrets.body(headers, body)
            except ValueError:
                said = b""  # what nobody can look into is not written
            value: dict[str, object] = {
                "seq": seq,
                "connection": 0,
                "stream": 0,
                "transport": "http",
                "started": started,
                "by": "live",
                "method": method,
                "url": address,
                "headers": fields if len(said) == len(body) else _of_length(fields, len(said)),
                "body": said,
            }
            if (address, said) != (url, body):
                value["redacted"] = True
            self._write(frame(REQUEST, value))

    def answered(
        self, seq: int, at: float, status: int, reason: str, headers: Headers, body: bytes
    ) -> None:
        """What came back, as one piece: when it was whole is all that is known of its times."""
        with self._turn:
            fields = self._secrets.headers(headers)
            said = self._secrets.body(headers, body)
            if len(said) != len(body):
                fields = _of_length(fields, len(said))
            head = {
                "seq": seq,
                "at": at,
                "status": status,
                "reason": reason,
                "version": "HTTP/1.1",
                "headers": fields,
                "by": "live",
            }
            done = {"seq": seq, "by": "live", "bytes": len(said)}
            if said != body:
                done["redacted"] = True
            chunk = frame(CHUNK, [seq, at, said]) if said else b""
            self._write(frame(HEAD, head) + chunk + frame(DONE, done | {"ended": at}))

    def failed(self, seq: int, error: str) -> None:
        """That no answer came."""
        with self._turn:
            done = {"seq": seq, "by": "live", "error": self._clean(error)}
            self._write(frame(DONE, done))

    def ended(self, ended: str, at: float, detail: str | None) -> None:
        """How the run ended; the last fact of a tape, which is closed with it."""
        with self._turn:
            value: dict[str, object] = {"ended": ended, "at": at}
            if detail:
                value["detail"] = self._clean(detail)
            self._write(frame(ENDING, value))
            os.fsync(self._file)
            os.close(self._file)

    def _clean(self, value: object) -> object:
        if isinstance(value, list):
            return [self._clean(each) for each in value]
        if isinstance(value, str):
            said = self._secrets.text(value.encode("utf-8", "replace"))
            return said.decode("utf-8", "replace")
        return value

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]


def _of_length(headers: Headers, length: int) -> Headers:
    return [
        (name, str(length) if name.lower() == "content-length" else value)
        for name, value in headers
    ]
