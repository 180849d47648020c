"""One agent at one stage: started in its sandbox, ended by its exit or by a budget."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from msgspec import Struct

from recorder.run_events import RunEventClient
from sandbox.types import Sandbox, SandboxResult
from scenarios.agents.presets import StartCommand

REFUSED_GRACE_SECONDS = 10.0
"""Seconds that the agent may continue after a model request was refused by a budget."""
KEPT, PIECE = 16 << 20, 1 << 16
"""Most bytes of output in the log, and bytes per read."""
OVERTIME_SECONDS = 30.0
"""Seconds over its budget after which an agent without model requests is ended."""


class AttemptResult(Struct, frozen=True, kw_only=True):
    """The end of an agent at a stage."""

    exit: int | None
    """The exit code; None if a budget or a limit of its sandbox ended it."""
    seconds: float
    budget: str | None = None
    """`calls`, `tokens`, `dollars` or `seconds`."""
    limit: str | None = None
    """`memory` or `disk`."""


async def run_stage_agent(
    sandbox: Sandbox, start: StartCommand, *, log: Path, teller: RunEventClient, left: float | None
) -> AttemptResult:
    """Run an agent to its end, or until a budget is exhausted; `left` are its seconds."""
    began = time.monotonic()
    with ExitStack() as files:
        output = files.enter_context(open_bounded_log(log))
        stdin = None
        if start.stdin is not None:
            stdin_file = files.enter_context(TemporaryFile())
            stdin_file.write(start.stdin.encode())
            stdin_file.seek(0)
            stdin = stdin_file.fileno()
        running = sandbox.run(
            start.command,
            env=start.env,
            budget=None if left is None else max(left, 0.0) + OVERTIME_SECONDS,
            stdin=stdin,
            stdout=output,
            stderr=output,
        )
        result, spent = await _wait_agent_or_budget(asyncio.create_task(running), teller)
    seconds = time.monotonic() - began
    if spent is not None or result is None:
        return AttemptResult(exit=None, seconds=seconds, budget=spent)
    match result.ended:
        case "exit":
            return AttemptResult(exit=result.exit, seconds=seconds)
        case "time":
            return AttemptResult(exit=None, seconds=seconds, budget="seconds")
        case limit:
            return AttemptResult(exit=None, seconds=seconds, limit=limit)


async def _wait_agent_or_budget(
    agent: "asyncio.Task[SandboxResult]", teller: RunEventClient
) -> tuple[SandboxResult | None, str | None]:
    """Return the result of the agent, and the budget that the run reports as exhausted."""
    budget_message = asyncio.create_task(teller.words.get())
    try:
        await asyncio.wait((agent, budget_message), return_when=asyncio.FIRST_COMPLETED)
        if not agent.done():
            await asyncio.wait((agent,), timeout=REFUSED_GRACE_SECONDS)
    finally:
        budget_message.cancel()
        if not agent.done():
            agent.cancel()
        await asyncio.wait((agent, budget_message))
    spent = None if budget_message.cancelled() else budget_message.result()
    return None if agent.cancelled() else agent.result(), spent


@contextmanager
def open_bounded_log(log: Path) -> Iterator[int]:
    """Yield a pipe whose first KEPT bytes are written to a file; the rest is dropped."""
    source, sink = os.pipe()

    def keep() -> None:
        space_left = KEPT
        with log.open("ab") as file:
            while data := os.read(source, PIECE):
                space_left -= file.write(data[:space_left]) if space_left else 0

    copier = threading.Thread(target=keep)
    copier.start()
    try:
        yield sink
    finally:
        os.close(sink)
        copier.join()  # no process of the agent has the pipe open any more
        os.close(source)
