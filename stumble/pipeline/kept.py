"""What a run of the pipeline keeps beside its tape: how far it is, and the slots that are filled.

Written whole or not at all, before the facts are told; so what was graded is graded once, whenever
the run is killed.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgpack

from scenarios.compiler.contract import Slot

STATE = "state.json"
SLOTS = "slots"

type Facts = Mapping[str, object]


@dataclass(slots=True, eq=False, kw_only=True)
class Kept:
    """The state of one run, in its folder."""

    folder: Path
    run: str
    """The recording that writes it."""
    before: str | None = None
    """The recording that it goes on from."""
    laid_out: bool = False
    graded: dict[str, list[tuple[str, Facts]]] = field(default_factory=dict)
    """By stage, the marks to be told of it again by a run that goes on from here."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """That of a run's folder; FileNotFoundError where there is none."""
        said = json.loads((folder / STATE).read_text())
        graded = {
            stage: [(name, data) for name, data in marks] for stage, marks in said["graded"].items()
        }
        run, before, laid_out = said["run"], said["before"], said["laid_out"]
        return cls(folder=folder, run=run, before=before, laid_out=laid_out, graded=graded)

    def write(self) -> None:
        """Put it in the place of what was kept before."""
        said = {
            "run": self.run,
            "before": self.before,
            "laid_out": self.laid_out,
            "graded": self.graded,
        }
        put(self.folder / STATE, json.dumps(said).encode())

    def slot(self, stage: str) -> Slot | None:
        """What a stage left, or what took its place; None where it has not been graded."""
        path = self.folder / SLOTS / f"{stage}.msgpack"
        if stage not in self.graded or not path.exists():
            return None
        provenance, artifacts = msgpack.unpackb(path.read_bytes())
        return Slot(stage=stage, provenance=provenance, artifacts=artifacts)

    def keep(self, slot: Slot) -> None:
        """Keep a slot; it counts from when its stage is kept as graded."""
        (self.folder / SLOTS).mkdir(exist_ok=True)
        said = msgpack.packb((slot.provenance, dict(slot.artifacts)))
        put(self.folder / SLOTS / f"{slot.stage}.msgpack", said)


def put(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
