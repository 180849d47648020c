"""Intake of a Python program that records itself: `stumble attach-intake FD`.

`stumble_attach` starts this process from inside the program and sends to it what the program's
HTTP clients send and receive; this process redacts that and writes it, as any other recording.

FD is a listening unix socket. Each message has a connection of its own, so that threads and forked
processes of the program share nothing: one line of JSON, then `bytes` of a body. The answer is one
JSON object, once the message is on the tape. Times are seconds of CLOCK_MONOTONIC.

    begin     path, at, trajectory (fields of traces.model.Trajectory), secrets (more to redact)
    request   at, method, url, headers; the body                  -> seq
    response  seq, at, status, reason, headers; the body
    end       at, ended, detail

The answer has `error`, and `errno` if the system gave one, if the message could not be written, and
`over` if it came after the end. Standard input is a pipe that the program holds open: if it closes
without a message `end`, the program was killed, and the tape has no ending, as after any kill.
"""

import itertools
import json
import select
import socket
import sys
import time
from copy import replace
from pathlib import Path
from typing import Any

from stumble.user_data.known_secrets import load_user_secrets
from stumble.user_data.paths import new_trajectory_id
from traces.conversation.volatile_fields import VOLATILE_VERSION
from traces.errors import TapeWriteError
from traces.model import Chunk, Exchange, Headers, Request, Response, RunEnding, Trajectory
from traces.redaction.fingerprints import KnownSecrets
from traces.tape.field_types import parse_struct
from traces.tape.payload import decode_headers
from traces.tape.writer import TapeWriter

MESSAGE_SECONDS = 20.0
"""A sender that stops in the middle of a message delays the others no longer than this."""
NO_ANSWER = "unknown: no answer was seen"


class AttachIntake:
    """Writes the tape of one program, which the message `begin` opens."""

    def __init__(self) -> None:
        self._tape: TapeWriter | None = None
        self._open: dict[int, Exchange] = {}
        self._seqs = itertools.count()
        self._began = self._last = 0.0
        self._patience: float | None = None
        """Seconds to wait for a message: without limit until the end, then not at all."""

    def serve(self, listener: socket.socket, program: int) -> None:
        """Take messages until the end of the recording, or of the program; close the tape."""
        try:
            sources: list[socket.socket | int] = [listener, program]
            while listener in select.select(sources, [], [], self._patience)[0]:
                self._converse(listener.accept()[0])
        finally:
            if self._tape is not None:
                self._tape.close()

    def _converse(self, connection: socket.socket) -> None:
        """Answer one message. One that its sender did not complete is not recorded."""
        connection.settimeout(MESSAGE_SECONDS)
        with connection, connection.makefile("rb") as sent:
            try:
                if not (line := sent.readline()).endswith(b"\n"):
                    return
                message = json.loads(line)
                body = sent.read(size := message.get("bytes", 0))
                if len(body) == size:
                    connection.sendall(json.dumps(self._answer(message, body)).encode())
            except (TimeoutError, ConnectionError):
                return  # the sender was killed or stopped

    def _answer(self, message: dict[str, Any], body: bytes) -> dict[str, object]:
        if self._patience is not None:
            return {"over": True}
        try:
            match message["kind"], self._tape:
                case "begin", None:
                    self._begin(message)
                case "request", TapeWriter() as tape:
                    return {"seq": self._write_request(tape, message, body)}
                case "response", TapeWriter() as tape:
                    self._write_response(tape, message, body)
                case "end", TapeWriter() as tape:
                    self._end(tape, message)
                case kind, _:
                    return {"error": f"{kind} is out of order"}
        except OSError as error:
            return {"error": str(error), "errno": error.errno}
        except (TapeWriteError, LookupError, TypeError, ValueError) as error:
            return {"error": f"{type(error).__name__}: {error}"}
        return {}

    def _begin(self, message: dict[str, Any]) -> None:
        self._began = message["at"]
        head = {
            "id": new_trajectory_id(),
            "recorded_at": time.time() - (time.monotonic() - self._began),
            "source": "attach",
            "volatile": VOLATILE_VERSION,
        }
        trajectory = parse_struct(Trajectory, message["trajectory"] | head)
        known = load_user_secrets()
        names = dict.fromkeys(message["secrets"], ()) | known.names
        self._tape = TapeWriter(
            Path(message["path"]),
            trajectory,
            secrets=KnownSecrets(names, key=known.key),
            origin_key=known.key,
        )

    def _write_request(self, tape: TapeWriter, message: dict[str, Any], body: bytes) -> int:
        # Two threads may take their times in another order than they arrive here.
        self._last = max(self._last, message["at"] - self._began)
        request = Request(
            method=message["method"],
            url=message["url"],
            headers=_to_headers(message["headers"]),
            body=body,
        )
        exchange = Exchange(seq=next(self._seqs), request=request, started=self._last)
        self._open[exchange.seq] = tape.request(exchange)
        return exchange.seq

    def _write_response(self, tape: TapeWriter, message: dict[str, Any], body: bytes) -> None:
        """Write a response as one chunk: the time it was complete is the only one known."""
        at = message["at"] - self._began
        response = Response(
            status=message["status"],
            reason=message["reason"],
            headers=_to_headers(message["headers"]),
            chunks=(Chunk(at=at, data=body),) if body else (),
            at=at,
            ended=at,
        )
        tape.whole(replace(self._open.pop(message["seq"]), response=response))

    def _end(self, tape: TapeWriter, message: dict[str, Any]) -> None:
        """Write the ending; of exchanges without a response, vcrpy reports no more than that."""
        for exchange in self._open.values():
            tape.done(replace(exchange, error=NO_ANSWER))
        at = message["at"] - self._began
        tape.write_ending(RunEnding(ended=message["ended"], at=at, detail=message["detail"]))
        tape.close()
        self._patience = 0.0


def _to_headers(pairs: list[list[object]]) -> Headers:
    return decode_headers(tuple(tuple(pair) for pair in pairs))


def main(descriptor: int) -> None:
    """Serve the program that has inherited this descriptor to us."""
    with socket.socket(fileno=descriptor) as listener:
        AttachIntake().serve(listener, sys.stdin.fileno())
