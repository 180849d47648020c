"""Many files cost the index one look, and each run is in it once, also after it was rebuilt."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from stumble.imports.import_files import import_recordings
from stumble.store.index import refresh_index
from stumble.store.tape_files import keep_tape
from traces.exporters.otel import to_otlp_document
from traces.exporters.run_model import to_exported_run
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape

TAPE = Path(__file__).parents[2] / "data" / "golden" / "http.tape"


def trial(id: str) -> dict[str, Any]:
    return {"uuid": id, "task_id": "maze", "is_resolved": True, "failure_mode": "unset"}


def events(*answers: str) -> list[dict[str, Any]]:
    """A run of OpenHands that has no end yet."""
    first = {"source": "user", "action": "message", "args": {"content": "do"}}
    return [
        first,
        *({"source": "agent", "action": "message", "args": {"content": each}} for each in answers),
    ]


def written(folder: Path, name: str, value: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(value))
    return path


def ids_of(store: TraceStore) -> list[str]:
    with store.connect() as sql:
        return sorted(id for (id,) in sql.sql("FROM trajectories SELECT trajectory_id").fetchall())


@pytest.mark.gate
def test_files_of_one_run_are_merged_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, opened, open_locked = (
        TraceStore(tmp_path / ".stumble"),
        list[int](),
        TraceStore.open_locked,
    )

    @contextmanager
    def counting(self: TraceStore) -> Iterator[duckdb.DuckDBPyConnection]:
        opened.append(1)
        with open_locked(self) as connection:
            yield connection

    monkeypatch.setattr(TraceStore, "open_locked", counting)
    files = [written(tmp_path, f"{n}.json", trial(f"u{n}")) for n in range(40)]
    assert [each.state for each in import_recordings(store, files)] == ["new"] * 40
    assert len(opened) <= 2
    assert [each.state for each in import_recordings(store, files)] == ["known"] * 40
    assert len(opened) <= 4
    assert len(set(ids_of(store))) == len(ids_of(store)) == 40


@pytest.mark.gate
def test_states_of_a_run_in_files_that_come_together_are_one_run(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / ".stumble")
    states = (events("a"), events("a", "b", "c"), events("a", "b"), events("z"))
    files = [written(tmp_path, f"{n}.json", state) for n, state in enumerate(states)]
    found = [each.state for each in import_recordings(store, [*files, files[0]])]
    assert found == ["new", "new", "known", "new", "known"]
    assert len(ids_of(store)) == 2
    shutil.rmtree(store.index)
    assert refresh_index(TraceStore(store.root)) == []
    assert len(ids_of(TraceStore(store.root))) == 2


@pytest.mark.gate
def test_an_export_beside_its_tape_is_one_run_after_the_index_was_rebuilt(tmp_path: Path) -> None:
    store, tape = TraceStore(tmp_path / ".stumble"), read_tape(TAPE)
    keep_tape(store, TAPE, tape.trajectory.id)
    refresh_index(store)
    other = {
        "trace_id": "t", "span_id": "s", "name": "chat",
        "attributes": {"openinference.span.kind": "LLM", "output.value": "yes"},
    }  # fmt: skip
    document, _ = to_otlp_document(to_exported_run(tape))
    spans = written(tmp_path, "spans.json", [document, other])
    [result] = import_recordings(store, [spans])
    assert (result.state, result.counts["trajectories"], result.runs["known"]) == ("new", 1, 1)
    before = ids_of(store)
    shutil.rmtree(store.index)
    again = TraceStore(store.root)
    assert refresh_index(again) == []
    assert ids_of(again) == before
    assert len(before) == 2
    with again.connect() as sql:
        query = "FROM exchanges SELECT count(*) WHERE trajectory_id = ?"
        [(recorded,)] = sql.execute(query, [tape.trajectory.id]).fetchall()
    assert recorded > 0
