"""The model server, in four dialects, streamed and not, answered by `model.py`.

OpenAI chat completions, OpenAI responses, Anthropic messages and Gemini's generateContent: each
request is told as a chat, so that the model is the same whoever asks and in whatever dialect.
Responses are served over a WebSocket too (kept.py).

Its log is JSONL, one object per request: what was asked by whom, what was answered, and what
the model noticed, so that a judge can be held against what really happened.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol

import orjson
import uvloop
from aiohttp import WSMessage, WSMsgType, web

from scenarios.practice import as_anthropic, as_gemini, as_observed, as_responses, conversation
from scenarios.practice.kept import Kept
from scenarios.practice.model import SKILLS, next_answer, skill
from scenarios.practice.schema import Json, Row
from scenarios.practice.serving import listening, until_told
from scenarios.practice.solver import Solving
from traces.dialects import anthropic_messages, gemini, openai_chat, openai_responses
from traces.step import Answer, Lens, Usage

CREATED = 1_773_651_600
"""When the shop's day began: answers are a pure function of the conversation, dates too."""


_NOTHING: Row = {}


class _Refused(Protocol):
    def __call__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> Row: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """How requests in a dialect are read as a chat, and answers written."""

    lens: Lens
    said: str
    """The field that holds the conversation."""
    id: str
    messages: Callable[[Row], list[Row]]
    tools: Callable[[Row], list[Row]]
    refused: _Refused


@dataclass(kw_only=True)
class Provider:
    """A model server's settings, and how many requests it has seen."""

    log: BinaryIO | None = None
    gap: float = 0.0
    """Seconds between the events of a stream."""
    failures: Mapping[int, int] = field(default_factory=dict)
    """HTTP statuses for the nth completion requests, counted from 1."""
    stumbles: dict[int, int] = field(default_factory=dict)
    """HTTP statuses for the first request in which the model is to take this step of a task."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Other names that models are asked for by, each with the model's own."""
    busy: set[str] = field(default_factory=set)
    """The conversations that were refused once because their model asks for it."""
    seen: int = 0
    kept: Kept = field(default_factory=Kept)

    def app(self) -> web.Application:
        """The routes under /v1, and Gemini's under /v1beta."""
        app = web.Application(client_max_size=64 << 20)
        app.add_routes(
            [
                *(web.post(path, partial(self._answer, each)) for path, each in _PATHS.items()),
                web.post(as_gemini.MODELS, partial(self._answer, GEMINI)),
                web.get("/v1/models", self._models),
                web.get("/v1/responses", self._talk),
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

    async def _answer(self, dialect: _Dialect, request: web.Request) -> web.StreamResponse:
        try:
            data = await request.read()
            body, answer, id = self._think(dialect, data, self.kept, _by_path(request))
        except _No as no:
            return _json(no.said, no.status)
        return await self._send(request, body, answer, dialect, id)

    async def _talk(self, request: web.Request) -> web.WebSocketResponse:
        """Responses over a WebSocket: what was said on a connection is known there only."""
        kept, socket = Kept(), web.WebSocketResponse(max_msg_size=64 << 20)
        await socket.prepare(request)
        async for message in socket:
            try:
                body, answer, id = self._think(RESPONSES, _turn(message), kept)
            except _No as no:
                await socket.send_json({"type": "error", "status": no.status, **no.said})
                continue
            chunks = openai_responses.write_turn(answer, id=id, created=CREATED)
            for number, chunk in enumerate(chunks):
                if number and self.gap:
                    await asyncio.sleep(self.gap)
                await socket.send_str(chunk.data.decode())
        return socket

    def _think(
        self, dialect: _Dialect, data: bytes, kept: Kept, by_path: Row = _NOTHING
    ) -> tuple[Row, Answer, str]:
        """The request with its whole conversation, the answer and its id; _No with a refusal.

        `by_path` is what the request says by its path, of what others say in the body.
        """
        self.seen += 1
        entry = {"seq": self.seen, "request": sha256(data).hexdigest()}
        if status := self.failures.get(self.seen):
            raise self._failed(entry, dialect, status)
        asked = _asked(data, dialect.said, by_path)
        if isinstance(asked, str):
            self._write({**entry, "status": 400})
            raise _No(400, dialect.refused(400, asked))
        try:
            body = kept.whole(asked) if dialect is RESPONSES else asked
        except LookupError as error:
            raise _No(
                400,
                dialect.refused(
                    400,
                    str(error.args[0]),
                    param="previous_response_id",
                    code="previous_response_not_found",
                ),
            ) from None
        found = skill(self.names.get(str(body["model"]), str(body["model"])))
        if found is None:
            self._write({**entry, "status": 404})
            message = f"The model `{body['model']}` does not exist"
            raise _No(404, dialect.refused(404, message, param="model", code="model_not_found"))
        messages, tools = dialect.messages(body), dialect.tools(body)
        if body.get("generate") is False:
            digest = conversation.read(messages, {}).digest
            id = f"{dialect.id}{digest[:23]}w"
            kept.keep(id, body, [])
            return body, Answer(model=str(body["model"])), id
        answer, noticed = next_answer(messages, tools, found)
        step = sum(m.get("role") == "assistant" for m in messages) + 1
        if tools and (status := self.stumbles.pop(step, None)):
            raise self._failed(entry, dialect, status)
        answer = replace(answer, model=str(body["model"]), usage=_usage(messages, tools, answer))
        digest = conversation.read(messages, {}).digest
        if tools and found.solving is not None:
            self._troubled(found.solving, entry, dialect, (digest, step, answer.usage))
        id = f"{dialect.id}{digest[:24]}"
        self._write(
            {
                **entry,
                "status": 200,
                "id": id,
                "conversation": digest,
                "model": body["model"],
                "step": step,
                "stream": body.get("stream") is True,
                "message": answer.message,
                "calls": [[call.name, call.arguments] for call in answer.calls],
                "call_ids": [call.id for call in answer.calls],
                "noticed": noticed,
            }
        )
        if dialect is RESPONSES and (kept is not self.kept or body.get("store") is not False):
            _, chunks = openai_responses.write(answer, stream=False, id=id, created=CREATED)
            kept.keep(id, body, orjson.loads(chunks[0].data)["output"])
        return body, answer, id

    def _troubled(
        self,
        asked: Solving,
        entry: Mapping[str, object],
        dialect: _Dialect,
        turn: tuple[str, int, Usage | None],
    ) -> None:
        """The troubles that a solver's name asks for: too long, or busy for once."""
        digest, step, usage = turn
        if asked.context is not None and usage and (usage.prompt_tokens or 0) > asked.context:
            self._write({**entry, "status": 400})
            message = f"Range of input length should be [1, {asked.context}]"
            raise _No(400, dialect.refused(400, message, code="invalid_parameter_error"))
        if asked.busy == step and digest not in self.busy:
            self.busy.add(digest)
            raise self._failed(entry, dialect, 429)

    def _failed(self, entry: Mapping[str, object], dialect: _Dialect, status: int) -> "_No":
        self._write({**entry, "status": status})
        return _No(status, dialect.refused(status, "told to fail here", code="told_to_fail"))

    async def _send(
        self, request: web.Request, body: Row, answer: Answer, dialect: _Dialect, id: str
    ) -> web.StreamResponse:
        stream = body.get("stream") is True
        if stream and dialect is CHAT and not _wants_usage(body):
            answer = replace(answer, usage=None)
        headers, chunks = dialect.lens.write(answer, stream=stream, id=id, created=CREATED)
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


def _by_path(request: web.Request) -> Row:
    """The model and whether it streams, where the path says so."""
    found = request.match_info
    if "model" not in found:
        return _NOTHING
    return {"model": found["model"], "stream": found["method"].startswith("stream")}


def _asked(data: bytes, said: str, by_path: Row) -> dict[str, Json] | str:
    """The body of a request, or what is wrong with it."""
    try:
        body = orjson.loads(data)
    except ValueError as error:
        return f"We could not parse the JSON body of your request: {error}"
    if isinstance(body, dict):
        body |= by_path
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        return "you must provide a model parameter"
    messages, tools = body.get(said), body.get("tools") or []
    tools = [tools] if isinstance(tools, dict) else tools
    if said == "input" and isinstance(messages, str):
        messages = []
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return f"'{said}' must be an array of objects"
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        return "'tools' must be an array of objects"
    return body


def _turn(message: WSMessage) -> bytes:
    """The request in a message; what is none ends in a refusal of what it lacks."""
    if message.type is WSMsgType.TEXT and '"response.create"' in message.data:
        return str(message.data).encode()
    return b"{}"


class _No(Exception):
    """A refusal, as the dialect says it."""

    def __init__(self, status: int, said: Row) -> None:
        super().__init__(status)
        self.status, self.said = status, said


def _rows(body: Row, name: str) -> list[Row]:
    found = body.get(name)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _wants_usage(body: Row) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _usage(messages: list[Row], tools: list[Row], answer: Answer) -> Usage:
    """Four characters are a token: wrong for every model, the same on every run."""
    prompt = len(orjson.dumps([messages, tools]))
    said = len(answer.message) + sum(len(c.name) + len(c.arguments) for c in answer.calls)
    return Usage(prompt_tokens=-(-prompt // 4), completion_tokens=-(-said // 4))


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _refused(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> Row:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


CHAT = _Dialect(
    lens=openai_chat,
    said="messages",
    id="chatcmpl-",
    messages=lambda body: as_observed.messages(_rows(body, "messages")),
    tools=partial(_rows, name="tools"),
    refused=_refused,
)
RESPONSES = _Dialect(
    lens=openai_responses,
    said="input",
    id="resp_",
    messages=as_responses.messages,
    tools=as_responses.tools,
    refused=_refused,
)
ANTHROPIC = _Dialect(
    lens=anthropic_messages,
    said="messages",
    id="msg_",
    messages=as_anthropic.messages,
    tools=as_anthropic.tools,
    refused=as_anthropic.refused,
)
GEMINI = _Dialect(
    lens=gemini,
    said="contents",
    id="gen-",
    messages=as_gemini.messages,
    tools=as_gemini.tools,
    refused=as_gemini.refused,
)
_PATHS = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": ANTHROPIC}


def _failure(text: str) -> tuple[int, int]:
    nth, _, status = text.partition("=")
    return int(nth), int(status)


def _named(text: str) -> tuple[str, str]:
    name, _, model = text.partition("=")
    return name, model


async def _run(provider: Provider, port: int, tls: Path | None) -> None:
    await until_told(provider.app(), port, tls=tls)


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
    parser.add_argument(
        "--fail-step",
        type=_failure,
        action="append",
        default=[],
        metavar="K=STATUS",
        help="answer the first request for step K of a task with this status",
    )
    parser.add_argument(
        "--name",
        type=_named,
        action="append",
        default=[],
        metavar="NAME=MODEL",
        help="serve a model under another name too, for clients that know the names there are",
    )
    parser.add_argument("--tls", type=Path, help="PEM file with key and certificate; else no TLS")
    options = parser.parse_args()
    with ExitStack() as files:
        log = files.enter_context(options.log.open("ab")) if options.log else None
        provider = Provider(
            log=log,
            gap=options.gap_ms / 1000,
            failures=dict(options.fail_nth),
            stumbles=dict(options.fail_step),
            names=dict(options.name),
        )
        uvloop.run(_run(provider, options.port, options.tls))


if __name__ == "__main__":
    main()
