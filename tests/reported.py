"""Stores of real runs for reports: the practice agent, warm, recorded and struck."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from recorder import loop
from scenarios.world import Verdict, World
from stumble.demo import Job, Worker, site, worker
from stumble.forks import branch, plan
from stumble.playing import play
from stumble.theatre import theatre
from tests.recorder_wire import confdir
from traces.model import Condition, Fault
from traces.relations import SCHEMAS
from traces.store import Store
from traces.story import tell

JOBS = (Job("refund-1", "retries"), Job("refund-1", "verifies"))
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
    """A world whose verifier cannot say what became of it."""

    world: World

    async def reset(self) -> None:
        await self.world.reset()

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        return Verdict(None, "the verifier hung")


def fill(
    root: Path,
    *,
    jobs: Sequence[Job] = JOBS,
    faults: Sequence[Fault] = FAULTS,
    twins: int = 3,
    verified: bool = True,
) -> Store:
    """A store of these jobs, each recorded and, where there are faults, struck by every one."""
    store = Store(root)
    os.environ.setdefault("OPENAI_API_KEY", "sk-test-0123456789")
    loop.run(_filled(store, jobs, faults, twins, verified))
    return store


async def _filled(
    store: Store, jobs: Sequence[Job], faults: Sequence[Fault], twins: int, verified: bool
) -> None:
    ca = confdir()
    with TemporaryDirectory(prefix="stumble-") as scratch:
        folder = Path(scratch)
        async with worker(store, folder, lambda: None) as does:
            for job in jobs:
                await _done(does, job, faults, store, folder, ca, twins, verified)


async def _done(
    does: Worker,
    job: Job,
    faults: Sequence[Fault],
    store: Store,
    folder: Path,
    ca: Path,
    twins: int,
    verified: bool,
) -> None:
    recording = await does.record(job, ca)
    told, world, runs = tell(recording), does.world(job), []
    tool, nth, field = site(job, told)
    async with theatre(ca=ca, scratch=folder, hosts=world.hosts, out=True) as house:
        for at, fault in enumerate(faults):
            params = {"field": field} if fault.name == "digit" else fault.params
            aimed = replace(fault, params=params, where={"tool": tool}, nth=nth, at="http")
            clean: list[Condition] = ["clean"] * twins
            controls: list[Condition] = [*clean, "sham"] if at == 0 else []
            for rep, condition in enumerate([*controls, "fault"]):
                each = plan(
                    branch(recording, aimed, told),
                    condition,
                    seed=7,
                    world=world if verified else Unverified(world),
                    rep=rep if condition == "clean" else 0,
                    labels=does.labels(job),
                )
                runs.append(await play(house, recording, store.tapes, each, does.launch(job)))
    does.index(job, recording, runs)


def multiplied(store: Store, root: Path, injections: int) -> Store:
    """A store with the rows of a real one over and over, under other ids, and without its tapes."""
    relations = {
        name: pa.concat_tables([pq.read_table(file, schema=schema) for file in files])
        for name, schema in SCHEMAS.items()
        if (files := sorted((store.root / "index" / name).glob("[!_.]*.parquet")))
    }
    large, faults = (
        Store(root),
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
    """The rows with `-copy` behind every id."""
    for at, field in enumerate(rows.schema):
        if field.name in ("trajectory_id", "parent_id", "injection_id", "repeat_of"):
            ids = [None if id is None else f"{copy}-{id}" for id in rows[field.name].to_pylist()]
            rows = rows.set_column(at, field, pa.array(ids, pa.string()))
        if field.name == "twins":
            lists = [[f"{copy}-{id}" for id in ids or ()] for ids in rows["twins"].to_pylist()]
            rows = rows.set_column(at, field, pa.array(lists, field.type))
    return rows
