"""Execution of untrusted SQL statements over the index, within limits."""

import atexit
import os
import resource
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import duckdb
from msgspec import Struct

from recorder.ending_signals import SignalInterrupt, handle_ending_signals
from traces.store.landlock import forbid_changes
from traces.store.query_signals import restore_interrupts
from traces.store.sql.read_only import check_reads_only
from traces.store.trace_store import TraceStore, confine_connection, escape_wildcards

INTERRUPT_GRACE = 5.0
"""Seconds that DuckDB gets to end an interrupted statement."""
_INTERRUPT_AGAIN = 0.1
"""Seconds until a statement is interrupted once more."""
_ATTEMPTS = 6
_CLOCK_TICK = 0.05
"""Largest lag of file times behind the clock, in seconds."""
_READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".parquet": "read_parquet",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
"""The function that reads a file of the user, by its suffix."""
_HEADROOM = 512 * 2**20
"""Extra bytes for Python and threads."""


class QueryLimits(Struct, frozen=True, kw_only=True):
    """Limits of a statement: memory in GB and time in seconds; 0 seconds is no limit."""

    memory: float = 2.0
    seconds: float = 300.0


def run_query[T](
    store: TraceStore,
    text: str,
    parameters: Mapping[str, object] | None,
    limits: QueryLimits,
    fetch: Callable[[duckdb.DuckDBPyConnection], T],
    own: Mapping[str, Path] | None = None,
) -> T:
    """Run a statement and return the value of `fetch`. Raises ValueError if it fails, and
    KeyboardInterrupt after a signal.

    The connection is read-only and can open only files of the index. The files `own` are read
    before the statement, as tables of these names.
    """

    def run(connection: duckdb.DuckDBPyConnection) -> T:
        for name, path in (own or {}).items():
            _read_own_table(connection, name, path)
        check_reads_only(connection, text)
        confine_connection(connection, store.index, limits.memory)
        with _interrupt_on_signal(connection), _time_limit(connection, limits.seconds):
            return fetch(connection.execute(text, parameters))

    try:
        with restore_interrupts():
            return _retry_during_writes(store, run)
    except (duckdb.OutOfMemoryException, MemoryError):
        raise ValueError(
            f"this needs more than {limits.memory:g} GB of memory; narrow it, or give --memory"
        ) from None
    except duckdb.InterruptException:
        raise ValueError(_describe_timeout(limits.seconds)) from None
    except duckdb.Error as error:
        raise ValueError(str(error)) from None


def _read_own_table(connection: duckdb.DuckDBPyConnection, name: str, path: Path) -> None:
    reader = _READERS[path.suffix.lower()]
    sql = f'CREATE TEMP TABLE "{name}" AS SELECT * FROM {reader}(?)'
    connection.execute(sql, [escape_wildcards(str(path))])


def parse_own_table(text: str, known: Collection[str]) -> tuple[str, Path]:
    """Return name and file of a table `NAME=FILE` of the user.

    Raises ValueError if the name is not one, or one of `known`, or the file cannot be read.
    """
    name, _, file = text.partition("=")
    path = Path(file)
    if not name.isidentifier() or not file:
        raise ValueError(f"{text!r} is not NAME=FILE")
    if name in known:
        raise ValueError(f"{name!r} is a name of the store: name the table otherwise")
    if path.suffix.lower() not in _READERS:
        raise ValueError(f"{path} ends in none of {', '.join(_READERS)}")
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    return name, path


def restrict_process(limits: QueryLimits) -> None:
    """Irrevocably limit this process to reading, and to its memory and time."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(int(limits.memory * 1e9) + _HEADROOM)
    forbid_changes()
    if limits.seconds:
        overdue = threading.Timer(
            limits.seconds + INTERRUPT_GRACE, _exit_overdue_process, [limits.seconds]
        )
        overdue.daemon = True
        overdue.start()
        atexit.register(_cancel_timer, overdue)  # or DuckDB prints warnings about a running thread


def _cancel_timer(timer: threading.Timer) -> None:
    timer.cancel()
    timer.join(1)


def _retry_during_writes[T](store: TraceStore, run: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
    """Return the value of `run`; retry if it fails while files of the index are replaced."""
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
def _interrupt_on_signal(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """End the statement when a signal arrives, then raise SignalInterrupt.

    An exception of a handler that DuckDB calls makes it wait for the tasks of the query
    (`Executor::CancelTasks`); those of a recursive query end only if they are interrupted. A
    statement that starts resets an earlier interrupt, so it is repeated.
    """
    received: list[int] = []
    done = threading.Event()

    def interrupt() -> None:
        connection.interrupt()
        while not done.wait(_INTERRUPT_AGAIN):
            connection.interrupt()

    interrupter = threading.Thread(target=interrupt, daemon=True)

    def receive(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            interrupter.start()

    try:
        with handle_ending_signals(receive):
            yield
    finally:
        if received:
            done.set()
            interrupter.join()
            raise SignalInterrupt(received[0])


@contextmanager
def _time_limit(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt the connection after this many seconds; 0 is no limit."""
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
    """Limit this process to `more` bytes above its present data size; only on Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        return
    used = int(status.read_text().split("VmData:")[1].split()[0]) * 1024
    _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    needed = used + more
    limit = needed if hard_limit == resource.RLIM_INFINITY else min(needed, hard_limit)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard_limit))


def _exit_overdue_process(seconds: float) -> None:
    """End the process if a statement does not react to the interrupt."""
    os.write(2, f"error: {_describe_timeout(seconds)}\n".encode())
    os._exit(2)


def _describe_timeout(seconds: float) -> str:
    return f"this takes more than {seconds:g} s; narrow it, or give --timeout"
