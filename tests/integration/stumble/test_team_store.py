"""A team's bucket, on a real S3 server: pushed by several, cut off, pulled by others."""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from copy import replace
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from scenarios.workspace.snapshot import take_snapshot
from stumble.errors import HarnessError, UsageError
from stumble.runs.environment.workspaces import find_recorded_workspace, open_store_blobs
from stumble.team.object_store import ObjectStore
from stumble.team.sync_store import SyncResult, pull_store, push_store
from traces.model import RunEnding, Trajectory
from traces.store.store_dir import StoreDirectory
from traces.tape.frames import MAGIC
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

ADDRESS = "s3://team/stumble"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=server)
    client.create_bucket(Bucket="team")
    yield ADDRESS
    for each in client.list_objects_v2(Bucket="team").get("Contents", []):
        client.delete_object(Bucket="team", Key=each["Key"])
    client.delete_bucket(Bucket="team")


def make_store(root: Path, *ids: str) -> StoreDirectory:
    """A store with a tape and a workspace for each id."""
    store = StoreDirectory(root / ".stumble")
    for id in ids:
        work = root / f"work-{id}"
        work.mkdir()
        (work / "note.txt").write_text(f"the note of {id}")
        (work / "same.txt").write_text("in all of them")
        taken = take_snapshot(work, open_store_blobs(store))
        head = Trajectory(id=id, recorded_at=0.0, workspace=str(work), snapshot=taken.name)
        write_tape(store.tapes / f"{id}.tape", head)
    return store


def write_tape(path: Path, head: Trajectory) -> None:
    with TapeWriter(path, replace(head)) as tape:
        tape.write_ending(RunEnding(ended="final", exit_code=0))


def push(store: StoreDirectory, known: tuple[str, ...] = ()) -> SyncResult:
    return push_store(store, ObjectStore(ADDRESS), known, lambda done, total: None)


def pull(store: StoreDirectory) -> SyncResult:
    return pull_store(store, ObjectStore(ADDRESS), lambda done, total: None)


def names(store: StoreDirectory) -> list[str]:
    return sorted(path.stem for path in store.tapes.iterdir())


def test_what_one_pushes_another_pulls_and_can_run(bucket: str, tmp_path: Path) -> None:
    mine, yours = make_store(tmp_path / "mine", "a", "b"), StoreDirectory(tmp_path / "yours")
    assert push(mine).tapes == 2
    assert pull(yours).tapes == 2
    for id in ("a", "b"):
        tape = read_tape(yours.tapes / f"{id}.tape")
        assert tape.path.read_bytes() == (mine.tapes / f"{id}.tape").read_bytes()
        found = find_recorded_workspace(tape.trajectory, yours, keep=False)
        assert not isinstance(found, str), found


def test_again_nothing_is_written(bucket: str, tmp_path: Path) -> None:
    mine, yours = make_store(tmp_path / "mine", "a"), StoreDirectory(tmp_path / "yours")
    push(mine)
    pull(yours)
    assert (push(mine).objects, push(mine).present) == (0, 1)
    assert (pull(yours).tapes, pull(yours).present) == (0, 1)
    assert push(yours).objects == 0


def test_two_people_pushing_at_once_lose_nothing(bucket: str, tmp_path: Path) -> None:
    stores = [make_store(tmp_path / str(n), f"own-{n}", "shared") for n in range(4)]
    for each in stores[1:]:  # one run that all of them have
        shutil.copy(stores[0].tapes / "shared.tape", each.tapes / "shared.tape")
    threads = [threading.Thread(target=push, args=(each,)) for each in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    yours = StoreDirectory(tmp_path / "yours")
    assert pull(yours).refused == []
    assert names(yours) == ["own-0", "own-1", "own-2", "own-3", "shared"]


@pytest.mark.gate
def test_a_push_that_was_cut_off_goes_on(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, whole = make_store(tmp_path / "mine", "a", "b", "c"), ObjectStore.put_new
    left = [0]

    def cut_off(self: ObjectStore, name: str, path: Path) -> bool:
        left[0] -= 1
        if left[0] < 0:
            raise HarnessError("the network has gone")
        return whole(self, name, path)

    monkeypatch.setattr(ObjectStore, "put_new", cut_off)
    for allowed in range(1, 8):
        left[0] = allowed
        with suppress(HarnessError):
            push(mine)
        seen = StoreDirectory(tmp_path / f"seen-{allowed}")
        assert pull(seen).refused == []
        for id in names(seen):  # a tape that is there has its workspace
            tape = read_tape(seen.tapes / f"{id}.tape").trajectory
            assert not isinstance(find_recorded_workspace(tape, seen, keep=False), str)
    assert names(seen) == ["a", "b", "c"]


def test_a_secret_is_not_pushed(bucket: str, tmp_path: Path) -> None:
    mine = make_store(tmp_path / "mine", "a")
    secret = "correct-horse-battery-staple"
    head = Trajectory(id="b", recorded_at=0.0, command=("agent", "--note", secret))
    with TapeWriter(mine.tapes / "b.tape", head, redact=False) as tape:
        tape.write_ending(RunEnding(ended="final"))
    done = push(mine, (secret,))
    assert done.tapes == 1
    assert [line.partition(":")[0] for line in done.refused] == ["b"]
    assert secret not in json.dumps(done.to_dict())


def test_another_tape_of_the_same_name_is_never_overwritten(bucket: str, tmp_path: Path) -> None:
    mine, other = make_store(tmp_path / "mine", "a"), StoreDirectory(tmp_path / "other")
    push(mine)
    head = Trajectory(id="a", recorded_at=0.0, command=("another", "agent", "altogether"))
    write_tape(other.tapes / "a.tape", head)
    assert push(other).refused == ["a: another tape of this name is there"]
    yours = StoreDirectory(tmp_path / "yours")
    pull(yours)
    mine_bytes = (mine.tapes / "a.tape").read_bytes()
    assert (yours.tapes / "a.tape").read_bytes() == mine_bytes


@pytest.mark.gate
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_half_an_object_is_named_and_not_pulled(bucket: str, tmp_path: Path, share: float) -> None:
    mine = make_store(tmp_path / "mine", "a", "b")
    push(mine)
    whole = (mine.tapes / "a.tape").read_bytes()
    client = boto3.client("s3")
    half = whole[: int(len(whole) * share)]
    client.put_object(Bucket="team", Key="stumble/tapes/a.tape", Body=half)
    yours = StoreDirectory(tmp_path / "yours")
    [refused] = pull(yours).refused
    assert refused.startswith("a: ")
    assert names(yours) == ["b"]
    client.put_object(Bucket="team", Key="stumble/tapes/a.tape", Body=whole)
    assert pull(yours).tapes == 1


def test_a_tape_of_a_newer_version_is_named_and_neither_pushed_nor_pulled(
    bucket: str, tmp_path: Path
) -> None:
    mine, yours = make_store(tmp_path / "mine", "a", "b"), StoreDirectory(tmp_path / "yours")
    newer = bytearray((mine.tapes / "a.tape").read_bytes())
    newer[len(MAGIC)] = 99
    (mine.tapes / "a.tape").write_bytes(newer)
    [refused] = push(mine).refused
    assert "tape format 99, this version reads up to" in refused
    boto3.client("s3").put_object(Bucket="team", Key="stumble/tapes/a.tape", Body=bytes(newer))
    [refused] = pull(yours).refused
    assert "tape format 99, this version reads up to" in refused
    assert names(yours) == ["b"]


def test_a_content_under_the_name_of_another_is_not_pulled(
    bucket: str, server: str, tmp_path: Path
) -> None:
    mine, yours = make_store(tmp_path / "mine", "a"), StoreDirectory(tmp_path / "yours")
    push(mine)
    client = boto3.client("s3", endpoint_url=server)
    listed = client.list_objects_v2(Bucket="team", Prefix="stumble/snapshots/blobs/")["Contents"]
    client.copy_object(Bucket="team", Key=listed[0]["Key"], CopySource=f"team/{listed[1]['Key']}")
    done = pull(yours)
    assert (done.tapes, len(done.refused)) == (0, 1)
    assert "is damaged, or of another length" in done.refused[0]
    assert names(yours) == []


def test_a_bucket_that_is_not_there_is_a_line(bucket: str, tmp_path: Path) -> None:
    mine = make_store(tmp_path / "mine", "a")
    with pytest.raises(HarnessError, match="the same command goes on"):
        push_store(mine, ObjectStore("s3://nobodys/x"), (), lambda done, total: None)
    with pytest.raises(UsageError, match="not s3://BUCKET/PREFIX"):
        ObjectStore("ftp://team/x")
