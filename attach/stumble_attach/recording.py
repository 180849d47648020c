"""Record what a Python program says over HTTP from inside it, where no proxy can stand.

vcrpy shows what goes out and comes back; each exchange is on the tape before the program goes on.
An answer is handed on when all of it is there, so the pieces of a stream have one time, and what
is no HTTP (WebSockets, gRPC) is not seen at all: `stumble record` sees more, exactly.
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

from stumble_attach.secrets import Secrets, of_environment
from stumble_attach.tape import Tape

VOLATILE = 3
"""The version of `stumble`'s list of what may differ in a replay by which this is matched."""

UNSEEN: Mapping[str, str] = {
    "curl_cffi": "curl_cffi",
    "grpc": "gRPC",
    "niquests": "niquests",
    "primp": "primp",
    "pycurl": "pycurl",
    "pyreqwest": "pyreqwest",
    "websocket": "websocket-client",
    "websockets": "websockets",
}
"""Client libraries that vcrpy cannot see, by the name of their module."""


class Unseen(RuntimeError):
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
    """Write a tape of all that is asked over HTTP in this block.

    `secrets` are values that must not be written, besides those of variables named like keys and
    what looks like one. `allow` names modules of `UNSEEN` that may be loaded, because nothing
    that matters goes through them. FileExistsError if the path is taken; Unseen where a library
    is loaded, before the block or in it, that nothing here can see.
    """
    allowed = frozenset(allow)
    _refuse_unseen(allowed)
    began, at = time.time(), time.monotonic()
    known = Secrets([*of_environment(os.environ), *secrets])
    head: dict[str, object] = {
        "id": time.strftime("%Y%m%dT%H%M%S", time.gmtime(began)) + "-" + uuid4().hex[:8],
        "recorded_at": began,
        "source": "attach",
        "volatile": VOLATILE,
        "command": list(sys.orig_argv),
    }
    names = {"agent": agent, "model": model, "scenario": scenario}
    head |= {key: value for key, value in names.items() if value is not None}
    file = Path(path)
    tape, ended, detail = Tape(file, head, known), "final", None
    recorder = _Recorder(tape, at)
    try:
        kind: Any = type("_Tape", (_Cassette,), {"recorder": recorder})
        with kind.use(path=str(file), record_mode=RecordMode.ALL):
            yield file
    except BaseException as error:
        ended, detail = "crash", f"{type(error).__name__}: {error}"
        raise
    finally:
        recorder.close()
        tape.ended(ended, time.monotonic() - at, detail)
    _refuse_unseen(allowed, "was loaded while")


def _refuse_unseen(allowed: frozenset[str], when: str = "is loaded before") -> None:
    for module, name in UNSEEN.items():
        if module in sys.modules and module not in allowed:
            raise Unseen(
                f"{name} {when} recording, and its traffic cannot be seen from inside the process; "
                f"use `stumble record -- COMMAND`, which sees it, or say allow=[{module!r}] if "
                "nothing that matters goes through it"
            )


class _Recorder:
    """Turns what vcrpy shows into exchanges: what goes out when it does, then what came in."""

    def __init__(self, tape: Tape, began: float) -> None:
        self._tape, self._began, self._turn = tape, began, threading.Lock()
        self._open: dict[int, tuple[int, object]] = {}
        self._seen: WeakSet[object] = WeakSet()
        self._seq = 0
        self._closed = False

    def asked(self, request: Any) -> None:
        """Write a request; vcrpy shows the one before it again where a connection is reopened."""
        with self._turn:
            if not self._closed and request not in self._seen:
                self._begin(request)

    def answered(self, request: Any, response: Mapping[str, Any]) -> None:
        """Write an answer; what comes after the block is no part of the tape."""
        with self._turn:
            if self._closed:
                return
            if id(request) not in self._open:
                self._begin(request)
            seq, _ = self._open.pop(id(request))
            self._end(seq, response)

    def close(self) -> None:
        """Whatever has no answer by now has none: vcrpy shows no errors of connections."""
        with self._turn:
            self._closed = True
            for seq, _ in self._open.values():
                self._tape.failed(seq, "unknown: no answer was seen")
            self._open.clear()

    def _begin(self, request: Any) -> None:
        seq, self._seq = self._seq, self._seq + 1
        self._seen.add(request)
        # The request itself is kept, so that no other one can have its id while it is open.
        self._open[id(request)] = seq, request
        headers = _pairs(request.headers)
        self._tape.asked(seq, self._now(), request.method, request.uri, headers, _body(request))

    def _end(self, seq: int, response: Mapping[str, Any]) -> None:
        body, status = response["body"]["string"], response["status"]
        data = body.encode() if isinstance(body, str) else bytes(body or b"")
        headers = _pairs(response["headers"])
        reason = str(status.get("message") or "")
        try:
            self._tape.answered(seq, self._now(), int(status["code"]), reason, headers, data)
        except ValueError as error:
            self._tape.failed(seq, f"not recorded: {error}")

    def _now(self) -> float:
        return time.monotonic() - self._began


class _Cassette(Cassette):  # type: ignore[misc]
    """A cassette that plays nothing and keeps nothing: all goes to the recorder."""

    recorder: _Recorder

    def can_play_response_for(self, request: Any) -> bool:
        self.recorder.asked(request)
        return False

    def append(self, request: Any, response: Mapping[str, Any]) -> None:
        self.recorder.answered(request, response)

    def _load(self) -> None:
        """There is nothing to load."""

    def _save(self, force: bool = False) -> None:
        """All is written already."""


def _pairs(headers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Header fields as pairs; vcrpy keeps values as texts, bytes, or lists of these."""
    pairs = []
    for name, value in headers.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            said = each.decode("latin-1") if isinstance(each, bytes) else str(each)
            pairs.append((str(name), said))
    return pairs


def _body(request: Any) -> bytes:
    body = request.body_bytes if hasattr(request, "body_bytes") else request.body
    if hasattr(body, "read"):
        body = body.read()
    if isinstance(body, str):
        return body.encode()
    return body if isinstance(body, bytes) else b"".join(body or ())
