"""A run is in the store once, whatever file, layout or state of it was imported, and how often."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from tests.support.stores.in_memory_relations import answers, one
from traces.importers import read_run_tables
from traces.importers.run_merge import forget_runs, import_to_store, restore_imports
from traces.store.trace_store import TraceStore

RUNS = [
    {
        "task_id": n,
        "trial": 0,
        "reward": n % 2,
        "traj": [
            {"role": "system", "content": "# Airline agent policy"},
            {"role": "user", "content": f"task {n}"},
            {"role": "assistant", "content": "done ###STOP###"},
        ],
    }
    for n in range(5)
]
EVENTS = [
    {"source": "user", "action": "message", "args": {"content": "do"}, "timestamp": "2026-01-01"},
    {"source": "agent", "action": "run", "args": {"command": "ls"}},
    {"source": "agent", "observation": "run", "content": "a", "extras": {"exit_code": 0}},
    {"source": "agent", "action": "finish", "args": {"thought": "so"}},
]


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    return TraceStore(tmp_path / ".stumble")


def written(path: Path, value: object, **how: int) -> Path:
    path.write_text(json.dumps(value, **how))  # type: ignore[arg-type]
    return path


def facts(store: TraceStore) -> list[dict[str, object]]:
    with store.connect() as sql:
        return answers(sql, "FROM trajectories ORDER BY trajectory_id")


@pytest.mark.gate
def test_six_disguises_of_a_file_are_its_runs_once(store: TraceStore, tmp_path: Path) -> None:
    import_to_store(store, written(tmp_path / "gpt-4o-airline.json", RUNS))
    before = facts(store)
    packed = tmp_path / "gpt-4o-airline.json.gz"
    packed.write_bytes(gzip.compress((tmp_path / "gpt-4o-airline.json").read_bytes()))
    for disguise in (
        packed,
        written(tmp_path / "prefix.json", RUNS[:3]),
        written(tmp_path / "indented.json", RUNS, indent=2),
        written(tmp_path / "renamed-retail.json", RUNS),
        written(tmp_path / "shuffled.json", RUNS[::-1]),
        written(tmp_path / "sorted.json", [dict(sorted(run.items())) for run in RUNS]),
    ):
        assert import_to_store(store, disguise).is_known, disguise.name
    assert facts(store) == before
    assert {(run["model"], run["scenario"]) for run in before} == {("gpt-4o", "tau-airline")}
    assert len(store.imports()) == 1


def test_a_file_that_grew_adds_what_is_new(store: TraceStore, tmp_path: Path) -> None:
    path = written(tmp_path / "gpt-4o-airline.json", RUNS[:2])
    import_to_store(store, path)
    merged = import_to_store(store, written(path, RUNS))
    assert (len(merged.new), len(merged.known)) == (3, 2)
    assert len(facts(store)) == 5


@pytest.mark.gate
@pytest.mark.parametrize("states", [(2, 3, 4), (4, 3, 2), (3, 4, 3)])
def test_a_run_that_grew_is_there_once_with_its_newest_state(
    store: TraceStore, tmp_path: Path, states: tuple[int, ...]
) -> None:
    for n in states:
        import_to_store(store, written(tmp_path / f"{n}.json", EVENTS[:n]))
    [run] = facts(store)
    assert (run["n_steps"], run["ended"]) == (2, "final")
    with store.connect() as sql:
        assert one(sql, "SELECT count(*) AS n, count(result) AS r FROM tool_calls") == {
            "n": 1,
            "r": 1,
        }
    shutil.rmtree(store.root / "index")
    again = TraceStore(store.root)
    restore_imports(again)
    assert facts(again) == [run]


def test_a_run_with_an_ending_is_no_older_state(store: TraceStore, tmp_path: Path) -> None:
    longer = [RUNS[0] | {"traj": [*RUNS[0]["traj"], {"role": "user", "content": "more"}]}]  # type: ignore[misc]
    import_to_store(store, written(tmp_path / "a.json", RUNS[:1]))
    import_to_store(store, written(tmp_path / "b.json", longer))
    assert len(facts(store)) == 2


@pytest.mark.gate
def test_a_verdict_that_comes_later_completes_the_run(store: TraceStore, tmp_path: Path) -> None:
    said = [{"role": "user", "content": "fix"}, {"role": "assistant", "content": "done"}]
    run = {"instance_id": "a__b-1", "exit_status": "Submitted", "messages": said}
    import_to_store(store, written(tmp_path / "raw.jsonl", run))
    merged = import_to_store(store, written(tmp_path / "graded.jsonl", run | {"resolved": True}))
    assert len(merged.updated) == 1
    assert import_to_store(store, tmp_path / "raw.jsonl").is_known
    assert [(each["passed"], each["ended"]) for each in facts(store)] == [(True, "final")]


@pytest.mark.gate
def test_replace_takes_the_file_at_its_word(store: TraceStore, tmp_path: Path) -> None:
    import_to_store(store, written(tmp_path / "gpt-4o-airline.json", RUNS))
    copy = written(tmp_path / "o3-airline.json", RUNS, indent=1)
    import_to_store(store, copy, replace=True)
    assert {run["model"] for run in facts(store)} == {"o3"}
    shutil.rmtree(store.root / "index")
    again = TraceStore(store.root)
    restore_imports(again)
    assert ({run["model"] for run in facts(again)}, len(facts(again))) == ({"o3"}, 5)


@pytest.mark.gate
def test_a_forgotten_run_stays_away_until_it_is_imported_again(
    store: TraceStore, tmp_path: Path
) -> None:
    path = written(tmp_path / "gpt-4o-airline.json", RUNS)
    import_to_store(store, path)
    ids = [str(run["trajectory_id"]) for run in facts(store)]
    assert list(forget_runs(store, ids[:2]).values()) == [3]
    shutil.rmtree(store.root / "index")
    again = TraceStore(store.root)
    restore_imports(again)
    assert [run["trajectory_id"] for run in facts(again)] == ids[2:]
    assert forget_runs(again, ids[2:]) == {}
    assert again.imports() == ()
    import_to_store(again, path)
    assert len(facts(again)) == 5


def test_trials_with_the_same_messages_are_as_many_as_the_file_lists(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "fix"}, {"role": "assistant", "content": "done"}]
    run = {"instance_id": "a", "exit_status": "Submitted", "messages": said}
    lines = [run | {"resolved": True}, run | {"resolved": False}, run | {"resolved": False}]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in lines))
    assert read_run_tables(path)["trajectories"]["passed"].to_pylist() == [True, False]


def test_a_run_that_raised_is_a_crash_and_stops_no_other(tmp_path: Path) -> None:
    raised = {"task_id": 9, "trial": 0, "reward": 0.0, "info": {"error": "429"}, "traj": []}
    path = written(tmp_path / "gpt-4o-airline.json", [*RUNS, raised])
    runs = read_run_tables(path)["trajectories"].to_pylist()
    assert [(run["ended"], run["n_steps"]) for run in runs[4:]] == [("final", 1), ("crash", 0)]
