"""The sandbox in which the agents of a run work."""

import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from recorder.process import run
from scenarios.sandbox import opening
from scenarios.sandbox.passing import passed
from scenarios.sandbox.values import Isolation, Order, Ran, Sandbox
from stumble.pipeline.asked import Asked
from stumble.pipeline.workload import workload
from stumble.workspaces import COPY

STAGE = "STUMBLE_STAGE"
"""Tells the agent at which stage it is."""
HOME = "home"
"""Where the agents of a run are at home, so that one can go on with a conversation."""


@asynccontextmanager
async def opened(asked: Asked, folder: Path, workspace: Path, stage: str) -> AsyncIterator[Sandbox]:
    """A sandbox for one agent; ChildProcessError, in one line, where it cannot be had."""
    if asked.sandbox == "none":
        env = {name: value for name, value in os.environ.items() if name != COPY}
        yield _Plain(order=Order(workspace=workspace, env=env | {STAGE: stage}))
        return
    home = folder / HOME
    home.mkdir(exist_ok=True)
    env = passed(os.environ, asked.env) | {STAGE: stage}
    order = Order(
        workspace=workspace,
        env=env,
        allow=(*opening.models(env), *asked.allow),
        mounts=(*opening.ours(), *workload(asked.workload).mounts()),
        home=home,
    )
    async with opening.opened(asked.sandbox, order, image=asked.image) as sandbox:
        yield sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plain:
    """No sandbox: the agent is as free as its user."""

    order: Order
    isolation: Isolation = "process"
    weaker: tuple[str, ...] = ("the agent is a process like any other of its user",)
    refused: Mapping[str, int] = field(default_factory=dict)

    async def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        budget: float | None = None,
        stdin: int | None = None,
        stdout: int = 1,
        stderr: int = 2,
    ) -> Ran:
        """Run a command to its end; see `Sandbox.run`."""
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            ended = await run(
                command,
                env={**self.order.env, **(env or {})},
                cwd=cwd or self.order.workspace,
                budget=budget,
                stdin=nothing if stdin is None else stdin,
                stdout=stdout,
                stderr=stderr,
            )
        if ended.signal is not None:  # it was told in our place; now we are
            signal.raise_signal(ended.signal)
        return Ran(exit=ended.code, ended="time" if ended.budget else "exit")
