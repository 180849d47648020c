"""Rows of a shard are copied if they are those that are made anew, and only then."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stumble.campaigns.merge_shards import merge_shards
from tests.bench.merging import make_shards
from traces.model import JUDGE_VERSION
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore


def merge(folder: Path, *parts: Path) -> TraceStore:
    store = TraceStore(folder / ".stumble")
    _, refused = merge_shards(store, parts, lambda done, total: None)
    assert refused == []
    return store


def read_rows(store: TraceStore) -> dict[str, list[str]]:
    """Read all rows of all relations, in one order."""
    with store.open_locked() as connection:
        return {
            name: sorted(
                json.dumps(row, default=str).replace(str(store.root), "") for row in rows.fetchall()
            )
            for name in SCHEMAS
            if (rows := connection.execute(f'SELECT * FROM "{name}"'))
        }


def forget_index(shards: list[Path]) -> None:
    for shard in shards:
        shutil.rmtree(shard / ".stumble" / "index")


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The segments that a store copied from another."""
    names, copy = set[str](), TraceStore.copy_segments

    def note(store: TraceStore, origin: TraceStore, segments: set[str]) -> None:
        names.update(segments)
        copy(store, origin, segments)

    monkeypatch.setattr(TraceStore, "copy_segments", note)
    return names


@pytest.mark.gate
def test_copied_rows_are_those_that_are_made_anew(tmp_path: Path, copied: set[str]) -> None:
    shards = make_shards(tmp_path, 24, family=6)
    rows = read_rows(merge(tmp_path / "copied", *shards))
    assert len(copied) == 20, "all runs but the four recordings"
    copied.clear()
    forget_index(shards)
    assert read_rows(merge(tmp_path / "anew", *shards)) == rows
    assert copied == set()


@pytest.mark.gate
def test_rows_of_a_recording_with_runs_in_two_shards_are_made_anew(
    tmp_path: Path, copied: set[str]
) -> None:
    """A clean twin of the other shard is a control that the first has never seen."""
    shards = make_shards(tmp_path, 24, family=6)
    twin = shards[0] / ".stumble" / "tapes" / "source-0-2.tape"
    twin.rename(shards[1] / ".stumble" / "tapes" / twin.name)
    rows = read_rows(merge(tmp_path / "copied", *shards))
    assert {name.rsplit("-", 1)[0] for name in copied} == {"source-1", "source-2", "source-3"}
    forget_index(shards)
    assert read_rows(merge(tmp_path / "anew", *shards)) == rows


@pytest.mark.gate
def test_a_shard_whose_result_was_left_out_gives_no_rows(tmp_path: Path, copied: set[str]) -> None:
    """Of two results of a cell the first stays, and the other was judged beside it."""
    shards = make_shards(tmp_path, 24, family=6)
    here = merge(tmp_path / "merged", shards[0])
    copied.clear()
    tapes = here.root / "tapes"
    (tapes / "source-0-4.tape").unlink()
    here.drop("source-0-4")
    merge(tmp_path / "merged", shards[0])
    assert copied == set()
    assert "source-0-4" in here.segments()


@pytest.mark.gate
@pytest.mark.parametrize("version", [JUDGE_VERSION - 1, JUDGE_VERSION + 1])
def test_verdicts_of_another_judge_are_made_anew(
    tmp_path: Path, copied: set[str], version: int
) -> None:
    shards = make_shards(tmp_path, 24, family=6)
    for path in (shards[0] / ".stumble" / "index" / "bundles").glob("*/outcomes.parquet"):
        rows = pq.read_table(path)
        column = pa.array([version] * rows.num_rows, pa.int64())
        at = rows.schema.get_field_index("judge_version")
        pq.write_table(rows.set_column(at, rows.schema.field(at), column), path)
    store = merge(tmp_path / "merged", *shards)
    assert not any(name.startswith("source-0-") for name in copied)
    assert {each for each in read_versions(store)} == {JUDGE_VERSION}


def read_versions(store: TraceStore) -> list[int]:
    with store.open_locked() as connection:
        rows = connection.execute("SELECT DISTINCT judge_version FROM outcomes").fetchall()
    return [version for (version,) in rows]
