"""A model that calls the tools its user names in order, repeats the last result, and samples."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ARGUMENTS: Mapping[str, Mapping[str, object]] = {
    "trigger-sampling-request": {"prompt": "a number"},
    "simulate-research-query": {"topic": "python", "ambiguous": True},
}
"""What tools of server-everything want to know."""


def _answer(messages: list[dict[str, Any]], apart: bool) -> dict[str, Any]:
    told = [message for message in messages if message["role"] == "tool"]
    named = re.search(r"by ([\w ,-]+)\.", str(messages[0]["content"]))
    if named is None:
        return {"role": "assistant", "content": "sampled 8641"}
    tools = named[1].split(", ")
    if len(told) == len(tools):
        return {"role": "assistant", "content": f"DONE: {told[-1]['content']}"}
    tool = tools[len(told)]
    arguments = json.dumps({"apart": True} if apart else ARGUMENTS.get(tool, {}))
    function = {"name": tool, "arguments": arguments}
    call = {"id": f"call_asking{len(told)}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@contextmanager
def serving(asked: list[list[dict[str, Any]]], *, apart: bool = False) -> Iterator[str]:
    """Serve the model for the block; yield its base URL. `asked` gets each request's messages."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(body["messages"])
            message = _answer(body["messages"], apart)
            reason = "tool_calls" if "tool_calls" in message else "stop"
            answer = json.dumps({
                "id": "c1", "object": "chat.completion", "created": 1, "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14},
            }).encode()  # fmt: skip
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
