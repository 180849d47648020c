"""`campaign merge` of four shards, and `push` to a server on this machine, by the number of runs.

    python -m tests.bench.merging [RUNS ...]           as 1000 3000 10000

Each recording has a workspace of its own, three clean twins and 46 faulted runs of seven exchanges.
Whole commands, each a process of its own; milliseconds of its processor time for each run, and
again with nothing to do.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import boto3
import httpx
from moto.server import ThreadedMotoServer

from scenarios.workspace.snapshot import take_snapshot
from stumble.runs.environment.workspaces import open_store_blobs
from stumble.store.index import refresh_index
from tests.bench.command_cost import STUMBLE, measure_command
from tests.bench.installed import environment
from tests.support.stores.judged_fork import keep, told
from tests.support.stores.scripted_runs import BENT, ORDER
from traces.model import Trajectory
from traces.store.store_dir import StoreDirectory
from traces.store.trace_store import TraceStore

COUNTS = (1_000, 3_000, 10_000)
SHARDS, FAMILY, TWINS = 4, 50, 3
PUT = "s3://team/stumble"


def make_shards(folder: Path, runs: int, family: int = FAMILY) -> list[Path]:
    """Write the stores of all shards, indexed; `family` runs belong to a recording."""
    folders = [folder / str(number) for number in range(SHARDS)]
    stores = [TraceStore(each / ".stumble") for each in folders]
    work = folder / "work"
    work.mkdir()
    for number in range(runs // family):
        store = stores[number % SHARDS]
        (work / "order.txt").write_text(f"order {number}")
        taken = take_snapshot(work, open_store_blobs(StoreDirectory(store.root)))
        head = Trajectory(
            id=f"source-{number}", recorded_at=1e9, workspace=str(work), snapshot=taken.name
        )
        _keep_family(store, head, family)
    for number, store in enumerate(stores, 1):
        plan = {"said": {"name": "many"}, "shards": SHARDS, "begun": [number]}
        path = store.root / "campaigns" / "many" / "plan.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(plan))
        refresh_index(store)
    return folders


def _keep_family(store: TraceStore, head: Trajectory, runs: int) -> None:
    keep(store, told(ORDER, 1250.4).over(), head)
    fork = replace(head, source="fork", parent=head.id, forked_at="c1", campaign="many")
    for number in range(runs - 1):
        clean = number < TWINS
        name, run = ("clean", told(ORDER, 1250.4)) if clean else ("digit", told(BENT, 1259.4))
        keep(
            store,
            run.over(passed=clean),
            replace(
                fork,
                id=f"{head.id}-{number}",
                condition="clean" if clean else "fault",
                cell=f"get_order#1/{name}/{number}",
            ),
        )


def measure(folder: Path, *words: str, extra: Mapping[str, str] | None = None) -> tuple[float, str]:
    """Return the processor seconds of a command and what it prints."""
    cost = measure_command((STUMBLE, *words), folder, {**environment(), **(extra or {})})
    return cost.processor, cost.output


@contextmanager
def open_bucket() -> Iterator[dict[str, str]]:
    """Serve an empty bucket; yield the variables that lead to it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }
    client = boto3.client(
        "s3", endpoint_url=variables["AWS_ENDPOINT_URL"], region_name="us-east-1",
        aws_access_key_id="test", aws_secret_access_key="test",
    )  # fmt: skip
    # The buckets of all servers of a process are the same, those of a server that has ended too.
    httpx.post(f"{variables['AWS_ENDPOINT_URL']}/moto-api/reset").raise_for_status()
    client.create_bucket(Bucket="team")
    try:
        yield variables
    finally:
        server.stop()


def main(counts: list[int]) -> None:
    for runs in counts:
        with TemporaryDirectory(prefix="stumble-bench-") as name, open_bucket() as bucket:
            folder = Path(name)
            shards = [str(each) for each in make_shards(folder, runs)]
            merged = folder / "merged"
            merged.mkdir()
            first, said = measure(merged, "campaign", "merge", *shards)
            assert f"{runs - runs // FAMILY} runs added" in said, said
            again, said = measure(merged, "campaign", "merge", *shards)
            assert " 0 runs added" in said, said
            pushed, said = measure(merged, "push", PUT, extra=bucket)
            assert f"{runs} tapes pushed" in said, said
            nothing, said = measure(merged, "push", PUT, extra=bucket)
            assert " 0 tapes pushed" in said, said
        row = (1000 * seconds / runs for seconds in (first, again, pushed, nothing))
        print(f"| {runs:,} runs | {' | '.join(f'{each:.2f}' for each in row)} |", flush=True)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or list(COUNTS))
