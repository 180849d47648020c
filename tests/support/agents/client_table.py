"""Third-party agents and clients, a row for each: program, dialect, and user settings.

Only the environment and arguments that any user sets are configured: a key and a model's name.
`tests/agents` pins their versions.
"""

from collections.abc import Callable, Mapping
from copy import replace
from dataclasses import dataclass, field
from typing import Literal

from tests.agents import LOCKS, environment, npm_agent

MODEL = "practice/naive"
YEAR_DAYS = 366
"""By how many days the clock of a replay "a year later" is ahead."""

type Dialect = Literal[
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini",
    "observed_history",
    "ollama_chat",
    "cohere_chat",
    "bedrock_converse",
    "bedrock_anthropic",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client: its command for a prompt, its dialect, and its user's settings."""

    command: Callable[[str], tuple[str, ...]]
    dialect: Dialect
    streams: bool = False
    tool: str = "bash"
    """Its name for the shell tool."""
    fails: int = 429
    """The HTTP status at which it retries."""
    second: int = 2
    """Step number of its second request: the number of model messages in that request, plus one."""
    env: Mapping[str, str] = field(default_factory=dict)
    record: tuple[str, ...] = ()
    """More options for recording it."""
    days_ahead: int = YEAR_DAYS
    """By how many days the clock of its later replay is ahead."""


def _sdk(api: str, *, env: str = "sdks", model: str = MODEL) -> Callable[[str], tuple[str, ...]]:
    program = str(LOCKS / "sdk_bash.py")
    return lambda prompt: (str(environment(env)), program, api, model, prompt)


def _framework(name: str, *, env: str = "sdks") -> Callable[[str], tuple[str, ...]]:
    program = str(LOCKS / "framework_bash.py")
    return lambda prompt: (str(environment(env)), program, name, MODEL, prompt)


def _mini(prompt: str) -> tuple[str, ...]:
    program = environment("sdks-httpx").with_name("mini")
    options = ("-y", "--exit-immediately", "-o", "../mini.json")
    return (str(program), "-m", f"openai/{MODEL}", "-t", prompt, *options)


def _node(api: str) -> Callable[[str], tuple[str, ...]]:
    return lambda prompt: ("node", str(npm_agent("node-sdks")), api, MODEL, prompt)


def _qwen(prompt: str) -> tuple[str, ...]:
    options = ("--yolo", "--auth-type", "openai", "-m", MODEL)
    return ("node", str(npm_agent("qwen-code")), "-p", prompt, *options)


def _opencode(prompt: str) -> tuple[str, ...]:
    return (str(npm_agent("opencode")), "run", "-m", "anthropic/claude-sonnet-4-5", prompt)


def _openhands(prompt: str) -> tuple[str, ...]:
    program = environment("openhands").with_name("openhands")
    unasked = ("--headless", "--json", "--override-with-envs", "--exit-without-confirmation")
    return (str(program), *unasked, "-t", prompt)


def _gemini(prompt: str) -> tuple[str, ...]:
    options = ("--yolo", "--skip-trust", "-m", "gemini-2.5-pro")
    return ("node", str(npm_agent("gemini-cli")), "-p", prompt, *options)


def _aider(prompt: str) -> tuple[str, ...]:
    program = environment("aider").with_name("aider")
    quiet = ("--no-check-update", "--no-analytics", "--no-show-model-warnings")
    return (str(program), "--model", f"openai/{MODEL}", "--message", prompt, "--yes-always", *quiet)


def _claude(prompt: str) -> tuple[str, ...]:
    output = ("--output-format", "stream-json", "--verbose")
    unasked = "--dangerously-skip-permissions"
    return (str(npm_agent("claude-code")), "-p", prompt, unasked, "--model", MODEL, *output)


def _codex(prompt: str) -> tuple[str, ...]:
    unasked = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    return (str(npm_agent("codex")), "exec", *unasked, "-m", MODEL, prompt)


_ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789"}
_CODEX = Client(
    command=_codex,
    dialect="openai_responses",
    streams=True,
    tool="exec_command",
    fails=500,  # it gives up at a 429
    env={"CODEX_API_KEY": "sk-test-0123456789"},
)

AIDER = Client(command=_aider, dialect="openai_chat", streams=True)
"""It has no tools: its model answers with the contents of the files."""

CLIENTS: Mapping[str, Client] = {
    "openai3": Client(command=_sdk("openai_chat"), dialect="openai_chat"),
    "openai3-responses": Client(
        command=_sdk("openai_responses"), dialect="openai_responses", streams=True
    ),
    "openai2": Client(
        command=_sdk("openai_chat_streamed", env="sdks-httpx"), dialect="openai_chat", streams=True
    ),
    "anthropic2": Client(
        command=_sdk("anthropic_messages_streamed"),
        dialect="anthropic_messages",
        streams=True,
        env=_ANTHROPIC,
    ),
    "anthropic1": Client(
        command=_sdk("anthropic_messages", env="sdks-httpx"),
        dialect="anthropic_messages",
        env=_ANTHROPIC,
    ),
    "litellm": Client(
        command=_sdk("litellm_chat", env="sdks-httpx", model=f"openai/{MODEL}"),
        dialect="openai_chat",
    ),
    "pydantic-ai": Client(command=_framework("pydantic_ai"), dialect="openai_chat"),
    "openai-agents": Client(command=_framework("openai_agents"), dialect="openai_responses"),
    "langgraph": Client(command=_framework("langgraph"), dialect="openai_chat", streams=True),
    "smolagents": Client(
        command=_framework("smolagents", env="sdks-httpx"), dialect="observed_history"
    ),
    "mini-swe-agent": Client(
        command=_mini,
        dialect="openai_chat",
        env={
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_SILENT_STARTUP": "1",
        },
    ),
    "node-openai": Client(command=_node("openai"), dialect="openai_chat", streams=True),
    "node-anthropic": Client(
        command=_node("anthropic"), dialect="anthropic_messages", env=_ANTHROPIC
    ),
    "node-ai": Client(command=_node("ai"), dialect="openai_responses"),
    "openhands": Client(
        command=_openhands,
        dialect="openai_chat",
        tool="terminal",
        second=3,  # it sends two parallel calls as two messages
        env={"LLM_MODEL": f"openai/{MODEL}", "LLM_API_KEY": "sk-test-0123456789"},
    ),
    "qwen-code": Client(
        command=_qwen,
        dialect="openai_chat",
        streams=True,
        tool="run_shell_command",
        second=3,  # it begins with words of the model that it made up
        env={"OPENAI_BASE_URL": "https://api.openai.com/v1"},
    ),
    "opencode": Client(
        command=_opencode, dialect="anthropic_messages", streams=True, env=_ANTHROPIC
    ),
    "gemini-cli": Client(
        command=_gemini,
        dialect="gemini",
        streams=True,
        tool="run_shell_command",
        env={"GEMINI_API_KEY": "AIza-test-0123456789"},
    ),
    "claude-code": Client(
        command=_claude,
        dialect="anthropic_messages",
        streams=True,
        tool="Bash",
        env={**_ANTHROPIC, "ANTHROPIC_DEFAULT_HAIKU_MODEL": MODEL, "IS_SANDBOX": "1"},
    ),
    "codex": _CODEX,
    "codex-http": replace(_CODEX, record=("--no-websocket",)),
}
