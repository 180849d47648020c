"""A program on pydantic-ai with a tool `bash`: python pydantic_bash.py MODEL PROMPT."""

import json
import subprocess
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel


def bash(command: str) -> str:
    """Run a command in a shell."""
    ran = subprocess.run(
        command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
    )
    return json.dumps({"returncode": ran.returncode, "output": ran.stdout})


def main(model: str, prompt: str) -> None:
    """Work until the model calls no tool; its last words are printed."""
    agent = Agent(OpenAIChatModel(model), tools=[bash])
    sys.stdout.write(f"{agent.run_sync(prompt).output}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
