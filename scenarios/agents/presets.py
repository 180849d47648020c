"""How known agents are started on a task, and told another one in the same conversation.

Tried against the practice model, on the versions that the tests pin, on one task and on another
one in the same conversation: builtin, claude, codex, openhands, gemini; mini on one task, since it
cannot go on. Not tried by us: kimi, and what lets aider and opencode go on; those words are their
manuals'. Agents keep their conversations below HOME or in the folder, so one that goes on needs
the same of both.
"""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

TASK, MODEL = "{task}", "{model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A command that can be started."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    """What is added to the environment."""
    stdin: str | None = None
    """The task, where the command has no place for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """The command lines of an agent; in each word `{task}` and `{model}` stand for those."""

    name: str
    fresh: tuple[str, ...]
    """For a task in a conversation of its own."""
    on: tuple[str, ...] | None = None
    """For a task in the conversation before; None where the agent cannot."""
    model: tuple[str, ...] = ("--model", MODEL)
    """The words that name the model; left out where none is named."""
    env: Mapping[str, str] = field(default_factory=dict)
    model_env: str | None = None
    """The variable that names the model, for an agent without words for it."""
    keys: tuple[str, ...] = ()
    """Variables of which the agent needs one, unless it was logged in."""

    def start(self, task: str, model: str | None = None, *, go_on: bool = False) -> Start:
        """How to start it; ValueError where it cannot go on."""
        words = self.on if go_on else self.fresh
        if words is None:
            raise ValueError(f"{self.name} cannot go on in the same conversation")
        named = model is not None and self.model_env is not None
        env = {**self.env, **({str(self.model_env): str(model)} if named else {})}
        command = tuple(
            part.replace(TASK, task).replace(MODEL, model or "")
            for word in words
            for part in ((self.model if model else ()) if word == MODEL else (word,))
        )
        place = any(TASK in word for word in words)
        return Start(command=command, env=env, stdin=None if place else task)


def _presets(*presets: Preset) -> Mapping[str, Preset]:
    return MappingProxyType({preset.name: preset for preset in presets})


_BUILTIN = (sys.executable, "-m", "scenarios.agents.builtin", MODEL)
_CLAUDE = ("-p", "--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose")
_CODEX = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
_OPENHANDS = ("--headless", "--json", "--override-with-envs", "--exit-without-confirmation")
_GEMINI = ("gemini", "--yolo", "--skip-trust", MODEL)
_AIDER = ("aider", MODEL, "--yes-always", "--no-check-update", "--no-analytics")
_AIDER_MORE = ("--no-show-model-warnings", "--message", TASK)

PRESETS: Mapping[str, Preset] = _presets(
    Preset(
        name="builtin",
        fresh=(*_BUILTIN, "--", TASK),
        on=(*_BUILTIN, "--continue", "--", TASK),
    ),
    Preset(
        name="claude",
        fresh=("claude", *_CLAUDE, MODEL, "--", TASK),
        on=("claude", "--continue", *_CLAUDE, MODEL, "--", TASK),
        env={"IS_SANDBOX": "1"},  # else it refuses to skip permissions as root
        keys=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
    ),
    Preset(
        name="codex",
        fresh=("codex", "exec", *_CODEX, MODEL, "--", TASK),
        on=("codex", "exec", "resume", "--last", *_CODEX, MODEL, "--", TASK),
        keys=("CODEX_API_KEY", "OPENAI_API_KEY"),
    ),
    Preset(
        name="openhands",
        fresh=("openhands", *_OPENHANDS, "-t", TASK),
        on=("openhands", "--resume", "--last", *_OPENHANDS, "-t", TASK),
        model=(),
        model_env="LLM_MODEL",
        keys=("LLM_API_KEY",),
    ),
    Preset(
        name="gemini",
        fresh=(*_GEMINI, "-p", TASK),
        on=(*_GEMINI, "--resume", "latest", "-p", TASK),
        model=("-m", MODEL),
        keys=("GEMINI_API_KEY",),
    ),
    Preset(
        name="kimi",
        fresh=("kimi", "--print", MODEL, "-c", TASK),
        on=("kimi", "--print", "--continue", MODEL, "-c", TASK),
        keys=("KIMI_API_KEY",),
    ),
    Preset(
        name="mini",
        fresh=("mini", MODEL, "-t", TASK, "-y", "--exit-immediately"),
        model=("-m", MODEL),
        env={"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"},
    ),
    Preset(
        name="aider",
        fresh=(*_AIDER, *_AIDER_MORE),
        on=(*_AIDER, "--restore-chat-history", *_AIDER_MORE),
    ),
    Preset(
        name="opencode",
        fresh=("opencode", "run", MODEL, "--", TASK),
        on=("opencode", "run", "--continue", MODEL, "--", TASK),
        model=("-m", MODEL),
    ),
)


def preset(text: str) -> Preset:
    """The preset of this name, or one for this command line, which may have `{task}` in it.

    A command without `{task}` reads it from stdin. ValueError where it is neither.
    """
    if (found := PRESETS.get(text)) is not None:
        return found
    words = tuple(shlex.split(text))
    if not words:
        raise ValueError(f"which agent? One of {', '.join(PRESETS)}, or a command with {TASK}")
    return Preset(name=words[0], fresh=words, model=())
