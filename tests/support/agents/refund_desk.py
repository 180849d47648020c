"""A refund desk with a scripted model, tools and world: agents of known behaviour, in few lines.

The desk serves a chat model, an order book and the state of the world on one port. The model's
behaviour is a policy, a function from the conversation to the next answer, and may be replaced
between two runs, as a provider replaces the model behind a name.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.campaign_folder import Bench
from tests.support.practice_shop import Said

TRUE = 1284.57
MODEL = "lab/clerk"

type Messages = Sequence[Mapping[str, Any]]
type Answer = tuple[str, Mapping[str, object]] | str
"""A call of a tool with its arguments, or the final text."""
type Policy = Callable[[Messages], Answer]

AGENT = """
import json, os, sys, urllib.error, urllib.request

def once(method, url, body, seconds):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"} if data else {}
    asked = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=seconds) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""

def again_and_again(method, url, body, tries, seconds):
    import httpx
    with httpx.Client(timeout=seconds) as client:
        for left in reversed(range(tries)):
            try:
                answer = client.request(method, url, json=body)
                if answer.status_code < 500 or not left:
                    return answer.status_code, answer.text
            except httpx.TransportError:
                if not left:
                    raise

def tool(name, arguments):
    method, path, body = {
        "get_order": ("GET", "/orders/" + str(arguments.get("id")), None),
        "issue_refund": ("POST", "/refunds", arguments),
    }[name]
    try:
        tries, seconds = int(os.environ.get("TRIES", 1)), float(os.environ.get("PATIENCE", 20))
        if tries > 1:
            code, said = again_and_again(method, "http://shop.lab" + path, body, tries, seconds)
        else:
            code, said = once(method, "http://shop.lab" + path, body, seconds)
    except Exception as error:
        return f"error: {type(error).__name__}"
    return said if code < 400 else f"error {code}"

talk = [{"role": "user", "content": "Refund order ord-7314 in full."}]
while True:
    body = {"model": "%s", "messages": talk, "tools": json.loads(%r)}
    _, said = once("POST", "http://model.lab/v1/chat/completions", body, 60)
    said = json.loads(said)["choices"][0]["message"]
    talk.append(said)
    if not said.get("tool_calls"):
        print(said["content"])
        break
    for call in said["tool_calls"]:
        function = call["function"]
        told = tool(function["name"], json.loads(function["arguments"]))
        talk.append({"role": "tool", "tool_call_id": call["id"], "content": told})
"""
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("get_order", "issue_refund")
]
WORLD = """
import sys, urllib.request
with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[2]}/world/{sys.argv[1]}") as answer:
    said = answer.read().decode()
print(said)
raise SystemExit(said == "wrong")
"""


def results(messages: Messages, tool: str) -> list[str]:
    """Return the results of a tool so far."""
    calls = {
        call["id"]: call["function"]["name"]
        for each in messages
        for call in each.get("tool_calls") or ()
    }
    return [m["content"] for m in messages if calls.get(m.get("tool_call_id")) == tool]


def amount(result: str) -> float | None:
    """Return the total in a result of `get_order`."""
    try:
        return float(json.loads(result)["total"])
    except (ValueError, KeyError, TypeError):
        return None


def reads(times: Callable[[list[str]], int]) -> Policy:
    """Read the order a number of times, pay the last total, and report it."""

    def policy(messages: Messages) -> Answer:
        orders, paid = results(messages, "get_order"), results(messages, "issue_refund")
        if paid:
            return f"DONE: refunded {amount(orders[-1])} GBP for ord-7314."
        if len(orders) < times(orders):
            return "get_order", {"id": "ord-7314"}
        total = amount(orders[-1])
        if total is None:
            return "NOT DONE: get_order failed."
        return "issue_refund", {"id": "ord-7314", "amount": total}

    return policy


naive = reads(lambda orders: 1)
twice = reads(lambda orders: 2)
suspicious = reads(lambda orders: 2 if orders and amount(orders[0]) != TRUE else 1)
stubborn = reads(lambda orders: len(orders) + (not orders or amount(orders[-1]) is None))
"""Reads until it gets a number, without a limit."""


def overpays(messages: Messages) -> Answer:
    """Pay ten too much in any case."""
    answer = naive(messages)
    if isinstance(answer, tuple) and answer[0] == "issue_refund":
        return answer[0], {**answer[1], "amount": TRUE + 10}
    return answer


@dataclass(slots=True)
class Desk:
    """The served desk, and a folder in which `stumble` is run."""

    bench: Bench
    port: int = 0
    policy: Policy = naive
    refunds: list[float] = field(default_factory=list)
    asked: int = 0

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Serve one request of the model, the book or the world."""
        if path.startswith("/v1/"):
            return 200, self._chat(json.loads(body)["messages"])
        if path.startswith("/orders/"):
            return 200, json.dumps({"id": "ord-7314", "total": TRUE}).encode()
        if path == "/refunds" and method == "POST":
            self.refunds.append(json.loads(body)["amount"])
            return 200, json.dumps({"refund": len(self.refunds), "ok": True}).encode()
        return 200, self._world(path.rpartition("/")[2]).encode()

    def _chat(self, messages: Messages) -> bytes:
        self.asked += 1
        said = self.policy(messages)
        message: dict[str, object] = {"role": "assistant", "content": None}
        if isinstance(said, str):
            message["content"] = said
        else:
            function = {"name": said[0], "arguments": json.dumps(said[1])}
            id = f"call_{len(messages)}"
            message["tool_calls"] = [{"id": id, "type": "function", "function": function}]
        reason = "stop" if isinstance(said, str) else "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
        whole = {"id": "x", "object": "chat.completion", "model": MODEL, "choices": [choice]}
        return json.dumps(whole | {"usage": usage}).encode()

    def _world(self, verb: str) -> str:
        if verb == "reset":
            self.refunds.clear()
        if verb == "state":
            return json.dumps({"refunds": self.refunds})
        if verb == "ledger":
            entries = [
                {"id": number, "order": "ord-7314", "amount": paid}
                for number, paid in enumerate(self.refunds, self.asked)
            ]
            return json.dumps({"payments": entries[::-1]})
        return "right" if verb == "reset" or self.refunds == [TRUE] else "wrong"

    def world(self, *verbs: str) -> tuple[str, ...]:
        """Return the options --reset, --verify or --state with commands of this world."""
        command = f"{sys.executable} world.py"
        return tuple(
            word for verb in verbs for word in (f"--{verb}", f"{command} {verb} {self.port}")
        )

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(
            word for name in ("model", "shop") for word in ("--host", f"{name}.lab={self.place}")
        )

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def record(self, name: str = "a.tape", env: Mapping[str, str] | None = None) -> Said:
        self.refunds.clear()
        command = ("record", "-o", name, *self.hosts, "--", sys.executable, "agent.py")
        return self.bench.stumble(*command, env=env)

    def fork(
        self,
        *options: str,
        tape: str = "a.tape",
        world: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Said:
        world = self.world("reset", "verify") if world is None else world
        return self.bench.stumble("fork", tape, *self.hosts, *world, *options, "--json", env=env)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of `stumble sql`."""
        result = self.bench.stumble("sql", "--json", sql)
        assert result.code == 0, result.err
        found: list[dict[str, Any]] = result.json
        return found


@contextmanager
def desk(folder: Path, policy: Policy = naive) -> Iterator[Desk]:
    """Serve a desk in a folder for the block, with an agent and the commands of its world."""
    found = Desk(bench=Bench(folder), policy=policy)
    found.bench.write("agent.py", AGENT % (MODEL, json.dumps(TOOLS)))
    found.bench.write("world.py", WORLD)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            code, data = found.answer(self.command, self.path, self.rfile.read(length))
            self.send_response(code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_port
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
