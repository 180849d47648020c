"""Run an agent from a preloaded process: imports happen once, each run is a fork.

Requests on stdin, one JSON object per line, several at once if needed:

    {"id": 1, "argv": [...], "env": {...}, "cwd": "...", "stdout": "path", "stderr": "path"}
    {"kill": 1}

Each end is reported on stdout, with a negative exit for a signal: {"id": 1, "exit": 0}. The end of
stdin ends everything. No thread may exist when a run is forked.
"""

import gc
import json
import os
import selectors
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Never

type AgentMain = Callable[[Sequence[str]], int]
type RunRequest = Mapping[str, object]


def serve_forked_runs(main: AgentMain) -> int:
    """Fork `main` for each requested run until stdin ends; then kill the remaining runs."""
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, every page of the parent
    running: dict[int, object] = {}
    rest = b""
    with _wake_on_child_exit() as woken, selectors.SelectSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        try:
            while True:
                for key, _ in selector.select():
                    data = os.read(key.fd, 1 << 16)
                    if key.fd == woken:
                        _reap_finished_runs(running)
                    elif data:
                        *lines, rest = (rest + data).split(b"\n")
                        for line in lines:
                            _handle_fork_order(json.loads(line), main, running)
                    else:
                        return 0
        finally:
            _end_all_runs(running)


@contextmanager
def _wake_on_child_exit() -> Iterator[int]:
    """Yield a file descriptor that becomes readable when a child exits."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    handlers = {
        signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda *_: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)),
    }
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    try:
        yield woken
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(woken)
        os.close(waker)


def _handle_fork_order(request: RunRequest, main: AgentMain, running: dict[int, object]) -> None:
    if "kill" in request:
        for pid, id in running.items():
            if id == request["kill"]:
                _kill_run(pid)
        return
    id = request["id"]
    pid = os.fork()
    if pid == 0:
        _run_child(request, main)
    running[pid] = id
    with suppress(
        ProcessLookupError, PermissionError
    ):  # the child may have done it already, or have exited
        os.setpgid(pid, pid)


def _reap_finished_runs(running: dict[int, object]) -> None:
    for pid in tuple(running):
        reaped, status = os.waitpid(pid, os.WNOHANG)
        if reaped:
            report = {"id": running.pop(pid), "exit": os.waitstatus_to_exitcode(status)}
            os.write(1, json.dumps(report).encode() + b"\n")


def _end_all_runs(running: Mapping[int, object]) -> None:
    for pid in running:
        _kill_run(pid)
    for pid in running:
        os.waitpid(pid, 0)


def _kill_run(pid: int) -> None:
    """Kill a run's process group; it is not reaped yet, so the id is still valid."""
    with suppress(ProcessLookupError, PermissionError):  # macOS refuses if all have exited
        os.killpg(pid, signal.SIGKILL)


def _run_child(request: RunRequest, main: AgentMain) -> Never:
    """Run the requested process in the child; never returns to the loop."""
    code: object = 1
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        code = main(_apply_run_request(request))
    except SystemExit as stop:
        code = stop.code
    finally:
        if (error := sys.exception()) is not None:
            sys.excepthook(type(error), error, error.__traceback__)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _apply_run_request(request: RunRequest) -> list[str]:
    """Apply the environment, folder and files of a run; return its arguments."""
    match request:
        case {"argv": [*arguments], "env": dict(env), "cwd": str(cwd), **files}:
            os.environ.clear()
            os.environ.update(env)
            os.chdir(cwd)
            _redirect_descriptor(0, os.devnull, os.O_RDONLY)
            for number, name in ((1, "stdout"), (2, "stderr")):
                path = str(files.get(name, os.devnull))
                _redirect_descriptor(number, path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            return [str(argument) for argument in arguments]
    raise ValueError(f"no run: {request!r}")


def _redirect_descriptor(number: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o644)
    os.dup2(opened, number)
    os.close(opened)
