"""Runs from a preloaded process: imports are paid once, each run is a fork.

Asked for on stdin, one JSON object per line, several at once if need be:

    {"id": 1, "argv": [...], "env": {...}, "cwd": "...", "stdout": "path", "stderr": "path"}
    {"kill": 1}

and told on stdout as each ends, negative for the signal that ended it: {"id": 1, "exit": 0}.
The end of stdin ends everything. No thread may exist when a run is forked off.
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

type Main = Callable[[Sequence[str]], int]
type Asked = Mapping[str, object]


def serve(main: Main) -> int:
    """Fork `main` for each run asked for until stdin ends; then end what still runs."""
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, every page of the parent
    running: dict[int, object] = {}
    left = b""
    with _children_wake() as woken, selectors.SelectSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        try:
            while True:
                for key, _ in selector.select():
                    data = os.read(key.fd, 1 << 16)
                    if key.fd == woken:
                        _reap(running)
                    elif data:
                        *lines, left = (left + data).split(b"\n")
                        for line in lines:
                            _obey(json.loads(line), main, running)
                    else:
                        return 0
        finally:
            _end(running)


@contextmanager
def _children_wake() -> Iterator[int]:
    """A file descriptor that becomes readable when a child has ended."""
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


def _obey(asked: Asked, main: Main, running: dict[int, object]) -> None:
    if "kill" in asked:
        for pid, id in running.items():
            if id == asked["kill"]:
                _kill(pid)
        return
    id = asked["id"]
    pid = os.fork()
    if pid == 0:
        _run(asked, main)
    running[pid] = id
    with suppress(ProcessLookupError, PermissionError):  # the child may have done so, or be gone
        os.setpgid(pid, pid)


def _reap(running: dict[int, object]) -> None:
    for pid in tuple(running):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            told = {"id": running.pop(pid), "exit": os.waitstatus_to_exitcode(status)}
            os.write(1, json.dumps(told).encode() + b"\n")


def _end(running: Mapping[int, object]) -> None:
    for pid in running:
        _kill(pid)
    for pid in running:
        os.waitpid(pid, 0)


def _kill(pid: int) -> None:
    """End a run and what it started; it is not reaped yet, so the id is still its own."""
    with suppress(ProcessLookupError, PermissionError):  # macOS refuses where all have ended
        os.killpg(pid, signal.SIGKILL)


def _run(asked: Asked, main: Main) -> Never:
    """The child: becomes the process that was asked for, and never returns to the loop."""
    code: object = 1
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        code = main(_become(asked))
    except SystemExit as stop:
        code = stop.code
    finally:
        if (error := sys.exception()) is not None:
            sys.excepthook(type(error), error, error.__traceback__)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _become(asked: Asked) -> list[str]:
    """Take on the environment, folder and files of a run; its arguments."""
    match asked:
        case {"argv": [*arguments], "env": dict(env), "cwd": str(cwd), **files}:
            os.environ.clear()
            os.environ.update(env)
            os.chdir(cwd)
            _open(0, os.devnull, os.O_RDONLY)
            for number, name in ((1, "stdout"), (2, "stderr")):
                path = str(files.get(name, os.devnull))
                _open(number, path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            return [str(argument) for argument in arguments]
    raise ValueError(f"no run: {asked!r}")


def _open(number: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o644)
    os.dup2(opened, number)
    os.close(opened)
