"""Sandboxes for tests: of docker, on an image that shows this machine's own programs."""

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from functools import cache
from pathlib import Path

from recorder.environment import environment
from recorder.proxy import Proxy
from scenarios.sandbox import engine, images
from scenarios.sandbox.passing import passed
from scenarios.sandbox.values import Bounds, Order, Ran, Sandbox

BOUND = 60.0


@cache
def image() -> str:
    """An image of this machine, made once."""
    tag = "stumble-tests:latest"
    with engine.engine() as client:
        images.from_machine(client, tag)
    return tag


def order(
    workspace: Path, proxy: Proxy | None = None, *, allow: Sequence[str] = (), **bounds: int
) -> Order:
    """A sandbox for this folder, behind a recorder."""
    env: dict[str, str] = {}
    if proxy is not None:
        env = environment({}, proxy_url=proxy.url, bundle=proxy.certificate, node_hook=None)
    return Order(workspace=workspace, env=passed(env), allow=tuple(allow), bounds=Bounds(**bounds))


async def said(sandbox: Sandbox, *command: str, **options: object) -> tuple[Ran, str]:
    """How a command ended, and all it printed."""
    with tempfile.TemporaryFile() as output:
        number = output.fileno()
        ran = await sandbox.run(command, stdout=number, stderr=number, **options)  # type: ignore[arg-type]
        output.seek(0)
        return ran, output.read().decode()


def on_loop[T](main: Coroutine[object, object, T]) -> T:
    """What it returns, within a bound."""
    return asyncio.run(asyncio.wait_for(main, BOUND))
