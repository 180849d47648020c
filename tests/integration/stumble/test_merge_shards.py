"""Tapes of shards that cannot be used are left out, and merged once they are whole."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stumble.campaigns.merge_shards import MergedCampaign, merge_shards
from traces.model import RunEnding, Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.frames import MAGIC
from traces.tape.writer import TapeWriter

CELLS = ("get#1/sign/1", "get#1/sign/2")


def make_part(folder: Path, number: int, name: str, cell: str) -> Path:
    """Write the store of one of two shards, with one run; return the run's tape."""
    store = TraceStore(folder / ".stumble")
    plan = {"said": {"name": "many"}, "shards": 2, "begun": [number]}
    path = store.root / "campaigns" / "many" / "plan.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(plan))
    head = Trajectory(
        id=name, recorded_at=3600.0 * number, source="fork", parent="source", campaign="many",
        cell=cell, condition="fault",
    )  # fmt: skip
    tape = store.tapes / f"{name}.tape"
    with TapeWriter(tape, head) as writer:
        writer.write_ending(RunEnding(ended="final", exit_code=0, passed=True))
    return tape


def merge(store: TraceStore, *parts: Path) -> tuple[MergedCampaign, list[str]]:
    [campaign], refused = merge_shards(store, parts, lambda done, total: None)
    return campaign, refused


def list_runs(store: TraceStore) -> list[tuple[object, ...]]:
    with store.connect() as connection:
        return connection.execute(
            "SELECT trajectory_id, passed FROM trajectories ORDER BY ALL"
        ).fetchall()


def cut_off(tape: Path) -> None:
    tape.write_bytes(tape.read_bytes()[:-20])


def make_empty(tape: Path) -> None:
    tape.write_bytes(b"")


def make_newer(tape: Path) -> None:
    data = bytearray(tape.read_bytes())
    data[len(MAGIC)] = 99
    tape.write_bytes(data)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut_off, "still being written, or was cut off"),
        (make_empty, "not a tape"),
        (make_newer, "tape format 99, this version reads up to"),
    ],
)
def test_a_tape_that_cannot_be_used_is_named_and_merged_once_it_is_whole(
    tmp_path: Path, damage: Callable[[Path], None], reason: str
) -> None:
    one, two = (make_part(tmp_path / f"{n}", n, f"run-{n}", CELLS[n - 1]) for n in (1, 2))
    store, whole = TraceStore(tmp_path / "merged"), one.read_bytes()
    damage(one)
    campaign, [why] = merge(store, tmp_path / "1", tmp_path / "2")
    assert campaign.added == 1
    assert str(one) in why
    assert reason in why
    assert list_runs(store) == [("run-2", True)]
    one.write_bytes(whole)
    campaign, refused = merge(store, tmp_path / "1", tmp_path / "2")
    assert (campaign.added, campaign.present, refused) == (1, 1, [])
    assert list_runs(store) == [("run-1", True), ("run-2", True)]


def test_half_a_result_does_not_keep_another_from_its_cell(tmp_path: Path) -> None:
    cut_off(make_part(tmp_path / "1", 1, "half", CELLS[0]))
    make_part(tmp_path / "2", 2, "again", CELLS[0])
    store = TraceStore(tmp_path / "merged")
    campaign, [why] = merge(store, tmp_path / "1", tmp_path / "2")
    assert "half" in why
    assert (campaign.added, campaign.repeated) == (1, 0)
    assert list_runs(store) == [("again", True)]


def test_a_half_tape_of_this_store_is_replaced_by_the_whole_one(tmp_path: Path) -> None:
    tape = make_part(tmp_path / "1", 1, "run", CELLS[0])
    store = TraceStore(tmp_path / "merged")
    (store.tapes / tape.name).write_bytes(tape.read_bytes()[:-20])
    campaign, refused = merge(store, tmp_path / "1")
    assert (campaign.added, refused) == (1, [])
    assert list_runs(store) == [("run", True)]
