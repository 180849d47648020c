"""A plain agent: a chat client, a loop, and tools over HTTP, MCP, locally, or a shell.

Exit status: 0 with a final answer, 1 on a crash, 2 for wrong arguments, 3 when steps run out.
"""

import argparse
import json
import os
import sqlite3
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import orjson

from scenarios.practice import book, tools, warm
from scenarios.practice.plain_chat import Chat, Message, PlainChat, tool_call
from scenarios.practice.tasks import EVERY

type Tool = Callable[[str, str], str]
"""Calls a tool by name with JSON arguments, and says in words what came of it."""

SYSTEM = "You work for the shop's customer service. Use the tools, and say what you have done."


def main(arguments: Sequence[str]) -> int:
    """Work on one task, or serve runs; prints the final answer and returns the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.warm:
        warm_up()
        return warm.serve(main)
    if options.task is None and options.prompt is None:
        parser.error("which task?")
    if options.sdk == "none" and (options.stream or options.websocket):
        parser.error("--stream and --websocket need --sdk openai")
    if options.tools == "local" and options.db is None:
        parser.error("local tools need --db")
    model_url = os.environ.get("OPENAI_BASE_URL", "http://model.practice/v1")
    tools_url = os.environ.get("TOOLS_URL", "http://shop.practice")
    timeout = float(os.environ.get("TOOLS_TIMEOUT", "10"))
    with ExitStack() as stack:
        http = stack.enter_context(_http(options.sdk, model_url, tools_url))
        offered, call = OFFERED, _remote(http, tools_url, timeout)
        if options.tools == "local":
            call = _local(stack.enter_context(closing(book.connect(options.db))))
        elif options.tools == "mcp":
            from scenarios.practice import mcp_client

            server = options.mcp_command or os.environ.get("MCP_URL", "http://mcp.practice/mcp")
            found = mcp_client.tools(server, version=options.mcp_version, timeout=timeout)
            offered, call = stack.enter_context(found)
        elif options.tools == "shell":
            from scenarios.practice import bash

            offered, call = (bash.OFFERED,), bash.call
        prompt = options.prompt or EVERY[options.task].prompt
        if options.websocket:
            from scenarios.practice.turns import lead  # aiohttp takes longer to load than a run

            final = lead(model_url, options.model, (SYSTEM, prompt), call, options.max_steps)
        else:
            chat = _chat(options.sdk, http, model_url, options.model, stream=options.stream)
            final = Agent(chat, call, offered=offered).run(prompt, options.max_steps)
    if final is None:
        print(f"no final answer within {options.max_steps} steps", file=sys.stderr)
        return 3
    print(final)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scenarios.practice.agent", description=__doc__)
    parser.add_argument("task", nargs="?", choices=EVERY, metavar="TASK")
    parser.add_argument("--model", default="practice/retries")
    parser.add_argument("--prompt", help="what to do, in place of the task's own words")
    parser.add_argument("--tools", choices=("http", "local", "mcp", "shell"), default="http")
    parser.add_argument("--db", type=Path, help="the order book, for --tools local")
    server = "start this server for --tools mcp; else MCP_URL is asked"
    parser.add_argument("--mcp-command", metavar="COMMAND", help=server)
    versions = ("auto", "2026-07-28", "2025-11-25")
    says = f"what to speak to it: {', '.join(versions)}"
    parser.add_argument(
        "--mcp-version", metavar="DATE", choices=versions, default=versions[0], help=says
    )
    parser.add_argument("--stream", action="store_true", help="have the answers streamed")
    parser.add_argument(
        "--sdk",
        choices=("openai", "none"),
        default="openai",
        help="ask the model through the openai SDK, or by plain HTTP without retries",
    )
    parser.add_argument(
        "--websocket", action="store_true", help="ask for responses over a WebSocket, as Codex does"
    )
    parser.add_argument("--max-steps", type=int, default=60)
    parser.add_argument("--warm", action="store_true", help="serve runs asked for on stdin")
    return parser


class Agent:
    """Asks the model, runs the tools it calls, tells it the results, until it calls none."""

    def __init__(
        self, chat: Chat, call: Tool, *, offered: Sequence[Mapping[str, object]] | None = None
    ) -> None:
        self._chat = chat
        self._offered = OFFERED if offered is None else offered
        self._call = call

    def run(self, prompt: str, max_steps: int) -> str | None:
        """The final answer; None where the steps run out."""
        messages: list[Message] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": prompt},
        ]
        for _ in range(max_steps):
            text, calls = self._chat.ask(messages, self._offered)
            if not calls:
                return text
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            for call in calls:
                function = call["function"]
                result = self._call(function["name"], function["arguments"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return None


OFFERED: tuple[Mapping[str, object], ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": {**tool.parameters},
        },
    }
    for tool in tools.TOOLS.values()
)


def _http(sdk: str, *urls: str) -> httpx.Client:
    """One keep-alive client for everything; it follows the proxy variables."""
    client = httpx.Client
    if sdk == "openai":
        from openai import DefaultHttpxClient as client  # half a second that `--sdk none` saves
    if any(url.startswith("https:") for url in urls):
        return client()
    # Reading the system's certificates takes longer than a run; without any, TLS is refused.
    return client(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _chat(sdk: str, http: httpx.Client, url: str, model: str, *, stream: bool = False) -> Chat:
    if sdk == "none":
        return PlainChat(http, url, model)
    from scenarios.practice.openai_chat import OpenAIChat

    return OpenAIChat(http, url, model, stream=stream)


def _remote(http: httpx.Client, url: str, timeout: float) -> Tool:
    def call(name: str, arguments: str) -> str:
        try:
            answer = http.post(
                f"{url}/tools/{name}",
                content=arguments.encode(),
                headers={"content-type": "application/json"},
                timeout=timeout,
            )
        except httpx.HTTPError as error:
            return f"error: {type(error).__name__}: {error}"
        return (
            answer.text
            if answer.status_code == 200
            else f"HTTP {answer.status_code}: {answer.text}"
        )

    return call


def _local(shop: sqlite3.Connection) -> Tool:
    def call(name: str, arguments: str) -> str:
        try:
            given = json.loads(arguments)
        except ValueError as error:
            return f"error: {type(error).__name__}: {error}"
        status, result = tools.call(shop, name, given)
        text = orjson.dumps(result).decode()
        return text if status == 200 else f"error: {text}"

    return call


def warm_up() -> None:
    """Load what the SDK and its HTTP client load on first use: two runs that reach no network."""
    _http("openai").close()
    "localhost".encode("idna")  # every look-up of a host name does this, and loads a codec
    for stream in (False, True):
        with httpx.Client(transport=httpx.MockTransport(_answer)) as http:
            chat = _chat("openai", http, "http://nowhere/v1", "none", stream=stream)
            Agent(chat, lambda *_: "{}").run("", 2)


def _answer(request: httpx.Request) -> httpx.Response:
    """A call at first, then a final answer."""
    asked = json.loads(request.content)
    stream, first = asked.get("stream", False), len(asked["messages"]) == 2
    said: dict[str, object] = {"role": "assistant", "content": "."}
    if first:
        said["tool_calls"] = [{"index": 0, **tool_call("1", "get_order", "{}")}]
    choice = {"index": 0, "delta" if stream else "message": said, "finish_reason": "stop"}
    kind = "chat.completion.chunk" if stream else "chat.completion"
    body = json.dumps({"id": "", "object": kind, "created": 0, "model": "", "choices": [choice]})
    if stream:
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, text=f"data: {body}\n\ndata: [DONE]\n\n")
    return httpx.Response(200, headers={"content-type": "application/json"}, text=body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
