"""One agent at one stage: its command filled in, its output kept within bounds, its end."""

import asyncio
import os
import shlex
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recorder.marks import Teller
from recorder.process import run
from stumble.workspaces import COPY

PIECE = 1 << 16
KEPT = 16 << 20
"""Bytes of its output that are kept."""
GRACE = 10.0
"""Seconds that it may go on once a model has refused for want of a budget."""
SLACK = 30.0
"""Seconds over its budget after which one that asks no model is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """How an agent ended."""

    exit: int | None
    """None where it was a budget that ended it."""
    seconds: float
    budget: str | None = None
    signal: int | None = None
    """What we were sent meanwhile, and passed on."""


def filled(command: str, said: Mapping[str, str]) -> tuple[str, ...]:
    """The words of a command with what is said in the place of `{name}`.

    ValueError where its quotes do not close. What it does not name stays as it is: braces are
    JSON's too.
    """
    words = shlex.split(command)
    for name, value in said.items():
        words = [word.replace(f"{{{name}}}", value) for word in words]
    return tuple(words)


async def started(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    teller: Teller,
    left: float | None,
) -> Went:
    """Run an agent to its end, or to that of a budget.

    FileNotFoundError and PermissionError where it cannot be run.
    """
    began = time.monotonic()
    own = {key: value for key, value in os.environ.items() if key != COPY} | dict(env)
    with _kept(log) as output:
        agent = asyncio.create_task(
            run(
                command,
                env=own,
                cwd=cwd,
                budget=None if left is None else left + SLACK,
                stdout=output,
                stderr=output,
            )
        )
        word = asyncio.create_task(teller.words.get())
        await asyncio.wait((agent, word), return_when=asyncio.FIRST_COMPLETED)
        if word.done() and not agent.done():
            await asyncio.wait((agent,), timeout=GRACE)
            agent.cancel()
        word.cancel()
        await asyncio.wait((agent, word))
    spent = word.result() if not word.cancelled() else None
    seconds = time.monotonic() - began
    if spent is not None or agent.cancelled():
        return Went(exit=None, seconds=seconds, budget=spent)
    ended = agent.result()
    if ended.budget:
        return Went(exit=None, seconds=seconds, budget="seconds")
    return Went(exit=ended.code, seconds=seconds, signal=ended.signal)


@contextmanager
def _kept(log: Path) -> Iterator[int]:
    """A pipe whose first bytes are kept in a file, and whose others are read and dropped."""
    source, sink = os.pipe()

    def keep() -> None:
        room = KEPT
        with log.open("ab") as file:
            while data := os.read(source, PIECE):
                file.write(data[:room])
                room -= len(data[:room])

    pump = threading.Thread(target=keep)
    pump.start()
    try:
        yield sink
    finally:
        os.close(sink)
        pump.join()  # all that the agent started has ended, so its ends of the pipe are closed
        os.close(source)
