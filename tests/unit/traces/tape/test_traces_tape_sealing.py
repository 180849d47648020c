"""A sealed tape says what it said before, is put in place whole, and only when nobody writes it."""

import shutil
import signal
import subprocess
import sys
from copy import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from stumble.store import index
from tests.bench.conversation import conversation
from tests.support.stores.conformance_tapes import TAPES
from tests.unit.traces.tape.test_traces_tape import RUN, exchange, exchanges, written
from traces.model import Exchange, RunEnding
from traces.store.rows import build_tape_rows
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore
from traces.tape import frames
from traces.tape.reader import Tape, read_tape, read_tape_request
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter


def said(tape: Tape) -> Tape:
    """The tape without where it lies."""
    return replace(tape, path=Path(), spans={})


@given(given_exchanges=exchanges())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_sealed_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, given_exchanges: list[Exchange]
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.tape"
    before = read_tape(written(path, *given_exchanges, redact=False))

    assert seal_tape(path)

    assert said(read_tape(path)) == said(before)
    assert list(read_tape(path).exchanges) == given_exchanges
    assert not seal_tape(path), "also where it holds nothing"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "name", ["plain", "packed", "stream", "cut", "error", "edited", "anew", "format_1"]
)
def test_tapes_of_any_shape_and_format_are_sealed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    shutil.copy(TAPES / f"{name}.tape", path)

    assert seal_tape(path)
    assert said(read_tape(path)) == said(read_tape(TAPES / f"{name}.tape"))
    assert not seal_tape(path)


@pytest.mark.parametrize("name", ["damaged", "torn", "sealed", "blocks"])
def test_what_is_damaged_or_sealed_stays_as_it_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    shutil.copy(TAPES / f"{name}.tape", path)

    assert not seal_tape(path)
    assert path.read_bytes() == (TAPES / f"{name}.tape").read_bytes()


@pytest.mark.gate
@pytest.mark.parametrize(("steps", "share"), [(60, 60), (200, 100)])
def test_a_long_conversation_is_sealed_to_a_fraction(
    steps: int, share: int, tmp_path: Path
) -> None:
    spoken = list(conversation(steps))
    path = written(tmp_path / "a.tape", *spoken)
    raw = sum(len(x.request.body) + len(x.response.body) for x in spoken if x.response)

    assert seal_tape(path)
    assert path.stat().st_size < raw / share
    assert list(read_tape(path).exchanges) == spoken


def test_a_tape_that_is_being_written_is_not_sealed(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    with TapeWriter(path, RUN) as tape:
        tape.write_exchange(exchange(0))
        assert not seal_tape(path)
        tape.write_exchange(exchange(1))
    assert [x.seq for x in read_tape(path).exchanges] == [0, 1]
    assert seal_tape(path)


def test_bodies_are_found_by_what_the_index_says_sealed_or_not(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    shutil.copy(TAPES / "deltas.tape", path)
    asked = {x.seq: x.request for x in read_tape(path).exchanges}
    before = read_tape(path).spans
    seal_tape(path)
    for spans in (read_tape(path).spans, before):
        for seq in (0, 63, 64, 65, 87):
            assert read_tape_request(path, seq, *spans[seq]) == asked[seq]
    with pytest.raises(ValueError, match="no exchange 88"):
        read_tape_request(path, 88, 0, 100)


def test_rows_point_at_the_block(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tape", exchange(0), exchange(1))
    seal_tape(path)
    _, block, _ = frames.read_outer_frames(path.read_bytes())
    assert isinstance(block, frames.TapeFrame)
    at = SCHEMAS["exchanges"].names.index("tape")
    where = {tuple(row[at : at + 3]) for row in build_tape_rows(read_tape(path))["exchanges"]}
    assert where == {(str(path), block.offset, block.length)}


SEAL_SLOWLY = """
import os, signal, sys
from pathlib import Path
from traces.tape.seal import seal_tape
fsync = os.fsync
def stop(file):
    print("half", flush=True)
    signal.pause()
os.fsync = stop
seal_tape(Path(sys.argv[1]))
"""


def test_killed_while_it_seals_the_old_tape_is_whole_and_is_sealed_the_next_time(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "a.tape", *(exchange(seq, b"x" * 5000) for seq in range(9)))
    data, before = path.read_bytes(), read_tape(path)
    command = [sys.executable, "-c", SEAL_SLOWLY, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as sealing:
        assert sealing.stdout is not None
        assert sealing.stdout.readline() == b"half\n"
        assert not seal_tape(path), "two at once"
        sealing.send_signal(signal.SIGKILL)
        sealing.wait(timeout=30)

    assert path.read_bytes() == data
    assert [each.name for each in tmp_path.iterdir() if each != path] == [".a.tape.sealing"]
    assert seal_tape(path)
    assert said(read_tape(path)) == said(before)
    assert list(tmp_path.iterdir()) == [path]


RECORD_UNTIL_KILLED = """
import signal, sys
from pathlib import Path
from tests.unit.traces.tape.test_traces_tape import RUN, exchange
from traces.tape.writer import TapeWriter
tape = TapeWriter(Path(sys.argv[1]), RUN)
tape.write_exchange(exchange(0))
tape.request(exchange(1))
print("there", flush=True)
signal.pause()
"""


@pytest.mark.gate
def test_what_a_killed_run_left_is_sealed_by_whoever_indexes_it(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "store")
    path = store.tapes / "run-1.tape"
    command = [sys.executable, "-c", RECORD_UNTIL_KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as recording:
        assert recording.stdout is not None
        assert recording.stdout.readline() == b"there\n"
        unsealed = path.read_bytes()
        assert index.refresh_index(store) == []
        assert path.read_bytes() == unsealed, "it is still being written"
        recording.send_signal(signal.SIGKILL)
        recording.wait(timeout=30)
    before = read_tape(path)

    assert index.refresh_index(store) == []

    assert not seal_tape(path), "it is sealed"
    assert said(read_tape(path)) == said(before)
    with store.connect() as connection:
        assert connection.execute("select count(*) from exchanges").fetchone() == (2,)


def test_an_ended_run_is_sealed_with_its_ending(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tape", exchange(0))
    seal_tape(path)
    assert read_tape(path).ending == RunEnding(ended="final", exit_code=0, passed=True, at=9.0)


@pytest.mark.parametrize("share", [0.55, 0.7, 0.85, 0.99])
def test_damage_in_a_block_costs_what_follows_it_and_not_all(tmp_path: Path, share: float) -> None:
    whole = [*conversation(12)]
    path = written(tmp_path / "a.tape", *whole)
    assert seal_tape(path)
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 8
    path.write_bytes(bytes(data))

    found = read_tape(path)

    assert found.damage
    assert found.exchanges
    asked = [exchange.request for exchange in found.exchanges]
    assert asked == [exchange.request for exchange in whole][: len(asked)]
