"""Agent frameworks whose environments are large: rows for tests/agents/framework_bash.py.

`make test-clients` alone installs and tries them.
"""

from collections.abc import Mapping
from copy import replace

from tests.agents import LOCKS, environment, npm_agent
from tests.support.agents.client_table import CLIENTS, MODEL, Client, Dialect

_PROGRAM = str(LOCKS / "framework_bash.py")


def _framework(
    name: str,
    home: str,
    dialect: Dialect,
    *,
    model: str = MODEL,
    streams: bool = False,
    env: Mapping[str, str] | None = None,
) -> Client:
    return Client(
        command=lambda prompt: (str(environment(home)), _PROGRAM, name, model, prompt),
        dialect=dialect,
        streams=streams,
        env=env or {},
    )


def _node(name: str, dialect: Dialect) -> Client:
    return Client(
        command=lambda prompt: ("node", str(npm_agent("node-frameworks")), name, MODEL, prompt),
        dialect=dialect,
    )


FRAMEWORKS: Mapping[str, Client] = {
    "ag2": _framework("ag2", "frameworks", "openai_chat"),
    "agno": _framework("agno", "frameworks", "openai_chat"),
    "claude-agent-sdk": replace(
        CLIENTS["claude-code"],
        command=_framework("claude_agent_sdk", "claude-agent-sdk", "anthropic_messages").command,
        # Claude Code removes what is 30 days old by its clock: in the test the files are of today.
        days_ahead=29,
    ),
    "crewai": _framework("crewai", "crewai", "openai_chat", model="gpt-4o"),
    "dspy": _framework("dspy", "frameworks", "openai_chat", model="gpt-4o"),
    "google-adk": _framework(
        "google_adk",
        "frameworks-openai2",
        "gemini",
        model="gemini-2.5-pro",
        env={"GEMINI_API_KEY": "AIza-test-0123456789"},
    ),
    "langchain-js": _node("langchain", "openai_chat"),
    "llama-index": _framework(
        "llama_index", "frameworks-openai2", "openai_chat", model="gpt-4o", streams=True
    ),
    "mastra": _node("mastra", "openai_responses"),
    "strands": _framework("strands", "frameworks-openai2", "openai_chat", streams=True),
}
"""By name; a framework that knows models by their names is given the name of one."""
