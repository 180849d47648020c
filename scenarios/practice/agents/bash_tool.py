"""A shell as the only tool of the practice agent; commands run in the agent's folder."""

import json
import subprocess
import sys

from openai.types.chat import ChatCompletionToolParam

from scenarios.practice.shell_tool_names import BASH

BASH_SECONDS = 60.0
"""Timeout of a command in seconds."""
BASH_TOOL: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": BASH,
        "description": "Run a command in a shell.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}


def run_bash_tool(name: str, arguments: str) -> str:
    """Return a command's exit code and output as JSON, or an error text."""
    try:
        command = json.loads(arguments)["command"]
        completed = subprocess.run(
            ["/bin/sh", "-c", str(command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BASH_SECONDS,
        )
    except (ValueError, KeyError, TypeError, OSError, subprocess.TimeoutExpired) as error:
        return f"error: {type(error).__name__}: {error}"
    output = completed.stdout.decode(sys.getdefaultencoding(), "replace")
    return json.dumps({"returncode": completed.returncode, "output": output})
