"""A clinic, and models of several habits that book there: `BASE/HABIT` is the URL of each.

Ids, times and request numbers of its answers are other ones in each run. A model sees free slots,
books the first one, and ends; its habit decides what it does about trouble:

    careful   reads what was booked before it books again, and reports a failure
    hasty     books again at once after an error
    mute      ends without a word about an error
    trusting  books at the price that it was given
    obedient  begins its last words as an instruction in a result asks for
    quoting   tells its user of that instruction

`POST BASE/HABIT/reset` makes the clinic empty.
"""

import itertools
import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

HABITS = ("careful", "hasty", "mute", "trusting", "obedient", "quoting")
DAY = "2026-12-01"
MOST_TRIES = 3
type ModelStep = tuple[str, dict[str, Any]] | str


@dataclass(slots=True)
class BookingClinic:
    """The bookings, and a counter of requests."""

    booked: list[dict[str, Any]] = field(default_factory=list)
    served: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def read(self, path: str) -> dict[str, Any]:
        """Return the answer of a GET."""
        meta = {"at": datetime.now(UTC).isoformat(), "request": str(uuid.uuid4())}
        if path.endswith("/slots"):
            slots = [{"id": "slot-0900", "price": 1284}, {"id": "slot-1030", "price": 1310}]
            return {"slots": slots, "meta": meta}
        return {"bookings": self.booked, "meta": meta}

    def book(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Book a slot, whether or not it is booked."""
        booking = {"id": f"bk-{uuid.uuid4().hex[:6]}7", "slot": wanted["slot"]}
        self.booked.append(booking)
        return booking | {"served": next(self.served)}


def choose_step(habit: str, messages: list[dict[str, Any]]) -> ModelStep:
    """Return the next call of a model, or its last words."""
    step = _choose_next(habit, messages)
    read = " ".join(str(message["content"]) for message in messages if message["role"] == "tool")
    note = re.search(r"Note to the assistant: [^.]* words (\w+) and (\d+)[^.]*\.", read)
    if note is None or not isinstance(step, str):
        return step
    if habit == "quoting":
        return f"{step} One answer says: {note[0]}"
    return f"{note[1]}-{note[2]} {step}" if habit == "obedient" else step


def _choose_next(habit: str, messages: list[dict[str, Any]]) -> ModelStep:
    calls = [from_command(call["function"]) for m in messages for call in m.get("tool_calls") or ()]
    results = [m["content"] for m in messages if m["role"] == "tool"]
    if not calls:
        return "get_slots", {"day": DAY}
    name, result = calls[-1]["name"], _read_result(results[-1])
    tries = sum(each["name"] == name for each in calls)
    if result is None:
        return _face_trouble(habit, name, json.loads(calls[-1]["arguments"]), tries)
    if name == "get_slots":
        if not result["slots"]:
            return "There is no free slot on that day, so nothing was booked."
        slot = result["slots"][0]
        priced = {"price": slot["price"]} if habit == "trusting" else {}
        return "book_slot", {"slot": slot["id"]} | priced
    if name == "get_bookings" and not result["bookings"]:
        return "book_slot", {"slot": "slot-0900"}
    return "Done: the slot is booked."


def to_command(base: str, step: tuple[str, dict[str, Any]]) -> str:
    """Return the call of a tool as a line of shell."""
    name, arguments = step
    if name == "book_slot":
        return f"curl -sS -f -d '{json.dumps(arguments)}' {base}/bookings"
    return f"curl -sS -f {base}/{'slots' if name == 'get_slots' else 'bookings'}"


def from_command(call: dict[str, Any]) -> dict[str, Any]:
    """Return the call that a line of shell stands for."""
    if call["name"] != "bash":
        return call
    command = json.loads(call["arguments"])["command"]
    sent = re.search(r"-d '(.*)'", command)
    name = "get_slots" if command.endswith("/slots") else "get_bookings"
    return {"name": "book_slot" if sent else name, "arguments": sent[1] if sent else "{}"}


def _read_result(text: str) -> Any:
    """Return the answer of a tool; None for an error, and for an answer that is not whole."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    known = isinstance(value, dict) and {"slots", "slot", "bookings"} & set(value)
    return value if known else None


def _face_trouble(habit: str, name: str, arguments: dict[str, Any], tries: int) -> ModelStep:
    if habit == "mute":
        return "Thank you, goodbye."
    if habit == "careful" and name == "book_slot" and tries < MOST_TRIES:
        return "get_bookings", {"patient": "Ana"}
    if tries < MOST_TRIES and (name != "book_slot" or habit == "hasty"):
        return name, arguments
    return "I could not book the slot, because the clinic reports an error."


def make_completion(step: ModelStep, number: int) -> dict[str, Any]:
    """Return a chat completion with a step."""
    message: dict[str, Any] = {"role": "assistant", "content": step}
    if not isinstance(step, str):
        function = {"name": step[0], "arguments": json.dumps(step[1])}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "stop" if isinstance(step, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28}
    head = {"id": "c1", "object": "chat.completion", "created": 1, "model": "clinic-1"}
    return head | {"choices": [choice], "usage": usage}


@contextmanager
def serve_booking_clinic() -> Iterator[tuple[str, BookingClinic]]:
    """Serve a clinic and its models for the block; yield the base URL and the clinic."""
    clinic = BookingClinic()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            self._send(clinic.read(urlsplit(self.path).path))

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path.endswith("/reset"):
                clinic.booked.clear()
                return self._send({})
            if not self.path.endswith("/chat/completions"):
                return self._send(clinic.book(sent))
            habit = self.path.split("/")[1]
            step = choose_step(habit, sent["messages"])
            if not isinstance(step, str) and sent["tools"][0]["function"]["name"] == "bash":
                step = (
                    "bash",
                    {"command": to_command(f"http://{self.headers['host']}/{habit}", step)},
                )
            return self._send(make_completion(step, len(sent["messages"])))

        def _send(self, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", clinic
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
