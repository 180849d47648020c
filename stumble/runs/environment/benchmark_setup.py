"""Set up a benchmark's task, and pass its instruction and tools to an agent."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import replace
from pathlib import Path

from recorder.agent import isolation
from scenarios.benchmarks.protocol import BenchmarkEnvironment, BenchmarkTask
from stumble.runs.environment.workspaces import remove_afterwards
from stumble.runs.launcher import ColdLauncher

INSTRUCTION_VARIABLE = "STUMBLE_INSTRUCTION"
"""Names the variable in which an agent finds what it is asked to do."""
MCP_URL_VARIABLE = "MCP_URL"
"""Names the variable in which it finds the task's tools."""


@asynccontextmanager
async def set_up_benchmark(task: BenchmarkTask) -> AsyncIterator[BenchmarkEnvironment]:
    """Set up a task in a folder that is removed after the block, or after this process.

    Raises ChildProcessError if it cannot be set up, or its own solution does not pass.
    """
    folder = Path(tempfile.mkdtemp(prefix="stumble-task-")).resolve()
    with remove_afterwards(folder, keep=False):
        async with task.set_up(folder, _build_mount_prefix) as stage:
            yield stage


def fill_agent_command(command: Sequence[str], task: BenchmarkTask) -> tuple[str, ...]:
    """An agent's command for a task: the instruction where it wants it, else as the last word.

    What it may want is {instruction}, and {mcp_url} of a task that serves its tools.
    """
    if not any("{instruction}" in word for word in command):
        command = (*command, "{instruction}")
    if task.url is not None:
        command = [word.replace("{mcp_url}", task.url) for word in command]
    return tuple(word.replace("{instruction}", task.instruction) for word in command)


def configure_benchmark_launcher(
    cold: ColdLauncher, stage: BenchmarkEnvironment, task: BenchmarkTask
) -> ColdLauncher:
    """How to start an agent for a benchmark task: folder, instruction and variables."""
    env = {**stage.env, INSTRUCTION_VARIABLE: task.instruction}
    if task.url is not None:
        env[MCP_URL_VARIABLE] = task.url
    return replace(cold, cwd=stage.cwd, prefix=stage.prefix, env=env)


def _build_mount_prefix(shown: Mapping[str, Path], cwd: str) -> tuple[str, ...]:
    if (why := isolation.check_root_mount_prefix()) is not None:
        paths = ", ".join(shown)
        raise ChildProcessError(f"{paths} cannot be shown where the task wants them: {why}")
    return isolation.build_root_mount_prefix(shown, cwd)
