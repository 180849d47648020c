"""A plain agent: the official openai SDK, a loop, and tools over HTTP, MCP, locally, or a shell.

Exit status: 0 with a final answer, 1 on a crash, 2 for wrong arguments, 3 when steps run out.
"""

import argparse
import json
import os
import sqlite3
import ssl
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import openai
import orjson
from openai.types.chat import (
    ChatCompletionChunk,
    ChatCompletionMessageFunctionToolCallParam,
    ChatCompletionMessageParam,
    ChatCompletionStreamOptionsParam,
    ChatCompletionToolParam,
)

from scenarios.practice import book, tools, warm
from scenarios.practice.tasks import EVERY

type Tool = Callable[[str, str], str]
"""Calls a tool by name with JSON arguments, and says in words what came of it."""
type ToolCall = ChatCompletionMessageFunctionToolCallParam

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
    if options.tools == "local" and options.db is None:
        parser.error("local tools need --db")
    model_url = os.environ.get("OPENAI_BASE_URL", "http://model.practice/v1")
    tools_url = os.environ.get("TOOLS_URL", "http://shop.practice")
    timeout = float(os.environ.get("TOOLS_TIMEOUT", "10"))
    with ExitStack() as stack:
        http = stack.enter_context(_http(model_url, tools_url))
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
            client = _client(http, model_url)
            agent = Agent(client, options.model, call, stream=options.stream, offered=offered)
            final = agent.run(prompt, options.max_steps)
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
        "--websocket", action="store_true", help="ask for responses over a WebSocket, as Codex does"
    )
    parser.add_argument("--max-steps", type=int, default=60)
    parser.add_argument("--warm", action="store_true", help="serve runs asked for on stdin")
    return parser


class Agent:
    """Asks the model, runs the tools it calls, tells it the results, until it calls none."""

    def __init__(
        self,
        client: openai.OpenAI,
        model: str,
        call: Tool,
        *,
        stream: bool = False,
        offered: Sequence[ChatCompletionToolParam] | None = None,
    ) -> None:
        self._client = client
        self._offered = OFFERED if offered is None else offered
        self._model = model
        self._call = call
        self._stream = stream

    def run(self, prompt: str, max_steps: int) -> str | None:
        """The final answer; None where the steps run out."""
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": prompt},
        ]
        for _ in range(max_steps):
            text, calls = self._ask(messages)
            if not calls:
                return text
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            for call in calls:
                function = call["function"]
                result = self._call(function["name"], function["arguments"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return None

    def _ask(self, messages: list[ChatCompletionMessageParam]) -> tuple[str, list[ToolCall]]:
        # Given as `messages`, the SDK would compare every field of every message with the types
        # of all its parameters, which takes two thirds of a run; the wire is the same.
        body = {"messages": messages, "tools": self._offered}
        create = self._client.chat.completions.create
        if self._stream:
            usage: ChatCompletionStreamOptionsParam = {"include_usage": True}
            with create(
                model=self._model, messages=(), stream=True, stream_options=usage, extra_body=body
            ) as stream:
                return _joined(stream)
        message = create(model=self._model, messages=(), extra_body=body).choices[0].message
        calls = [
            _tool_call(call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
            if call.type == "function"
        ]
        return message.content or "", calls


OFFERED: tuple[ChatCompletionToolParam, ...] = tuple(
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


def _joined(stream: Iterable[ChatCompletionChunk]) -> tuple[str, list[ToolCall]]:
    """Text and calls of a streamed answer; the pieces of a call are joined by their index."""
    texts: list[str] = []
    calls: dict[int, ToolCall] = {}
    for chunk in stream:
        for choice in chunk.choices:
            texts.append(choice.delta.content or "")
            for piece in choice.delta.tool_calls or ():
                call = calls.setdefault(piece.index, _tool_call("", "", ""))
                call["id"] += piece.id or ""
                if piece.function is not None:
                    call["function"]["name"] += piece.function.name or ""
                    call["function"]["arguments"] += piece.function.arguments or ""
    return "".join(texts), [call for _, call in sorted(calls.items())]


def _tool_call(id: str, name: str, arguments: str) -> ToolCall:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _http(*urls: str) -> httpx.Client:
    """One keep-alive client for everything; it follows the proxy variables."""
    if any(url.startswith("https:") for url in urls):
        return openai.DefaultHttpxClient()
    # Reading the system's certificates takes longer than a run; without any, TLS is refused.
    return openai.DefaultHttpxClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _client(http: httpx.Client, url: str) -> openai.OpenAI:
    key = os.environ.get("OPENAI_API_KEY", "practice")
    return openai.OpenAI(base_url=url, api_key=key, http_client=http, timeout=120)


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
    _http().close()
    "localhost".encode("idna")  # every look-up of a host name does this, and loads a codec
    for stream in (False, True):
        with httpx.Client(transport=httpx.MockTransport(_answer)) as http:
            agent = Agent(
                _client(http, "http://nowhere/v1"), "none", lambda *_: "{}", stream=stream
            )
            agent.run("", 2)


def _answer(request: httpx.Request) -> httpx.Response:
    """A call at first, then a final answer."""
    asked = json.loads(request.content)
    stream, first = asked.get("stream", False), len(asked["messages"]) == 2
    said: dict[str, object] = {"role": "assistant", "content": "."}
    if first:
        said["tool_calls"] = [{"index": 0, **_tool_call("1", "get_order", "{}")}]
    choice = {"index": 0, "delta" if stream else "message": said, "finish_reason": "stop"}
    kind = "chat.completion.chunk" if stream else "chat.completion"
    body = json.dumps({"id": "", "object": kind, "created": 0, "model": "", "choices": [choice]})
    if stream:
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, text=f"data: {body}\n\ndata: [DONE]\n\n")
    return httpx.Response(200, headers={"content-type": "application/json"}, text=body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
