"""Retention: what belongs together goes together, and what others need stays."""

import json
import os
from copy import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from scenarios.workspace.left_files import LeftFiles, load_left_files, save_left_files
from scenarios.workspace.manifest import ManifestEntry
from scenarios.workspace.snapshot import take_snapshot
from stumble.cli.app import cli
from stumble.runs.environment.workspaces import find_recorded_workspace, open_store_blobs
from stumble.store.index import refresh_index
from stumble.store.prune import plan_pruning, prune_store
from stumble.verdicts.file_changes import read_run_files
from tests.support.stores.judged_fork import keep, told
from tests.support.stores.scripted_runs import BENT, ORDER
from traces.model import Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape

DAY = 86_400.0
NOW = 2_000 * DAY
ROWS = ("trajectories", "steps", "exchanges", "tool_calls", "injections", "outcomes")


def add_run(store: TraceStore, id: str, day: float, **more: object) -> None:
    head = replace(Trajectory(id=id, recorded_at=day * DAY), **more)  # type: ignore[arg-type]
    answer = BENT if head.condition == "fault" else ORDER
    keep(store, told(answer, 1250.4).over(), head)


def add_fork(store: TraceStore, of: str, day: float, **more: object) -> None:
    """A recording's fault, with its three clean twins."""
    fork = {"source": "fork", "parent": of, "forked_at": "c1"} | more
    for n in range(3):
        add_run(store, f"{of}-twin-{n}", day, **fork)
    add_run(store, f"{of}-fault", day, condition="fault", **fork)


def prune(store: TraceStore, older_than: float | None, keep_bytes: int | None = None) -> list[str]:
    refresh_index(store)
    plan = plan_pruning(
        store,
        older_than=None if older_than is None else older_than * DAY,
        keep_bytes=keep_bytes,
        now=NOW,
    )
    prune_store(store, plan)
    assert refresh_index(store) == []
    return sorted(path.stem for path in store.tapes.iterdir())


def read_rows(store: TraceStore, pattern: str) -> list[list[tuple[object, ...]]]:
    with store.connect() as connection:
        return [
            connection.execute(
                f"from {name} where columns('^(trajectory|injection)_id$') like '{pattern}' "
                "order by all"
            ).fetchall()
            for name in ROWS
        ]


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    return TraceStore(tmp_path / ".stumble")


@pytest.mark.gate
def test_an_old_recording_stays_with_its_young_forks(store: TraceStore) -> None:
    add_run(store, "a", 100)
    add_fork(store, "a", 1999)
    add_run(store, "b", 100)
    add_fork(store, "b", 101)
    refresh_index(store)
    before = read_rows(store, "a%")
    assert all(before)
    assert prune(store, 30) == ["a", "a-fault", "a-twin-0", "a-twin-1", "a-twin-2"]
    assert read_rows(store, "a%") == before
    assert not any(read_rows(store, "b%"))


@pytest.mark.gate
def test_a_campaign_goes_as_a_whole_or_not_at_all(store: TraceStore) -> None:
    for n, day in enumerate((100, 101, 1999)):
        add_run(store, f"young-{n}", day, campaign="young", cell=f"c{n}")
        add_run(store, f"old-{n}", min(day, 102), campaign="old", cell=f"c{n}")
    assert prune(store, 30) == ["young-0", "young-1", "young-2"]


@pytest.mark.gate
def test_the_oldest_go_until_the_tapes_fit(store: TraceStore) -> None:
    for n in range(5):
        add_run(store, f"r{n}", 100 + n)
    refresh_index(store)  # which packs the tapes
    size = sum(path.stat().st_size for path in store.tapes.iterdir())
    assert prune(store, None, round(size * 0.5)) == ["r3", "r4"]


@pytest.mark.gate
def test_sealed_and_running_campaigns_and_named_tapes_stay(
    store: TraceStore, tmp_path: Path
) -> None:
    add_run(store, "sealed", 100, campaign="s", cell="c", seal="digest")
    add_run(store, "named", 100)
    add_run(store, "plain", 100)
    os.link(store.tapes / "named.tape", tmp_path / "mine.tape")
    refresh_index(store)
    plan = plan_pruning(store, older_than=DAY, keep_bytes=None, now=NOW)
    assert [group.runs for group in plan.staying] == [("sealed",)]
    assert list(plan.kept_tapes) == ["named"]
    assert plan.runs == ["plain"]
    assert prune(store, 1) == ["named", "sealed"]


@pytest.mark.gate
def test_contents_stay_as_long_as_a_tape_needs_them(store: TraceStore, tmp_path: Path) -> None:
    for id, day in (("old", 100), ("young", 1999)):
        work = tmp_path / id
        work.mkdir()
        (work / "own.txt").write_text(f"of {id}")
        (work / "same.txt").write_text("in both")
        taken = take_snapshot(work, open_store_blobs(store))
        add_run(store, id, day, workspace=str(work), snapshot=taken.name)
        data = f"left by {id}".encode()
        target = open_store_blobs(store).put_bytes(data)
        entry = ManifestEntry(path="new.txt", kind="file", target=target, size=len(data))
        left = LeftFiles(run=id, start=taken.name, changed=(entry,))
        save_left_files(open_store_blobs(store), left)
    for path in (store.root / "snapshots").rglob("*"):
        os.utime(path, (DAY, DAY))
    blobs = list((store.root / "snapshots" / "blobs").glob("*/*"))
    assert prune(store, 30) == ["young"]
    assert len(list((store.root / "snapshots" / "blobs").glob("*/*"))) == len(blobs) - 2
    assert load_left_files(open_store_blobs(store), "old") is None
    tape = read_tape(store.tapes / "young.tape").trajectory
    assert not isinstance(find_recorded_workspace(tape, store, keep=False), str)
    [change] = read_run_files(open_store_blobs(store), tape).changes
    assert change.after == "left by young"


def run(store: TraceStore, *words: str) -> Result:
    env = {"STUMBLE_STORE": str(store.root)}
    return CliRunner().invoke(cli, ["prune", *words], env=env)


@pytest.mark.gate
def test_without_yes_nothing_is_removed(store: TraceStore) -> None:
    add_run(store, "a", 100)
    shown = run(store, "--older-than", "30d")
    assert shown.exit_code == 0
    assert "would be removed; --yes removes them" in shown.output
    assert (store.tapes / "a.tape").exists()
    assert json.loads(run(store, "--older-than", "30d", "--yes", "--json").output)["runs"] == ["a"]
    assert not (store.tapes / "a.tape").exists()


@pytest.mark.parametrize("words", [(), ("--keep", "lots"), ("--older-than", "30")])
def test_without_an_amount_it_is_refused(store: TraceStore, words: tuple[str, ...]) -> None:
    assert run(store, *words).exit_code == 2
