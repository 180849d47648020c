"""Docker sandboxes for tests, on an image that exposes this machine's programs."""

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from functools import cache
from pathlib import Path

from recorder.agent.env import build_agent_env
from recorder.proxy.recording import RecordingProxy
from sandbox.docker import engine, images
from sandbox.sandbox_env import select_agent_env
from sandbox.types import Sandbox, SandboxLimits, SandboxResult, SandboxSpec

BOUND = 120.0


@cache
def image() -> str:
    """Return an image of this machine, built once."""
    tag = "stumble-tests:latest"
    with engine.open_docker_engine() as client:
        images.build_host_image(client, tag)
    return tag


def order(
    workspace: Path,
    proxy: RecordingProxy | None = None,
    *,
    allow: Sequence[str] = (),
    **bounds: int,
) -> SandboxSpec:
    """Return a sandbox specification for this folder, behind a recorder."""
    env: dict[str, str] = {}
    if proxy is not None:
        env = build_agent_env({}, proxy_url=proxy.url, bundle=proxy.certificate, node_hook=None)
    return SandboxSpec(
        workspace=workspace,
        env=select_agent_env(env),
        allow=tuple(allow),
        bounds=SandboxLimits(**bounds),
    )


async def said(sandbox: Sandbox, *command: str, **options: object) -> tuple[SandboxResult, str]:
    """Return a command's result and its output."""
    with tempfile.TemporaryFile() as output:
        number = output.fileno()
        ran = await sandbox.run(command, stdout=number, stderr=number, **options)  # type: ignore[arg-type]
        output.seek(0)
        return ran, output.read().decode()


def on_loop[T](main: Coroutine[object, object, T]) -> T:
    """Return the result of a coroutine, within a time limit."""
    return asyncio.run(asyncio.wait_for(main, BOUND))
