"""Models of agents whose parts run beside each other.

One requests two shells at once, reads one of them by its number, and ends. One takes its time for a
helper, which its message names, and none for the agent that has it.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


def _call(number: int, name: str, **arguments: object) -> dict[str, object]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


def _answer(messages: list[dict[str, object]]) -> dict[str, object]:
    task, _, seconds = str(messages[0]["content"]).partition(" ")
    if task in ("main", "helper"):
        time.sleep(float(seconds or 0))
        return {"role": "assistant", "content": f"words {seconds or len(messages)}"}
    results = [str(each["content"]) for each in messages if each["role"] == "tool"]
    if not results:
        calls = [_call(0, "run", command="ann"), _call(1, "run", command="bob")]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if len(results) == 2:
        number = re.search(r"shellId: (\d+)", results[0])
        assert number is not None
        read = _call(2, "read", shellId=number[1])
        return {"role": "assistant", "content": None, "tool_calls": [read]}
    return {"role": "assistant", "content": f"it says {results[2]}"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = _answer(document["messages"])
        body = json.dumps({"model": "m", "choices": [{"index": 0, "message": message}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serve_concurrent_model() -> Iterator[str]:
    """Serve the model; yield its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    finally:
        server.shutdown()
        server.server_close()
