"""The sandbox of the agents of a run."""

import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from recorder.agent.process import AgentStreams, run_agent_process
from sandbox import factory
from sandbox.sandbox_env import select_agent_env
from sandbox.types import SECRET_FOLDERS, Sandbox, SandboxKind, SandboxResult, SandboxSpec
from scenarios.pipeline.workload import find_workload
from stumble.pipeline.config import AGENT_HOME, PipelineConfig
from stumble.runs.environment.workspaces import COPY_VARIABLE
from stumble.user_data.paths import ca_folder

STAGE_VARIABLE = "STUMBLE_STAGE"
"""Variable with the current stage, for the agent."""


@asynccontextmanager
async def open_stage_sandbox(
    asked: PipelineConfig, folder: Path, workspace: Path, stage: str
) -> AsyncIterator[Sandbox]:
    """Open a sandbox for one agent. Raises ChildProcessError, in one line, if unavailable."""
    if asked.sandbox == "none":
        env = {name: value for name, value in os.environ.items() if name != COPY_VARIABLE}
        yield _NoSandbox(order=SandboxSpec(workspace=workspace, env=env | {STAGE_VARIABLE: stage}))
        return
    home = folder / AGENT_HOME
    home.mkdir(exist_ok=True)
    env = select_agent_env(os.environ, asked.env) | {STAGE_VARIABLE: stage}
    order = SandboxSpec(
        workspace=workspace,
        env=env,
        allow=(*factory.find_model_hosts(env), *asked.allow),
        mounts=(*factory.list_agent_mounts(), *find_workload(asked.workload).mounts()),
        home=home,
        hidden=(*SECRET_FOLDERS, *map(str, (folder, asked.store, ca_folder()))),
    )
    async with factory.open_sandbox(asked.sandbox, order, image=asked.image) as sandbox:
        yield sandbox


class _NoSandbox(Struct, frozen=True, kw_only=True):
    """No sandbox: the agent has the rights of its user."""

    order: SandboxSpec
    isolation: SandboxKind = "process"
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
    ) -> SandboxResult:
        """Run a command to its end; see `Sandbox.run`."""
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            ended = await run_agent_process(
                command,
                env={**self.order.env, **(env or {})},
                cwd=cwd or self.order.workspace,
                budget=budget,
                streams=AgentStreams(nothing if stdin is None else stdin, stdout, stderr),
            )
        if ended.signal is not None:  # the signal was for this process: raise it
            signal.raise_signal(ended.signal)
        return SandboxResult(exit=ended.code, ended="time" if ended.out_of_budget else "exit")
