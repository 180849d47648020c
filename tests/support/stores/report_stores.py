"""Stores of real runs for reports: the warm practice agent, recorded and with injected faults."""

import os
from collections.abc import Sequence
from copy import replace
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from recorder import event_loop
from scenarios.world import Verdict, World
from stumble.demo.runner import DemoJob, DemoWorker, open_demo_worker, select_demo_call
from stumble.runs.fork import find_fork_point, plan_fork_run
from stumble.runs.replay import run_replay
from stumble.runs.session import open_replay_session
from tests.support.servers.raw_servers import confdir
from traces.conversation.derived_steps import derive_tape_steps
from traces.model import Condition, Fault
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore

JOBS = (DemoJob("refund-1", "retries"), DemoJob("refund-1", "verifies"))
FAULTS = (
    Fault(name="http_status", params={"code": 503}),
    Fault(name="truncate", params={"keep": 0.6}),
    Fault(name="error_in_ok"),
    Fault(name="digit"),
)


SEGMENT = 100
"""Copies of a store that are written together."""


@dataclass(frozen=True, slots=True)
class Unverified:
    """A world whose verifier returns no verdict."""

    world: World

    async def reset(self) -> None:
        await self.world.reset()

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        return Verdict(None, "the verifier hung")


def fill(
    root: Path,
    *,
    jobs: Sequence[DemoJob] = JOBS,
    faults: Sequence[Fault] = FAULTS,
    twins: int = 3,
    verified: bool = True,
) -> TraceStore:
    """Write a store of these jobs, each recorded and, if there are faults, forked with every
    one.
    """
    store = TraceStore(root)
    os.environ.setdefault("OPENAI_API_KEY", "sk-test-0123456789")
    event_loop.run_event_loop(_filled(store, jobs, faults, twins, verified))
    return store


async def _filled(
    store: TraceStore, jobs: Sequence[DemoJob], faults: Sequence[Fault], twins: int, verified: bool
) -> None:
    ca = confdir()
    with TemporaryDirectory(prefix="stumble-") as scratch:
        folder = Path(scratch)
        async with open_demo_worker(store, folder, lambda: None) as does:
            for job in jobs:
                await _done(does, job, faults, store, folder, ca, twins, verified)


async def _done(
    does: DemoWorker,
    job: DemoJob,
    faults: Sequence[Fault],
    store: TraceStore,
    folder: Path,
    ca: Path,
    twins: int,
    verified: bool,
) -> None:
    recording = await does.record(job, ca)
    told, world, runs = derive_tape_steps(recording), does.make_world(job), []
    tool, nth, field = select_demo_call(job, told)
    async with open_replay_session(ca=ca, scratch=folder, hosts=world.hosts, out=True) as house:
        for at, fault in enumerate(faults):
            params = {"field": field} if fault.name == "digit" else fault.params
            aimed = replace(fault, params=params, where={"tool": tool}, nth=nth, at="http")
            clean: list[Condition] = ["clean"] * twins
            controls: list[Condition] = [*clean, "sham"] if at == 0 else []
            for rep, condition in enumerate([*controls, "fault"]):
                each = plan_fork_run(
                    find_fork_point(recording, aimed, told),
                    condition,
                    seed=7,
                    world=world if verified else Unverified(world),
                    rep=rep if condition == "clean" else 0,
                    labels=does.make_labels(job),
                )
                runs.append(
                    await run_replay(house, recording, store.tapes, each, does.make_launcher(job))
                )
    does.index(job, recording, runs)


def multiplied(store: TraceStore, root: Path, injections: int) -> TraceStore:
    """Copy a store's rows many times, under other ids, and without its tapes."""
    relations = {
        name: pa.concat_tables([pq.read_table(file, schema=schema) for file in files])
        for name, schema in SCHEMAS.items()
        if (files := sorted((store.root / "index" / name).glob("[!_.]*.parquet")))
    }
    large, faults = (
        TraceStore(root),
        sum(not sham for sham in relations["injections"]["sham"].to_pylist()),
    )
    copies = range(-(-injections // faults))
    for begin in copies[::SEGMENT]:
        some = copies[begin : begin + SEGMENT]
        large.write(
            f"copies-{begin}",
            {
                name: pa.concat_tables([_renamed(rows, copy) for copy in some])
                for name, rows in relations.items()
            },
        )
    return large


def _renamed(rows: pa.Table, copy: int) -> pa.Table:
    """Return the rows with `-copy` appended to every id."""
    for at, field in enumerate(rows.schema):
        if field.name in ("trajectory_id", "parent_id", "injection_id", "repeat_of"):
            ids = [None if id is None else f"{copy}-{id}" for id in rows[field.name].to_pylist()]
            rows = rows.set_column(at, field, pa.array(ids, pa.string()))
        if field.name == "twins":
            lists = [[f"{copy}-{id}" for id in ids or ()] for ids in rows["twins"].to_pylist()]
            rows = rows.set_column(at, field, pa.array(lists, field.type))
    return rows
