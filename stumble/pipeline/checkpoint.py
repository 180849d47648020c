"""Checkpoint of a pipeline run: the graded stages and the filled artifact slots.

Written atomically, before the run events are sent; so each stage is graded once, even if the run is
killed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgpack
from msgspec import Struct, field

from scenarios.pipeline.checkpoint_file import write_checkpoint_file
from scenarios.pipeline.compiler.types import ArtifactSlot

STATE_FILE = "state.json"
SLOTS_FOLDER = "slots"
COSTS = ("calls", "tokens", "cost_usd", "seconds")
"""What a stage costs, as run events and the checkpoint name it."""

type GradedStageFacts = Mapping[str, object]


class PipelineCheckpoint(Struct, eq=False, kw_only=True):
    """The state of one run, in its folder."""

    folder: Path
    run: str
    """Id of the recording that writes it."""
    before: str | None = None
    """Id of the recording that this run resumes."""
    laid_out: bool = False
    graded: dict[str, list[tuple[str, GradedStageFacts]]] = field(default_factory=dict)
    """Run events by stage, which a resumed run sends again."""
    attempts: dict[str, list[GradedStageFacts]] = field(default_factory=dict)
    """The attempts by stage that were graded and are not the last."""
    spent: dict[str, GradedStageFacts] = field(default_factory=dict)
    """What earlier runs had spent at a stage when they were interrupted in it: calls, tokens,
    cost_usd and seconds, None if unknown.
    """

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the checkpoint of a run's folder. Raises FileNotFoundError if there is none."""
        state = json.loads((folder / STATE_FILE).read_text())
        graded = {
            stage: [(name, data) for name, data in marks]
            for stage, marks in state["graded"].items()
        }
        run, before, laid_out = state["run"], state["before"], state["laid_out"]
        return cls(
            folder=folder,
            run=run,
            before=before,
            laid_out=laid_out,
            graded=graded,
            attempts=state.get("attempts", {}),
            spent=state.get("spent", {}),
        )

    def write(self) -> None:
        """Replace the checkpoint file."""
        state = {
            "run": self.run,
            "before": self.before,
            "laid_out": self.laid_out,
            "graded": self.graded,
            "attempts": self.attempts,
            "spent": self.spent,
        }
        write_checkpoint_file(self.folder / STATE_FILE, json.dumps(state).encode())

    def load_slot(self, stage: str) -> ArtifactSlot | None:
        """Return the artifacts of a stage, or its replacement; None if it is not graded."""
        path = self.folder / SLOTS_FOLDER / f"{stage}.msgpack"
        if stage not in self.graded or not path.exists():
            return None
        provenance, artifacts = msgpack.unpackb(path.read_bytes())
        return ArtifactSlot(stage=stage, provenance=provenance, artifacts=artifacts)

    def store_slot(self, slot: ArtifactSlot) -> None:
        """Store a slot; it is used once its stage is in `graded`."""
        (self.folder / SLOTS_FOLDER).mkdir(exist_ok=True)
        packed = msgpack.packb((slot.provenance, dict(slot.artifacts)))
        write_checkpoint_file(self.folder / SLOTS_FOLDER / f"{slot.stage}.msgpack", packed)
