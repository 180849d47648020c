"""The model server: `scripted_model.py` in several dialects, streamed or not.

OpenAI chat completions, OpenAI responses, Anthropic messages, Gemini's generateContent, Ollama's
own API, Cohere's chat, and AWS Bedrock (Converse, and InvokeModel of Anthropic), also under the
paths of Azure and Vertex AI: each request is converted to a chat, so that the model behaves the
same in every dialect. Responses are also served over a WebSocket (`stored_responses.py`).

The log is JSONL, one object per request: the request's digest, the answer, and what the model
noticed, so that a judge can be checked against the facts.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from copy import replace
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol

import orjson
import uvloop
from aiohttp import WSMessage, WSMsgType, web

from scenarios.practice import conversation
from scenarios.practice.dialects import (
    anthropic_to_chat,
    cohere_to_chat,
    converse_to_chat,
    gemini_to_chat,
    ollama_to_chat,
    responses_to_chat,
    smolagents_to_chat,
)
from scenarios.practice.http_listen import listen_on_loopback, serve_app_until_stopped
from scenarios.practice.real.chat_model import RealChatModel, parse_real_model_name
from scenarios.practice.real.engine import ContextExceeded, InvalidModelRequest
from scenarios.practice.scripted_model import SKILLS, compute_next_answer, parse_model_skill
from scenarios.practice.scripted_solver import SolverOptions
from scenarios.practice.stored_responses import StoredResponses
from scenarios.practice.tools.json_schema import Json, JsonRow
from traces.dialects import (
    anthropic_messages,
    bedrock_anthropic,
    bedrock_converse,
    cohere_chat,
    gemini,
    ollama_chat,
    ollama_generate,
    openai_chat,
    openai_responses,
)
from traces.dialects.types import DialectLens, ModelAnswer, TokenUsage

CREATED_AT = 1_773_651_600
"""The start of the shop's day: answers, including dates, are a pure function of the
conversation.
"""


_NO_PATH_FIELDS: JsonRow = {}
_REFUSALS = {
    ContextExceeded: ("out_of_context", "context_length_exceeded"),
    InvalidModelRequest: ("refused", "invalid_request"),
}
"""Class and error code of requests that a real model cannot answer."""


class _ErrorWriter(Protocol):
    def __call__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> JsonRow: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServedDialect:
    """How to convert a dialect's requests to a chat, and write its answers."""

    lens: DialectLens
    conversation_key: str
    """The field that holds the conversation."""
    id: str
    messages: Callable[[JsonRow], list[JsonRow]]
    tools: Callable[[JsonRow], list[JsonRow]]
    to_error: _ErrorWriter
    defaults: JsonRow = field(default_factory=dict)
    """The fields of a request that has none of these names."""


@dataclass(kw_only=True)
class ModelServer:
    """A model server's settings and its number of requests."""

    log: BinaryIO | None = None
    gap: float = 0.0
    """Seconds between the events of a stream."""
    failures: Mapping[int, int] = field(default_factory=dict)
    """HTTP statuses for the nth completion requests, counted from 1."""
    step_failures: dict[int, int] = field(default_factory=dict)
    """HTTP statuses for the first request of this step of a task."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Alternative model names, each with the served model's name."""
    refused_once: set[str] = field(default_factory=set)
    """Digests of the conversations that were refused once because the model's name requests it."""
    request_count: int = 0
    stored: StoredResponses = field(default_factory=StoredResponses)
    real: RealChatModel | None = None
    """The real model to serve beside the scripted ones."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the real model computes, since it does one thing at a time."""

    def build_app(self) -> web.Application:
        """Build the routes under /v1, and Gemini's under /v1beta."""
        app = web.Application(client_max_size=64 << 20)
        app.add_routes(
            [
                *(
                    web.post(path, partial(self._handle_request, each))
                    for path, each in _DIALECT_PATHS.items()
                ),
                *(
                    web.post(route, partial(self._handle_request, each))
                    for route, each in _MODEL_ROUTES.items()
                ),
                *(web.get(path, _greet_client) for path in _GREETING_PATHS),
                web.get("/v1/models", self._list_models),
                web.get("/v1/responses", self._handle_websocket),
            ]
        )
        return app

    async def _list_models(self, _: web.Request) -> web.Response:
        models = [
            {
                "id": f"practice/{name}",
                "object": "model",
                "created": CREATED_AT,
                "owned_by": "practice",
            }
            for name in (*SKILLS, "p=0.7")
        ]
        if self.real is not None:
            models.append(models[0] | {"id": self.real.name, "owned_by": "real"})
        return _make_json_response({"object": "list", "data": models})

    async def _handle_request(
        self, dialect: _ServedDialect, request: web.Request
    ) -> web.StreamResponse:
        try:
            data = await request.read()
            body, answer, id = await self._compute_in_turn(
                dialect, data, self.stored, _parse_path_fields(request)
            )
        except _RequestRefused as refusal:
            return _make_json_response(refusal.said, refusal.status)
        return await self._send_answer(request, body, answer, dialect, id)

    async def _handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Serve responses over a WebSocket; a connection's conversations are known on it only."""
        stored, socket = StoredResponses(), web.WebSocketResponse(max_msg_size=64 << 20)
        await socket.prepare(request)
        async for message in socket:
            try:
                body, answer, id = await self._compute_in_turn(
                    RESPONSES, _get_websocket_body(message), stored, _NO_PATH_FIELDS
                )
            except _RequestRefused as refusal:
                await socket.send_json({"type": "error", "status": refusal.status, **refusal.said})
                continue
            chunks = openai_responses.write_websocket_turn(answer, id=id, created=CREATED_AT)
            for number, chunk in enumerate(chunks):
                if number and self.gap:
                    await asyncio.sleep(self.gap)
                await socket.send_str(chunk.data.decode())
        return socket

    async def _compute_in_turn(
        self, dialect: _ServedDialect, data: bytes, kept: StoredResponses, by_path: JsonRow
    ) -> tuple[JsonRow, ModelAnswer, str]:
        """Return what `_compute_response` returns, in a thread if a real model may take long."""
        if self.real is None:
            return self._compute_response(dialect, data, kept, by_path)
        async with self.turn:
            return await asyncio.to_thread(self._compute_response, dialect, data, kept, by_path)

    def _compute_response(
        self,
        dialect: _ServedDialect,
        data: bytes,
        kept: StoredResponses,
        by_path: JsonRow,
    ) -> tuple[JsonRow, ModelAnswer, str]:
        """Return the request with its full conversation, the answer and its id.

        `by_path` holds the fields that the request's path sets in place of the body. Raises
        _RequestRefused.
        """
        self.request_count += 1
        entry = {"seq": self.request_count, "request": sha256(data).hexdigest()}
        if status := self.failures.get(self.request_count):
            raise self._build_failure(entry, dialect, status)
        parsed = _parse_request_body(data, dialect, by_path)
        if isinstance(parsed, str):
            self._write_log({**entry, "status": 400})
            raise _RequestRefused(400, dialect.to_error(400, parsed))
        try:
            body = kept.complete_request(parsed) if dialect is RESPONSES else parsed
        except LookupError as error:
            raise _RequestRefused(
                400,
                dialect.to_error(
                    400,
                    str(error.args[0]),
                    param="previous_response_id",
                    code="previous_response_not_found",
                ),
            ) from None
        if self.real is not None and self._serves_real(body):
            return self._compute_real_response(self.real, dialect, body, entry)
        skill = parse_model_skill(self.aliases.get(str(body["model"]), str(body["model"])))
        if skill is None:
            self._write_log({**entry, "status": 404})
            message = f"The model `{body['model']}` does not exist"
            raise _RequestRefused(
                404, dialect.to_error(404, message, param="model", code="model_not_found")
            )
        messages, tools = dialect.messages(body), dialect.tools(body)
        if body.get("generate") is False:
            digest = conversation.read_chat_messages(messages, {}).digest
            id = f"{dialect.id}{digest[:23]}w"
            kept.store_response(id, body, [])
            return body, ModelAnswer(model=str(body["model"])), id
        answer, noticed = compute_next_answer(messages, tools, skill)
        step = sum(m.get("role") == "assistant" for m in messages) + 1
        if tools and (status := self.step_failures.pop(step, None)):
            raise self._build_failure(entry, dialect, status)
        answer = replace(
            answer, model=str(body["model"]), usage=_estimate_usage(messages, tools, answer)
        )
        digest = conversation.read_chat_messages(messages, {}).digest
        if tools and skill.solver_options is not None:
            self._raise_requested_trouble(
                skill.solver_options, entry, dialect, (digest, step, answer.usage)
            )
        id = f"{dialect.id}{digest[:24]}"
        self._write_log(
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
        if dialect is RESPONSES and (kept is not self.stored or body.get("store") is not False):
            _, chunks = openai_responses.write_model_answer(
                answer, stream=False, id=id, created=CREATED_AT
            )
            kept.store_response(id, body, orjson.loads(chunks[0].data)["output"])
        return body, answer, id

    def _serves_real(self, body: JsonRow) -> bool:
        named = parse_real_model_name(str(body["model"]))
        return self.real is not None and named is not None and named.name == self.real.name

    def _compute_real_response(
        self,
        real: RealChatModel,
        dialect: _ServedDialect,
        body: JsonRow,
        entry: Mapping[str, object],
    ) -> tuple[JsonRow, ModelAnswer, str]:
        """Return the real model's answer; raise _RequestRefused if it cannot take the request."""
        messages, tools = dialect.messages(body), dialect.tools(body)
        try:
            reply = real.answer(body, messages, tools)
        except (ContextExceeded, InvalidModelRequest) as error:
            kind, code = _REFUSALS[type(error)]
            real.classes[kind] += 1
            self._write_log({**entry, "status": 400, "class": kind})
            raise _RequestRefused(400, dialect.to_error(400, str(error), code=code)) from None
        answer = replace(reply.answer, model=str(body["model"]))
        id = f"{dialect.id}{sha256(orjson.dumps([entry, body])).hexdigest()[:24]}"
        self._write_log(
            {
                **entry,
                "status": 200,
                "id": id,
                "model": body["model"],
                "stream": body.get("stream") is True,
                "message": answer.message,
                "calls": [[call.name, call.arguments] for call in answer.calls],
                "call_ids": [call.id for call in answer.calls],
                "class": reply.kind,
            }
        )
        return body, answer, id

    def _raise_requested_trouble(
        self,
        asked: SolverOptions,
        entry: Mapping[str, object],
        dialect: _ServedDialect,
        turn: tuple[str, int, TokenUsage | None],
    ) -> None:
        """Raise the refusals that a solver's name requests: context too long, or busy once."""
        digest, step, usage = turn
        if (
            asked.context_tokens is not None
            and usage
            and (usage.prompt_tokens or 0) > asked.context_tokens
        ):
            self._write_log({**entry, "status": 400})
            message = f"Range of input length should be [1, {asked.context_tokens}]"
            raise _RequestRefused(
                400, dialect.to_error(400, message, code="invalid_parameter_error")
            )
        if asked.busy_turn == step and digest not in self.refused_once:
            self.refused_once.add(digest)
            raise self._build_failure(entry, dialect, 429)

    def _build_failure(
        self, entry: Mapping[str, object], dialect: _ServedDialect, status: int
    ) -> "_RequestRefused":
        self._write_log({**entry, "status": status})
        return _RequestRefused(
            status, dialect.to_error(status, "told to fail here", code="told_to_fail")
        )

    async def _send_answer(
        self,
        request: web.Request,
        body: JsonRow,
        answer: ModelAnswer,
        dialect: _ServedDialect,
        id: str,
    ) -> web.StreamResponse:
        stream = body.get("stream") is True
        if stream and dialect is CHAT and not _wants_usage(body):
            answer = replace(answer, usage=None)
        headers, chunks = dialect.lens.write_model_answer(
            answer, stream=stream, id=id, created=CREATED_AT
        )
        if not stream:
            return web.Response(body=chunks[0].data, headers=dict(headers))
        response = web.StreamResponse(headers=dict(headers))
        await response.prepare(request)
        for number, chunk in enumerate(chunks):
            if number and self.gap:
                await asyncio.sleep(self.gap)
            await response.write(chunk.data)
        return response

    def _write_log(self, entry: Mapping[str, object]) -> None:
        if self.log is not None:
            self.log.write(orjson.dumps(entry) + b"\n")
            self.log.flush()


@asynccontextmanager
async def serve_model(
    *,
    port: int = 0,
    log: Path | None = None,
    gap: float = 0.0,
    failures: Mapping[int, int] | None = None,
    real: RealChatModel | None = None,
) -> AsyncIterator[int]:
    """Run a model server in this process; yield the port."""
    with ExitStack() as files:
        file = files.enter_context(log.open("ab")) if log else None
        provider = ModelServer(log=file, gap=gap, failures=failures or {}, real=real)
        async with listen_on_loopback(provider.build_app(), port) as chosen:
            yield chosen


def _parse_path_fields(request: web.Request) -> JsonRow:
    """Return the model and the stream flag, if the path has them."""
    path_fields = request.match_info
    if "model" not in path_fields:
        return _NO_PATH_FIELDS
    method = path_fields.get("method")
    streams: JsonRow = {} if method is None else {"stream": "stream" in method}
    return {"model": path_fields["model"], **streams}


def _parse_request_body(
    data: bytes, dialect: _ServedDialect, by_path: JsonRow
) -> dict[str, Json] | str:
    """Return the parsed body of a request, or an error message."""
    said = dialect.conversation_key
    try:
        body = orjson.loads(data)
    except ValueError as error:
        return f"We could not parse the JSON body of your request: {error}"
    if isinstance(body, dict):
        body = {**dialect.defaults, **body, **by_path}
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        return "you must provide a model parameter"
    messages, tools = body.get(said), body.get("tools") or []
    tools = [tools] if isinstance(tools, dict) else tools
    if said in ("input", "prompt") and isinstance(messages, str):
        messages = []
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return f"'{said}' must be an array of objects"
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        return "'tools' must be an array of objects"
    return body


def _get_websocket_body(message: WSMessage) -> bytes:
    """Return the request in a message; any other message becomes an empty body, which is
    refused.
    """
    if message.type is WSMsgType.TEXT and '"response.create"' in message.data:
        return str(message.data).encode()
    return b"{}"


class _RequestRefused(Exception):
    """A refusal with the error body of the dialect."""

    def __init__(self, status: int, said: JsonRow) -> None:
        super().__init__(status)
        self.status, self.said = status, said


def _get_object_list(body: JsonRow, name: str) -> list[JsonRow]:
    rows = body.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _wants_usage(body: JsonRow) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _estimate_usage(
    messages: list[JsonRow], tools: list[JsonRow], answer: ModelAnswer
) -> TokenUsage:
    """Count four characters as a token: inexact for every model, deterministic on every run."""
    prompt = len(orjson.dumps([messages, tools]))
    completion = len(answer.message) + sum(len(c.name) + len(c.arguments) for c in answer.calls)
    return TokenUsage(prompt_tokens=-(-prompt // 4), completion_tokens=-(-completion // 4))


def _make_json_response(value: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _to_openai_error(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> JsonRow:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


CHAT = _ServedDialect(
    lens=openai_chat,
    conversation_key="messages",
    id="chatcmpl-",
    messages=lambda body: smolagents_to_chat.convert_smolagents_messages(
        _get_object_list(body, "messages")
    ),
    tools=partial(_get_object_list, name="tools"),
    to_error=_to_openai_error,
)
RESPONSES = _ServedDialect(
    lens=openai_responses,
    conversation_key="input",
    id="resp_",
    messages=responses_to_chat.convert_responses_messages,
    tools=responses_to_chat.convert_responses_tools,
    to_error=_to_openai_error,
)
ANTHROPIC = _ServedDialect(
    lens=anthropic_messages,
    conversation_key="messages",
    id="msg_",
    messages=anthropic_to_chat.convert_anthropic_messages,
    tools=anthropic_to_chat.convert_anthropic_tools,
    to_error=anthropic_to_chat.to_anthropic_error,
)
GEMINI = _ServedDialect(
    lens=gemini,
    conversation_key="contents",
    id="gen-",
    messages=gemini_to_chat.convert_gemini_messages,
    tools=gemini_to_chat.convert_gemini_tools,
    to_error=gemini_to_chat.to_gemini_error,
)
OLLAMA_CHAT = _ServedDialect(
    lens=ollama_chat,
    conversation_key="messages",
    id="ollama-",
    messages=ollama_to_chat.convert_ollama_messages,
    tools=partial(_get_object_list, name="tools"),
    to_error=ollama_to_chat.to_ollama_error,
    defaults={"stream": True},
)
OLLAMA_GENERATE = replace(
    OLLAMA_CHAT,
    lens=ollama_generate,
    conversation_key="prompt",
    messages=ollama_to_chat.convert_prompt,
)
CONVERSE = _ServedDialect(
    lens=bedrock_converse,
    conversation_key="messages",
    id="",
    messages=converse_to_chat.convert_converse_messages,
    tools=converse_to_chat.convert_converse_tools,
    to_error=converse_to_chat.to_bedrock_error,
)
COHERE = _ServedDialect(
    lens=cohere_chat,
    conversation_key="messages",
    id="cohere-",
    messages=cohere_to_chat.convert_cohere_messages,
    tools=partial(_get_object_list, name="tools"),
    to_error=cohere_to_chat.to_cohere_error,
)
_MODEL_ROUTES = {
    gemini_to_chat.MODELS_ROUTE: GEMINI,
    gemini_to_chat.VERTEX_ROUTE: GEMINI,
    anthropic_to_chat.VERTEX_ROUTE: ANTHROPIC,
    "/openai/deployments/{model}/chat/completions": CHAT,
    converse_to_chat.MODELS_ROUTE: CONVERSE,
    converse_to_chat.INVOKE_ROUTE: replace(
        ANTHROPIC, lens=bedrock_anthropic, to_error=converse_to_chat.to_bedrock_error
    ),
}
"""Paths that name the model."""
_DIALECT_PATHS = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": ANTHROPIC,
    "/openai/v1/chat/completions": CHAT,
    "/v2/chat": COHERE,
    "/api/chat": OLLAMA_CHAT,
    "/api/generate": OLLAMA_GENERATE,
}


_GREETING_PATHS = ("/api/hello", "/v1/oauth/hello")
"""What Claude Code asks for before its first start at a terminal goes on."""


async def _greet_client(_: web.Request) -> web.Response:
    return _make_json_response({"message": "hello"})


def _parse_failure_option(text: str) -> tuple[int, int]:
    nth, _, status = text.partition("=")
    return int(nth), int(status)


def _parse_alias_option(text: str) -> tuple[str, str]:
    name, _, model = text.partition("=")
    return name, model


async def _run_model_server(provider: ModelServer, port: int, tls: Path | None) -> None:
    await serve_app_until_stopped(provider.build_app(), port, tls=tls)


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.practice.model_server", description=__doc__
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, help="append a line per request to this file")
    parser.add_argument("--gap-ms", type=float, default=0.0, help="between events of a stream")
    parser.add_argument(
        "--fail-nth",
        type=_parse_failure_option,
        action="append",
        default=[],
        metavar="K=STATUS",
        help="answer the Kth request with this status; may be given more than once",
    )
    parser.add_argument(
        "--fail-step",
        type=_parse_failure_option,
        action="append",
        default=[],
        metavar="K=STATUS",
        help="answer the first request for step K of a task with this status",
    )
    parser.add_argument(
        "--name",
        type=_parse_alias_option,
        action="append",
        default=[],
        metavar="NAME=MODEL",
        help="serve a model under another name too, for clients that know the names there are",
    )
    parser.add_argument("--tls", type=Path, help="PEM file with key and certificate; else no TLS")
    options = parser.parse_args()
    with ExitStack() as files:
        log = files.enter_context(options.log.open("ab")) if options.log else None
        provider = ModelServer(
            log=log,
            gap=options.gap_ms / 1000,
            failures=dict(options.fail_nth),
            step_failures=dict(options.fail_step),
            aliases=dict(options.name),
        )
        uvloop.run(_run_model_server(provider, options.port, options.tls))


if __name__ == "__main__":
    main()
