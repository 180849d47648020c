"""The store: written by many, read by many, and never a row missing or twice."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tests.support.stores.in_memory_relations import Sql
from tests.support.tiers import EXHAUSTIVE
from traces.store import trace_store
from traces.store.schema import SCHEMAS, make_relation_row, make_relation_table
from traces.store.trace_store import TraceStore

COUNTED = "SELECT count(*), count(DISTINCT trajectory_id) FROM tool_calls"


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    return TraceStore(tmp_path / ".stumble")


def run(name: str, calls: int = 3) -> Mapping[str, pa.Table]:
    """A trajectory of that name with some calls."""
    steps = ({"trajectory_id": name, "step": step, "tool": "t"} for step in range(calls))
    return {
        "trajectories": make_relation_table(
            "trajectories", [make_relation_row("trajectories", {"trajectory_id": name})]
        ),
        "tool_calls": make_relation_table(
            "tool_calls", [make_relation_row("tool_calls", each) for each in steps]
        ),
    }


def ask(store: TraceStore, sql: str) -> list[tuple[object, ...]]:
    with store.connect() as connection:
        return connection.execute(sql).fetchall()


def test_an_empty_store_has_every_relation(store: TraceStore) -> None:
    with store.connect() as sql:
        for name, schema in SCHEMAS.items():
            assert sql.execute(f"FROM {name}").fetchall() == []
            assert [column[0] for column in sql.description or ()] == schema.names


def test_only_its_owner_may_look_into_it_and_git_does_not(store: TraceStore) -> None:
    assert stat.S_IMODE(store.root.stat().st_mode) == 0o700
    assert (store.root / ".gitignore").read_text() == "*\n"


def test_a_segment_is_one_file_per_relation_with_rows(store: TraceStore) -> None:
    store.write("a", run("a"))
    files = {str(path.relative_to(store.root)) for path in store.root.glob("index/*/a.parquet")}
    assert files == {"index/trajectories/a.parquet", "index/tool_calls/a.parquet"}
    assert store.segments() == ("a",)
    assert ask(store, COUNTED) == [(3, 1)]


def test_a_segment_is_replaced_whole(store: TraceStore) -> None:
    store.write("a", run("a", calls=5))
    store.write("a", {"trajectories": run("a")["trajectories"]})
    assert ask(store, COUNTED) == [(0, 0)]
    assert ask(store, "SELECT count(*) FROM trajectories") == [(1,)]


def test_an_open_connection_sees_what_is_written_later(store: TraceStore) -> None:
    with store.connect() as sql:
        assert sql.execute(COUNTED).fetchall() == [(0, 0)]
        store.write("a", run("a"))
        assert sql.execute(COUNTED).fetchall() == [(3, 1)]
        store.write("a", run("a", calls=4))
        assert sql.execute(COUNTED).fetchall() == [(4, 1)]


def test_a_segment_without_its_trajectories_is_not_complete(store: TraceStore) -> None:
    store.write("a", run("a"))
    (store.root / "index" / "trajectories" / "a.parquet").unlink()
    assert store.segments() == ()


def test_a_dropped_segment_is_gone(store: TraceStore) -> None:
    for name in "abc":
        store.write(name, run(name))
    store.drop("b")
    store.drop("never there")
    assert store.segments() == ("a", "c")
    assert ask(store, "SELECT trajectory_id FROM trajectories ORDER BY 1") == [("a",), ("c",)]


@pytest.mark.parametrize("segment", ["", "../a", "a/b", ".a", "_empty", "a b", "*"])
def test_a_segment_is_named_plainly(store: TraceStore, segment: str) -> None:
    with pytest.raises(ValueError, match="a segment's name is"):
        store.write(segment, run("a"))


def test_a_table_must_be_the_relations(store: TraceStore) -> None:
    with pytest.raises(ValueError, match="no relation things; there are trajectories"):
        store.write("a", {"things": make_relation_table("usage", ())})
    with pytest.raises(ValueError, match="usage: these columns are not the relation's"):
        store.write("a", {"usage": make_relation_table("steps", ())})
    assert store.segments() == ()


@pytest.mark.gate
def test_packing_changes_no_row(store: TraceStore) -> None:
    for number in range(9):
        store.write(f"s.{number}", run(f"s.{number}", calls=number))
    before = ask(store, "FROM tool_calls ORDER BY ALL")
    assert store.compact(limit=10) == 0
    assert store.compact(limit=9) == 9
    assert len(list(store.root.glob("index/tool_calls/*.parquet"))) == 1
    assert len(store.segments()) == 9
    assert ask(store, "FROM tool_calls ORDER BY ALL") == before
    assert store.compact(limit=0) == 0


@pytest.mark.gate
def test_packs_of_packs(store: TraceStore) -> None:
    for number in range(12):
        store.write(f"s{number}", run(f"s{number}"))
        if number % 3 == 2:
            assert store.compact(limit=3) == 3
            assert ask(store, COUNTED) == [(3 * (number + 1), number + 1)]


@pytest.mark.gate
def test_a_packed_segment_is_replaced_and_dropped_like_any_other(store: TraceStore) -> None:
    for name in "abc":
        store.write(name, run(name))
    store.compact(limit=1)
    store.write("b", run("b", calls=5))
    assert ask(store, COUNTED) == [(11, 3)]
    store.drop("a")
    assert ask(store, COUNTED) == [(8, 2)]
    assert store.segments() == ("b", "c")
    store.compact(limit=1)
    assert ask(store, COUNTED) == [(8, 2)]


def test_a_connection_from_before_a_packing_fails_and_does_not_lie(store: TraceStore) -> None:
    store.write("a", run("a"))
    with store.connect() as sql:
        store.compact(limit=1)
        with pytest.raises(duckdb.IOException, match="No files found"):
            sql.execute(COUNTED)
    assert ask(store, COUNTED) == [(3, 1)]


@pytest.mark.gate
def test_a_packing_that_was_killed_is_finished_by_the_next_who_connects(store: TraceStore) -> None:
    for name in "abc":
        store.write(name, run(name))
    ask(store, COUNTED)
    before = store.root.parent / "before"
    shutil.copytree(store.root, before, symlinks=True)
    store.compact(limit=1)
    newest = max(store.root.glob("index/packs/[0-9]*"))
    shutil.copytree(newest, before / "index" / "packs" / newest.name)
    shutil.rmtree(store.root)
    before.rename(store.root)

    assert len(list(store.root.glob("index/packs/[0-9]*"))) == 2
    assert ask(store, COUNTED) == [(9, 3)]
    assert not list(store.root.glob("index/tool_calls/[abc].parquet"))
    assert store.segments() == ("a", "b", "c")


def test_a_packing_that_was_killed_half_way_is_forgotten(store: TraceStore) -> None:
    store.write("a", run("a"))
    ask(store, COUNTED)
    shutil.copytree(store.root / "index" / "packs" / "1", store.root / "index" / "packs" / ".2")
    assert ask(store, COUNTED) == [(3, 1)]
    assert store.compact(limit=1) == 1
    assert ask(store, COUNTED) == [(3, 1)]


@pytest.mark.gate
def test_a_store_that_was_moved_still_answers(store: TraceStore, tmp_path: Path) -> None:
    for name in "ab":
        store.write(name, run(name))
    store.compact(limit=1)
    store.write("c", run("c"))
    assert ask(store, COUNTED) == [(9, 3)]
    moved = tmp_path / "it's [moved]" / "here"
    moved.parent.mkdir()
    store.root.rename(moved)
    again = TraceStore(moved)
    assert ask(again, COUNTED) == [(9, 3)]
    again.drop("a")
    assert ask(again, COUNTED) == [(6, 2)]


def test_two_versions_of_duckdb_read_one_store_in_turn(
    store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write("a", run("a"))
    ask(store, COUNTED)
    link = store.root / "store.duckdb"
    ours = link.resolve()
    with monkeypatch.context() as other_version:
        other_version.setattr(trace_store, "compute_definitions_hash", lambda: "of another version")
        assert ask(store, COUNTED) == [(3, 1)]
    theirs = link.resolve()
    changed = list_changes(store.root)
    assert ask(store, COUNTED) == [(3, 1)]
    assert list_changes(store.root) == changed, "a query may not write: it runs under Landlock"
    store.compact(limit=0)
    ask(store, COUNTED)
    assert not ours.exists()
    assert not theirs.exists()


def test_lost_views_are_made_again(store: TraceStore) -> None:
    store.write("a", run("a"))
    ask(store, COUNTED)
    link = store.root / "store.duckdb"
    views = link.resolve()
    for lost in (link, views):
        lost.unlink()
        assert ask(store, COUNTED) == [(3, 1)]
        assert link.resolve() == views


def list_changes(folder: Path) -> dict[Path, int]:
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


def test_older_files_lack_newer_columns(store: TraceStore) -> None:
    store.write("a", run("a"))
    path = store.root / "index" / "trajectories" / "a.parquet"
    older = pa.parquet.read_table(path).drop_columns(["cohort", "verifier", "campaign", "cell"])
    pa.parquet.write_table(older, path)
    new = "SELECT trajectory_id, cohort, campaign, cell FROM trajectories"
    assert ask(store, new) == [("a", None, None, None)]
    store.compact(limit=1)
    assert ask(store, new) == [("a", None, None, None)]


@pytest.mark.gate
@pytest.mark.parametrize("relation", SCHEMAS)
def test_a_store_from_before_a_relation_was_there_opens(store: TraceStore, relation: str) -> None:
    for n in range(5):
        store.write(f"r{n}", run(f"r{n}"))
    assert store.compact(limit=0) == 5
    ask(store, COUNTED)
    for found in (*store.root.rglob(f"{relation}.parquet"), *store.root.rglob("views-*.duckdb")):
        found.unlink()
    for found in (*store.root.rglob(f"{relation}/"),):
        shutil.rmtree(found)
    [(rows,)] = ask(store, f'SELECT count(*) FROM "{relation}"')
    assert rows == 0


def test_the_index_can_be_thrown_away(store: TraceStore) -> None:
    store.write("a", run("a"))
    ask(store, COUNTED)
    shutil.rmtree(store.root / "index")
    again = TraceStore(store.root)
    assert again.segments() == ()
    assert ask(again, COUNTED) == [(0, 0)]


def test_a_variable_named_like_a_table_is_not_one(store: TraceStore) -> None:
    with store.connect() as sql:
        nonesuch = make_relation_table("usage", ())
        with pytest.raises(duckdb.CatalogException, match="nonesuch does not exist"):
            sql.execute("FROM nonesuch")
        assert nonesuch.num_rows == 0


def test_nobody_can_write_through_the_views(store: TraceStore) -> None:
    with store.connect() as sql, pytest.raises(duckdb.InvalidInputException, match="read-only"):
        sql.execute("CREATE TABLE mine (x INT)")


OTHER = """
import sys, duckdb
with duckdb.connect(sys.argv[1], read_only=True) as sql:
    print(sql.execute(sys.argv[2]).fetchone(), flush=True)
    sys.stdin.readline()
    print(sql.execute(sys.argv[2]).fetchone(), flush=True)
"""


@pytest.mark.gate
def test_another_process_holds_it_open_while_segments_are_written(store: TraceStore) -> None:
    store.write("a", run("a"))
    ask(store, COUNTED)
    command = [sys.executable, "-c", OTHER, str(store.root / "store.duckdb"), COUNTED]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout
            assert other.stdout.readline() == "(3, 1)\n"
            store.write("b", run("b"))
            assert ask(store, COUNTED) == [(6, 2)]
            said, _ = other.communicate("go on\n", timeout=30)
            assert said == "(6, 2)\n"
        finally:
            other.kill()


BUSY = """
import sys
from pathlib import Path
from tests.unit.traces.store.test_traces_store import run
from traces.store import trace_store
from traces.store.trace_store import TraceStore
store = TraceStore(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    store.write(f"new{number}", run(f"new{number}"))
    store.write(f"old{number % 20}", run(f"old{number % 20}"))
    if number % 4 == 3:
        store.compact(limit=4)
"""


@pytest.mark.gate
@pytest.mark.many
def test_readers_are_right_or_fail_while_others_write_and_pack(store: TraceStore) -> None:
    """The twenty old runs are always there, once; what is added is there whole or not at all."""
    rounds = 12 if EXHAUSTIVE else 4
    for number in range(20):
        store.write(f"old{number}", run(f"old{number}"))
    old = (
        "SELECT count(*), count(DISTINCT trajectory_id) FROM tool_calls WHERE trajectory_id[1]='o'"
    )
    every = "SELECT count(*), count(DISTINCT trajectory_id) FROM trajectories"
    root = Path(__file__).resolve().parents[4]
    with subprocess.Popen(
        [sys.executable, "-c", BUSY, str(store.root), str(rounds)],
        env=os.environ | {"PYTHONPATH": str(root)},
    ) as busy:
        try:
            answered = 0
            while busy.poll() is None:
                with store.connect() as sql:
                    answered += watch(sql, old, every)
            assert busy.returncode == 0
        finally:
            busy.kill()
    assert answered > 20
    assert ask(store, every) == [(20 + rounds, 20 + rounds)]


def watch(sql: Sql, old: str, every: str, times: int = 20) -> int:
    """How many questions were answered, all right, before the views were replaced."""
    seen = 0
    for answered in range(times):
        try:
            assert sql.execute(old).fetchone() == (60, 20)
            rows, names = sql.execute(every).fetchall()[0]
        except duckdb.IOException:
            return answered
        assert rows == names >= seen
        seen = rows
    return times


def test_a_kept_source_is_named_by_its_content(store: TraceStore, tmp_path: Path) -> None:
    source = tmp_path / "some runs.json"
    source.write_text("[1]")
    kept = store.keep_import(source)
    assert (kept.name, kept.read_text()) == ("some runs.json", "[1]")
    renamed = source.rename(tmp_path / "other.json")
    assert store.keep_import(renamed) == kept
    renamed.write_text("[2]")
    assert store.keep_import(renamed).parent != kept.parent
    assert len(store.imports()) == 2


def test_many_packed_segments_are_replaced_at_once(store: TraceStore) -> None:
    names = [f"s{n}" for n in range(4)]
    for name in names:
        store.write(name, run(name))
    store.compact(limit=1)
    before = len(list((store.root / "index" / "packs").glob("[0-9]*")))
    store.write_all({name: run(name, calls=5) for name in (*names[:3], "new")})
    assert ask(store, COUNTED) == [(3 + 4 * 5, 5)]
    assert store.segments() == ("new", *names)
    assert len(list((store.root / "index" / "packs").glob("[0-9]*"))) == before


def test_a_batch_is_one_file_per_relation(store: TraceStore) -> None:
    names = [f"s.{n}" for n in range(9)]
    store.write_all({name: run(name) for name in names})
    files = list(store.root.glob("index/**/tool_calls*/**/*.parquet"))
    assert len([path for path in files if not path.stem.startswith(("_", "empty"))]) == 0
    assert len(list(store.root.glob("index/bundles/[!_]*/tool_calls.parquet"))) == 1
    assert store.segments() == tuple(names)
    assert ask(store, COUNTED) == [(27, 9)]
    before = ask(store, "FROM tool_calls ORDER BY ALL")
    assert store.compact(limit=2) == 0
    assert store.compact(limit=1) == 9
    assert not list(store.root.glob("index/bundles/[!_]*"))
    assert ask(store, "FROM tool_calls ORDER BY ALL") == before


@pytest.mark.gate
@pytest.mark.parametrize("packed", [False, True])
def test_a_segment_of_a_batch_is_replaced_and_dropped_like_any_other(
    store: TraceStore, packed: bool
) -> None:
    store.write_all({name: run(name) for name in "abcdef"})
    store.write("loose", run("loose"))
    if packed:
        store.compact(limit=1)
    store.write("b", run("b", calls=5))
    assert ask(store, COUNTED) == [(7 * 3 + 2, 7)]
    store.write_all({name: run(name, calls=1) for name in "cdefghij"})
    assert ask(store, COUNTED) == [(3 + 3 + 5 + 8, 11)]
    store.drop("a", "b", "loose", "never there")
    assert store.segments() == tuple("cdefghij")
    assert ask(store, COUNTED) == [(8, 8)]


@pytest.mark.gate
@pytest.mark.parametrize("packed", [False, True])
def test_a_segment_of_a_batch_is_found_and_read_like_any_other(
    store: TraceStore, packed: bool
) -> None:
    store.write_all({name: run(name) for name in "abcdef"})
    if packed:
        store.compact(limit=1)
    [id] = store.read_segment("b")["trajectories"]["trajectory_id"].to_pylist()
    assert store.find_segments((id, "never there")) == {id: "b"}
    assert store.read_segment("b")["tool_calls"].num_rows == 3


@pytest.mark.gate
def test_everything_may_be_dropped_and_written_again(store: TraceStore) -> None:
    """As `sql --rebuild` does it; what is written next has the same names."""
    batch = {name: run(name) for name in "abcdef"}
    for _ in range(3):
        store.write_all(batch)
        assert ask(store, COUNTED) == [(18, 6)]
        store.drop(*store.segments())
        assert store.segments() == ()
        assert ask(store, COUNTED) == [(0, 0)]


@pytest.mark.gate
def test_packs_without_a_dropped_segment_are_not_written_again(store: TraceStore) -> None:
    for names in ("abcde", "fghij"):
        store.write_all({name: run(name) for name in names})
        store.compact(limit=1)
    packs = {
        path.name: path.stat().st_ino
        for path in store.root.glob("index/packs/[0-9]*/tool_calls/[0-9]*")
    }
    store.drop("a", "b")
    after = {
        path.name: path.stat().st_ino
        for path in store.root.glob("index/packs/[0-9]*/tool_calls/[0-9]*")
    }
    assert len(packs) == len(after) == 2
    assert len(set(packs.items()) & set(after.items())) == 1
    assert ask(store, COUNTED) == [(24, 8)]


BATCHES = """
import sys
from pathlib import Path
from tests.unit.traces.store.test_traces_store import run
from traces.store import trace_store
from traces.store.trace_store import TraceStore
store = TraceStore(Path(sys.argv[1]))
for size in (7, 11):
    names = [f"s{n}" for n in range(24)]
    for at in range(0, 24, size):
        store.write_all({name: run(name) for name in names[at : at + size]})
"""


@pytest.mark.gate
def test_two_processes_write_the_same_segments_in_other_batches(store: TraceStore) -> None:
    root = Path(__file__).resolve().parents[4]
    command = [sys.executable, "-c", BATCHES, str(store.root)]
    both = [subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(root)}) for _ in "ab"]
    assert [each.wait(60) for each in both] == [0, 0]
    assert ask(store, COUNTED) == [(72, 24)]
