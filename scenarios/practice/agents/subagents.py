"""An agent with a shell and subagents: `python -m scenarios.practice.agents.subagents TASK`.

It works in the current folder. The calls of one answer run in parallel, so that two subagents talk
to the model concurrently, each in a separate conversation. It needs only the standard library, and
starts in a tenth of a second.
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

from scenarios.practice.shell_tool_names import DELEGATE
from scenarios.practice.tasks.files import WORKSPACE_TASKS
from scenarios.practice.tasks.shell import SHELL_TASKS

SHELL_NAME = "Bash"
SUBAGENT_TASKS = {**SHELL_TASKS, **WORKSPACE_TASKS}
ANSWER_SECONDS = 60.0
"""Timeout in seconds of a command and of a model's answer."""

type ChatJson = dict[str, Any]


def _define_chat_tool(name: str, *texts: str) -> ChatJson:
    properties = {text: {"type": "string"} for text in texts}
    schema = {"type": "object", "properties": properties, "required": list(texts)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


SUBAGENT_TOOLS = (
    _define_chat_tool(SHELL_NAME, "command"),
    _define_chat_tool(DELEGATE, "description", "prompt"),
)


def main(arguments: Sequence[str]) -> int:
    """Work on one task; print the final answer and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.practice.agents.subagents", description=__doc__
    )
    parser.add_argument("task", choices=SUBAGENT_TASKS, metavar="TASK")
    parser.add_argument("--model", default="practice/naive")
    options = parser.parse_args(arguments)
    print(run_shell_agent(SUBAGENT_TASKS[options.task].prompt, options.model))
    return 0


def run_shell_agent(prompt: str, model: str) -> str:
    """Run the agent loop until the model calls no tool; return its last text."""
    messages: list[ChatJson] = [{"role": "user", "content": prompt}]
    while True:
        message = _ask_chat_model({"model": model, "messages": messages, "tools": SUBAGENT_TOOLS})
        calls = message.get("tool_calls") or []
        if not calls:
            return str(message["content"])
        messages.append(message)
        with ThreadPoolExecutor(len(calls)) as pool:
            results = list(
                pool.map(lambda call: _run_subagent_call(call["function"], model), calls)
            )
        for call, result in zip(calls, results, strict=True):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def _run_subagent_call(function: ChatJson, model: str) -> str:
    parsed = json.loads(function["arguments"])
    if function["name"] == DELEGATE:
        return run_shell_agent(parsed["prompt"], model)
    completed = subprocess.run(
        parsed["command"],
        shell=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=ANSWER_SECONDS,
    )
    return json.dumps({"returncode": completed.returncode, "output": completed.stdout})


def _ask_chat_model(body: ChatJson) -> ChatJson:
    base = os.environ.get("OPENAI_BASE_URL", "http://model.practice/v1")
    headers = {
        "content-type": "application/json",
        "authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'practice')}",
    }
    request = urllib.request.Request(
        f"{base}/chat/completions", json.dumps(body).encode(), headers, method="POST"
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
        message: ChatJson = json.load(answer)["choices"][0]["message"]
    return message


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
