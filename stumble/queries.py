"""A statement that somebody else may have written, run over the index within limits."""

import atexit
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from traces.landlock import forbid_changes
from traces.sql.read_only import check_reads_only
from traces.store import Store, confine

GRACE = 5.0
"""Seconds that DuckDB has to end a statement that was interrupted."""
_ATTEMPTS = 6
_CLOCK_TICK = 0.05
"""Seconds by which the times of files may be behind the clock."""
_HEADROOM = 512 * 2**20
"""Bytes beside the statement's own: for Python, and for threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """What a statement may use: gigabytes of memory and seconds; 0 seconds are no limit."""

    memory: float = 2.0
    seconds: float = 300.0


def run_query[T](
    store: Store,
    text: str,
    parameters: Mapping[str, object] | None,
    limits: QueryLimits,
    fetch: Callable[[duckdb.DuckDBPyConnection], T],
) -> T:
    """What `fetch` makes of the answer to a statement; ValueError says why there is none.

    The connection is read-only and opens no file but those of the index.
    """

    def run(connection: duckdb.DuckDBPyConnection) -> T:
        check_reads_only(connection, text)
        confine(connection, store.index, limits.memory)
        with _time_limit(connection, limits.seconds):
            return fetch(connection.execute(text, parameters))

    try:
        return _while_others_write(store, run)
    except (duckdb.OutOfMemoryException, MemoryError):
        raise ValueError(
            f"this needs more than {limits.memory:g} GB of memory; narrow it, or give --memory"
        ) from None
    except duckdb.InterruptException:
        raise ValueError(_too_slow(limits.seconds)) from None
    except duckdb.Error as error:
        raise ValueError(str(error)) from None


def restrict_process(limits: QueryLimits) -> None:
    """Have the kernel hold this process to reading, to its memory and to its time, for good."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(int(limits.memory * 1e9) + _HEADROOM)
    forbid_changes()
    if limits.seconds:
        overdue = threading.Timer(limits.seconds + GRACE, _give_up, [limits.seconds])
        overdue.daemon = True
        overdue.start()
        atexit.register(_stop, overdue)  # or DuckDB prints a page about what a thread still holds


def _stop(timer: threading.Timer) -> None:
    timer.cancel()
    timer.join(1)


def _while_others_write[T](store: Store, run: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
    """What `run` finds out, run again if it failed when files of the index were replaced."""
    for _ in range(_ATTEMPTS - 1):
        started = time.time()
        try:
            with store.connect() as connection:
                return run(connection)
        except duckdb.Error:
            if store.changed_at() < started - _CLOCK_TICK:
                raise
    with store.connect() as connection:
        return run(connection)


@contextmanager
def _time_limit(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt what the connection does after so many seconds."""
    timer = threading.Timer(seconds, connection.interrupt) if seconds else None
    if timer is None:
        yield
        return
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _limit_memory(more: int) -> None:
    """Let this process have so many bytes more than it has now; only Linux counts them."""
    status = Path("/proc/self/status")
    if not status.exists():
        return
    used = int(status.read_text().split("VmData:")[1].split()[0]) * 1024
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + more
    limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def _give_up(seconds: float) -> None:
    """End the process, in which a statement does not heed that it was interrupted."""
    os.write(2, f"error: {_too_slow(seconds)}\n".encode())
    os._exit(2)


def _too_slow(seconds: float) -> str:
    return f"this takes more than {seconds:g} s; narrow it, or give --timeout"
