"""The agent's process: started with our terminal, told our signals, ended with all it started."""

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from recorder.cage import Cage
from recorder.loop import ENDING

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL for what the agent left, or for the agent out of budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the agent ended."""

    code: int
    """Its exit code, or 128 + n where signal n ended it."""
    budget: bool = False
    """It had not ended by itself when its time was up."""
    signal: int | None = None
    """The first signal that we were sent and passed on, to all agents that ran."""


async def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    budget: float | None = None,
    stdin: int | IO[bytes] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    grace: float = GRACE,
    patience: float | None = None,
    cage: Cage | None = None,
) -> Ended:
    """Run the agent to its end, at most `budget` seconds; nothing that it started is left then.

    A signal that we get is passed on, and from then on it has `patience` seconds more; None is
    as many as it likes. Standard input, output and error are ours unless given.
    FileNotFoundError where there is no such command on the PATH of `env`, PermissionError where
    it is no program, both before anything was started; ChildProcessError where its cage could
    not be built. Cancelling ends the agent.
    """
    program = _program(command[0], env, cwd)
    if cage is not None:
        program, command = cage.wrap(program, command)
    theirs, ours = os.pipe()
    orders = _Orders(ours)
    minder = [sys.executable, "-I", "-S", str(Path(__file__).with_name("minder.py"))]
    try:
        process = subprocess.Popen(
            [*minder, str(theirs), str(grace), program, *command],
            env=env,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(theirs, *(cage.passes if cage else ())),
            process_group=0,
        )
    except BaseException:
        orders.end()
        raise
    finally:
        os.close(theirs)
    ended = asyncio.get_running_loop().run_in_executor(None, process.wait)
    late = False
    with _FORWARDING.to(orders):
        try:
            async with asyncio.timeout(budget) as limit:
                orders.hurry = partial(_hurry, limit, patience)
                if cage is not None:
                    await cage.admit()
                await asyncio.shield(ended)
        except TimeoutError:
            late = not orders.given
        finally:
            orders.end()
            await asyncio.wait([ended])  # at most the grace and what the minder adds to it
    code = process.returncode
    return Ended(
        code=code if code >= 0 else 128 - code,
        budget=late,
        signal=orders.given[0] if orders.given else None,
    )


class _Orders:
    """Our end of the minder's pipe: signals for the agent, and its end."""

    def __init__(self, pipe: int) -> None:
        self.pipe: int | None = pipe
        self.given: list[int] = []
        self.hurry: Callable[[], object] = lambda: None

    def tell(self, number: int) -> None:
        self.given.append(number)
        self.hurry()
        if self.pipe is not None:
            with suppress(BrokenPipeError):  # all has just ended
                os.write(self.pipe, bytes((number,)))

    def end(self) -> None:
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None


def _hurry(limit: asyncio.Timeout, patience: float | None) -> None:
    """End what runs under the limit when patience does, if that is sooner."""
    if patience is not None and not limit.expired():
        soon, until = asyncio.get_running_loop().time() + patience, limit.when()
        limit.reschedule(soon if until is None else min(soon, until))


class _Forwarding:
    """Passes on the signals that we get to every agent that runs, in the main thread."""

    def __init__(self) -> None:
        self._running: list[_Orders] = []
        self._kept: dict[int, object] = {}

    @contextmanager
    def to(self, orders: _Orders) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        self._running.append(orders)
        if len(self._running) == 1:
            self._take(loop)
        try:
            yield
        finally:
            self._running.remove(orders)
            if not self._running:
                self._give_back(loop)

    def _take(self, loop: asyncio.AbstractEventLoop) -> None:
        kept = {number: signal.getsignal(number) for number in ENDING}
        self._kept = {n: handler for n, handler in kept.items() if handler != signal.SIG_IGN}
        for number in self._kept:
            loop.add_signal_handler(number, self._tell, number)

    def _give_back(self, loop: asyncio.AbstractEventLoop) -> None:
        for number, handler in self._kept.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _tell(self, number: int) -> None:
        for orders in tuple(self._running):
            orders.tell(number)


_FORWARDING = _Forwarding()


def _program(name: str, env: Mapping[str, str], cwd: Path | None) -> str:
    """What to execute; FileNotFoundError or PermissionError where it cannot be."""
    there = str((cwd or Path()) / name) if os.sep in name else name
    path = env.get("PATH", os.defpath)
    if found := shutil.which(there, path=path):
        return name if os.sep in name else str(Path(found).absolute())
    if shutil.which(there, mode=os.F_OK, path=path) or Path(there).is_dir():
        raise PermissionError(errno.EACCES, "not a program", name)
    raise FileNotFoundError(errno.ENOENT, "no such command", name)
