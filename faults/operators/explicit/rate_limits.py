"""How an error states when to try again: Retry-After, and each provider's own way.

Wire facts: Retry-After is seconds or a date (RFC 9110, 10.2.3). With 429 OpenAI adds counts and
durations such as `6m0s`, Anthropic counts and times (RFC 3339); Gemini puts `RetryInfo` into the
body. Bedrock, Ollama and Cohere state nothing beside Retry-After.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime

import orjson

from faults.response_body import decode_response_text, replace_response_body
from traces.dialects import find_dialect
from traces.dialects.errors import (
    anthropic_messages_errors,
    find_dialect_errors,
    gemini_errors,
    openai_chat_errors,
    openai_responses_errors,
)
from traces.model import Exchange, Headers, Request

_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_LIMITS = {"requests": 500, "tokens": 200_000}
"""Fabricated limits of a minute."""


def make_retry_header(seconds: int, now: float | None) -> Headers:
    """Return Retry-After in seconds; as a date if `now` is given, in seconds since the epoch."""
    if now is None:
        return (("retry-after", str(seconds)),)
    return (("retry-after", format_datetime(_to_time(now + seconds), usegmt=True)),)


def make_limit_headers(request: Request, seconds: int, now: float) -> Headers:
    """Return the headers of a used up limit as the model's provider sends them; () for others."""
    dialect = find_dialect(request)
    errors = find_dialect_errors(dialect) if dialect is not None else None
    if errors is openai_chat_errors or errors is openai_responses_errors:
        return tuple(_iter_openai_headers(seconds))
    is_anthropic = errors is anthropic_messages_errors
    return tuple(_iter_anthropic_headers(now + seconds)) if is_anthropic else ()


def add_retry_info(exchange: Exchange, seconds: int) -> Exchange:
    """Return a model's error with the delay in its body, if the provider states it there."""
    dialect = find_dialect(exchange.request)
    if dialect is None or find_dialect_errors(dialect) is not gemini_errors:
        return exchange
    value = orjson.loads(decode_response_text(exchange))
    value["error"]["details"] = [{"@type": _RETRY_INFO, "retryDelay": f"{seconds}s"}]
    return replace_response_body(exchange, orjson.dumps(value))


def _iter_openai_headers(seconds: int) -> Iterator[tuple[str, str]]:
    minutes, rest = divmod(seconds, 60)
    reset = f"{minutes}m{rest}s" if minutes else f"{rest}s"
    for what, limit in _LIMITS.items():
        yield f"x-ratelimit-limit-{what}", str(limit)
        yield f"x-ratelimit-remaining-{what}", "0"
        yield f"x-ratelimit-reset-{what}", reset


def _iter_anthropic_headers(at: float) -> Iterator[tuple[str, str]]:
    reset = _to_time(at).strftime("%Y-%m-%dT%H:%M:%SZ")
    for what, limit in _LIMITS.items():
        yield f"anthropic-ratelimit-{what}-limit", str(limit)
        yield f"anthropic-ratelimit-{what}-remaining", "0"
        yield f"anthropic-ratelimit-{what}-reset", reset


def _to_time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
