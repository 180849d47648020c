"""Record the HTTP traffic of a Python program from inside it, if no proxy can be used.

vcrpy intercepts requests and responses; each exchange is on the tape before the program continues.
A response is passed on once it is complete, so the chunks of a stream share one time. Traffic other
than HTTP (WebSockets, gRPC) is not recorded; `stumble record` records it, with exact times.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakSet

from vcr.cassette import Cassette
from vcr.record_mode import RecordMode

from stumble_attach.redaction import SecretRedactor, find_env_secrets
from stumble_attach.tape import AttachTape

VOLATILE_VERSION = 4
"""Version of `stumble`'s list of volatile fields, which matching this tape uses."""

UNSEEN_LIBRARIES: Mapping[str, str] = {
    "curl_cffi": "curl_cffi",
    "grpc": "gRPC",
    "niquests": "niquests",
    "primp": "primp",
    "pycurl": "pycurl",
    "pyreqwest": "pyreqwest",
    "websocket": "websocket-client",
    "websockets": "websockets",
}
"""Client libraries that vcrpy cannot intercept, by module name."""


class UnseenLibraryError(RuntimeError):
    """A client library is loaded whose traffic would be missing on the tape."""


@contextmanager
def record(
    path: str | os.PathLike[str],
    *,
    agent: str | None = None,
    model: str | None = None,
    scenario: str | None = None,
    secrets: Iterable[str] = (),
    allow: Iterable[str] = (),
) -> Iterator[Path]:
    """Write a tape of all HTTP requests in this block.

    `secrets` are values to redact, besides the values of variables named like keys and text that
    looks like a credential. `allow` names modules of `UNSEEN_LIBRARIES` that may be loaded, because
    their traffic does not matter. Raises FileExistsError if the path exists, and UnseenLibraryError
    if a library that cannot be intercepted is loaded before the block or in it.
    """
    allowed = frozenset(allow)
    _refuse_unseen_libraries(allowed)
    started_at, started = time.time(), time.monotonic()
    redactor = SecretRedactor([*find_env_secrets(os.environ), *secrets])
    head: dict[str, object] = {
        "id": time.strftime("%Y%m%dT%H%M%S", time.gmtime(started_at)) + "-" + uuid4().hex[:8],
        "recorded_at": started_at,
        "source": "attach",
        "volatile": VOLATILE_VERSION,
        "command": list(sys.orig_argv),
    }
    names = {"agent": agent, "model": model, "scenario": scenario}
    head |= {key: value for key, value in names.items() if value is not None}
    file = Path(path)
    tape, outcome, detail = AttachTape(file, head, redactor), "final", None
    recorder = _VcrRecorder(tape, started)
    try:
        kind: Any = type("_Tape", (_RecordingCassette,), {"recorder": recorder})
        with kind.use(path=str(file), record_mode=RecordMode.ALL):
            yield file
    except BaseException as error:
        outcome, detail = "crash", f"{type(error).__name__}: {error}"
        raise
    finally:
        recorder.close()
        tape.write_ending(outcome, time.monotonic() - started, detail)
    _refuse_unseen_libraries(allowed, "was loaded while")


def _refuse_unseen_libraries(allowed: frozenset[str], when: str = "is loaded before") -> None:
    for module, name in UNSEEN_LIBRARIES.items():
        if module in sys.modules and module not in allowed:
            raise UnseenLibraryError(
                f"{name} {when} recording, and its traffic cannot be seen from inside the process; "
                f"use `stumble record -- COMMAND`, which sees it, or say allow=[{module!r}] if "
                "nothing that matters goes through it"
            )


class _VcrRecorder:
    """Turns vcrpy's callbacks into exchanges: the request when it is sent, the response later."""

    def __init__(self, tape: AttachTape, began: float) -> None:
        self._tape, self._began, self._turn = tape, began, threading.Lock()
        self._open: dict[int, tuple[int, object]] = {}
        self._seen: WeakSet[object] = WeakSet()
        self._seq = 0
        self._closed = False

    def record_request(self, request: Any) -> None:
        """Write a request once; vcrpy repeats the previous one when it reopens a connection."""
        with self._turn:
            if not self._closed and request not in self._seen:
                self._write_request(request)

    def record_response(self, request: Any, response: Mapping[str, Any]) -> None:
        """Write a response; one that comes after the block is not recorded."""
        with self._turn:
            if self._closed:
                return
            if id(request) not in self._open:
                self._write_request(request)
            seq, _ = self._open.pop(id(request))
            self._write_response(seq, response)

    def close(self) -> None:
        """Close open exchanges as unanswered: vcrpy does not report connection errors."""
        with self._turn:
            self._closed = True
            for seq, _ in self._open.values():
                self._tape.write_error(seq, "unknown: no answer was seen")
            self._open.clear()

    def _write_request(self, request: Any) -> None:
        seq, self._seq = self._seq, self._seq + 1
        self._seen.add(request)
        # Keep a reference, so that no other request can have this id while the exchange is open.
        self._open[id(request)] = seq, request
        headers = _to_header_pairs(request.headers)
        self._tape.write_request(
            seq,
            self._seconds_since_start(),
            request.method,
            request.uri,
            headers,
            _read_request_body(request),
        )

    def _write_response(self, seq: int, response: Mapping[str, Any]) -> None:
        body, status = response["body"]["string"], response["status"]
        data = body.encode() if isinstance(body, str) else bytes(body or b"")
        headers = _to_header_pairs(response["headers"])
        reason = str(status.get("message") or "")
        try:
            self._tape.write_response(
                seq, self._seconds_since_start(), int(status["code"]), reason, headers, data
            )
        except ValueError as error:
            self._tape.write_error(seq, f"not recorded: {error}")

    def _seconds_since_start(self) -> float:
        return time.monotonic() - self._began


class _RecordingCassette(Cassette):  # type: ignore[misc]
    """A cassette that replays and stores nothing: all traffic goes to the recorder."""

    recorder: _VcrRecorder

    def can_play_response_for(self, request: Any) -> bool:
        self.recorder.record_request(request)
        return False

    def append(self, request: Any, response: Mapping[str, Any]) -> None:
        self.recorder.record_response(request, response)

    def _load(self) -> None:
        """Do nothing: no cassette file exists."""

    def _save(self, force: bool = False) -> None:
        """Do nothing: all exchanges are on the tape already."""


def _to_header_pairs(headers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return header fields as pairs; vcrpy has values as texts, bytes, or lists of these."""
    pairs = []
    for name, value in headers.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            text = each.decode("latin-1") if isinstance(each, bytes) else str(each)
            pairs.append((str(name), text))
    return pairs


def _read_request_body(request: Any) -> bytes:
    body = request.body_bytes if hasattr(request, "body_bytes") else request.body
    if hasattr(body, "read"):
        body = body.read()
    if isinstance(body, str):
        return body.encode()
    return body if isinstance(body, bytes) else b"".join(body or ())
