"""A small agent that writes down all it says and hears, byte for byte and with the times.

What a recorder or a replay claims can be held against its notes: one JSON object per exchange,
bodies in base64, `at` in seconds of time.monotonic(). It is of the standard library alone, so it
starts at once. Exit status: 0 with a final answer, 1 where the model refuses.
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
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, TextIO

from scenarios.practice.tasks import TASKS
from scenarios.practice.tools import TOOLS

type Json = Any

MODEL = "practice/retries"
STEPS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One exchange as the agent saw it; status 0 where no answer came."""

    url: str
    headers: str
    """Those that say something, as JSON."""
    sent: bytes
    status: int
    error: str | None
    pieces: tuple[tuple[float, bytes], ...]

    @property
    def body(self) -> bytes:
        """What came, joined."""
        return b"".join(data for _, data in self.pieces)


def noted(path: Path) -> tuple[Note, ...]:
    """The notes in a file, in order."""
    return tuple(_note(json.loads(line)) for line in path.read_text().splitlines())


def _note(said: Json) -> Note:
    return Note(
        url=said["url"],
        headers=json.dumps(said["headers"]),
        sent=b64decode(said["sent"]),
        status=said["status"],
        error=said["error"],
        pieces=tuple((at, b64decode(data)) for at, data in said["pieces"]),
    )


class Witness:
    """Asks by POST, and notes what it got; `past` all proxies, whatever its variables say."""

    def __init__(self, notes: TextIO, *, past: bool = False) -> None:
        self._notes = notes
        ways = (urllib.request.ProxyHandler({}),) if past else ()
        self._opener = urllib.request.build_opener(*ways)

    def ask(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Status and body of the answer; 0 and what went wrong where none came."""
        request = urllib.request.Request(url, body, {"content-type": "application/json", **headers})
        status, error, pieces = 0, None, list[tuple[float, bytes]]()
        try:
            with closing(self._opened(request)) as answer:
                status = answer.status or 0
                pieces += _pieces(answer)
        except (OSError, HTTPException) as broken:
            error = f"{type(broken).__name__}: {broken}"
        said = {
            "url": url,
            "headers": dict(headers),
            "sent": _coded(body),
            "status": status,
            "error": error,
            "pieces": [(at, _coded(data)) for at, data in pieces],
        }
        self._notes.write(json.dumps(said) + "\n")
        self._notes.flush()
        got = b"".join(data for _, data in pieces)
        return (0, error.encode()) if error else (status, got)

    def _opened(self, request: urllib.request.Request) -> HTTPResponse | urllib.error.HTTPError:
        try:
            answer: HTTPResponse = self._opener.open(request, timeout=30)
        except urllib.error.HTTPError as refused:
            return refused
        return answer


def _pieces(answer: HTTPResponse | urllib.error.HTTPError) -> Iterator[tuple[float, bytes]]:
    while data := answer.read1(1 << 16):
        yield time.monotonic(), data


def _coded(data: bytes) -> str:
    return b64encode(data).decode()


class Errand:
    """One task of the shop, done as the model says."""

    def __init__(self, witness: Witness, model: str, tools: str) -> None:
        self._witness, self._model, self._tools = witness, model, tools

    def run(self, task: str) -> str | None:
        """The final answer; None where the model refuses or finds no end."""
        messages: list[Json] = [{"role": "user", "content": TASKS[task].prompt}]
        for _ in range(STEPS):
            said = self.next(messages)
            if said is None or not said.get("tool_calls"):
                return said and str(said["content"])
            messages.append(said)
            for call in said["tool_calls"]:
                name, arguments = call["function"]["name"], call["function"]["arguments"]
                result = self.call(name, arguments)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return None

    def next(self, messages: Sequence[Json]) -> Json:
        """The model's next message; None where it gives none."""
        asked = {"model": MODEL, "messages": messages, "tools": OFFERED}
        key = {"authorization": f"Bearer {os.environ['WITNESS_SAYS']}"}
        url = f"{self._model}/v1/chat/completions"
        status, body = self._witness.ask(url, json.dumps(asked).encode(), key)
        return json.loads(body)["choices"][0]["message"] if status == 200 else None

    def call(self, name: str, arguments: str) -> str:
        """What a tool says, in words."""
        status, body = self._witness.ask(f"{self._tools}/tools/{name}", arguments.encode(), {})
        text = body.decode("utf-8", "replace")
        return text if status == 200 else f"HTTP {status}: {text}"


def stray(errand: Errand, task: str) -> None:
    """Begin as an errand does; then once more, in other words, and with calls it never makes."""
    prompt = TASKS[task].prompt
    for said in (prompt, prompt, f"{prompt} ", prompt.replace("refund", "credit")):
        errand.next([{"role": "user", "content": said}])
    errand.call("get_order", json.dumps({"order_id": "ord-0"}))
    errand.call("get_ordr", json.dumps({"order_id": "ord-7100"}))


def whisper(witness: Witness, teller: str) -> None:
    """Hear something at a known pace, tell a secret, and be told one."""
    told = json.dumps({"note": f"the token is {os.environ['SHOP_TOKEN']}, keep it"})
    witness.ask(f"{teller}/pieces", b"{}", {})
    witness.ask(f"{teller}/secret", told.encode(), {})


OFFERED: tuple[Json, ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": {**tool.parameters},
        },
    }
    for tool in TOOLS.values()
)


def main(arguments: Sequence[str]) -> int:
    """Do one of the four, and print the final answer of an errand."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.practice.witness", description=__doc__
    )
    parser.add_argument("does", choices=("errand", "stray", "whisper", "slip"))
    parser.add_argument("--task", choices=TASKS, default="refund-1")
    parser.add_argument("--notes", type=Path, required=True)
    options = parser.parse_args(arguments)
    with options.notes.open("w") as notes:
        witness = Witness(notes, past=options.does == "slip")
        if options.does == "whisper":
            whisper(witness, os.environ["TELLER_URL"])
            return 0
        if options.does == "slip":
            witness.ask(os.environ["TELLER_URL"], b"{}", {})
            return 0
        errand = Errand(witness, os.environ["MODEL_URL"], os.environ["TOOLS_URL"])
        if options.does == "stray":
            stray(errand, options.task)
            return 0
        final = errand.run(options.task)
    if final is None:
        print("the model gave no answer", file=sys.stderr)
        return 1
    print(final)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
