"""A model server that calls one tool and then ends: Anthropic messages and OpenAI responses."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

type Event = tuple[str, dict[str, object]]

CALL_ID = "toolu_01practice"


@dataclass
class Script:
    """The model's behaviour, and its received requests."""

    tool: str
    arguments: dict[str, object]
    namespace: str | None = None
    """Namespace of the tools, if they have one (Codex uses the name of an MCP server)."""
    asked: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def serving(script: Script, host: str = "127.0.0.1") -> Iterator[str]:
    """Serve a model that follows this script; yield its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            self._say(426, "text/plain", b"")  # Codex asks for a WebSocket first

        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["content-length"])))
            script.asked.append(document)
            if "input" in document:
                said = responses(script, document)
            elif "messages" in document and "count_tokens" not in self.path:
                said = messages(script, document)
            else:
                return self._say(404, "application/json", b"{}")
            lines = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in said]
            return self._say(200, "text/event-stream", "".join(lines).encode())

        def _say(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer((host, 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def messages(script: Script, asked: dict[str, Any]) -> Iterator[Event]:
    """Yield the events of an answer to Anthropic messages."""
    calls = bool(asked.get("tools")) and "tool_result" not in json.dumps(asked["messages"])
    block: dict[str, object] = {"type": "text", "text": ""}
    delta: dict[str, object] = {"type": "text_delta", "text": "done"}
    if calls:
        block = {"type": "tool_use", "id": CALL_ID, "name": script.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(script.arguments)}
    stop = "tool_use" if calls else "end_turn"
    started = {
        **{"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"]},
        **{"content": [], "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 1}},
    }
    parts: list[Event] = [
        ("message_start", {"message": started}),
        ("content_block_start", {"index": 0, "content_block": block}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}),
        ("message_stop", {}),
    ]
    for name, data in parts:
        yield name, {"type": name, **data}


def responses(script: Script, asked: dict[str, Any]) -> Iterator[Event]:
    """Yield the events of an answer to OpenAI responses."""
    text = {"type": "output_text", "text": "done", "annotations": []}
    item: dict[str, object] = {
        **{"type": "message", "id": "m1", "role": "assistant", "status": "completed"},
        "content": [text],
    }
    if "function_call_output" not in json.dumps(asked["input"]):
        item = {
            **{"type": "function_call", "id": "fc1", "call_id": CALL_ID, "name": script.tool},
            **{"arguments": json.dumps(script.arguments), "status": "completed"},
        }
        if script.namespace is not None:
            item["namespace"] = script.namespace
    usage = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
    whole = {"id": "resp_1", "object": "response", "model": asked["model"], "usage": usage}
    parts: list[Event] = [
        ("response.created", {"response": whole | {"status": "in_progress", "output": []}}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole | {"status": "completed", "output": [item]}}),
    ]
    for name, data in parts:
        yield name, {"type": name, **data}
