"""A litellm client that retries transient errors and raises AgentStopped on permanent ones.

litellm's own retries are off, because they are invisible and ignore the budget. Its errors are
those of the openai SDK, whose status tells transient from permanent. A conversation that is too
long is recognised by the error's text, which each provider words itself; litellm maps only some.
"""

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.agents.budget import AgentBudget
from scenarios.agents.errors import AgentStopped

type LLMMessage = dict[str, Any]
"""A message in the format of OpenAI chat completions, for every provider."""

TRIES = 6
ANSWER_SECONDS = 300.0
"""Timeout of one answer in seconds."""
MAX_RETRY_WAIT = 60.0
"""Longest wait before a retry, in seconds."""
RESENT_FIELDS = ("role", "content", "tool_calls", "reasoning_content", "thinking_blocks")
"""Fields of an answer that are sent back with the next request."""

_RETRIED_STATUSES = frozenset((408, 409, 425, 429))
_TOO_LONG_MESSAGE = re.compile(
    r"range of input length|context.{0,10}(length|window|limit)|prompt is too long"
    r"|(input|maximum|too many|exceed\w*).{0,40}tokens|maximum.{0,20}length",
    re.IGNORECASE | re.DOTALL,
)


class LiteLLMClient:
    """A client for one model; each answer is charged to the budget `purse`."""

    def __init__(self, model: str, purse: AgentBudget, *, backoff: float = 1.0) -> None:
        """`backoff`: seconds before the first retry; each further wait is twice as long."""
        # Otherwise the import fetches a price list over the network, with retries.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm
        import openai
        from litellm.exceptions import ContextWindowExceededError

        litellm.suppress_debug_info = True
        self._model, self._purse, self._backoff = model, purse, backoff
        self._litellm, self._openai = litellm, openai
        self._too_long = ContextWindowExceededError

    def ask(
        self, messages: Sequence[LLMMessage], tools: Sequence[Mapping[str, object]]
    ) -> LLMMessage:
        """Return the model's next message. Raises AgentStopped if there will be none."""
        for nth in range(TRIES):
            if reached := self._purse.find_reached_limit():
                raise AgentStopped("budget", f"spent: {reached}")
            try:
                return self._request_once(messages, tools)
            except self._openai.OpenAIError as error:
                wait = self._compute_retry_wait(error, nth)
            seconds_left = self._purse.seconds_left
            time.sleep(wait if seconds_left is None else max(0.0, min(wait, seconds_left)))
        raise AssertionError("the last try waits for none")

    def _request_once(
        self, messages: Sequence[LLMMessage], tools: Sequence[Mapping[str, object]]
    ) -> LLMMessage:
        seconds_left = self._purse.seconds_left
        answer = self._litellm.completion(
            model=self._model,
            messages=list(messages),
            tools=list(tools),
            timeout=ANSWER_SECONDS
            if seconds_left is None
            else max(1.0, min(ANSWER_SECONDS, seconds_left)),
            num_retries=0,
            max_retries=0,
        )
        response = json.loads(answer.model_dump_json())
        usage = response.get("usage") or {}
        self._purse.count_answer(int(usage.get("total_tokens") or 0), self._read_price(answer))
        choices = response.get("choices")
        if not choices:
            raise AgentStopped("provider", f"{self._model} answered without a choice")
        message = choices[0]["message"]
        return {key: message[key] for key in RESENT_FIELDS if message.get(key) is not None}

    def _read_price(self, answer: object) -> float | None:
        """Return the price in dollars; None if litellm has none for the model."""
        price = getattr(answer, "_hidden_params", {}).get("response_cost")
        return price if isinstance(price, float) and price > 0 else None

    def _compute_retry_wait(self, error: Exception, nth: int) -> float:
        """Return the seconds until the next try. Raises AgentStopped if a retry is useless."""
        status, detail = getattr(error, "status_code", None), _to_error_line(error)
        if isinstance(error, self._too_long) or (
            status in (400, 413, 422) and _TOO_LONG_MESSAGE.search(detail)
        ):
            raise AgentStopped(
                "context", f"the conversation is too long for {self._model}: {detail}"
            )
        transient = status is None or status in _RETRIED_STATUSES or status >= 500
        if not transient or nth + 1 == TRIES:
            tried = f" after {nth + 1} tries" if nth else ""
            raise AgentStopped("provider", f"{self._model} gave no answer{tried}: {detail}")
        return min(MAX_RETRY_WAIT, _parse_retry_after(error) or self._backoff * 2**nth)


def _parse_retry_after(error: Exception) -> float | None:
    """Return the seconds of the header retry-after, or None."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return float(headers.get("retry-after", ""))
    except ValueError:
        return None


def _to_error_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 400 else f"{text[:397]}..."
