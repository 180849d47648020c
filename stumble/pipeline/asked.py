"""What a run of the pipeline was asked for: one file, in the folder that is the run's own."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Self

from scenarios.compiler.contract import STAGES

type Mode = Literal["guided", "progressive", "autonomous"]
type Arm = Literal["resurrect", "no-resurrection", "from-golden"]
"""What a stage is given: what the one before left, or the golden artifacts where that failed; what
it left, whatever it is; the golden artifacts always."""

MODES: tuple[Mode, ...] = ("guided", "progressive", "autonomous")
FILE = "pipeline.json"
WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which agent goes through which stages, and how."""

    agent: str
    """Its command, with `{task}` and the like."""
    again: str | None = None
    """Its command to go on with the conversation of the stage before."""
    model: str | None = None
    stages: tuple[str, ...] = STAGES
    mode: Mode = "guided"
    arm: Arm = "resurrect"
    limits: Mapping[str, float] = field(default_factory=dict)
    """By `calls`, `tokens`, `dollars`, `seconds`."""
    language: str = "python"
    sandbox: str = "process"
    workload: str = "embedded"
    jobs: int = 2

    @property
    def scope(self) -> str:
        """Whether the limits are those of one stage, or of the whole run."""
        return "run" if self.mode == "progressive" else "stage"

    def write(self, folder: Path) -> None:
        """Keep it in a run's folder."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """That of a run's folder; FileNotFoundError where there is none."""
        said = json.loads((folder / FILE).read_text())
        return cls(**said | {"stages": tuple(said["stages"])})

    def said(self) -> dict[str, object]:
        """What its first mark says."""
        return {
            "workload": self.workload,
            "language": self.language,
            "mode": self.mode,
            "arm": self.arm,
            "sandbox": self.sandbox,
            "stages": list(self.stages),
        }
