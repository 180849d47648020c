"""A sealed tape says what it said before, is put in place whole, and only when nobody writes it."""

import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from stumble import indexing
from tests.bench.conversation import conversation
from tests.conformance import TAPES
from tests.unit.traces.tape.test_traces_tape import RUN, exchange, exchanges, written
from traces.index import rows
from traces.model import Ending, Exchange
from traces.relations import SCHEMAS
from traces.store import Store
from traces.tape import Tape, Writer, frames, read, request, seal


def said(tape: Tape) -> Tape:
    """The tape without where it lies."""
    return replace(tape, path=Path(), spans={})


@given(given_exchanges=exchanges())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_sealed_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, given_exchanges: list[Exchange]
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.tape"
    before = read(written(path, *given_exchanges, redact=False))

    assert seal(path)

    assert said(read(path)) == said(before)
    assert list(read(path).exchanges) == given_exchanges
    assert not seal(path), "also where it holds nothing"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["plain", "stream", "cut", "error", "edited", "anew", "format_1"])
def test_tapes_of_any_shape_and_format_are_sealed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    shutil.copy(TAPES / f"{name}.tape", path)

    assert seal(path)
    assert said(read(path)) == said(read(TAPES / f"{name}.tape"))
    assert not seal(path)


@pytest.mark.parametrize("name", ["damaged", "torn", "sealed", "blocks"])
def test_what_is_damaged_or_sealed_stays_as_it_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    shutil.copy(TAPES / f"{name}.tape", path)

    assert not seal(path)
    assert path.read_bytes() == (TAPES / f"{name}.tape").read_bytes()


@pytest.mark.parametrize(("steps", "share"), [(60, 60), (200, 100)])
def test_a_long_conversation_is_sealed_to_a_fraction(
    steps: int, share: int, tmp_path: Path
) -> None:
    spoken = list(conversation(steps))
    path = written(tmp_path / "a.tape", *spoken)
    raw = sum(len(x.request.body) + len(x.response.body) for x in spoken if x.response)

    assert seal(path)
    assert path.stat().st_size < raw / share
    assert list(read(path).exchanges) == spoken


def test_a_tape_that_is_being_written_is_not_sealed(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    with Writer(path, RUN) as tape:
        tape.exchange(exchange(0))
        assert not seal(path)
        tape.exchange(exchange(1))
    assert [x.seq for x in read(path).exchanges] == [0, 1]
    assert seal(path)


def test_bodies_are_found_by_what_the_index_says_sealed_or_not(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    shutil.copy(TAPES / "deltas.tape", path)
    asked = {x.seq: x.request for x in read(path).exchanges}
    before = read(path).spans
    seal(path)
    for spans in (read(path).spans, before):
        for seq in (0, 63, 64, 65, 87):
            assert request(path, seq, *spans[seq]) == asked[seq]
    with pytest.raises(ValueError, match="no exchange 88"):
        request(path, 88, 0, 100)


def test_rows_point_at_the_block(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tape", exchange(0), exchange(1))
    seal(path)
    _, block, _ = frames.outer(path.read_bytes())
    assert isinstance(block, frames.Frame)
    at = SCHEMAS["exchanges"].names.index("tape")
    where = {tuple(row[at : at + 3]) for row in rows(read(path))["exchanges"]}
    assert where == {(str(path), block.offset, block.length)}


SEAL_SLOWLY = """
import os, signal, sys
from pathlib import Path
from traces.tape import seal
fsync = os.fsync
def stop(file):
    print("half", flush=True)
    signal.pause()
os.fsync = stop
seal(Path(sys.argv[1]))
"""


def test_killed_while_it_seals_the_old_tape_is_whole_and_is_sealed_the_next_time(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "a.tape", *(exchange(seq, b"x" * 5000) for seq in range(9)))
    data, before = path.read_bytes(), read(path)
    command = [sys.executable, "-c", SEAL_SLOWLY, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as sealing:
        assert sealing.stdout is not None
        assert sealing.stdout.readline() == b"half\n"
        assert not seal(path), "two at once"
        sealing.send_signal(signal.SIGKILL)
        sealing.wait(timeout=30)

    assert path.read_bytes() == data
    assert [each.name for each in tmp_path.iterdir() if each != path] == [".a.tape.sealing"]
    assert seal(path)
    assert said(read(path)) == said(before)
    assert list(tmp_path.iterdir()) == [path]


RECORD_UNTIL_KILLED = """
import signal, sys
from pathlib import Path
from tests.unit.traces.tape.test_traces_tape import RUN, exchange
from traces.tape import Writer
tape = Writer(Path(sys.argv[1]), RUN)
tape.exchange(exchange(0))
tape.request(exchange(1))
print("there", flush=True)
signal.pause()
"""


def test_what_a_killed_run_left_is_sealed_by_whoever_indexes_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    path = store.tapes / "run-1.tape"
    command = [sys.executable, "-c", RECORD_UNTIL_KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as recording:
        assert recording.stdout is not None
        assert recording.stdout.readline() == b"there\n"
        unsealed = path.read_bytes()
        assert indexing.refresh(store) == []
        assert path.read_bytes() == unsealed, "it is still being written"
        recording.send_signal(signal.SIGKILL)
        recording.wait(timeout=30)
    before = read(path)

    assert indexing.refresh(store) == []

    assert not seal(path), "it is sealed"
    assert said(read(path)) == said(before)
    with store.connect() as connection:
        assert connection.execute("select count(*) from exchanges").fetchone() == (2,)


def test_an_ended_run_is_sealed_with_its_ending(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tape", exchange(0))
    seal(path)
    assert read(path).ending == Ending(ended="final", exit_code=0, passed=True, at=9.0)


@pytest.mark.parametrize("share", [0.55, 0.7, 0.85, 0.99])
def test_damage_in_a_block_costs_what_follows_it_and_not_all(tmp_path: Path, share: float) -> None:
    whole = [*conversation(12)]
    path = written(tmp_path / "a.tape", *whole)
    assert seal(path)
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 8
    path.write_bytes(bytes(data))

    found = read(path)

    assert found.damage
    assert found.exchanges
    asked = [exchange.request for exchange in found.exchanges]
    assert asked == [exchange.request for exchange in whole][: len(asked)]
