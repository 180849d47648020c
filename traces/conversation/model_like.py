"""Requests to models in formats that no dialect reads: they are of kind `model`, without steps.

Known routes are told by the end of the path and by fields of the body; anything else by a model's
name beside messages with roles. The host never decides. Without this they would be actions of the
agent in the world, which a fault on tools could hit.
"""

import re
from functools import lru_cache
from urllib.parse import urlsplit

import orjson

from traces.model import Request, find_header

UNKNOWN_API = "a model API that is not known here"
_ROUTES: tuple[tuple[str, re.Pattern[str], tuple[frozenset[str], ...]], ...] = tuple(
    (name, re.compile(path), tuple(frozenset(each.split()) for each in fields))
    for name, path, fields in (
        ("AWS Bedrock Converse", r"/model/[^/]+/converse(-stream)?$", ("messages", "system")),
        ("AWS Bedrock InvokeModel", r"/model/[^/]+/invoke(-with-response-stream)?$", ("",)),
        ("AWS Bedrock CountTokens", r"/model/[^/]+/count-tokens$", ("",)),
        ("Ollama chat", r"/api/chat$", ("model messages",)),
        ("Ollama generate", r"/api/generate$", ("model",)),
        ("Ollama embeddings", r"/api/(embed|embeddings)$", ("model input", "model prompt")),
        ("Cohere chat", r"/v[12]/chat$", ("model messages", "model message", "chat_history")),
        ("Cohere generate", r"/v1/generate$", ("model prompt",)),
        ("Cohere embed", r"/v[12]/embed$", ("model texts", "model images", "model inputs")),
        ("rerank", r"/rerank$", ("query documents",)),
        ("completions", r"/(completions|deployments/[^/]+/completions)$", ("prompt",)),
        ("embeddings", r"/embeddings$", ("input",)),
        ("moderations", r"/v1/moderations$", ("input",)),
        ("images", r"/v1/images/generations$", ("prompt",)),
        ("watsonx", r"/ml/v1/text/\w+$", ("model_id",)),
        (
            "Vertex AI",
            r"/models/[^/]+:(predict|rawPredict|streamRawPredict|serverStreamingPredict)$",
            ("",),
        ),
        (
            "Gemini embeddings and counts",
            r"/models/[^/]+:(embedContent|batchEmbedContents|countTokens)$",
            ("",),
        ),
        ("Replicate", r"/v1/(models/[^/]+/[^/]+/)?predictions$", ("input",)),
    )
)
"""Name, path, and the sets of fields of which the body has one; no field: any body of JSON."""
_ASSISTANTS = re.compile(r"/(assistants|threads|vector_stores)(/.*)?$")
_NAMES = ("model", "model_id", "modelId", "deployment")
_CONTENTS = ("content", "parts", "tool_calls", "text")


def find_model_api(request: Request) -> str | None:
    """Return the name of the model API that a request is to, which no dialect reads; else None."""
    path = urlsplit(request.url).path.rstrip("/")
    if _ASSISTANTS.search(path) and "assistants" in (
        find_header(request.headers, "openai-beta") or ""
    ):
        return "OpenAI assistants"
    if request.method.upper() != "POST":
        return None
    routes = _find_routes(path)
    if not routes and b'"role"' not in request.body:
        return None
    body = _parse_object(request.body)
    if body is None:
        return None
    for name, fields in routes:
        if any(each <= body.keys() for each in fields):
            return name
    return UNKNOWN_API if _has_roles(body) else None


@lru_cache(maxsize=256)
def _find_routes(path: str) -> tuple[tuple[str, tuple[frozenset[str], ...]], ...]:
    """Return the routes that a path fits; an agent calls few paths, each many times."""
    return tuple((name, fields) for name, pattern, fields in _ROUTES if pattern.search(path))


def _parse_object(data: bytes) -> dict[str, object] | None:
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return body if isinstance(body, dict) else None


def _has_roles(body: dict[str, object]) -> bool:
    """Whether a body has a model's name, and a list of messages with roles and content."""
    if not any(isinstance(body.get(name), str) for name in _NAMES):
        return False
    return any(
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(each, dict)
            and isinstance(each.get("role"), str)
            and any(name in each for name in _CONTENTS)
            for each in value
        )
        for value in body.values()
    )
