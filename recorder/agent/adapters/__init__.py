"""Adapters that make agents start their stdio MCP servers behind a tee, for one run only.

One module per agent, selected by program name. Adapters use the agent's own command-line options,
which affect only the run: no file of the user's is changed and HOME stays the same. Servers over
HTTP are unchanged, because the proxy records them; so are servers already started through `stumble
mcp`, which finds the run itself.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from recorder.agent.adapters import claude, codex, warn_only
from recorder.agent.adapters.stdio_servers import AdaptedCommand, AdapterContext

__all__ = ["AdaptedCommand", "adapt_agent_command", "find_adapter"]

type Adapter = Callable[[tuple[str, ...], AdapterContext], AdaptedCommand]

ADAPTERS: Mapping[str, Adapter] = {
    "claude": claude.adapt_claude_command,
    "codex": codex.adapt_codex_command,
}


def adapt_agent_command(
    command: tuple[str, ...], env: Mapping[str, str], *, run: Path, folder: Path, cwd: Path
) -> AdaptedCommand:
    """Return the agent's command with this run's options, and warnings for servers not recorded.

    `run` is the run's socket; `folder` receives files that last as long as the run.
    """
    return find_adapter(command)(
        command, AdapterContext(env=env, socket=run, folder=folder, cwd=cwd)
    )


def find_adapter(command: Sequence[str]) -> Adapter:
    """Return the adapter for a command: `claude`, `/bin/codex`, `node codex.js`, `npx claude`."""
    for word in command[:2]:
        if (adapter := ADAPTERS.get(Path(word).name.partition(".")[0])) is not None:
            return adapter
    return warn_only.warn_about_unseen_servers
