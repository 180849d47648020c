"""A benchmark's task on the engine: where it is set up, and how an agent is told of it."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from recorder import cage
from scenarios.benchmarks.stage import Benchmark, Stage
from stumble.launch import Cold
from stumble.workspaces import removed

INSTRUCTION = "STUMBLE_INSTRUCTION"
"""Names the variable in which an agent finds what it is asked to do."""
SERVER = "MCP_URL"
"""Names the variable in which it finds the task's tools."""


@asynccontextmanager
async def staged(task: Benchmark) -> AsyncIterator[Stage]:
    """A task set up in a folder that goes with the block, or with us.

    ChildProcessError where it cannot be set up, or its own solution does not pass.
    """
    folder = Path(tempfile.mkdtemp(prefix="stumble-task-")).resolve()
    with removed(folder, keep=False):
        async with task.staged(folder, _facade) as stage:
            yield stage


def told(command: Sequence[str], task: Benchmark) -> tuple[str, ...]:
    """An agent's command for a task: the instruction where it wants it, else as the last word.

    What it may want is {instruction}, and {mcp_url} of a task that serves its tools.
    """
    if not any("{instruction}" in word for word in command):
        command = (*command, "{instruction}")
    if task.url is not None:
        command = [word.replace("{mcp_url}", task.url) for word in command]
    return tuple(word.replace("{instruction}", task.instruction) for word in command)


def launched(cold: Cold, stage: Stage, task: Benchmark) -> Cold:
    """How an agent is started for a task that is set up: where, and with what it is told."""
    env = {**stage.env, INSTRUCTION: task.instruction}
    if task.url is not None:
        env[SERVER] = task.url
    return replace(cold, cwd=stage.cwd, prefix=stage.prefix, env=env)


def _facade(shown: Mapping[str, Path], cwd: str) -> tuple[str, ...]:
    if (why := cage.lacks_facade()) is not None:
        paths = ", ".join(shown)
        raise ChildProcessError(f"{paths} cannot be shown where the task wants them: {why}")
    return cage.facade(shown, cwd)
