"""A loop of the openai SDK whose tools are HTTP requests; `http_agent.py BASE [raises]`.

With `raises` an error of a tool ends the program.
"""

import json
import sys
import urllib.error
import urllib.request
from typing import Any

from openai import OpenAI

base, raises = sys.argv[1], "raises" in sys.argv
ROUTES = {"get_slots": "/slots", "get_bookings": "/bookings", "book_slot": "/bookings"}


def call_tool(name: str, arguments: dict[str, Any]) -> str:
    data = json.dumps(arguments).encode() if name == "book_slot" else None
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(base + ROUTES[name], data, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        if raises:
            raise
        return f"HTTP error {error.code}"


client = OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)
tools: Any = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ROUTES
]
messages: list[Any] = [{"role": "user", "content": "Book Ana the first free slot on 2026-12-01."}]
while True:
    said = client.chat.completions.create(model="clinic-1", messages=messages, tools=tools)
    message = said.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    if not message.tool_calls:
        sys.stdout.write(f"{message.content}\n")
        break
    for call in message.tool_calls:
        function: Any = getattr(call, "function")  # noqa: B009  (the other kind has none)
        result = call_tool(function.name, json.loads(function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
