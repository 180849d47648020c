"""An agent for refunds, over the standard library: a chat loop with tools over HTTP.

Its model and its shop are those of stumble's practice world, whose names exist only while stumble
runs the agent; OPENAI_BASE_URL, OPENAI_API_KEY and SHOP_URL name others. Nothing here knows
stumble.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

MODEL_URL = os.environ.get("OPENAI_BASE_URL", "http://model.practice/v1")
SHOP_URL = os.environ.get("SHOP_URL", "http://shop.practice")
KEY = os.environ.get("OPENAI_API_KEY", "practice")
SYSTEM_PROMPT = Path(__file__).with_name("prompts") / "system.md"
MAX_STEPS = 40


def main(model: str, task: str) -> int:
    """Ask the model, call its tools, send back the results, until it calls none."""
    tools = [
        {"type": "function", "function": {key: tool[key] for key in ("name", "parameters")}}
        for tool in json.loads(send(f"{SHOP_URL}/tools"))
    ]
    messages = [
        {"role": "system", "content": SYSTEM_PROMPT.read_text().strip()},
        {"role": "user", "content": task},
    ]
    for _ in range(MAX_STEPS):
        body = {"model": model, "messages": messages, "tools": tools}
        answer = json.loads(send(f"{MODEL_URL}/chat/completions", body, token=KEY))
        message = answer["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            return 0
        for call in message["tool_calls"]:
            result = call_tool(**call["function"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    print(f"no final answer within {MAX_STEPS} steps", file=sys.stderr)
    return 1


def call_tool(name: str, arguments: str) -> str:
    """Return the tool's result, or its error as text for the model."""
    try:
        return send(f"{SHOP_URL}/tools/{name}", json.loads(arguments))
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}: {error.read().decode()}"


def send(url: str, body: object = None, token: str = "") -> str:
    """GET `url`, or POST `body` to it as JSON; return the text of the response."""
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return str(response.read(), "utf-8")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
