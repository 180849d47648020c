"""Command lines that start known agents on a task, or resume their last conversation with another.

Tested against the practice model, on the versions that the tests pin, with one task and then
another in the same conversation: builtin, claude, codex, openhands, gemini; mini with one task
only, since it cannot resume. Untested, taken from the manuals: kimi, and the resume options of
aider and opencode. Agents store their conversations below HOME or in the folder, so a resumed one
needs the same HOME and folder.
"""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

TASK_FIELD, MODEL_FIELD = "{task}", "{model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCommand:
    """A command line with its environment and stdin."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    """Variables to add to the environment."""
    stdin: str | None = None
    """The task, if the command line has no place for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPreset:
    """The command lines of an agent, with placeholders `{task}` and `{model}`."""

    name: str
    fresh: tuple[str, ...]
    """For a task in a new conversation."""
    resume: tuple[str, ...] | None = None
    """For a task in the previous conversation; None if the agent cannot resume."""
    model: tuple[str, ...] = ("--model", MODEL_FIELD)
    """The words that name the model; omitted if no model is given."""
    env: Mapping[str, str] = field(default_factory=dict)
    model_env: str | None = None
    """The variable that names the model, for an agent without such an option."""
    keys: tuple[str, ...] = ()
    """Variables of which the agent needs one, unless it is logged in."""

    def to_start_command(
        self, task: str, model: str | None = None, *, go_on: bool = False
    ) -> StartCommand:
        """Build the command for a task. Raises ValueError if `go_on` is set and it cannot
        resume.
        """
        words = self.resume if go_on else self.fresh
        if words is None:
            raise ValueError(f"{self.name} cannot go on in the same conversation")
        uses_model_env = model is not None and self.model_env is not None
        env = {**self.env, **({str(self.model_env): str(model)} if uses_model_env else {})}
        command = tuple(
            part.replace(TASK_FIELD, task).replace(MODEL_FIELD, model or "")
            for word in words
            for part in ((self.model if model else ()) if word == MODEL_FIELD else (word,))
        )
        in_command = any(TASK_FIELD in word for word in words)
        return StartCommand(command=command, env=env, stdin=None if in_command else task)


def _index_presets(*presets: AgentPreset) -> Mapping[str, AgentPreset]:
    return MappingProxyType({preset.name: preset for preset in presets})


_BUILTIN = (sys.executable, "-m", "scenarios.agents.builtin", MODEL_FIELD)
_CLAUDE = ("-p", "--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose")
_CODEX = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
_OPENHANDS = ("--headless", "--json", "--override-with-envs", "--exit-without-confirmation")
_GEMINI = ("gemini", "--yolo", "--skip-trust", MODEL_FIELD)
_AIDER = ("aider", MODEL_FIELD, "--yes-always", "--no-check-update", "--no-analytics")
_AIDER_MORE = ("--no-show-model-warnings", "--message", TASK_FIELD)

PRESETS: Mapping[str, AgentPreset] = _index_presets(
    AgentPreset(
        name="builtin",
        fresh=(*_BUILTIN, "--", TASK_FIELD),
        resume=(*_BUILTIN, "--continue", "--", TASK_FIELD),
    ),
    AgentPreset(
        name="claude",
        fresh=("claude", *_CLAUDE, MODEL_FIELD, "--", TASK_FIELD),
        resume=("claude", "--continue", *_CLAUDE, MODEL_FIELD, "--", TASK_FIELD),
        env={"IS_SANDBOX": "1"},  # without it root cannot skip permissions
        keys=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
    ),
    AgentPreset(
        name="codex",
        fresh=("codex", "exec", *_CODEX, MODEL_FIELD, "--", TASK_FIELD),
        resume=("codex", "exec", "resume", "--last", *_CODEX, MODEL_FIELD, "--", TASK_FIELD),
        keys=("CODEX_API_KEY", "OPENAI_API_KEY"),
    ),
    AgentPreset(
        name="openhands",
        fresh=("openhands", *_OPENHANDS, "-t", TASK_FIELD),
        resume=("openhands", "--resume", "--last", *_OPENHANDS, "-t", TASK_FIELD),
        model=(),
        model_env="LLM_MODEL",
        keys=("LLM_API_KEY",),
    ),
    AgentPreset(
        name="gemini",
        fresh=(*_GEMINI, "-p", TASK_FIELD),
        resume=(*_GEMINI, "--resume", "latest", "-p", TASK_FIELD),
        model=("-m", MODEL_FIELD),
        keys=("GEMINI_API_KEY",),
    ),
    AgentPreset(
        name="kimi",
        fresh=("kimi", "--print", MODEL_FIELD, "-c", TASK_FIELD),
        resume=("kimi", "--print", "--continue", MODEL_FIELD, "-c", TASK_FIELD),
        keys=("KIMI_API_KEY",),
    ),
    AgentPreset(
        name="mini",
        fresh=("mini", MODEL_FIELD, "-t", TASK_FIELD, "-y", "--exit-immediately"),
        model=("-m", MODEL_FIELD),
        env={"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"},
    ),
    AgentPreset(
        name="aider",
        fresh=(*_AIDER, *_AIDER_MORE),
        resume=(*_AIDER, "--restore-chat-history", *_AIDER_MORE),
    ),
    AgentPreset(
        name="opencode",
        fresh=("opencode", "run", MODEL_FIELD, "--", TASK_FIELD),
        resume=("opencode", "run", "--continue", MODEL_FIELD, "--", TASK_FIELD),
        model=("-m", MODEL_FIELD),
    ),
)


def parse_agent_preset(text: str) -> AgentPreset:
    """Return the preset of this name, or one for this command line with `{task}` and `{model}`.

    A command without `{task}` reads the task from stdin. Raises ValueError if the text is empty.
    """
    if (preset := PRESETS.get(text)) is not None:
        return preset
    words = tuple(shlex.split(text))
    if not words:
        raise ValueError(
            f"which agent? One of {', '.join(PRESETS)}, or a command with {TASK_FIELD}"
        )
    return AgentPreset(name=words[0], fresh=words, model=(MODEL_FIELD,))
