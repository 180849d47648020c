"""An agent with a shell and with helpers: `python -m scenarios.practice.crew TASK`.

It works in the current folder. Calls that a model makes together are done at once, so that two
helpers talk to the model side by side, each in a conversation of its own. It needs nothing but
Python, and starts in a tenth of a second.
"""

import argparse
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from scenarios.practice.shell import SHELL_TASKS
from scenarios.practice.shells import DELEGATE
from scenarios.practice.workspace import WORKSPACE_TASKS

SHELL = "Bash"
TASKS = {**SHELL_TASKS, **WORKSPACE_TASKS}
PATIENCE = 60.0
"""Seconds for a command, and for an answer of the model."""

type Json = dict[str, Any]


def _tool(name: str, *texts: str) -> Json:
    properties = {text: {"type": "string"} for text in texts}
    schema = {"type": "object", "properties": properties, "required": list(texts)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


OFFERED = (_tool(SHELL, "command"), _tool(DELEGATE, "description", "prompt"))


def main(arguments: Sequence[str]) -> int:
    """Work on one task; prints the final answer and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.practice.crew", description=__doc__)
    parser.add_argument("task", choices=TASKS, metavar="TASK")
    parser.add_argument("--model", default="practice/naive")
    options = parser.parse_args(arguments)
    print(work(TASKS[options.task].prompt, options.model))
    return 0


def work(prompt: str, model: str) -> str:
    """Ask the model and do what it says until it calls no tool; its last words."""
    messages: list[Json] = [{"role": "user", "content": prompt}]
    while True:
        said = _ask({"model": model, "messages": messages, "tools": OFFERED})
        calls = said.get("tool_calls") or []
        if not calls:
            return str(said["content"])
        messages.append(said)
        with ThreadPoolExecutor(len(calls)) as pool:
            results = list(pool.map(lambda call: _do(call["function"], model), calls))
        for call, result in zip(calls, results, strict=True):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def _do(function: Json, model: str) -> str:
    given = json.loads(function["arguments"])
    if function["name"] == DELEGATE:
        return work(given["prompt"], model)
    ran = subprocess.run(
        given["command"],
        shell=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
    )
    return json.dumps({"returncode": ran.returncode, "output": ran.stdout})


def _ask(body: Json) -> Json:
    base = os.environ.get("OPENAI_BASE_URL", "http://model.practice/v1")
    headers = {
        "content-type": "application/json",
        "authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'practice')}",
    }
    request = urllib.request.Request(
        f"{base}/chat/completions", json.dumps(body).encode(), headers, method="POST"
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        said: Json = json.load(answer)["choices"][0]["message"]
    return said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
