"""An agent whose tools are HTTP requests to a clinic; it does what the model says.

`clinic_agent.py URL` books, `clinic_agent.py URL reset` makes the clinic empty; with `verify` it
ends with 0 if all that was to be booked is booked and confirmed.
"""

import json
import sys
import urllib.error
import urllib.request
from typing import Any

TOOLS = ("now", "order", "book", "confirm")


def post(url: str, body: object) -> str:
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return json.dumps({"error": error.read().decode()})


def book(base: str) -> None:
    tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in TOOLS]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Book what ord-7314 needs."}]
    while True:
        body = {"model": "m", "messages": messages, "tools": tools}
        answer = json.loads(post(f"{base}/v1/chat/completions", body))
        message = answer["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            sys.stdout.write(f"{message['content']}\n")
            return
        for call in message["tool_calls"]:
            function = call["function"]
            result = post(f"{base}/tools/{function['name']}", json.loads(function["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def verify(base: str) -> int:
    with urllib.request.urlopen(f"{base}/state") as answer:
        booked = json.load(answer).values()
    slots = sorted(each["slot"] for each in booked)
    return 0 if slots == ["09:00", "10:30"] and all(x["confirmed"] for x in booked) else 1


if __name__ == "__main__":
    match sys.argv[2:]:
        case ["reset"]:
            post(f"{sys.argv[1]}/reset", {})
        case ["verify"]:
            sys.exit(verify(sys.argv[1]))
        case _:
            book(sys.argv[1])
