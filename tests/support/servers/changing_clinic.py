"""A clinic, and a model that books there: no answer of the clinic is the same in two runs.

The clinic makes ids of its own, and its answers hold when they were given, how long that took, and
how many there were. `POST /reset` makes it empty, `GET /state` shows what was booked.
"""

import itertools
import json
import random
import ssl
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

type ClinicKind = Literal["times", "requests", "durations", "counts", "ids", "numbers", "clock"]
"""What differs in its answers; the last is a clock whose time the agent books."""
AMOUNT = 1284.57
START = 1000


@dataclass(slots=True)
class Clinic:
    """What is booked, by id."""

    kind: ClinicKind
    booked: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: Iterator[int] = field(default_factory=lambda: itertools.count(START, 7))

    def answer(self, tool: str, sent: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and the answer of a tool."""
        match tool:
            case "now":
                return 200, {"now": _read_clock(), "zone": "UTC"}
            case "order":
                return 200, {"id": sent["id"], "amount": AMOUNT} | self._make_meta()
            case "book":
                id = self._make_id()
                self.booked[str(id)] = {"slot": sent["slot"], "confirmed": False}
                return 200, {"id": id, "slot": sent["slot"]} | self._make_meta()
        booking = self.booked.get(str(sent["booking_id"]))
        if booking is None:
            return 404, {"error": f"no booking {sent['booking_id']}"}
        booking["confirmed"] = True
        return 200, {"booking_id": sent["booking_id"], "confirmed": True} | self._make_meta()

    def _make_id(self) -> str | int:
        if self.kind == "numbers":
            return random.randrange(10_000, 99_999)
        if self.kind == "ids":
            return f"bk-{random.randrange(100_000, 999_999)}"
        return f"bk-{len(self.booked) + 1}"

    def _make_meta(self) -> dict[str, Any]:
        match self.kind:
            case "times":
                return {"meta": {"served_at": _read_clock(13, random.choice((0, 30)))}}
            case "requests":
                return {"meta": {"request": str(uuid.uuid4()), "trace": uuid.uuid4().hex[:8]}}
            case "durations":
                return {"meta": {"took_ms": round(random.uniform(5, 95), 3)}}
            case "counts":
                return {"meta": {"served": next(self.counts)}}
        return {}


def _read_clock(hour: int | None = None, minute: int | None = None) -> str:
    """Return the time; of other parts of it those given: 13:00 and 13:30 are no time it books."""
    now = datetime.now(UTC)
    return now.replace(
        hour=now.hour if hour is None else hour, minute=now.minute if minute is None else minute
    ).isoformat()


def _choose_step(kind: ClinicKind, results: list[Any]) -> tuple[str, dict[str, Any]] | str:
    """Return the next call of the model, or its last words."""
    if any("error" in each for each in results):
        return "The clinic reports an error, so I stopped: the booking is not complete."
    done = "Done: all is booked and confirmed."
    match kind, len(results):
        case "clock", count:
            if count == 0:
                return "now", {}
            return ("book", {"slot": results[0]["now"]}) if count == 1 else done
        case _, 0:
            return "order", {"id": "ord-7314"}
        case _, (1 | 3) as count:
            return "book", {"slot": "09:00" if count == 1 else "10:30"}
        case _, (2 | 4) as count:
            return "confirm", {"booking_id": results[count - 1]["id"]}
    return done


def _complete_chat(kind: ClinicKind, body: dict[str, Any]) -> dict[str, Any]:
    results = [json.loads(m["content"]) for m in body["messages"] if m["role"] == "tool"]
    step = _choose_step(kind, results)
    message: dict[str, Any] = {"role": "assistant", "content": step}
    if not isinstance(step, str):
        function = {"name": step[0], "arguments": json.dumps(step[1])}
        call = {"id": f"call_{len(results)}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "stop" if isinstance(step, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice]}


@contextmanager
def serve_clinic(kind: ClinicKind, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve a clinic and its model for the block; yield the base URL."""
    clinic = Clinic(kind)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            self._send(200, clinic.booked)

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path == "/reset":
                clinic.booked.clear()
                self._send(200, {})
            elif self.path.startswith("/v1/"):
                self._send(200, _complete_chat(kind, sent))
            else:
                self._send(*clinic.answer(self.path.rpartition("/")[2], sent))

        def _send(self, status: int, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        host = "https://localhost" if tls else "http://127.0.0.1"
        yield f"{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
