"""An agent that numbers its parallel shells in the order in which they happen to start.

`SHELLS` is that order, as `ann,bob`; `CHAT_ID` the id that all its requests have.
"""

import json
import os
import sys
import urllib.request


def ask(messages: list[dict[str, object]]) -> dict[str, object]:
    """Return the model's next message."""
    body = json.dumps({"model": "m", "messages": messages}).encode()
    headers = {"content-type": "application/json", "x-session-id": os.environ["CHAT_ID"]}
    with urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, headers)) as answer:
        message: dict[str, object] = json.loads(answer.read())["choices"][0]["message"]
        return message


def main() -> None:
    """Do what the model requests, and print its last words."""
    started = os.environ["SHELLS"].split(",")
    messages: list[dict[str, object]] = [{"role": "user", "content": "read ann's shell"}]
    while True:
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            sys.stdout.write(f"{message['content']}\n")
            return
        for call in message["tool_calls"]:  # type: ignore[attr-defined]
            document = json.loads(call["function"]["arguments"])
            if call["function"]["name"] == "run":
                text = f"started\n<shellId: {started.index(document['command']) + 2} runs>"
            else:
                text = f"{started[int(document['shellId']) - 2]}'s output"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})


main()
