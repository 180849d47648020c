"""An MCP server on the official SDK whose tools ask their client before they answer.

    python -m tests.support.servers.asking_server http PORT_FILE | stdio

`sample`, `elicit` and `roots` ask by the protocol of the client's version: in a request of their
own in 2025-11-25 (in the call's stream, and with `apart` in the session's), in a result that
requires input in 2026-07-28. `resume` closes the call's stream, whose rest the client fetches.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    JSONRPCMessage,
    ListRootsRequest,
    ListRootsResult,
    ListToolsResult,
    SamplingMessage,
    TextContent,
    Tool,
)

from scenarios.practice.mcp_server import serve_mcp_on_loopback

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = ("sample", "elicit", "roots", "resume")
AMOUNT = 51234
"""A number of its own in each result, which a fault can change."""


class Events(EventStore):
    """All messages of all streams, in order."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self.kept.append((stream_id, message))
        return str(len(self.kept))

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        after = int(last_event_id)
        stream = self.kept[after - 1][0]
        for number, (each, message) in enumerate(self.kept[after:], after + 1):
            if each == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def _messages() -> CreateMessageRequestParams:
    said = SamplingMessage(role="user", content=TextContent(text="name a number"))
    return CreateMessageRequestParams(messages=[said], max_tokens=50)


async def _sample(context: ServerRequestContext, related: str | int | None) -> str:
    asked = _messages()
    answer = await context.session.create_message(
        asked.messages, max_tokens=50, related_request_id=related
    )
    return _sampled(answer)


def _sampled(answer: CreateMessageResult) -> str:
    assert isinstance(answer.content, TextContent)
    return answer.content.text


async def _elicit(context: ServerRequestContext, related: str | int | None) -> str:
    return str(
        (
            await context.session.elicit_form("Which city?", SCHEMA, related_request_id=related)
        ).content
    )


async def _roots(context: ServerRequestContext, _: str | int | None) -> str:
    return ", ".join(str(root.uri) for root in (await context.session.list_roots()).roots)


async def _resume(context: ServerRequestContext, _: str | int | None) -> str:
    await context.session.report_progress(1, 2)
    assert context.close_sse_stream is not None
    await context.close_sse_stream()
    await asyncio.sleep(0.3)
    await context.session.report_progress(2, 2)
    return "resumed"


_ASK: dict[str, Callable[[ServerRequestContext, str | int | None], Awaitable[str]]] = {
    "sample": _sample,
    "elicit": _elicit,
    "roots": _roots,
    "resume": _resume,
}


def _require(tool: str, params: CallToolRequestParams) -> InputRequiredResult | str:
    """Ask by a result; what the client answered if this is the second call."""
    answers = params.input_responses
    if not answers:
        requests: dict[str, CreateMessageRequest | ElicitRequest | ListRootsRequest] = {
            "sample": CreateMessageRequest(params=_messages()),
            "elicit": ElicitRequest(
                params=ElicitRequestFormParams(message="Which city?", requested_schema=SCHEMA)
            ),
            "roots": ListRootsRequest(),
        }
        return InputRequiredResult(input_requests={"it": requests[tool]}, request_state="s1")
    match answers["it"]:
        case CreateMessageResult() as sampled:
            return _sampled(sampled)
        case ElicitResult() as elicited:
            return str(elicited.content)
        case ListRootsResult() as listed:
            return ", ".join(str(root.uri) for root in listed.roots)
        case other:
            return repr(other)


async def _offered(_: object, __: object) -> ListToolsResult:
    return ListToolsResult(
        tools=[Tool(name=name, input_schema={"type": "object"}) for name in TOOLS]
    )


async def _called(
    context: ServerRequestContext, params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    given = params.arguments or {}
    if context.protocol_version == "2026-07-28" and params.name in ("sample", "elicit", "roots"):
        required = _require(params.name, params)
        if isinstance(required, InputRequiredResult):
            return required
        heard = required
    else:
        related = None if given.get("apart") else context.request_id
        heard = await _ASK[params.name](context, related)
    return CallToolResult(content=[TextContent(text=f"amount {AMOUNT}, {heard}")])


def build() -> Server:
    """Build the server."""
    return Server("asking", on_list_tools=_offered, on_call_tool=_called)


async def main(transport: str, port_file: str = "") -> None:
    """Serve until killed, or until stdin ends."""
    server = build()
    if transport == "stdio":
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        return
    async with serve_mcp_on_loopback(server, events=Events()) as port:
        Path(port_file).write_text(str(port))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
