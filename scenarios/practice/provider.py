"""The model server: OpenAI chat completions, streamed and not, answered by `model.py`.

Its log is JSONL, one object per request: what was asked by whom, what was answered, and what
the model noticed, so that a judge can be held against what really happened.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import orjson
import uvloop
from aiohttp import web

from scenarios.practice import conversation
from scenarios.practice.model import SKILLS, next_answer, skill
from scenarios.practice.schema import Json, Row
from scenarios.practice.serving import listening, until_told
from traces.dialects import openai_chat
from traces.step import Answer, Usage

CREATED = 1_773_651_600
"""When the shop's day began: answers are a pure function of the conversation, dates too."""


@dataclass(kw_only=True)
class Provider:
    """A model server's settings, and how many requests it has seen."""

    log: BinaryIO | None = None
    gap: float = 0.0
    """Seconds between the events of a stream."""
    failures: Mapping[int, int] = field(default_factory=dict)
    """HTTP statuses for the nth completion requests, counted from 1."""
    seen: int = 0

    def app(self) -> web.Application:
        """The routes under /v1."""
        app = web.Application(client_max_size=64 << 20)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self._complete),
                web.get("/v1/models", self._models),
            ]
        )
        return app

    async def _models(self, _: web.Request) -> web.Response:
        models = [
            {
                "id": f"practice/{name}",
                "object": "model",
                "created": CREATED,
                "owned_by": "practice",
            }
            for name in (*SKILLS, "p=0.7")
        ]
        return _json({"object": "list", "data": models})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.seen += 1
        if status := self.failures.get(self.seen):
            self._write({"seq": self.seen, "status": status})
            return _refused(status, "told to fail here", code="told_to_fail")
        body = _asked(await request.read())
        if isinstance(body, str):
            return _refused(400, body)
        found = skill(str(body["model"]))
        if found is None:
            message = f"The model `{body['model']}` does not exist"
            return _refused(404, message, param="model", code="model_not_found")
        answer, noticed = next_answer(_rows(body, "messages"), _rows(body, "tools"), found)
        answer = replace(answer, model=str(body["model"]), usage=_usage(body, answer))
        digest = conversation.read(_rows(body, "messages"), {}).digest
        self._write(
            {
                "seq": self.seen,
                "status": 200,
                "conversation": digest,
                "model": body["model"],
                "step": sum(m.get("role") == "assistant" for m in _rows(body, "messages")) + 1,
                "stream": body.get("stream") is True,
                "message": answer.message,
                "calls": [[call.name, call.arguments] for call in answer.calls],
                "noticed": noticed,
            }
        )
        return await self._send(request, body, answer, f"chatcmpl-{digest[:24]}")

    async def _send(
        self, request: web.Request, body: Row, answer: Answer, id: str
    ) -> web.StreamResponse:
        stream = body.get("stream") is True
        if stream and not _wants_usage(body):
            answer = replace(answer, usage=None)
        headers, chunks = openai_chat.write(answer, stream=stream, id=id, created=CREATED)
        if not stream:
            return web.Response(body=chunks[0].data, headers=dict(headers))
        response = web.StreamResponse(headers=dict(headers))
        await response.prepare(request)
        for number, chunk in enumerate(chunks):
            if number and self.gap:
                await asyncio.sleep(self.gap)
            await response.write(chunk.data)
        return response

    def _write(self, entry: Mapping[str, object]) -> None:
        if self.log is not None:
            self.log.write(orjson.dumps(entry) + b"\n")
            self.log.flush()


@asynccontextmanager
async def serving(
    *,
    port: int = 0,
    log: Path | None = None,
    gap: float = 0.0,
    failures: Mapping[int, int] | None = None,
) -> AsyncIterator[int]:
    """A model server in this process; gives the port."""
    with ExitStack() as files:
        file = files.enter_context(log.open("ab")) if log else None
        provider = Provider(log=file, gap=gap, failures=failures or {})
        async with listening(provider.app(), port) as chosen:
            yield chosen


def _asked(data: bytes) -> dict[str, Json] | str:
    """The body of a request, or what is wrong with it."""
    try:
        body = orjson.loads(data)
    except ValueError as error:
        return f"We could not parse the JSON body of your request: {error}"
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        return "you must provide a model parameter"
    messages, tools = body.get("messages"), body.get("tools") or []
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return "'messages' must be an array of objects"
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        return "'tools' must be an array of objects"
    return body


def _rows(body: Row, name: str) -> list[Row]:
    found = body.get(name)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _wants_usage(body: Row) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _usage(body: Row, answer: Answer) -> Usage:
    """Four characters are a token: wrong for every model, the same on every run."""
    prompt = len(orjson.dumps([body["messages"], body.get("tools")]))
    said = len(answer.message) + sum(len(c.name) + len(c.arguments) for c in answer.calls)
    return Usage(prompt_tokens=-(-prompt // 4), completion_tokens=-(-said // 4))


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _refused(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> web.Response:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": kind, "param": param, "code": code}
    return _json({"error": error}, status)


def _failure(text: str) -> tuple[int, int]:
    nth, _, status = text.partition("=")
    return int(nth), int(status)


async def _run(provider: Provider, port: int) -> None:
    await until_told(provider.app(), port)


def main() -> None:
    """Serve until told to end."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.practice.provider", description=__doc__
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, help="append a line per request to this file")
    parser.add_argument("--gap-ms", type=float, default=0.0, help="between events of a stream")
    parser.add_argument(
        "--fail-nth",
        type=_failure,
        action="append",
        default=[],
        metavar="K=STATUS",
        help="answer the Kth request with this status; may be given more than once",
    )
    options = parser.parse_args()
    with ExitStack() as files:
        log = files.enter_context(options.log.open("ab")) if options.log else None
        failures = dict(options.fail_nth)
        provider = Provider(log=log, gap=options.gap_ms / 1000, failures=failures)
        uvloop.run(_run(provider, options.port))


if __name__ == "__main__":
    main()
