"""Tables in a team's bucket, on a real S3 server: exported by several, cut off, asked by others."""

import io
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

from stumble.errors import HarnessError, UsageError
from stumble.store.index import refresh_index
from stumble.team.object_store import ObjectStore
from stumble.team.shared_tables import SharedExport, export_tables, open_shared_store
from tests.support.stores.judged_fork import keep, make_judged_fork, told
from tests.support.stores.scripted_runs import ORDER
from traces.model import Trajectory
from traces.store.trace_store import TraceStore

pytestmark = pytest.mark.gate

ADDRESS = "s3://tables/of/us"
DAY = 86_400.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
        }.items():
            patch.setenv(name, value)
        yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture(autouse=True)
def bucket(server: str) -> Iterator[str]:
    client = boto3.client("s3", endpoint_url=server)
    client.create_bucket(Bucket="tables")
    yield server
    for each in client.list_objects_v2(Bucket="tables").get("Contents", []):
        client.delete_object(Bucket="tables", Key=each["Key"])
    client.delete_bucket(Bucket="tables")


def make_store(root: Path, **days: int) -> TraceStore:
    """A store with a run of two tool calls for each id, recorded on that day of 1970."""
    store = TraceStore(root / ".stumble")
    for id, day in days.items():
        keep(store, told(ORDER, 1250.4).over(), Trajectory(id=id, recorded_at=day * DAY))
    assert refresh_index(store) == []
    return store


def export(store: TraceStore, known: tuple[str, ...] = ()) -> SharedExport:
    return export_tables(store, ObjectStore(ADDRESS), known, lambda done, total: None)


def ask(sql: str) -> list[tuple[object, ...]]:
    with open_shared_store(ObjectStore(ADDRESS), pytest.fail).connect() as connection:
        return connection.execute(sql).fetchall()


def list_runs() -> list[object]:
    return [id for (id,) in ask("select trajectory_id from trajectories order by 1")]


def test_a_question_has_the_answer_of_the_store(tmp_path: Path) -> None:
    store = make_judged_fork(tmp_path / ".stumble")
    refresh_index(store)
    done = export(store)
    assert done.rows["outcomes"] == 2
    for what in ("trajectories", "steps", "tool_calls", "injections", "outcomes", "recovery"):
        query = f"from {what} order by all"
        with store.connect() as connection:
            own = connection.execute(query).fetchall()
        assert own
        assert ask(query) == own


def test_each_day_is_a_partition_that_others_can_read(bucket: str, tmp_path: Path) -> None:
    export(make_store(tmp_path, a=1, b=1, c=2))
    client = boto3.client("s3", endpoint_url=bucket)
    listed = client.list_objects_v2(Bucket="tables", Prefix="of/us/trajectories/")["Contents"]
    assert [each["Key"].removeprefix("of/us/trajectories/") for each in listed] == [
        "run_day=1970-01-02/run_source=record/part.parquet",
        "run_day=1970-01-03/run_source=record/part.parquet",
    ]


@pytest.mark.thorough
def test_again_nothing_is_written_and_a_new_run_changes_its_day_alone(tmp_path: Path) -> None:
    store = make_store(tmp_path, a=1, c=2)
    parts = export(store).written
    assert export(store).written == 0
    make_store(tmp_path, d=2)
    assert export(store).written == parts // 2
    assert list_runs() == ["a", "c", "d"]


@pytest.mark.thorough
def test_two_people_exporting_at_once_lose_nothing(tmp_path: Path) -> None:
    stores = [make_store(tmp_path / str(n), **{f"own-{n}": 1, "shared": 1}) for n in range(3)]
    threads = [threading.Thread(target=export, args=(each,)) for each in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert list_runs() == ["own-0", "own-1", "own-2", "shared"]
    steps = ask("select trajectory_id, count(*) from steps group by all order by all")
    assert len({count for _, count in steps}) == 1


def test_a_part_is_written_only_over_the_one_that_was_read() -> None:
    remote = ObjectStore(ADDRESS)
    assert remote.put_over("part", b"first", None)
    assert not remote.put_over("part", b"second", None)
    read = remote.read_tagged("part")
    assert read is not None
    assert remote.put_over("part", b"third", read[1])
    assert not remote.put_over("part", b"fourth", read[1])
    assert [data for data, _ in [remote.read_tagged("part") or (b"", "")]] == [b"third"]


def test_an_export_that_was_cut_off_shows_whole_runs_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, whole = make_judged_fork(tmp_path / ".stumble"), ObjectStore.put_over
    refresh_index(store)
    left = [0]

    def cut_off(self: ObjectStore, name: str, data: bytes, tag: str | None) -> bool:
        left[0] -= 1
        if left[0] < 0:
            raise HarnessError("the network has gone")
        return whole(self, name, data, tag)

    monkeypatch.setattr(ObjectStore, "put_over", cut_off)
    for allowed in (1, 2, 3, 100):
        assert allowed == 100 or not ObjectStore(ADDRESS).list_tags("trajectories/")
        left[0] = allowed
        with suppress(HarnessError):
            export(store)
    assert len(list_runs()) == 5
    assert ask("select count(*) from outcomes") == [(2,)]


def test_a_damaged_part_is_named_and_left_out(bucket: str, tmp_path: Path) -> None:
    export(make_store(tmp_path, a=1, c=2))
    client = boto3.client("s3", endpoint_url=bucket)
    key = "of/us/steps/run_day=1970-01-02/run_source=record/part.parquet"
    half = client.get_object(Bucket="tables", Key=key)["Body"].read()[:400]
    client.put_object(Bucket="tables", Key=key, Body=half)
    warnings = list[str]()
    with open_shared_store(ObjectStore(ADDRESS), warnings.append).connect() as connection:
        runs = connection.execute("select trajectory_id from trajectories").fetchall()
    assert runs == [("c",)]
    assert "steps/run_day=1970-01-02/run_source=record/part.parquet: it is damaged" in warnings[0]
    with pytest.raises(UsageError, match="cannot be added to: it is damaged"):
        export(make_store(tmp_path, b=1))


def test_a_part_of_another_version_is_read_if_this_one_knows_its_columns(
    bucket: str, tmp_path: Path
) -> None:
    export(make_store(tmp_path, a=1, b=2))
    client = boto3.client("s3", endpoint_url=bucket)
    for day in (2, 3):
        key = f"of/us/steps/run_day=1970-01-0{day}/run_source=record/part.parquet"
        part = client.get_object(Bucket="tables", Key=key)["Body"].read()
        steps, written = pq.read_table(io.BytesIO(part)), io.BytesIO()
        newer = steps.append_column("mood", pa.nulls(steps.num_rows, pa.string()))
        pq.write_table(steps.drop_columns(["model"]) if day == 2 else newer, written)
        client.put_object(Bucket="tables", Key=key, Body=written.getvalue())
    warnings = list[str]()
    with open_shared_store(ObjectStore(ADDRESS), warnings.append).connect() as connection:
        runs = connection.execute("select distinct trajectory_id from steps").fetchall()
    assert runs == [("a",)]
    assert "it has mood, which this version does not know; its runs are left out" in warnings[0]


def test_a_run_with_a_secret_is_not_exported(tmp_path: Path) -> None:
    store = make_store(tmp_path, a=1)
    done = export(store, ("ord-7314",))
    assert [line.partition(":")[0] for line in done.refused] == ["a"]
    with pytest.raises(UsageError, match="has no runs: stumble export"):
        list_runs()


def test_a_bucket_that_is_not_there_is_a_line() -> None:
    with pytest.raises(HarnessError, match="the same command goes on"):
        open_shared_store(ObjectStore("s3://nobodys/x"), pytest.fail)
