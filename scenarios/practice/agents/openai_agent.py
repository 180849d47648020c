"""A plain agent: a chat client, a loop, and tools over HTTP, MCP, locally, or a shell.

Exit status: 0 with a final answer, 1 on a crash, 2 for wrong arguments, 3 when steps run out.
"""

import argparse
import json
import os
import sqlite3
import ssl
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import orjson

from scenarios.practice import order_book
from scenarios.practice.agents import fork_server
from scenarios.practice.agents.plain_chat import ChatClient, ChatMessage, PlainChat, make_tool_call
from scenarios.practice.agents.retry_policies import POLICIES, ToolCaller, apply_policy
from scenarios.practice.tasks.registry import ALL_TASKS
from scenarios.practice.tools import registry

SYSTEM_PROMPT = (
    "You work for the shop's customer service. Use the tools, and say what you have done."
)


def main(arguments: Sequence[str]) -> int:
    """Work on one task, or serve runs; print the final answer and return the exit status."""
    parser = _build_practice_parser()
    options = parser.parse_args(arguments)
    if options.warm:
        warm_up()
        return fork_server.serve_forked_runs(main)
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
        http = stack.enter_context(_open_http_client(options.sdk, model_url, tools_url))
        offered = select_offered_tools(options.task)
        call = _make_remote_caller(http, tools_url, timeout)
        if options.tools == "local":
            call = _make_local_caller(
                stack.enter_context(closing(order_book.connect_order_book(options.db)))
            )
        elif options.tools == "mcp":
            from scenarios.practice.agents import mcp_client

            server = options.mcp_command or os.environ.get("MCP_URL", "http://mcp.practice/mcp")
            opened = mcp_client.open_mcp_tools(server, version=options.mcp_version, timeout=timeout)
            offered, call = stack.enter_context(opened)
        elif options.tools == "shell":
            from scenarios.practice.agents import bash_tool

            offered, call = (bash_tool.BASH_TOOL,), bash_tool.run_bash_tool
        call = apply_policy(options.policy, call)
        prompt = options.prompt or ALL_TASKS[options.task].prompt
        if options.websocket:
            from scenarios.practice.agents.websocket_agent import (
                run_websocket_agent,  # aiohttp takes longer to load than a run
            )

            final = run_websocket_agent(
                model_url, options.model, (SYSTEM_PROMPT, prompt), call, options.max_steps
            )
        else:
            chat = _make_chat_client(
                options.sdk, http, model_url, options.model, stream=options.stream
            )
            final = ChatAgent(chat, call, offered=offered).run(prompt, options.max_steps)
    if final is None:
        print(f"no final answer within {options.max_steps} steps", file=sys.stderr)
        return 3
    print(final)
    return 0


def _build_practice_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.practice.agents.openai_agent", description=__doc__
    )
    parser.add_argument("task", nargs="?", choices=ALL_TASKS, metavar="TASK")
    parser.add_argument("--model", default="practice/retries")
    parser.add_argument("--prompt", help="what to do, in place of the task's own words")
    parser.add_argument("--tools", choices=("http", "local", "mcp", "shell"), default="http")
    parser.add_argument("--db", type=Path, help="the order book, for --tools local")
    command_help = "start this server for --tools mcp; else MCP_URL is asked"
    parser.add_argument("--mcp-command", metavar="COMMAND", help=command_help)
    versions = ("auto", "2026-07-28", "2025-11-25")
    version_help = f"what to speak to it: {', '.join(versions)}"
    parser.add_argument(
        "--mcp-version", metavar="DATE", choices=versions, default=versions[0], help=version_help
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
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        default="none",
        help="what the agent does about tool results before the model sees them: nothing; repeat "
        "failed calls, as SDKs do; read everything twice",
    )
    parser.add_argument("--max-steps", type=int, default=60)
    parser.add_argument("--warm", action="store_true", help="serve runs asked for on stdin")
    return parser


class ChatAgent:
    """Asks the model, runs the tools it calls and sends the results, until it calls none."""

    def __init__(
        self,
        chat: ChatClient,
        call: ToolCaller,
        *,
        offered: Sequence[Mapping[str, object]] | None = None,
    ) -> None:
        self._chat = chat
        self._offered = OFFERED_TOOLS if offered is None else offered
        self._call = call

    def run(self, prompt: str, max_steps: int) -> str | None:
        """Return the final answer; None if the steps run out."""
        messages: list[ChatMessage] = [
            {"role": "system", "content": SYSTEM_PROMPT},
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


def _offer_tool(tool: registry.ShopTool) -> Mapping[str, object]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": {**tool.parameters},
        },
    }


OFFERED_TOOLS: tuple[Mapping[str, object], ...] = tuple(
    map(_offer_tool, registry.SHOP_TOOLS.values())
)


def select_offered_tools(task: str | None) -> tuple[Mapping[str, object], ...]:
    """Return the tools to offer for a task: all of the shop, unless the task names its own."""
    names = ALL_TASKS[task].tools if task is not None else ()
    return tuple(_offer_tool(registry.ALL_TOOLS[name]) for name in names) or OFFERED_TOOLS


def _open_http_client(sdk: str, *urls: str) -> httpx.Client:
    """Return one keep-alive client for all requests; it follows the proxy variables."""
    client = httpx.Client
    if sdk == "openai":
        from openai import (
            DefaultHttpxClient as client,
        )  # takes half a second, which `--sdk none` avoids
    if any(url.startswith("https:") for url in urls):
        return client()
    # Loading the system's certificates takes longer than a run; without them TLS fails.
    return client(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _make_chat_client(
    sdk: str, http: httpx.Client, url: str, model: str, *, stream: bool = False
) -> ChatClient:
    if sdk == "none":
        return PlainChat(http, url, model)
    from scenarios.practice.agents.openai_chat import OpenAIChat

    return OpenAIChat(http, url, model, stream=stream)


def _make_remote_caller(http: httpx.Client, url: str, timeout: float) -> ToolCaller:
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


def _make_local_caller(shop: sqlite3.Connection) -> ToolCaller:
    def call(name: str, arguments: str) -> str:
        try:
            parsed = json.loads(arguments)
        except ValueError as error:
            return f"error: {type(error).__name__}: {error}"
        status, result = registry.call_shop_tool(shop, name, parsed)
        text = orjson.dumps(result).decode()
        return text if status == 200 else f"error: {text}"

    return call


def warm_up() -> None:
    """Load the lazy imports of the SDK and its HTTP client with two runs without network."""
    _open_http_client("openai").close()
    "localhost".encode("idna")  # every host name lookup loads this codec
    for stream in (False, True):
        with httpx.Client(transport=httpx.MockTransport(_answer_warm_up)) as http:
            chat = _make_chat_client("openai", http, "http://nowhere/v1", "none", stream=stream)
            ChatAgent(chat, lambda *_: "{}").run("", 2)


def _answer_warm_up(request: httpx.Request) -> httpx.Response:
    """Answer with a call first, then with a final answer."""
    request_body = json.loads(request.content)
    stream, first = request_body.get("stream", False), len(request_body["messages"]) == 2
    message: dict[str, object] = {"role": "assistant", "content": "."}
    if first:
        message["tool_calls"] = [{"index": 0, **make_tool_call("1", "get_order", "{}")}]
    choice = {"index": 0, "delta" if stream else "message": message, "finish_reason": "stop"}
    kind = "chat.completion.chunk" if stream else "chat.completion"
    body = json.dumps({"id": "", "object": kind, "created": 0, "model": "", "choices": [choice]})
    if stream:
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, text=f"data: {body}\n\ndata: [DONE]\n\n")
    return httpx.Response(200, headers={"content-type": "application/json"}, text=body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
