"""A signal while DuckDB writes the index ends a command as it does elsewhere."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import duckdb
import pytest

from stumble.store import index
from traces.model import RunEnding, Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.writer import TapeWriter


@contextmanager
def interrupted_after(began: threading.Event) -> Iterator[None]:
    """Send SIGINT to this process in the block soon after `began`, and again each second: a
    handler's exception is lost where Python ignores exceptions, as in a destructor.
    """
    ended = threading.Event()

    def interrupt() -> None:
        began.wait(60)
        pause = 0.2
        while not ended.wait(pause):
            os.kill(os.getpid(), signal.SIGINT)
            pause = 1.0

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    sender = threading.Thread(target=interrupt)
    try:
        sender.start()
        yield
    finally:
        ended.set()
        began.set()
        sender.join(10)
        signal.signal(signal.SIGINT, before)


def ask_for_long(began: threading.Event, *_: object) -> object:
    """Run queries without end, each a short one: DuckDB may finish the one that is interrupted."""
    query = "select count(*) from range(1e7::bigint) where hash(range) = 1"
    with duckdb.connect(config={"threads": 1}) as connection:
        began.set()
        while True:
            connection.execute(query).fetchall()


def make_store(folder: Path) -> TraceStore:
    store = TraceStore(folder / ".stumble")
    store.tapes.mkdir(parents=True, exist_ok=True)
    with TapeWriter(store.tapes / "r1.tape", Trajectory(id="r1", recorded_at=0.0)) as tape:
        tape.write_ending(RunEnding(ended="final", at=1.0))
    return store


@pytest.mark.gate
@pytest.mark.parametrize("step", ["index.find_unindexed_tapes", "tape_rows.build_tables_by_run"])
def test_a_signal_while_the_index_is_written_is_an_interrupt(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, began = make_store(tmp_path), threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(f"stumble.store.{step}", partial(ask_for_long, began))
        with interrupted_after(began), pytest.raises(KeyboardInterrupt):
            index.refresh_index(store)
    assert index.refresh_index(store) == []
    with store.open_locked() as connection:
        assert connection.execute("select trajectory_id from trajectories").fetchall() == [("r1",)]
