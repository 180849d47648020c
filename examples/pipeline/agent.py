"""A complete coding agent over the standard library: a chat loop with one tool, a shell.

`python agent.py MODEL TASK`. OPENAI_BASE_URL and OPENAI_API_KEY name any server with an OpenAI chat
API. Nothing here knows `stumble`: urllib reads the proxy variables that `stumble` sets.
"""

import json
import os
import subprocess
import sys
import urllib.request
from typing import Any

MODEL_URL = os.environ.get("OPENAI_BASE_URL", "http://model.practice/v1")
KEY = os.environ.get("OPENAI_API_KEY", "practice")
Message = dict[str, Any]

MAX_STEPS = 60
COMMAND_SECONDS = 120
BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command in a shell, in the working folder.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}


def main(model: str, task: str) -> int:
    """Ask the model, run its commands, send back what they print, until it runs none."""
    messages: list[Message] = [{"role": "user", "content": task}]
    for _ in range(MAX_STEPS):
        message = ask(model, messages)
        messages.append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            return 0
        for call in message["tool_calls"]:
            result = run_command(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    print(f"no final answer within {MAX_STEPS} steps", file=sys.stderr)
    return 1


def ask(model: str, messages: list[Message]) -> Message:
    """Return the model's next message."""
    body = {"model": model, "messages": messages, "tools": [BASH]}
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(
        f"{MODEL_URL}/chat/completions", json.dumps(body).encode(), headers
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        message: Message = json.loads(response.read())["choices"][0]["message"]
    return message


def run_command(arguments: str) -> str:
    """Return exit code and output as JSON, or why there is none."""
    try:
        command = json.loads(arguments)["command"]
        done = subprocess.run(
            ["sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_SECONDS,
        )
    except (KeyError, TypeError, ValueError, subprocess.TimeoutExpired) as error:
        return f"error: {error!r}"
    output = done.stdout.decode(errors="replace")
    return json.dumps({"returncode": done.returncode, "output": output}, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
