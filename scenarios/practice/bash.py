"""A shell as the only tool of the practice agent: commands run where the agent was started."""

import json
import subprocess
import sys

from openai.types.chat import ChatCompletionToolParam

from scenarios.practice.shells import BASH

PATIENCE = 60.0
"""Seconds that a command may take."""
OFFERED: ChatCompletionToolParam = {
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


def call(name: str, arguments: str) -> str:
    """Return code and output of a command, as JSON; in words why there are none."""
    try:
        command = json.loads(arguments)["command"]
        ran = subprocess.run(
            ["/bin/sh", "-c", str(command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
        )
    except (ValueError, KeyError, TypeError, OSError, subprocess.TimeoutExpired) as error:
        return f"error: {type(error).__name__}: {error}"
    output = ran.stdout.decode(sys.getdefaultencoding(), "replace")
    return json.dumps({"returncode": ran.returncode, "output": output})
