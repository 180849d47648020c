"""Ten thousand damaged tapes: no traceback, no hang, and no more memory than one of them takes."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from stumble.store import index
from tests.hostile.damaged import damaged, in_full, seeds
from tests.hostile.walked import walk
from tests.support.peak_memory import read_peak_memory
from tests.support.stores.third_party_recordings import flows
from traces.model import RunEnding, Trajectory
from traces.redaction.scrub import scrub_tape
from traces.store.trace_store import TraceStore
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

SLOW = 2.0
"""Seconds of CPU that no damaged tape may take; whole ones take milliseconds."""
GROWTH = 400 << 20
TALKS = (
    "claude-code.fwd.rest",
    "codex.fwd.websocket",
    "mini-swe-agent-openai.fwd.rest",
    "opencode-anthropic.fwd.rest",
)


def walk_all(folder: Path, seed: int, count: int, whole: Mapping[str, bytes] | None = None) -> int:
    """How many of the damaged tapes were readable; fails at one that is slow or takes too much."""
    path, readable, before = folder / "damaged.tape", 0, read_peak_memory()
    for how, data in damaged(seed, count, whole):
        path.write_bytes(data)
        began = time.process_time()
        try:
            readable += walk(path)
        except Exception as error:
            raise AssertionError(how) from error
        assert time.process_time() - began < SLOW, how
    assert read_peak_memory() - before < GROWTH
    return readable


@pytest.fixture(scope="module")
def talks(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """Tapes of what real agents said to models, each with a few exchanges in full."""
    folder, found = tmp_path_factory.mktemp("talks"), {}
    for name in TALKS:
        path = folder / f"{name}.tape"
        with TapeWriter(path, Trajectory(id="talk", recorded_at=0.0)) as tape:
            small = [each for each in flows(shared, name) if len(each.request.body) < 100_000]
            for exchange in small[:6]:
                tape.write_exchange(exchange)
            tape.write_ending(RunEnding(ended="final"))
        found[name] = in_full(path)
    return found


@pytest.mark.many(1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
def test_damaged_tapes_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    assert walk_all(tmp_path, seed, 2000) > 1000


@pytest.mark.many(1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(2))
def test_what_agents_say_may_be_anything(
    seed: int, talks: Mapping[str, bytes], tmp_path: Path
) -> None:
    assert walk_all(tmp_path, seed, 1000, talks) > 500


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_no_damaged_tape_keeps_others_out_of_the_index(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / ".stumble")
    whole = seeds()["plain"]
    for number, (how, data) in enumerate(damaged(100, 120)):
        path = store.tapes / "run-1.tape"
        path.write_bytes(data if number % 40 else whole)
        try:
            index.refresh_index(store)
            path.write_bytes(data)
            for changed in (
                seal_tape,
                lambda path: scrub_tape(path, tmp_path / "new.tape", tmp_path / "part", over=True),
            ):
                try:
                    changed(path)
                except ValueError:
                    continue
        except Exception as error:
            raise AssertionError(how) from error
