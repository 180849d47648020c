"""How agents are told to start their stdio MCP servers behind a tee, for one run only.

One module per agent, known by its program's name. The agent's own switches are used, for what
they add ends with the run: no file of the user's is changed and HOME stays where it is. Servers
over HTTP are left as they are, for the proxy sees them; so are those that stand behind
`stumble mcp` already, which finds the run by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from recorder.adapters import claude, codex, others
from recorder.adapters.servers import Adapted, Run

__all__ = ["Adapted", "adapt", "adapter"]

type Adapter = Callable[[tuple[str, ...], Run], Adapted]

ADAPTERS: Mapping[str, Adapter] = {"claude": claude.adapt, "codex": codex.adapt}


def adapt(
    command: tuple[str, ...], env: Mapping[str, str], *, run: Path, folder: Path, cwd: Path
) -> Adapted:
    """The agent's command with what this run adds, and what of its servers will not be seen.

    `run` is the socket of the run, `folder` takes files that last as long as the run does.
    """
    return adapter(command)(command, Run(env=env, socket=run, folder=folder, cwd=cwd))


def adapter(command: Sequence[str]) -> Adapter:
    """The adapter for a command: `claude`, `/bin/codex`, `node codex.js`, `npx claude`."""
    for word in command[:2]:
        if (found := ADAPTERS.get(Path(word).name.partition(".")[0])) is not None:
            return found
    return others.adapt
