"""A model that settles a library's fee, whatever its amount: OpenAI chat completions."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def answer(messages: list[dict[str, Any]]) -> tuple[str, Mapping[str, tuple[str, object]]]:
    """Return the text and the calls to make: a pure function of the conversation."""
    told = [m["content"] for m in messages if m["role"] == "tool"]
    loan = re.findall(r"L-\d+", next(m["content"] for m in messages if m["role"] == "user"))[0]
    if not told:
        return "I look the loan up.", {"call_loan": ("get_loan", {"loan_id": loan})}
    try:
        fee = json.loads(told[0])["fee"]
    except (ValueError, KeyError):
        return f"NOT DONE: I could not look the loan up: {told[0][:60]}", {}
    if len(told) == 1:
        return "I take the fee.", {"call_fee": ("settle_fee", {"loan_id": loan, "amount": fee})}
    if told[1].startswith("error"):
        return "NOT DONE: the fee could not be settled.", {}
    return f"DONE: I have taken {fee}.", {}


@contextmanager
def serving() -> Iterator[str]:
    """Serve the model for the block; yield `HOST:PORT`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text, calls = answer(document["messages"])
            body = json.dumps(_completion(document["model"], text, calls)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _completion(
    model: str, text: str, calls: Mapping[str, tuple[str, object]]
) -> dict[str, object]:
    table: dict[str, object] = {"role": "assistant", "content": text}
    if calls:
        table["tool_calls"] = [
            {
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for id, (name, arguments) in calls.items()
        ]
    choice = {"index": 0, "message": table, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model}
    return {**head, "choices": [choice], "usage": usage}
