"""The agent of `stumble selftest --provider`: two local tools and a model of any provider.

`python -m stumble.selftest.provider_agent PROVIDER MODEL`; litellm speaks to the provider.
"""

import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

ORDER = {"order_id": "ord-7018", "amount": 1057.86, "currency": "GBP", "status": "shipped"}
PROMPT = (
    "Read order ord-7018 with get_order. Then call add_note with its amount and currency. Then "
    "answer with one short sentence that has the amount."
)
MAX_TURNS = 6
MAX_TOKENS = 300
RETRY_SECONDS = 1.0
_STRING = {"type": "string"}


def _describe_tool(name: str, argument: str) -> dict[str, object]:
    parameters = {"type": "object", "properties": {argument: _STRING}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [_describe_tool("get_order", "order_id"), _describe_tool("add_note", "text")]


def call_tool(name: str) -> str:
    """Return the result of a tool: the order, or that the note was taken."""
    return json.dumps(ORDER if name == "get_order" else {"noted": True})


def run_agent(provider: str, model: str) -> str:
    """Work on the task; return the last answer."""
    import litellm

    messages: list[dict[str, object]] = [{"role": "user", "content": PROMPT}]

    def ask() -> Any:  # litellm declares no type that has the fields of its answers
        return litellm.completion(
            model=f"{provider}/{model}", messages=messages, tools=TOOLS, max_tokens=MAX_TOKENS
        )

    for _ in range(MAX_TURNS):
        try:
            answer = ask()
        except litellm.RateLimitError:
            time.sleep(RETRY_SECONDS)
            answer = ask()
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            result = call_tool(call.function.name)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return "no answer in time"


if __name__ == "__main__":
    sys.stdout.write(run_agent(*sys.argv[1:]) + "\n")
