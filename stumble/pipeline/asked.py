"""What a run of the pipeline was asked for: one file, in the folder that is the run's own."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Self

from scenarios.compiler.contract import STAGES
from scenarios.sandbox.images import IMAGE
from scenarios.sandbox.values import Isolation

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
    """The name of a preset, or a command; nothing where the workspace is graded as it lies."""
    model: str | None = None
    stages: tuple[str, ...] = STAGES
    mode: Mode = "guided"
    arm: Arm = "resurrect"
    limits: Mapping[str, float] = field(default_factory=dict)
    """By `calls`, `tokens`, `dollars`, `seconds`."""
    language: str = "python"
    sandbox: Isolation | Literal["none"] = "process"
    image: str = IMAGE
    """What the containers are made of."""
    allow: tuple[str, ...] = ()
    """Whom a sandboxed agent may reach, by the recorder, besides models."""
    env: tuple[str, ...] = ()
    """Variables that it gets besides those that lead to models; `MY_*` too."""
    workload: str = "embedded"
    """Or `yatcc:FOLDER`, with the folder of its checkout."""
    jobs: int = 2
    known: str = ""
    """The folder in which grades are kept."""

    @property
    def kind(self) -> str:
        """What the workload is called, without its folder."""
        return self.workload.partition(":")[0]

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
        return cls(**said | {name: tuple(said[name]) for name in ("stages", "allow", "env")})

    def said(self) -> dict[str, object]:
        """What its first mark says."""
        return {
            "workload": self.kind,
            "language": self.language,
            "mode": self.mode,
            "arm": self.arm,
            "agent": self.agent,
            "sandbox": self.sandbox,
            "stages": list(self.stages),
        }
