"""Record the HTTP traffic of a Python program from inside it, if no proxy can be used.

vcrpy intercepts requests and responses; a `stumble` process redacts and writes each of them before
the program continues. A response is passed on once it is complete, so the chunks of a stream share
one time. Traffic other than HTTP (WebSockets, gRPC) is not recorded; `stumble record` records it,
with exact times.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

from vcr.cassette import Cassette
from vcr.record_mode import RecordMode

from stumble_attach.intake import RecordingIntake, RecordingLostError

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
    """Write a tape of all HTTP requests in this block, also of processes that it forks.

    `secrets` are values to redact, besides those that `stumble record` finds. `allow` names modules
    of `UNSEEN_LIBRARIES` that may be loaded, because their traffic does not matter. Raises
    FileNotFoundError if there is no `stumble` command, FileExistsError if the path exists,
    UnseenLibraryError if a library that cannot be intercepted is loaded before the block or in it,
    and RecordingLostError after the block if the tape lacks a part of it.
    """
    allowed = frozenset(allow)
    _refuse_unseen_libraries(allowed)
    names = {"agent": agent, "model": model, "scenario": scenario}
    head: dict[str, object] = {key: value for key, value in names.items() if value is not None}
    file = Path(path)
    intake = RecordingIntake(file, head | {"command": sys.orig_argv}, list(secrets))
    try:
        kind: Any = type("_Tape", (_RecordingCassette,), {"recorder": _VcrRecorder(intake)})
        with kind.use(path=str(file), record_mode=RecordMode.ALL):
            yield file
    except BaseException as error:
        with suppress(RecordingLostError):  # it has been reported; this one ends the program
            intake.end("crash", f"{type(error).__name__}: {error}")
        raise
    intake.end("final", None)
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
    """Turns vcrpy's callbacks into messages: the request when it is sent, the response later.

    It has no lock, which a forked process could inherit locked: one thread handles a request.
    """

    def __init__(self, intake: RecordingIntake) -> None:
        self._intake = intake
        self._open: dict[int, tuple[int, object]] = {}
        self._seen: WeakSet[object] = WeakSet()

    def record_request(self, request: Any) -> None:
        """Send a request once; vcrpy repeats the previous one when it reopens a connection."""
        if request not in self._seen:
            self._send_request(request)

    def record_response(self, request: Any, response: Mapping[str, Any]) -> None:
        """Send a response."""
        if id(request) not in self._open:
            self._send_request(request)
        seq, _ = self._open.pop(id(request), (None, None))
        if seq is None:
            return
        body, status = response["body"]["string"], response["status"]
        answer = {
            "seq": seq,
            "status": int(status["code"]),
            "reason": str(status.get("message") or ""),
            "headers": _to_header_pairs(response["headers"]),
        }
        data = body.encode() if isinstance(body, str) else bytes(body or b"")
        self._intake.send("response", answer, data)

    def _send_request(self, request: Any) -> None:
        self._seen.add(request)
        message = {
            "method": request.method,
            "url": request.uri,
            "headers": _to_header_pairs(request.headers),
        }
        sent = self._intake.send("request", message, _read_request_body(request))
        if sent is not None:
            # Keep a reference: no other request has this id while the exchange is open.
            self._open[id(request)] = sent["seq"], request


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
