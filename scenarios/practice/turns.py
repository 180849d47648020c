"""The agent that talks as Codex does: responses over a WebSocket, and only what is new.

A warm-up hands over the tools, each turn names the answer it goes on from, and where a server
refuses the upgrade (426) everything goes over HTTP, with the whole conversation each time. What
breaks off or is not known any more is asked once again, on a new connection, with all of it.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import aiohttp
import orjson

from scenarios.practice import tools
from traces.dialects import openai_responses
from traces.model import Headers
from traces.step import Answer

BETA = {"OpenAI-Beta": "responses_websockets=2026-02-06"}
PATIENCE = 120.0
"""Seconds to wait for the next message."""

OFFERED = tuple(
    {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }
    for tool in tools.TOOLS.values()
)

type Items = list[dict[str, Any]]


def lead(
    url: str, model: str, prompt: tuple[str, str], call: Callable[[str, str], str], most: int
) -> str | None:
    """The final answer to a system and a user text; None where the steps run out.

    aiohttp.ClientError or ValueError where the model server fails more than once.
    """
    system, task = prompt
    body = {"model": model, "instructions": system, "tools": OFFERED}
    items: Items = [{"type": "message", "role": "user", "content": task}]
    with asyncio.Runner() as runner:
        talk = runner.run(_open(url, body))
        try:
            for _ in range(most):
                answer, output = runner.run(talk.ask(items))
                items += output
                if not answer.calls:
                    return answer.message
                for each in answer.calls:
                    said = call(each.name, each.arguments)
                    items.append(
                        {"type": "function_call_output", "call_id": each.id, "output": said}
                    )
        finally:
            runner.run(talk.close())
    return None


async def _open(url: str, body: dict[str, Any]) -> "_Talk":
    headers = {"Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'practice')}"}
    session = aiohttp.ClientSession(trust_env=True, headers=headers)
    return _Talk(session, f"{url}/responses", body)


class _Talk:
    """One conversation, by whatever way it goes."""

    def __init__(self, session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> None:
        self._session, self._url, self._body = session, url, body
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._over_http = False
        self._previous: str | None = None
        self._known = 0
        """How many items the server knows of by the answer before."""

    async def ask(self, items: Items) -> tuple[Answer, Items]:
        """The next answer, and the items of it."""
        if not self._over_http:
            await self._connect()
        if self._over_http:
            return await self._post(items)
        try:
            found = await self._turn(items)
        except (ConnectionError, ValueError):
            await self._hang_up()
            await self._connect()
            found = await self._turn(items)
        self._known = len(items) + len(found[1])
        return found

    async def close(self) -> None:
        await self._hang_up()
        await self._session.close()

    async def _connect(self) -> None:
        if self._socket is not None:
            return
        try:
            # Given ws://, aiohttp would look for proxies of that scheme.
            self._socket = await self._session.ws_connect(self._url, headers=BETA, max_msg_size=0)
        except aiohttp.WSServerHandshakeError as error:
            if error.status != 426:
                raise
            self._over_http = True
            return
        await self._say({"input": [], "generate": False})

    async def _hang_up(self) -> None:
        if self._socket is not None:
            await self._socket.close()
        self._socket, self._previous, self._known = None, None, 0

    async def _turn(self, items: Items) -> tuple[Answer, Items]:
        return await self._say({"input": items[self._known :]})

    async def _say(self, more: dict[str, Any]) -> tuple[Answer, Items]:
        """ConnectionError where the answer breaks off, ValueError where it is an error."""
        assert self._socket is not None
        said = {"type": "response.create", **self._body, "store": False, **more}
        if self._previous is not None:
            said["previous_response_id"] = self._previous
        await self._socket.send_str(orjson.dumps(said).decode())
        heard = bytearray()
        while True:
            message = await self._socket.receive(timeout=PATIENCE)
            if message.type is not aiohttp.WSMsgType.TEXT:
                raise ConnectionError(f"the connection ended with {self._socket.close_code}")
            heard += message.data.encode()
            if openai_responses.ends(message.data.encode()):
                break
        answer = _answer((), bytes(heard))
        self._previous = answer.id
        return answer, _output(orjson.loads(message.data)["response"])

    async def _post(self, items: Items) -> tuple[Answer, Items]:
        body = orjson.dumps({**self._body, "input": items})
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self._url, data=body, headers=headers) as response:
            response.raise_for_status()
            data = await response.read()
        return _answer((), data), _output(orjson.loads(data))


def _answer(headers: Headers, data: bytes) -> Answer:
    answer = openai_responses.read(headers, data)
    if answer is None:
        raise ValueError(f"the model server said {data[-300:].decode(errors='replace')}")
    return answer


def _output(response: dict[str, Any]) -> Items:
    found: Items = response["output"]
    return found
