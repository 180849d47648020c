"""Run the agent's process: with this terminal, forwarded signals, and no process left behind."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from msgspec import Struct

from recorder.agent.isolation import AgentIsolation
from recorder.ending_signals import ENDING_SIGNALS
from traces.reachable_paths import is_reachable, is_reachable_file

GRACE_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL for leftover processes, or for an agent out of budget."""


class AgentExit(Struct, frozen=True, kw_only=True):
    """How the agent ended."""

    code: int
    """Its exit code, or 128 + n if signal n ended it."""
    out_of_budget: bool = False
    """Whether it was still running when its time was up."""
    signal: int | None = None
    """The first ending signal this process received, which it forwarded to all running agents."""
    printed: str = ""
    """The last that it printed, redacted, if its output goes to a file."""


class AgentStreams(NamedTuple):
    """The agent's standard input, output and error; None inherits this process's."""

    stdin: int | IO[bytes] | None = None
    stdout: int | IO[bytes] | None = None
    stderr: int | IO[bytes] | None = None
    terminal: bool = False
    """Whether standard input is a terminal of the agent's own, which it shall control."""


INHERITED_STREAMS = AgentStreams()


async def run_agent_process(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    budget: float | None = None,
    streams: AgentStreams = INHERITED_STREAMS,
    grace: float = GRACE_SECONDS,
    patience: float | None = None,
    cage: AgentIsolation | None = None,
) -> AgentExit:
    """Run the agent to its end, at most `budget` seconds; no process it started survives.

    A received signal is forwarded, and the agent then has `patience` more seconds; None means no
    limit. Raises FileNotFoundError if
    the command is not on the PATH of `env` and PermissionError if it is not executable, both before
    anything is started; ChildProcessError if its isolation could not be set up. Cancelling ends the
    agent.
    """
    program = _find_agent_program(command[0], env, cwd, cage)
    wrapped = cage is not None and cage.processes
    if cage is not None:
        program, command = cage.wrap_command(program, command, env, grace)
    order_reader, order_writer = os.pipe()
    orders = _SupervisorPipe(order_writer)
    supervisor = [
        sys.executable,
        "-I",
        "-S",
        str(Path(__file__).with_name("process_supervisor.py")),
    ]
    try:
        process = subprocess.Popen(
            [
                *supervisor,
                str(order_reader),
                str(grace),
                "1" if wrapped else "0",
                program,
                *command,
            ],
            env=env,
            cwd=cwd,
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            pass_fds=(order_reader, *(cage.passed_fds if cage else ())),
            process_group=None if streams.terminal else 0,
            start_new_session=streams.terminal,
        )
    except BaseException:
        orders.close_pipe()
        raise
    finally:
        os.close(order_reader)
    ended = asyncio.get_running_loop().run_in_executor(None, _wait_for_supervisor, process)
    timed_out = False
    with _FORWARDING.forward_to(orders):
        try:
            async with asyncio.timeout(budget) as limit:
                orders.hurry = partial(_shorten_limit, limit, patience)
                if cage is not None:
                    await cage.wait_until_isolated()
                await asyncio.shield(ended)
        except TimeoutError:
            timed_out = not orders.given
        except ChildProcessError:
            if not orders.given:  # else a signal ended it before it had its namespaces
                raise
        finally:
            orders.hurry = lambda: None  # the limit is over
            orders.close_pipe()
            await asyncio.wait([ended])  # at most the grace and the supervisor's SIGKILL timeout
    code = ended.result()
    return AgentExit(
        code=code if code >= 0 else 128 - code,
        out_of_budget=timed_out,
        signal=orders.given[0] if orders.given else None,
    )


def _wait_for_supervisor(process: subprocess.Popen[bytes]) -> int:
    """Wait for its end, and continue it whenever it is stopped; return its code, -n for signal n.

    Raises ChildProcessError if this process ignores SIGCHLD: then the code is unknown.
    """
    while os.WIFSTOPPED(status := os.waitpid(process.pid, os.WUNTRACED)[1]):
        os.kill(process.pid, signal.SIGCONT)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode


class _SupervisorPipe:
    """The writing end of the supervisor's pipe: sends signals; closing it ends the agent."""

    def __init__(self, pipe: int) -> None:
        self.pipe: int | None = pipe
        self.given: list[int] = []
        self.hurry: Callable[[], object] = lambda: None

    def send_signal(self, number: int) -> None:
        self.given.append(number)
        self.hurry()
        if self.pipe is not None:
            with suppress(BrokenPipeError):  # just ended
                os.write(self.pipe, bytes((number,)))

    def close_pipe(self) -> None:
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None


def _shorten_limit(limit: asyncio.Timeout, patience: float | None) -> None:
    """Reschedule a limit to `patience` seconds from now, if that is sooner."""
    if patience is not None and not limit.expired():
        new_end, current_end = asyncio.get_running_loop().time() + patience, limit.when()
        limit.reschedule(new_end if current_end is None else min(new_end, current_end))


class _SignalForwarder:
    """Forwards the main thread's ending signals to every running agent."""

    def __init__(self) -> None:
        self._running: list[_SupervisorPipe] = []
        self._kept: dict[int, object] = {}

    @contextmanager
    def forward_to(self, orders: _SupervisorPipe) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        self._running.append(orders)
        if len(self._running) == 1:
            self._install_handlers(loop)
        try:
            yield
        finally:
            self._running.remove(orders)
            if not self._running:
                self._restore_handlers(loop)

    def _install_handlers(self, loop: asyncio.AbstractEventLoop) -> None:
        handlers = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
        self._kept = {n: handler for n, handler in handlers.items() if handler != signal.SIG_IGN}
        for number in self._kept:
            loop.add_signal_handler(number, self._signal_all_agents, number)

    def _restore_handlers(self, loop: asyncio.AbstractEventLoop) -> None:
        for number, handler in self._kept.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _signal_all_agents(self, number: int) -> None:
        for orders in tuple(self._running):
            orders.send_signal(number)


_FORWARDING = _SignalForwarder()


def _find_agent_program(
    name: str, env: Mapping[str, str], cwd: Path | None, isolation: AgentIsolation | None
) -> str:
    """Find the program as execvp does (POSIX). Raises FileNotFoundError or PermissionError.

    A name with a slash is a path from `cwd`; others are searched in the folders of PATH, of which
    an empty one is `cwd`.
    """
    folders = env.get("PATH", os.defpath).split(os.pathsep) if os.sep not in name else [""]
    room, denied = isolation.room if isolation else None, False
    for folder in folders if name else []:
        place = name if os.sep in name else f"{folder or os.curdir}{os.sep}{name}"
        location = room.locate_program(place) if room else (cwd or Path()) / place
        if is_reachable_file(location) and os.access(location, os.X_OK):
            return place
        denied |= is_reachable(location)
    if denied:
        raise PermissionError(errno.EACCES, "not a program", name)
    raise FileNotFoundError(errno.ENOENT, "no such command", name)
