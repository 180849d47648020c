"""Commands of a world: run with a time limit, killed with all that they started."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

COMMAND_SECONDS = 60.0
"""Seconds that a command of a world may take."""


async def run_world_command(
    command: Sequence[str],
    cwd: Path | None = None,
    *,
    env: Mapping[str, str] | None = None,
    limit: float = COMMAND_SECONDS,
) -> tuple[int, str]:
    """Return a command's exit code and output: 127 if it cannot start, 124 if it timed out."""
    code, output, _ = await capture_world_command(command, cwd, env=env, limit=limit, apart=False)
    return code, output.decode("utf-8", "replace")


async def capture_world_command(
    command: Sequence[str],
    cwd: Path | None = None,
    *,
    env: Mapping[str, str] | None = None,
    limit: float = COMMAND_SECONDS,
    apart: bool = True,
) -> tuple[int, bytes, bytes]:
    """Return a command's exit code, stdout and stderr; stderr is part of stdout unless `apart`."""
    import asyncio  # only here: most of the start of a short reset or verify script of Python

    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if apart else asyncio.subprocess.STDOUT,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}".encode("utf-8", "replace"), b""
    try:
        output, errors = await asyncio.wait_for(process.communicate(), limit)
    except TimeoutError:
        return 124, f"no end after {limit:g} s".encode(), b""
    finally:
        if process.returncode is None:  # timed out or cancelled
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, output, errors or b""
