"""A scripted model that goes through the pipeline's stages, and the smallest agent for it."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

AGENT = """
import json, os, subprocess, sys, urllib.error, urllib.request

messages = [{"role": "user", "content": sys.argv[1]}]
tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
while True:
    body = json.dumps({"model": "script", "messages": messages, "tools": [tool]}).encode()
    request = urllib.request.Request(
        "http://model.example/v1/chat/completions", body, {"content-type": "application/json"}
    )
    try:
        answer = json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        sys.exit(f"refused with {error.code}")
    message = answer["choices"][0]["message"]
    messages.append(message)
    for call in message.get("tool_calls") or ():
        command = json.loads(call["function"]["arguments"])["command"]
        ran = subprocess.run(command, shell=True, capture_output=True, text=True)
        said = json.dumps({"returncode": ran.returncode, "output": ran.stdout + ran.stderr})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    if not message.get("tool_calls"):
        print(message["content"])
        break
"""


def answer(messages: list[dict[str, Any]], programs: str) -> dict[str, Any]:
    """List the stage's folder, again if that failed, write its program, and report it."""
    stage = re.findall(r"work at stage (T\d)", str(messages[0]["content"]))[-1]
    own, last = stage.lower(), messages[-1]
    failed = last["role"] == "tool" and "run" not in str(last["content"])
    done = any("cp -r" in json.dumps(message) for message in messages)
    tries = sum(message["role"] == "tool" for message in messages)
    if done:
        return {"role": "assistant", "content": f"{stage} is done."}
    if last["role"] == "user" or (failed and tries < 3):
        text = "That failed; once more." if failed else None
        return call_shell(f"ls {own}", f"look_{stage}_{tries}", text)
    return call_shell(f"cp -r {programs}/{own}/. {own}/ && ls {own}/run", f"put_{stage}", None)


def call_shell(command: str, id: str, text: str | None) -> dict[str, Any]:
    """Return a message that calls the shell."""
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    call = {"id": id, "type": "function", "function": function}
    return {"role": "assistant", "content": text, "tool_calls": [call]}


def model(programs: str) -> AbstractContextManager[int]:
    """Return the port of a server that gives these answers to any number of agents."""
    return served(lambda messages: (200, answer(messages, programs)))


@contextmanager
def served(answers: Callable[[list[dict[str, Any]]], tuple[int, dict[str, Any]]]) -> Iterator[int]:
    """Yield the port of a server that returns a status with a message, or an error if it is not
    200.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, message = answers(document["messages"])
            finish = "tool_calls" if message.get("tool_calls") else "stop"
            said = {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": "script",
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100},
            }
            data = json.dumps(said if status == 200 else {"error": message}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
