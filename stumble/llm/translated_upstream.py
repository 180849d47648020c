"""Live model requests of a run, answered by a model of another provider.

A request in the recorded provider's dialect is translated by litellm, sent with the key of the
environment (`ANTHROPIC_API_KEY`), and its answer is translated back, so that the agent sees the API
that it speaks. All other requests go where they name. The answer is passed on when it is whole: its
pieces have the form of a stream, not its times.

What a provider made for itself alone is left out of what is sent: reasoning with signatures or
encrypted content, cache marks, account settings. `find_untranslatable_keys` names it.
"""

import json
import time
from collections.abc import Mapping
from copy import replace

from msgspec import Struct, field

from recorder.proxy.http1_response import AnswerEnd
from recorder.proxy.origin_connection import TakePart
from recorder.proxy.upstream import AgentLine, ChunkCallback, HeadCallback, UpstreamClient
from stumble.llm.client import MODEL_REQUEST_FIELDS, LitellmClient
from stumble.llm.model_choice import ModelChoice
from traces.dialects import find_dialect
from traces.model import Chunk, Exchange, Request, Response, find_header

ANSWER_TIMEOUT = 600.0
"""Seconds for the head of an answer, and between two of its pieces."""
_STREAM_FIELDS = frozenset(("stream", "stream_options"))
_OWN_BLOCKS = frozenset(("thinking", "redacted_thinking", "reasoning"))
"""Types of blocks and items that only the provider that wrote them accepts."""
_BLOCK_LISTS = frozenset(("messages", "input", "system", "tools"))
_OWN_KEYS = frozenset(("cache_control", "encrypted_content", "signature"))


class TranslatedUpstream:
    """An upstream client that asks another provider's model, in front of the usual one."""

    def __init__(self, inner: UpstreamClient, model: ModelChoice, began: float) -> None:
        self._inner, self._began = inner, began
        self._client = LitellmClient(f"{model.provider}/{model.name}", timeout=ANSWER_TIMEOUT)

    def attach(self, line: AgentLine) -> None:
        self._inner.attach(line)

    def release(self, line: AgentLine, *, reset: bool) -> None:
        self._inner.release(line, reset=reset)

    async def relay(self, exchange: Exchange, version: str, take: TakePart) -> AnswerEnd:
        if (translated := translate_request(exchange.forwarded)) is None:
            return await self._inner.relay(exchange, version, take)
        return AnswerEnd(None, instead=await self._answer(translated))

    async def send(self, exchange: Exchange, head: HeadCallback, chunk: ChunkCallback) -> Exchange:
        if (translated := translate_request(exchange.forwarded)) is None:
            return await self._inner.send(exchange, head, chunk)
        answer = await self._answer(translated)
        head(replace(answer, chunks=(), ended=None))
        for each in answer.chunks:
            if (pending := chunk(each)) is not None:
                await pending
        return replace(exchange, response=answer)

    async def _answer(self, request: "TranslatedRequest") -> Response:
        """Return the translated answer, or the error in the agent's dialect."""
        from openai import OpenAIError

        pieces, at = list[Chunk](), None
        status, failure = 200, None
        try:
            async for data in self._client.answer_request(request.dialect, request.arguments):
                at = at or self._now()
                pieces.append(Chunk(at=self._now(), data=data))
        except TimeoutError:
            status, failure = 504, f"no answer for {ANSWER_TIMEOUT:g} s"
        except (OpenAIError, ValueError) as error:
            # litellm gives the provider's status; without one its own translation failed.
            status = int(getattr(error, "status_code", None) or 502)
            failure = f"{type(error).__name__}: {error}".splitlines()[0]
        if failure is not None:
            return _make_error_answer(request.dialect, status, failure, self._now())
        kind = "text/event-stream" if request.streams else "application/json"
        return Response(
            status=200,
            reason="OK",
            headers=(("content-type", kind),),
            chunks=tuple(pieces),
            at=at or self._now(),
            ended=self._now(),
        )

    def _now(self) -> float:
        return time.monotonic() - self._began


class TranslatedRequest(Struct, frozen=True):
    """A model request as arguments of litellm."""

    dialect: str
    arguments: Mapping[str, object]
    left_out: tuple[str, ...] = field(default=())
    """What the other provider does not get, sorted."""

    @property
    def streams(self) -> bool:
        """Whether the agent asked for a stream."""
        return bool(self.arguments.get("stream"))


def translate_request(request: Request) -> TranslatedRequest | None:
    """Return a model request without what only its own provider accepts; None for any other."""
    encoding = find_header(request.headers, "content-encoding")
    lens = find_dialect(request)
    if lens is None or lens.NAME not in MODEL_REQUEST_FIELDS or encoding not in (None, "identity"):
        return None
    try:
        body = json.loads(request.body)
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    wanted = MODEL_REQUEST_FIELDS[lens.NAME] | _STREAM_FIELDS
    left_out = {key for key in body if key not in wanted and key != "model"}
    kept = {key: value for key, value in body.items() if key in wanted}
    for key in _BLOCK_LISTS & kept.keys():
        kept[key] = _strip_blocks(kept[key], left_out)
    return TranslatedRequest(lens.NAME, kept, tuple(sorted(left_out)))


def find_untranslatable_keys(request: Request) -> tuple[str, ...]:
    """Return the members and blocks of a request that another provider does not get, sorted."""
    translated = translate_request(request)
    return translated.left_out if translated else ()


def _strip_blocks(value: object, left_out: set[str]) -> object:
    """Return messages, items or blocks without those, and without keys, of one provider alone.

    Goes down through `content` only: arguments and schemas of tools are the user's. A message of
    which nothing is left is left out. Names of what is gone go to `left_out`.
    """
    if not isinstance(value, list):
        return value
    kept = list[object]()
    for each in value:
        if not isinstance(each, dict):
            kept.append(each)
        elif each.get("type") in _OWN_BLOCKS:
            left_out.add(str(each["type"]))
        else:
            left_out |= each.keys() & _OWN_KEYS
            block = {key: part for key, part in each.items() if key not in _OWN_KEYS}
            if (content := each.get("content")) and "content" in block:
                block["content"] = _strip_blocks(content, left_out)
            if not content or block["content"]:
                kept.append(block)
    return kept


def _make_error_answer(dialect: str, status: int, message: str, at: float) -> Response:
    """Make an error as the agent's own provider would send it."""
    message = f"stumble, another provider's model: {message}"
    error: dict[str, object] = {"type": "api_error", "message": message}
    body: dict[str, object] = {"error": error | {"param": None, "code": None}}
    if dialect == "anthropic_messages":
        body = {"type": "error", "error": error}
    data = json.dumps(body).encode()
    return Response(
        status=status,
        headers=(("content-type", "application/json"),),
        chunks=(Chunk(at=at, data=data),),
        at=at,
        ended=at,
    )
