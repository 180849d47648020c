"""Coding agents of the day: how a user gives each one a task by argument, pipe and terminal.

Only what a user sets is configured: a key, a model's name, an endpoint, and the files of a home
folder for those that have no variable for these. `PROMPT` stands for the task in a command.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.agents import environment, node_program, npm_agent

PROMPT = "{prompt}"
KEY = "sk-test-0123456789"
OPENAI = "https://api.openai.com/v1"
DONE = "holds"
"""In the last answer of the model."""

type Screen = tuple[str, bytes]
"""A regular expression that comes on the screen, and the keys that answer it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyAgent:
    """One agent; an empty command is a form that it does not have."""

    home: str
    """Its environment in tests/agents."""
    package: str
    program: Callable[[], tuple[str, ...]]
    """Gives the first words of its commands; it is installed if it is not yet."""
    tool: str
    """Its name for the shell tool."""
    argument: tuple[str, ...]
    pipe: tuple[str, ...] = ()
    terminal: tuple[str, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Why it is not tried in a form."""
    dialogs: tuple[Screen, ...] = ()
    """What it asks at a terminal in a fresh home, in this order."""
    ready: str = ""
    """What is on the screen when it takes a task."""
    enter: bytes = b"\r"
    asks_cursor: bool = False
    """Whether it waits for the terminal's reply where the cursor is."""
    differs_at_first: bool = False
    """Whether its first start in a home folder differs from later ones, so that one goes before."""
    leave: bytes = b"/exit"
    """What ends it, before `enter`; empty if it ends by itself."""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of its home folder."""

    def command(self, form: str, prompt: str) -> tuple[str, ...]:
        """The command for a form; empty if the agent does not have it."""
        words = {"argument": self.argument, "pipe": self.pipe, "terminal": self.terminal}[form]
        if not words:
            return ()
        return (*self.program(), *(prompt if word == PROMPT else word for word in words))


def _native(home: str) -> Callable[[], tuple[str, ...]]:
    return lambda: (str(npm_agent(home)),)


def _node(home: str) -> Callable[[], tuple[str, ...]]:
    return lambda: node_program(home)


def _python(home: str, name: str) -> Callable[[], tuple[str, ...]]:
    return lambda: (str(environment(home).with_name(name)),)


_CLAUDE = ("--dangerously-skip-permissions", "--model", "claude-sonnet-4-5")
_CODEX = ("--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-4o")
_CODEX_EXEC = ("exec", "--skip-git-repo-check", *_CODEX)
_QWEN = ("--yolo", "--auth-type", "openai", "-m", "gpt-4o")
_GEMINI = ("--yolo", "--skip-trust", "-m", "gemini-2.5-pro")
_PI = ("--provider", "openai", "--model", "gpt-4o")
_GROK = ("-k", KEY, "-u", OPENAI, "-m", "gpt-4o")
_MINI = ("-m", "openai/gpt-4o", "-y", "--exit-immediately", "-o", "../mini.json")
_GPTME = ("--tool-format", "tool", "-m", "openai/gpt-4o")
_CONTINUE = ("--config", "{home}/.continue/config.yaml", "--auto")
_CLINE = {
    "provider": "openai-compatible",
    "apiKey": KEY,
    "model": "gpt-4o",
    "baseUrl": OPENAI,
}
_CLAUDE_STARTED = {
    "hasCompletedOnboarding": True,
    "theme": "dark",
    "bypassPermissionsModeAccepted": True,
    "customApiKeyResponses": {"approved": ["-ant-test-0123456789"], "rejected": []},
    "projects": {"{folder}": {"hasTrustDialogAccepted": True}},
}
"""As it is after a first start, whose questions a second start does not ask."""
_NO_PIPE = "takes no task from a pipe"


DAILY: Mapping[str, DailyAgent] = {
    "claude-code": DailyAgent(
        home="claude-code-day",
        package="@anthropic-ai/claude-code-linux-x64",
        program=_native("claude-code-day"),
        tool="Bash",
        argument=("-p", PROMPT, *_CLAUDE),
        pipe=("-p", *_CLAUDE),
        terminal=_CLAUDE,
        ready="permissions",
        env={"ANTHROPIC_API_KEY": "sk-ant-test-0123456789", "IS_SANDBOX": "1"},
        files={".claude.json": json.dumps(_CLAUDE_STARTED)},
        differs_at_first=True,
    ),
    "codex": DailyAgent(
        home="codex-day",
        package="@openai/codex",
        program=_native("codex-day"),
        tool="exec_command",
        argument=(*_CODEX_EXEC, PROMPT),
        pipe=(*_CODEX_EXEC, "-"),
        terminal=_CODEX,
        ready="shortcuts",
        leave=b"/quit",
        env={"CODEX_API_KEY": KEY},
        files={".codex/auth.json": json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": KEY})},
    ),
    "copilot": DailyAgent(
        home="copilot",
        package="@github/copilot-linux-x64",
        program=_native("copilot"),
        tool="bash",
        argument=("-p", PROMPT, "--allow-all-tools"),
        pipe=("--allow-all-tools",),
        terminal=("--allow-all-tools", "--allow-all-paths"),
        dialogs=(("trust", b"\r"),),
        ready="sidebar",
        env={
            "COPILOT_PROVIDER_BASE_URL": OPENAI,
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": "gpt-4o",
        },
    ),
    "gemini-cli": DailyAgent(
        home="gemini-cli",
        package="@google/gemini-cli",
        program=_node("gemini-cli"),
        tool="run_shell_command",
        argument=("-p", PROMPT, *_GEMINI),
        pipe=_GEMINI,
        terminal=_GEMINI,
        ready="Type",
        leave=b"/quit",
        env={"GEMINI_API_KEY": "AIza-test-0123456789"},
        files={
            ".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
        },
    ),
    "qwen-code": DailyAgent(
        home="qwen-code-day",
        package="@qwen-code/qwen-code",
        program=_node("qwen-code-day"),
        tool="run_shell_command",
        argument=("-p", PROMPT, *_QWEN),
        pipe=_QWEN,
        terminal=_QWEN,
        ready="Type",
        leave=b"/quit",
        env={"OPENAI_BASE_URL": OPENAI},
    ),
    "opencode": DailyAgent(
        home="opencode",
        package="opencode-linux-x64",
        program=_native("opencode"),
        tool="bash",
        argument=("run", "-m", "anthropic/claude-sonnet-4-5", PROMPT),
        pipe=("run", "-m", "anthropic/claude-sonnet-4-5"),
        terminal=("-m", "anthropic/claude-sonnet-4-5"),
        ready="commands",
        env={"ANTHROPIC_API_KEY": "sk-ant-test-0123456789"},
    ),
    "continue": DailyAgent(
        home="continue",
        package="@continuedev/cli",
        program=_node("continue"),
        tool="Bash",
        argument=("-p", PROMPT, *_CONTINUE),
        pipe=("-p", *_CONTINUE),
        terminal=_CONTINUE,
        ready="anything",
        files={
            ".continue/config.yaml": "name: scripted\nversion: 1.0.0\nschema: v1\nmodels:\n"
            f"  - name: scripted\n    provider: openai\n    model: gpt-4o\n"
            f"    apiBase: {OPENAI}\n    apiKey: {KEY}\n    roles:\n      - chat\n"
        },
    ),
    "cline": DailyAgent(
        home="cline",
        package="@cline/cli-linux-x64",
        program=_native("cline"),
        tool="run_commands",
        argument=(PROMPT,),
        pipe=("--auto-approve", "true"),
        terminal=("-i",),
        dialogs=(("ClinePass", b"\x1b"),),
        ready="mentions",
        files={
            ".cline/data/settings/providers.json": json.dumps(
                {
                    "version": 1,
                    "lastUsedProvider": "openai-compatible",
                    "modes": {},
                    "providers": {
                        "openai-compatible": {
                            "settings": _CLINE,
                            "updatedAt": "2026-11-28T08:58:28.130Z",
                            "tokenSource": "manual",
                        }
                    },
                }
            )
        },
    ),
    "pi": DailyAgent(
        home="pi",
        package="@earendil-works/pi-coding-agent",
        program=_node("pi"),
        tool="bash",
        argument=("-p", *_PI, PROMPT),
        pipe=("-p", *_PI),
        terminal=_PI,
        ready="auto",
        leave=b"/quit",
    ),
    "kimi-code": DailyAgent(
        home="kimi-code",
        package="@moonshot-ai/kimi-code",
        program=_node("kimi-code"),
        tool="Bash",
        argument=("-p", PROMPT),
        terminal=("--yolo",),
        lacks={"pipe": _NO_PIPE},
        dialogs=(("Trust", b"\r"),),
        ready="context",
        files={
            ".kimi-code/config.toml": 'default_model = "scripted"\ntelemetry = false\n'
            f'[providers.scripted]\ntype = "openai"\nbase_url = "{OPENAI}"\n'
            f'api_key = "{KEY}"\n[models.scripted]\nprovider = "scripted"\n'
            'model = "gpt-4o"\nmax_context_size = 128000\n'
        },
    ),
    "grok": DailyAgent(
        home="grok",
        package="@vibe-kit/grok-cli",
        program=_node("grok"),
        tool="bash",
        argument=(*_GROK, "-p", PROMPT),
        terminal=_GROK,
        lacks={
            "pipe": _NO_PIPE,
            "terminal": "its TUI joins two parallel calls of a streamed answer to one, `bashbash`",
        },
        ready="anything",
        leave=b"exit",
    ),
    "vibe": DailyAgent(
        home="vibe",
        package="mistral-vibe",
        program=_python("vibe", "vibe"),
        tool="bash",
        argument=("-p", PROMPT, "--auto-approve", "--trust"),
        pipe=("-p", "--auto-approve", "--trust"),
        terminal=("--auto-approve", "--trust"),
        ready="approve",
        files={
            ".vibe/config.toml": 'active_model = "scripted"\nenable_telemetry = false\n'
            f'enable_update_checks = false\n[[providers]]\nname = "openai"\n'
            f'api_base = "{OPENAI}"\napi_key_env_var = "OPENAI_API_KEY"\n'
            'backend = "generic"\n[[models]]\nname = "gpt-4o"\nprovider = "openai"\n'
            'alias = "scripted"\n'
        },
    ),
    "openhands": DailyAgent(
        home="openhands",
        package="openhands",
        program=_python("openhands", "openhands"),
        tool="terminal",
        argument=(
            *("--headless", "--json", "--override-with-envs", "--exit-without-confirmation"),
            *("-t", PROMPT),
        ),
        terminal=("--override-with-envs", "--exit-without-confirmation", "--always-approve"),
        lacks={"pipe": _NO_PIPE},
        ready="mention",
        env={"LLM_MODEL": "openai/gpt-4o", "LLM_API_KEY": KEY},
    ),
    "mini-swe-agent": DailyAgent(
        home="sdks-httpx",
        package="mini-swe-agent",
        program=_python("sdks-httpx", "mini"),
        tool="bash",
        argument=(*_MINI, "-t", PROMPT),
        terminal=_MINI,
        lacks={"pipe": _NO_PIPE},
        ready="Submit",
        asks_cursor=True,
        enter=b"\x1b\r",
        leave=b"",
        env={
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_SILENT_STARTUP": "1",
        },
    ),
    "gptme": DailyAgent(
        home="gptme",
        package="gptme",
        program=lambda: ("gptme",),
        tool="shell",
        argument=("-n", *_GPTME, PROMPT),
        pipe=("-n", *_GPTME),
        terminal=("-y", *_GPTME),
        dialogs=(("New conversation", b"\r"),),
        ready="User",
    ),
}
