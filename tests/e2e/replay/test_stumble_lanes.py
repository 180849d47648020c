"""Conversations that run at the same time are replayed each its own, however they meet."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest

from tests.support.practice_shop import Shop
from traces.dialects import openai_chat
from traces.dialects.types import ModelAnswer, ToolCall

AGENT = '''
"""Four helpers at once; each asks the tool what all ask, as often as its model wants it to."""
import json, random, sys, threading, time, urllib.request


def ask(url, said, **headers):
    time.sleep(random.uniform(0, 0.02))
    request = urllib.request.Request(url, json.dumps(said).encode(), headers)
    return json.loads(urllib.request.urlopen(request, timeout=60).read())


def helper(name):
    messages = [{"role": "user", "content": f"you are {name}"}]
    while True:
        said = ask("http://model.test/v1/chat/completions", {"model": "m", "messages": messages})
        messages.append(said["choices"][0]["message"])
        calls = messages[-1].get("tool_calls")
        if not calls:
            return
        for call in calls:
            asked = json.loads(call["function"]["arguments"])
            told = ask("http://model.test/next", asked, **{"x-tool-call-id": call["id"]})
            result = {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(told)}
            messages.append(result)


helpers = [threading.Thread(target=helper, args=(n,)) for n in range(4)]
for each in helpers:
    each.start()
for each in helpers:
    each.join()
'''


@contextmanager
def served() -> Iterator[int]:
    """A model that wants the next number three times, two at once, and who gives numbers out."""
    numbers, calls = count(), count()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(handler) -> None:  # noqa: N805
            said = handler.rfile.read(int(handler.headers["content-length"]))
            body = json.dumps({"number": next(numbers)}).encode()
            if "completions" in handler.path:
                asked = len(json.loads(said)["messages"])
                more = 2 if asked < 10 else 0
                wanted = tuple(
                    ToolCall(id=f"c{next(calls)}", name="next", arguments='{"n": 1}')
                    for _ in range(more)
                )
                answer = ModelAnswer(message=f"{asked}", calls=wanted, model="m")
                body = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)[1][
                    0
                ].data
            handler.send_response(200)
            handler.send_header("content-type", "application/json")
            handler.send_header("content-length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        def log_message(handler, *_: object) -> None:  # noqa: N805
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.timeout(180)
def test_helpers_that_ask_the_same_at_once_are_told_what_each_was_told(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    desk = Shop(folder=tmp_path, book=tmp_path, log=tmp_path, hosts=(), task="none")
    command = ("--", sys.executable, "agent.py")
    with served() as port:
        host = ("--host", f"model.test=127.0.0.1:{port}")
        result = desk.stumble("record", "-o", "a.tape", *host, *command)
    assert result.code == 0, result.err
    again = desk.stumble("replay", "a.tape", "--times", "6", "--json", *command)
    assert again.code == 0, again.out
    assert again.json["followed"] == 6
    assert {run["answered"] for run in again.json["runs"]} == {4 * (4 + 6)}
