"""One agent at one stage: started in its sandbox, ended by itself or by a budget."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from recorder.marks import Teller
from scenarios.agents.presets import Start
from scenarios.sandbox.values import Ran, Sandbox

GRACE = 10.0
"""Seconds that it may go on once a model has refused for want of a budget."""
KEPT, PIECE = 16 << 20, 1 << 16
"""Bytes of its output that are kept, and that are read at once."""
SLACK = 30.0
"""Seconds over its budget after which one that asks no model is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """How an agent ended."""

    exit: int | None
    """None where it was a budget that ended it, or a limit of its sandbox."""
    seconds: float
    budget: str | None = None
    """`calls`, `tokens`, `dollars` or `seconds`."""
    limit: str | None = None
    """`memory` or `disk`."""


async def attempt(
    sandbox: Sandbox, start: Start, *, log: Path, teller: Teller, left: float | None
) -> Went:
    """Run an agent to its end, or for as long as there is a budget; `left` are its seconds."""
    began = time.monotonic()
    with ExitStack() as files:
        output = files.enter_context(bounded(log))
        stdin = None
        if start.stdin is not None:
            told = files.enter_context(TemporaryFile())
            told.write(start.stdin.encode())
            told.seek(0)
            stdin = told.fileno()
        running = sandbox.run(
            start.command,
            env=start.env,
            budget=None if left is None else max(left, 0.0) + SLACK,
            stdin=stdin,
            stdout=output,
            stderr=output,
        )
        ran, spent = await _until(asyncio.create_task(running), teller)
    seconds = time.monotonic() - began
    if spent is not None or ran is None:
        return Went(exit=None, seconds=seconds, budget=spent)
    match ran.ended:
        case "exit":
            return Went(exit=ran.exit, seconds=seconds)
        case "time":
            return Went(exit=None, seconds=seconds, budget="seconds")
        case limit:
            return Went(exit=None, seconds=seconds, limit=limit)


async def _until(agent: "asyncio.Task[Ran]", teller: Teller) -> tuple[Ran | None, str | None]:
    """How it ended, and the budget of which the run says that it is used up."""
    word = asyncio.create_task(teller.words.get())
    try:
        await asyncio.wait((agent, word), return_when=asyncio.FIRST_COMPLETED)
        if not agent.done():
            await asyncio.wait((agent,), timeout=GRACE)
    finally:
        word.cancel()
        if not agent.done():
            agent.cancel()
        await asyncio.wait((agent, word))
    spent = None if word.cancelled() else word.result()
    return None if agent.cancelled() else agent.result(), spent


@contextmanager
def bounded(log: Path) -> Iterator[int]:
    """A pipe whose first bytes are kept in a file; the others are read and dropped."""
    source, sink = os.pipe()

    def keep() -> None:
        room = KEPT
        with log.open("ab") as file:
            while data := os.read(source, PIECE):
                room -= file.write(data[:room]) if room else 0

    pump = threading.Thread(target=keep)
    pump.start()
    try:
        yield sink
    finally:
        os.close(sink)
        pump.join()  # nothing that the agent started holds the pipe any more
        os.close(source)
