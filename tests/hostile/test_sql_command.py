"""The command `stumble sql` under attack: its limits, the kernel's wall, and other processes."""

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tests.support.practice_shop import Shop
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore

CHANGES = """
import duckdb, os, sys
from pathlib import Path
from traces.store.landlock import forbid_changes

victim = Path(sys.argv[1])
if not forbid_changes():
    sys.exit(77)
refused = 0
for change in (
    lambda: duckdb.connect().execute(f"copy (select 1) to '{victim}'"),
    lambda: duckdb.connect().execute(f"copy (select 1) to '{victim}.new'"),
    lambda: victim.write_text("x"),
    lambda: os.truncate(victim, 0),
    lambda: victim.unlink(),
    lambda: victim.rename(victim.with_name("other")),
    lambda: victim.with_name("made").mkdir(),
    lambda: victim.with_name("made").symlink_to("/"),
):
    try:
        change()
    except (OSError, duckdb.Error):
        refused += 1
print(refused, victim.read_text())
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A folder whose store has its index, and no run."""
    folder = tmp_path_factory.mktemp("bare")
    shop = Shop(folder=folder, book=folder, log=folder, hosts=(), task="none")
    (shop.folder / ".stumble").mkdir()
    assert shop.stumble("sql", "select 1").code == 0
    return shop


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("select repeat('x', 3000000000)", "memory"),
        ("select range(300000000)", "memory"),
        ("from range(100000000)", "memory"),
        ("select range r from range(200000000) order by random()", "memory"),
        ("select string_agg(repeat('x', 1000000)) from range(3000)", "memory"),
    ],
)
def test_a_statement_that_wants_too_much_memory_is_ended(
    bare: Shop, statement: str, reason: str
) -> None:
    result = bare.stumble("sql", "--memory", "0.3", statement)
    assert (result.code, result.out) == (2, "")
    assert reason in result.err
    assert "--memory" in result.err


def test_a_statement_that_takes_too_long_is_ended(bare: Shop) -> None:
    began = time.monotonic()
    result = bare.stumble(
        "sql", "--timeout", "1", "select count(*) from range(1000000) a, range(10000000) b"
    )
    assert (result.code, result.out) == (2, "")
    assert "takes more than 1 s; narrow it, or give --timeout" in result.err
    assert time.monotonic() - began < 30


def test_a_time_with_its_zone_is_printed(bare: Shop) -> None:
    for form in ("table", "json", "csv"):
        assert bare.stumble("sql", "--format", form, "select now() as t").code == 0


def test_the_kernel_refuses_every_change_by_itself(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("whole")
    done = subprocess.run(
        [sys.executable, "-c", CHANGES, str(victim)], capture_output=True, text=True, timeout=60
    )
    if done.returncode == 77:
        pytest.skip("a kernel with Landlock")
    assert done.stdout.split() == ["8", "whole"], done.stderr
    assert list(tmp_path.iterdir()) == [victim]


def test_reading_never_fails_beside_one_who_replaces_what_is_read(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / ".stumble")
    store.write("s", _rows(1))
    context = multiprocessing.get_context("spawn")
    writer = context.Process(target=replace_rows, args=(store.root, 4.0))
    writer.start()
    try:
        seen = set()
        while writer.is_alive():
            with store.open_locked() as connection:
                seen.add(_sizes(connection))
    finally:
        writer.join(timeout=30)
    assert len(seen) > 1
    assert all(count == told for count, told in seen)


def replace_rows(root: Path, seconds: float) -> None:
    """Write a segment again and again, each time with other rows."""
    store, ends, size = TraceStore(root), time.monotonic() + seconds, 1
    while time.monotonic() < ends:
        size = size % 200 + 7
        store.write("s", _rows(size))


def _rows(count: int) -> Mapping[str, pa.Table]:
    """A table of so many trajectories, each of which knows how many there are."""
    schema = SCHEMAS["trajectories"]
    columns = {field.name: pa.nulls(count, field.type) for field in schema}
    columns["trajectory_id"] = pa.array([f"{'x' * count}{n}" for n in range(count)])
    columns["n_steps"] = pa.array([count] * count, pa.int64())
    return {"trajectories": pa.table(columns, schema=schema)}


def _sizes(connection: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    row = connection.execute("select count(*), max(n_steps) from trajectories").fetchone()
    assert row is not None
    count, told = row
    return count, told


INTERRUPTED = """
import os, signal, sys, threading, time
from stumble.cli.app import run_cli

def interrupt():
    while "stumble.store.query" not in sys.modules:
        time.sleep(0.05)
    time.sleep(2)
    os.kill(os.getpid(), number)

query = "with recursive r as (select 1 as a union all select a + 1 from r) select count(*) from r"
number = getattr(signal, sys.argv[1])
sys.argv = ["stumble", "sql", "--timeout", "30", query]
threading.Thread(target=interrupt, daemon=True).start()
run_cli()
"""


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_query_that_a_signal_ends_leaves_no_traceback(bare: Shop, signal: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, signal],
        cwd=bare.folder, env=bare.environment(), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    assert "leaked" not in done.stderr
