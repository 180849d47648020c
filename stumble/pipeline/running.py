"""A run of the pipeline as a recording: its folder, its command, its tape."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from recorder import loop
from scenarios.workspace.snapshot import Limits
from stumble import indexing
from stumble.home import authority, new_id, store_root
from stumble.launch import Cold
from stumble.pipeline.asked import Asked
from stumble.pipeline.kept import Kept
from stumble.recording import record
from stumble.runs import Labels, Played
from stumble.workspaces import snapshot
from traces.store import Store

RUNS = "pipelines"
COMMAND = (sys.executable, "-m", "stumble", "pipeline", "drive", ".")


def run(asked: Asked) -> int:
    """Record a new run of the pipeline; the exit code."""
    store, id = Store(store_root()), new_id()
    folder = store.root / RUNS / id
    folder.mkdir(parents=True)
    asked.write(folder)
    Kept(folder=folder, run=id).write()
    played = _recorded(store, asked, folder, id)
    indexing.refresh(store)
    click.echo(f"recorded {played.path}", err=True)
    return played.exit.code


def _recorded(store: Store, asked: Asked, folder: Path, id: str) -> Played:
    taken = snapshot(folder, store, Limits(bytes=256 << 20, files=50_000), lambda *_: None)
    with TemporaryDirectory(prefix="stumble-") as scratch:
        return loop.run(
            record(
                store.tapes / f"{id}.tape",
                Cold(command=COMMAND, cwd=folder),
                id=id,
                ca=authority(),
                scratch=Path(scratch),
                labels=Labels(
                    agent=asked.agent.split()[0],
                    model=asked.model,
                    task=f"pipeline-{asked.workload}",
                ),
                workspace=folder,
                snapshot=taken.name,
                marked=True,
            )
        )
