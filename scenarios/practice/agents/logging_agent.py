"""A small agent that logs every exchange byte for byte, with timestamps.

Its log is an independent reference for a recorder or a replay: one JSON object per exchange, bodies
in base64, `at` in seconds of time.monotonic(). It uses only the standard library, so it starts
quickly. Exit status: 0 with a final answer, 1 if the model refuses.
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct

from scenarios.practice.tasks.registry import ORDER_TASKS
from scenarios.practice.tools.registry import SHOP_TOOLS

type NoteJson = Any

AGENT_MODEL = "practice/retries"
MAX_STEPS = 60


class ExchangeNote(Struct, frozen=True, kw_only=True):
    """One exchange as the agent saw it; status 0 if no answer arrived."""

    url: str
    headers: str
    """The request headers that the agent set, as JSON."""
    sent: bytes
    status: int
    error: str | None
    pieces: tuple[tuple[float, bytes], ...]

    @property
    def body(self) -> bytes:
        """The received body."""
        return b"".join(data for _, data in self.pieces)


def read_exchange_notes(path: Path) -> tuple[ExchangeNote, ...]:
    """Return the notes in a file, in order."""
    return tuple(_parse_exchange_note(json.loads(line)) for line in path.read_text().splitlines())


def _parse_exchange_note(said: NoteJson) -> ExchangeNote:
    return ExchangeNote(
        url=said["url"],
        headers=json.dumps(said["headers"]),
        sent=b64decode(said["sent"]),
        status=said["status"],
        error=said["error"],
        pieces=tuple((at, b64decode(data)) for at, data in said["pieces"]),
    )


class LoggingClient:
    """Sends POST requests and logs the answers; `past` bypasses all proxies, ignoring the
    environment.
    """

    def __init__(self, notes: TextIO, *, past: bool = False) -> None:
        self._notes = notes
        handlers = (urllib.request.ProxyHandler({}),) if past else ()
        self._opener = urllib.request.build_opener(*handlers)

    def post_and_log(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return status and body of the answer; 0 and the error if none arrived."""
        request = urllib.request.Request(url, body, {"content-type": "application/json", **headers})
        status, error, pieces = 0, None, list[tuple[float, bytes]]()
        try:
            with closing(self._open_request(request)) as answer:
                status = answer.status or 0
                pieces += _read_timed_pieces(answer)
        except (OSError, HTTPException) as failure:
            error = f"{type(failure).__name__}: {failure}"
        note = {
            "url": url,
            "headers": dict(headers),
            "sent": _to_base64(body),
            "status": status,
            "error": error,
            "pieces": [(at, _to_base64(data)) for at, data in pieces],
        }
        self._notes.write(json.dumps(note) + "\n")
        self._notes.flush()
        received = b"".join(data for _, data in pieces)
        return (0, error.encode()) if error else (status, received)

    def _open_request(
        self, request: urllib.request.Request
    ) -> HTTPResponse | urllib.error.HTTPError:
        try:
            answer: HTTPResponse = self._opener.open(request, timeout=30)
        except urllib.error.HTTPError as error_answer:
            return error_answer
        return answer


def _read_timed_pieces(
    answer: HTTPResponse | urllib.error.HTTPError,
) -> Iterator[tuple[float, bytes]]:
    while data := answer.read1(1 << 16):
        yield time.monotonic(), data


def _to_base64(data: bytes) -> str:
    return b64encode(data).decode()


class TaskRun:
    """One task of the shop, driven by the model."""

    def __init__(self, witness: LoggingClient, model: str, tools: str) -> None:
        self._witness, self._model, self._tools = witness, model, tools

    def run(self, task: str) -> str | None:
        """Return the final answer; None if the model refuses or takes too many steps."""
        messages: list[NoteJson] = [{"role": "user", "content": ORDER_TASKS[task].prompt}]
        for _ in range(MAX_STEPS):
            message = self.ask_model(messages)
            if message is None or not message.get("tool_calls"):
                return message and str(message["content"])
            messages.append(message)
            for call in message["tool_calls"]:
                name, arguments = call["function"]["name"], call["function"]["arguments"]
                result = self.call_tool(name, arguments)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return None

    def ask_model(self, messages: Sequence[NoteJson]) -> NoteJson:
        """Return the model's next message, or None."""
        request = {"model": AGENT_MODEL, "messages": messages, "tools": OFFERED_TOOLS}
        key = {"authorization": f"Bearer {os.environ['WITNESS_SAYS']}"}
        url = f"{self._model}/v1/chat/completions"
        status, body = self._witness.post_and_log(url, json.dumps(request).encode(), key)
        return json.loads(body)["choices"][0]["message"] if status == 200 else None

    def call_tool(self, name: str, arguments: str) -> str:
        """Return a tool's result as text."""
        status, body = self._witness.post_and_log(
            f"{self._tools}/tools/{name}", arguments.encode(), {}
        )
        text = body.decode("utf-8", "replace")
        return text if status == 200 else f"HTTP {status}: {text}"


def run_stray_requests(errand: TaskRun, task: str) -> None:
    """Start like an errand, then send changed prompts and calls that an errand never makes."""
    prompt = ORDER_TASKS[task].prompt
    for variant in (prompt, prompt, f"{prompt} ", prompt.replace("refund", "credit")):
        errand.ask_model([{"role": "user", "content": variant}])
    errand.call_tool("get_order", json.dumps({"order_id": "ord-0"}))
    errand.call_tool("get_ordr", json.dumps({"order_id": "ord-7100"}))


def send_and_receive_secret(witness: LoggingClient, teller: str) -> None:
    """Request bytes at a known pace, send a secret, and receive one."""
    payload = json.dumps({"note": f"the token is {os.environ['SHOP_TOKEN']}, keep it"})
    witness.post_and_log(f"{teller}/pieces", b"{}", {})
    witness.post_and_log(f"{teller}/secret", payload.encode(), {})


OFFERED_TOOLS: tuple[NoteJson, ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": {**tool.parameters},
        },
    }
    for tool in SHOP_TOOLS.values()
)


def main(arguments: Sequence[str]) -> int:
    """Run one of the four actions; print the final answer of an errand."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.practice.agents.logging_agent", description=__doc__
    )
    parser.add_argument("does", choices=("errand", "stray", "whisper", "slip"))
    parser.add_argument("--task", choices=ORDER_TASKS, default="refund-1")
    parser.add_argument("--notes", type=Path, required=True)
    options = parser.parse_args(arguments)
    with options.notes.open("w") as notes:
        witness = LoggingClient(notes, past=options.does == "slip")
        if options.does == "whisper":
            send_and_receive_secret(witness, os.environ["TELLER_URL"])
            return 0
        if options.does == "slip":
            witness.post_and_log(os.environ["TELLER_URL"], b"{}", {})
            return 0
        errand = TaskRun(witness, os.environ["MODEL_URL"], os.environ["TOOLS_URL"])
        if options.does == "stray":
            run_stray_requests(errand, options.task)
            return 0
        final = errand.run(options.task)
    if final is None:
        print("the model gave no answer", file=sys.stderr)
        return 1
    print(final)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
