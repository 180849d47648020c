"""Many small agents at once behind one proxy, with their provider and tools; counts on both sides.

An agent asks the model, calls the tool that it names, returns the result and gets a final answer:
three requests. Everything in a conversation carries its tag, so a mixed tape is seen at once.
"""

import asyncio
import http.client
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

EVERYBODY = "everybody"
"""The tag of a prompt that many agents get word for word; the model gives each its own tag."""
TOOLS = [{"type": "function", "function": {"name": "pay", "parameters": {"type": "object"}}}]


@dataclass(slots=True)
class Provider:
    """A model and a tool on one port; `seen` counts the requests that it answered, by tag."""

    port: int = 0
    delay: float = 0.0
    held: asyncio.Event | None = None
    """The model answers when it is set."""
    asked: int = 0
    status: int = 200
    seen: Counter[str] = field(default_factory=Counter)
    numbers: int = 0

    async def chat(self, request: web.Request) -> web.Response:
        self.asked += 1
        await asyncio.sleep(self.delay)
        if self.held is not None:
            await self.held.wait()
        messages = (await request.json())["messages"]
        self.numbers += 1
        results = [each["content"] for each in messages if each["role"] == "tool"]
        tag = json.loads(results[-1])["tag"] if results else messages[0]["content"].split()[-1]
        tag = f"n{self.numbers}" if tag == EVERYBODY else tag
        self.seen[tag] += self.status == 200
        if results:
            message: dict[str, object] = {"role": "assistant", "content": f"DONE {tag}"}
        else:
            function = {"name": "pay", "arguments": json.dumps({"account": f"acct-{tag}-77"})}
            id = f"call_{self.numbers:06d}"
            call = {"id": id, "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        finish = "stop" if results else "tool_calls"
        choices = [{"index": 0, "message": message, "finish_reason": finish}]
        body = {"id": f"a-{self.numbers}", "object": "chat.completion", "choices": choices}
        return web.json_response(body, status=self.status)

    async def pay(self, request: web.Request) -> web.Response:
        await asyncio.sleep(self.delay)
        tag = (await request.json())["account"].split("-")[1]
        self.seen[tag] += self.status == 200
        return web.json_response({"tag": tag, "paid": True}, status=self.status)


@asynccontextmanager
async def serve_provider(port: int = 0, **options: float) -> AsyncIterator[Provider]:
    """Serve the model and the tool on a free port."""
    provider = Provider(**options)  # type: ignore[arg-type]
    app = web.Application()
    app.add_routes(
        [web.post("/v1/chat/completions", provider.chat), web.post("/pay", provider.pay)]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    provider.port = runner.addresses[0][1]
    try:
        yield provider
    finally:
        await runner.cleanup()


async def run_agent(
    session: ClientSession,
    proxy: str,
    tag: str,
    *,
    headers: Mapping[str, str] | None = None,
) -> int:
    """Run one agent; return how many answers with status 200 it got."""

    async def post(url: str, body: object) -> dict[str, object] | None:
        try:
            async with session.post(url, json=body, proxy=proxy, headers=headers) as answer:
                return await answer.json() if answer.status == 200 else None
        except (ClientError, TimeoutError, OSError):
            return None

    model = "http://model.lab/v1/chat/completions"
    talk: list[object] = [{"role": "user", "content": f"Pay the account of {tag}"}]
    first = await post(model, {"model": "m", "messages": talk, "tools": TOOLS})
    if first is None:
        return 0
    message = first["choices"][0]["message"]  # type: ignore[index]
    call = message["tool_calls"][0]
    paid = await post("http://tools.lab/pay", json.loads(call["function"]["arguments"]))
    if paid is None:
        return 1
    talk += [message, {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(paid)}]
    last = await post(model, {"model": "m", "messages": talk, "tools": TOOLS})
    return 2 + (last is not None)


class Asker:
    """An agent with one connection, which it keeps until an answer announces its end."""

    def __init__(self, port: int) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, tag: str) -> str | None:
        """Ask the model once; return the answer's `Connection` field."""
        talk = [{"role": "user", "content": f"Pay the account of {tag}"}]
        body = json.dumps({"model": "m", "messages": talk, "tools": TOOLS})
        url, headers = "http://model.lab/v1/chat/completions", {"content-type": "application/json"}
        self._line.request("POST", url, body, headers)
        answer = self._line.getresponse()
        assert (answer.status, tag in answer.read().decode()) == (200, True)
        return answer.getheader("connection")

    def close(self) -> None:
        """End the connection."""
        self._line.close()


def open_session() -> ClientSession:
    """A client without a limit of connections; bounded in time."""
    return ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=60))
