"""The program around a scripted model: a plain tool loop over HTTP."""

import json
from collections.abc import Mapping
from typing import Any

import httpx

from recorder.agent.process import AgentExit
from tests.support.scripted import react
from tests.support.scripted.data import ScriptedAgent
from tests.support.scripted.server import ScriptServer

type Messages = list[dict[str, Any]]


class ToolDied(Exception):
    """The program gives up at the first error of a tool."""


class ScriptedLaunch:
    """Starts a scripted agent in this process, behind the proxy that its environment names."""

    warm = True
    cwd = None

    def __init__(self, server: ScriptServer, agent: ScriptedAgent) -> None:
        self.command = ("scripted", agent.name)
        self._server, self._agent = server, agent

    async def __call__(self, env: Mapping[str, str], **_: object) -> AgentExit:
        limits = {"timeout": 20, "trust_env": False, "verify": False}
        async with httpx.AsyncClient(proxy=env["HTTP_PROXY"], **limits) as http:  # type: ignore[arg-type]
            program = AgentProgram(http, self._server, self._agent)
            try:
                return AgentExit(code=await program.run())
            except ToolDied:
                return AgentExit(code=1)


class AgentProgram:
    """One run of a program."""

    def __init__(self, http: httpx.AsyncClient, server: ScriptServer, agent: ScriptedAgent) -> None:
        self._http, self._server, self._agent = http, server, agent
        self._url = f"http://127.0.0.1:{server.port}"

    async def run(self) -> int:
        """Return the exit status."""
        agent, prompt = self._agent, self._server.task.prompt
        messages: Messages = [{"role": "user", "content": prompt}]
        said = await self._converse(agent.name, messages, agent.max_turns)
        for each in agent.then if said is not None else ():
            new: Messages = [{"role": "user", "content": each["ask"] + "\n\n" + prompt}]
            if each["lane"] == "same":
                new = [*messages, {"role": "user", "content": each["ask"]}]
            await self._ask(agent.name, new)
        if agent.exit_on and agent.exit_on["text"] in (said or ""):
            return int(agent.exit_on["code"])
        return agent.exit

    async def _converse(self, model: str, messages: Messages, turns: int) -> str | None:
        """Return the final answer; None if the turns ran out."""
        for _ in range(turns):
            message = await self._ask(model, messages)
            kept = {k: v for k, v in message.items() if k != "reasoning_content"}
            messages.append(kept)
            if not message.get("tool_calls"):
                return str(message.get("content") or "")
            for call in message["tool_calls"]:
                text = await self._call(call["function"]["name"], call["function"]["arguments"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        return None

    async def _ask(self, model: str, messages: Messages) -> dict[str, Any]:
        as_text = self._agent.form == "react"
        sent = react.to_text_messages(messages) if as_text else messages
        body = {"model": model, "messages": sent}
        answer = await self._http.post(f"{self._url}/v1/chat/completions", json=body)
        message: dict[str, Any] = answer.json()["choices"][0]["message"]
        return react.read_action(message) if as_text else message

    async def _call(self, tool: str, arguments: str) -> str:
        document = json.loads(arguments)
        if tool == "delegate":
            system = {"role": "system", "content": "Find out what is asked."}
            task = {"role": "user", "content": document["task"]}
            return await self._converse(f"{self._agent.name}/helper", [system, task], 6) or ""
        if tool in self._server.task.local:
            return json.dumps(self._server.shop.call(tool, document)[1])
        try:
            answer = await self._http.post(f"{self._url}/tools/{tool}", json=document)
            text = answer.text if answer.is_success else f"HTTP {answer.status_code}: {answer.text}"
        except httpx.HTTPError as error:
            text = f"HTTP error: {type(error).__name__}"
        if self._agent.on_error == "die" and text.startswith("HTTP "):
            raise ToolDied(text)
        return text
