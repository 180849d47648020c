"""A run of the pipeline as a recording: its folder, its command, its tape."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from recorder import loop
from scenarios.workspace.snapshot import Limits
from stumble import indexing
from stumble.exits import Wrong
from stumble.home import authority, new_id
from stumble.launch import Cold
from stumble.pipeline.asked import Asked
from stumble.pipeline.kept import Kept
from stumble.pipeline.verdict import Pipeline
from stumble.recording import record
from stumble.runs import Hosts, Labels, Played
from stumble.workspaces import snapshot
from traces.nearest import nearest
from traces.store import Store

if TYPE_CHECKING:
    from faults.armed import Armed

RUNS, KNOWN = "pipelines", "graded"
COMMAND = (sys.executable, "-m", "stumble", "pipeline", "drive", ".")
LARGEST = Limits(bytes=1 << 30, files=50_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where and in what surroundings a run is recorded."""

    store: Store
    hosts: Hosts
    agent: str | None = None
    """What to call the agent."""
    rules: tuple[str, ...] = ()
    armed: "tuple[Armed, ...]" = ()
    seed: int = 0
    say: Callable[[str], object] = lambda line: None


def begun(ground: Ground, asked: Asked, prepare: Callable[[Path], object] | None = None) -> Played:
    """Record a new run; `prepare` makes its workspace in the place of the starter."""
    id = new_id()
    folder = ground.store.root / RUNS / id
    folder.mkdir(parents=True)
    asked = replace(asked, known=str(ground.store.root / KNOWN))
    asked.write(folder)
    kept = Kept(folder=folder, run=id)
    if prepare is not None:
        prepare(folder)
        kept.laid_out = True
    kept.write()
    return _recorded(ground, asked, kept)


def resumed(ground: Ground, id: str) -> Played:
    """Record the rest of a run that was ended before its last stage was graded."""
    folder = ground.store.root / RUNS / id
    if not (folder / "state.json").exists():
        names = [each.name for each in (ground.store.root / RUNS).glob("*")]
        raise Wrong(f"no run {id!r} of the pipeline is here{nearest(id, names)}")
    asked, kept = Asked.read(folder), Kept.read(folder)
    if all(stage in kept.graded for stage in asked.stages):
        raise Wrong(f"the run {id} is over: all its stages are graded")
    kept.before, kept.run = kept.run, new_id()
    kept.write()
    return _recorded(ground, asked, kept)


def _recorded(ground: Ground, asked: Asked, kept: Kept) -> Played:
    store, folder = ground.store, kept.folder
    ground.say(f"pipeline: run {folder.name}")
    taken = snapshot(folder, store, LARGEST, lambda done, of: None)
    path = store.tapes / f"{kept.run}.tape"
    with TemporaryDirectory(prefix="stumble-") as scratch:
        played = loop.run(
            record(
                path,
                Cold(command=COMMAND, cwd=folder),
                id=kept.run,
                ca=authority(),
                scratch=Path(scratch),
                hosts=ground.hosts,
                world=Pipeline(frozenset(asked.stages)),
                labels=Labels(
                    agent=ground.agent or asked.agent.split()[0].rpartition("/")[2],
                    model=asked.model,
                    task=f"pipeline:{asked.kind}",
                ),
                rules=ground.rules,
                armed=ground.armed,
                seed=ground.seed,
                say=ground.say,
                workspace=folder,
                snapshot=taken.name,
                marked=True,
                before=kept.before,
            )
        )
    indexing.refresh(store)
    return played
