"""A program on openai 3 with a tool `bash`: python openai_bash.py MODEL PROMPT."""

import json
import subprocess
import sys
from typing import Any

import openai

BASH: Any = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command in a shell.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}


def bash(command: str) -> str:
    """The return code and output of a command."""
    ran = subprocess.run(
        command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
    )
    return json.dumps({"returncode": ran.returncode, "output": ran.stdout})


def main(model: str, prompt: str) -> None:
    """Work until the model calls no tool; its last words are printed."""
    assert openai.__version__.startswith("3."), openai.__version__
    client = openai.OpenAI()
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        answer = client.chat.completions.create(model=model, messages=messages, tools=[BASH])
        said: Any = answer.choices[0].message
        if not said.tool_calls:
            sys.stdout.write(f"{said.content}\n")
            return
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            result = bash(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    main(*sys.argv[1:])
