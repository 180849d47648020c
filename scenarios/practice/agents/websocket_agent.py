"""An agent that uses Codex's protocol: responses over a WebSocket, sending only new items.

A warm-up request sends the tools, each turn names its previous response, and if a server refuses
the upgrade (426) everything goes over HTTP, with the full conversation each time. A turn that is
interrupted or whose previous response is unknown is repeated once, in full, on a new connection.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import aiohttp
import orjson

from scenarios.practice.tools import registry
from traces.dialects import openai_responses
from traces.dialects.types import ModelAnswer
from traces.model import Headers

BETA_HEADERS = {"OpenAI-Beta": "responses_websockets=2026-02-06"}
MESSAGE_SECONDS = 120.0
"""Seconds to wait for the next message."""

RESPONSES_TOOLS = tuple(
    {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }
    for tool in registry.SHOP_TOOLS.values()
)

type ResponseItems = list[dict[str, Any]]


def run_websocket_agent(
    url: str, model: str, prompt: tuple[str, str], call: Callable[[str, str], str], most: int
) -> str | None:
    """Return the final answer to a system and a user text; None if the steps run out.

    Raises aiohttp.ClientError or ValueError if the model server fails more than once.
    """
    system, task = prompt
    body = {"model": model, "instructions": system, "tools": RESPONSES_TOOLS}
    items: ResponseItems = [{"type": "message", "role": "user", "content": task}]
    with asyncio.Runner() as runner:
        dialogue = runner.run(_open_conversation(url, body))
        try:
            for _ in range(most):
                answer, output = runner.run(dialogue.ask(items))
                items += output
                if not answer.calls:
                    return answer.message
                for each in answer.calls:
                    result = call(each.name, each.arguments)
                    items.append(
                        {"type": "function_call_output", "call_id": each.id, "output": result}
                    )
        finally:
            runner.run(dialogue.close())
    return None


async def _open_conversation(url: str, body: dict[str, Any]) -> "_ResponsesConversation":
    headers = {"Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'practice')}"}
    session = aiohttp.ClientSession(trust_env=True, headers=headers)
    return _ResponsesConversation(session, f"{url}/responses", body)


class _ResponsesConversation:
    """One conversation, over a WebSocket or HTTP."""

    def __init__(self, session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> None:
        self._session, self._url, self._body = session, url, body
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._over_http = False
        self._previous: str | None = None
        self._known = 0
        """Number of items that the server knows from the previous response."""

    async def ask(self, items: ResponseItems) -> tuple[ModelAnswer, ResponseItems]:
        """Return the next answer and its items."""
        if not self._over_http:
            await self._connect()
        if self._over_http:
            return await self._post_turn(items)
        try:
            reply = await self._send_turn(items)
        except (ConnectionError, ValueError):
            await self._disconnect()
            await self._connect()
            reply = await self._send_turn(items)
        self._known = len(items) + len(reply[1])
        return reply

    async def close(self) -> None:
        await self._disconnect()
        await self._session.close()

    async def _connect(self) -> None:
        if self._socket is not None:
            return
        try:
            # With ws://, aiohttp would look for a proxy of that scheme.
            self._socket = await self._session.ws_connect(
                self._url, headers=BETA_HEADERS, max_msg_size=0
            )
        except aiohttp.WSServerHandshakeError as error:
            if error.status != 426:
                raise
            self._over_http = True
            return
        await self._send_and_receive({"input": [], "generate": False})

    async def _disconnect(self) -> None:
        if self._socket is not None:
            await self._socket.close()
        self._socket, self._previous, self._known = None, None, 0

    async def _send_turn(self, items: ResponseItems) -> tuple[ModelAnswer, ResponseItems]:
        return await self._send_and_receive({"input": items[self._known :]})

    async def _send_and_receive(self, more: dict[str, Any]) -> tuple[ModelAnswer, ResponseItems]:
        """Raises ConnectionError if the answer is interrupted, ValueError if it is an error."""
        assert self._socket is not None
        request = {"type": "response.create", **self._body, "store": False, **more}
        if self._previous is not None:
            request["previous_response_id"] = self._previous
        await self._socket.send_str(orjson.dumps(request).decode())
        received = bytearray()
        while True:
            message = await self._socket.receive(timeout=MESSAGE_SECONDS)
            if message.type is not aiohttp.WSMsgType.TEXT:
                raise ConnectionError(f"the connection ended with {self._socket.close_code}")
            received += message.data.encode()
            if openai_responses.is_final_event(message.data.encode()):
                break
        answer = _read_responses_answer((), bytes(received))
        self._previous = answer.id
        return answer, _get_output_items(orjson.loads(message.data)["response"])

    async def _post_turn(self, items: ResponseItems) -> tuple[ModelAnswer, ResponseItems]:
        body = orjson.dumps({**self._body, "input": items})
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self._url, data=body, headers=headers) as response:
            response.raise_for_status()
            data = await response.read()
        return _read_responses_answer((), data), _get_output_items(orjson.loads(data))


def _read_responses_answer(headers: Headers, data: bytes) -> ModelAnswer:
    answer = openai_responses.parse_model_answer(headers, data)
    if answer is None:
        raise ValueError(f"the model server said {data[-300:].decode(errors='replace')}")
    return answer


def _get_output_items(response: dict[str, Any]) -> ResponseItems:
    items: ResponseItems = response["output"]
    return items
