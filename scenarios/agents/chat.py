"""Asking a model through litellm: what passes is tried again, what does not ends the agent.

litellm's own retries are off, since they cannot be seen and keep to no budget. Its errors are
those of the openai SDK, whose status says what may pass. A conversation that has become too long
is known by its words, which every provider chooses for itself; litellm knows only some of them.
"""

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.agents.ending import Ended
from scenarios.agents.purse import Purse

type Message = dict[str, Any]
"""As OpenAI chat completions has it, whatever the provider."""

TRIES = 6
PATIENCE = 300.0
"""Seconds for one answer."""
LONGEST = 60.0
"""Seconds to wait at most before an answer is asked for again."""
KEPT = ("role", "content", "tool_calls", "reasoning_content", "thinking_blocks")
"""What of an answer is sent back with the next question."""

_PASSES = frozenset((408, 409, 425, 429))
_LONG = re.compile(
    r"range of input length|context.{0,10}(length|window|limit)|prompt is too long"
    r"|(input|maximum|too many|exceed\w*).{0,40}tokens|maximum.{0,20}length",
    re.IGNORECASE | re.DOTALL,
)


class Chat:
    """One model; each answer is paid from the purse."""

    def __init__(self, model: str, purse: Purse, *, backoff: float = 1.0) -> None:
        """`backoff`: seconds before the first new try; each further wait is twice as long."""
        # Otherwise the import fetches a price list over the network, with retries.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm
        import openai
        from litellm.exceptions import ContextWindowExceededError

        litellm.suppress_debug_info = True
        self._model, self._purse, self._backoff = model, purse, backoff
        self._litellm, self._openai = litellm, openai
        self._too_long = ContextWindowExceededError

    def ask(self, messages: Sequence[Message], tools: Sequence[Mapping[str, object]]) -> Message:
        """The model's next message; Ended where there will be none."""
        for nth in range(TRIES):
            if reached := self._purse.empty():
                raise Ended("budget", f"spent: {reached}")
            try:
                return self._once(messages, tools)
            except self._openai.OpenAIError as error:
                wait = self._wait(error, nth)
            left = self._purse.left
            time.sleep(wait if left is None else max(0.0, min(wait, left)))
        raise AssertionError("the last try waits for none")

    def _once(self, messages: Sequence[Message], tools: Sequence[Mapping[str, object]]) -> Message:
        left = self._purse.left
        answer = self._litellm.completion(
            model=self._model,
            messages=list(messages),
            tools=list(tools),
            timeout=PATIENCE if left is None else max(1.0, min(PATIENCE, left)),
            num_retries=0,
            max_retries=0,
        )
        said = json.loads(answer.model_dump_json())
        usage = said.get("usage") or {}
        self._purse.pay(int(usage.get("total_tokens") or 0), self._price(answer))
        choices = said.get("choices")
        if not choices:
            raise Ended("provider", f"{self._model} answered without a choice")
        message = choices[0]["message"]
        return {key: message[key] for key in KEPT if message.get(key) is not None}

    def _price(self, answer: object) -> float | None:
        """None where litellm knows no price for the model; it says so with plain Exception."""
        price = getattr(answer, "_hidden_params", {}).get("response_cost")
        return price if isinstance(price, float) and price > 0 else None

    def _wait(self, error: Exception, nth: int) -> float:
        """Seconds until the next try; Ended where another one is of no use."""
        status, said = getattr(error, "status_code", None), _line(error)
        if isinstance(error, self._too_long) or (status in (400, 413, 422) and _LONG.search(said)):
            raise Ended("context", f"the conversation is too long for {self._model}: {said}")
        passes = status is None or status in _PASSES or status >= 500
        if not passes or nth + 1 == TRIES:
            tried = f" after {nth + 1} tries" if nth else ""
            raise Ended("provider", f"{self._model} gave no answer{tried}: {said}")
        return min(LONGEST, _asked_for(error) or self._backoff * 2**nth)


def _asked_for(error: Exception) -> float | None:
    """The seconds that the provider wants to be left alone; None where it names none."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return float(headers.get("retry-after", ""))
    except ValueError:
        return None


def _line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 400 else f"{text[:397]}..."
