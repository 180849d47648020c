"""The model and the tools of scripted agents, on one real socket."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.support.scripted import react
from tests.support.scripted.data import ScriptedAgent, ScriptedTask
from tests.support.scripted.policy import ModelTurn, answer
from tests.support.scripted.shop import ShopState


class ScriptServer:
    """The served agent's model and its shop, which can be replaced."""

    port: int
    agent: ScriptedAgent
    task: ScriptedTask
    shop: ShopState
    coin: object = False

    def serve(self, agent: ScriptedAgent, task: ScriptedTask) -> ShopState:
        """Serve this agent from now on; return its world."""
        self.agent, self.task, self.shop = agent, task, ShopState(task, agent)
        return self.shop

    def respond(self, path: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.startswith("/tools/"):
            return self.shop.call(path.removeprefix("/tools/"), body)
        completion = _completion(self._turn(body), len(body["messages"]), body["model"])
        [choice] = completion["choices"]
        if self.agent.form == "react" and "tool_calls" in choice["message"]:
            choice |= {"message": react.write_action(choice["message"]), "finish_reason": "stop"}
        return 200, completion

    def _turn(self, body: Mapping[str, Any]) -> ModelTurn:
        messages: Sequence[Mapping[str, Any]] = body["messages"]
        for each in self.agent.then:
            if messages[-1]["content"].startswith(each["ask"]):
                return ModelTurn(each["say"])
        helps = body["model"].endswith("/helper")
        script = self.agent.helper if helps else self.agent.script
        told = [message["content"] for message in messages if message["role"] == "tool"]
        if self.agent.form == "react":
            told = react.list_observations(messages)
        return answer(self.agent, script, self.task.tools, self.coin, told)


def _completion(turn: ModelTurn, nth: int, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.think:
        message["reasoning_content"] = turn.think
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{nth}_{at}",
                "type": "function",
                "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
            }
            for at, call in enumerate(turn.calls)
        ]
    finish = "tool_calls" if turn.calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": f"cmpl-{nth}", "object": "chat.completion", "model": model, "choices": [choice]}


@asynccontextmanager
async def script_server() -> AsyncIterator[ScriptServer]:
    """Run a server on a free port of this machine."""
    serving = ScriptServer()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1"):
                start, *lines = head.strip().split("\r\n")
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                path = "/" + start.split()[1].split("://")[-1].partition("/")[2]
                status, said = serving.respond(path, json.loads(body))
                data = json.dumps(said, ensure_ascii=False).encode()
                head_out = (
                    f"HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\n"
                    f"content-length: {len(data)}\r\n\r\n"
                )
                writer.write(head_out.encode() + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the other side has hung up
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    serving.port = server.sockets[0].getsockname()[1]
    async with server:
        yield serving
