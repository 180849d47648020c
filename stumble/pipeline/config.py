"""Configuration of a pipeline run: one file, in the folder of the run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from msgspec import Struct, field, to_builtins

from sandbox.docker.images import DEFAULT_IMAGE
from sandbox.types import SandboxKind
from scenarios.pipeline.compiler.types import STAGES

type Mode = Literal["guided", "progressive", "autonomous"]
type Arm = Literal["resurrect", "no-resurrection", "from-golden"]
"""Input of a stage: the artifacts of the stage before, or the golden ones if that failed; always
those of the stage before; always the golden ones."""

MODES: tuple[Mode, ...] = ("guided", "progressive", "autonomous")
CONFIG_FILE = "pipeline.json"
WORKSPACE_FOLDER = "workspace"
AGENT_HOME = "home"
"""Home folder of the agents of a run, kept so that a conversation can be resumed."""


class PipelineConfig(Struct, frozen=True, kw_only=True):
    """Agent, stages, limits and sandbox of a run."""

    agent: str
    """A preset or a command; empty if the workspace is graded as it is."""
    model: str | None = None
    stages: tuple[str, ...] = STAGES
    mode: Mode = "guided"
    arm: Arm = "resurrect"
    limits: Mapping[str, float] = field(default_factory=dict)
    """Limits by `calls`, `tokens`, `dollars`, `seconds`."""
    attempts: int = 1
    """How often the agent is started at a stage, as long as its score does not pass."""
    language: str = "python"
    sandbox: SandboxKind | Literal["none"] = "process"
    image: str = DEFAULT_IMAGE
    """Container image."""
    allow: tuple[str, ...] = ()
    """Extra hosts a sandboxed agent may reach through the recorder."""
    env: tuple[str, ...] = ()
    """Variables passed to the agent besides those for models; patterns such as `MY_*` too."""
    workload: str = "embedded"
    """`embedded:SEED:CHOSEN`, with the seed of its programs and their attempts, or `yatcc:FOLDER`,
    with the folder of its checkout.
    """
    jobs: int = 2
    known: str = ""
    """The folder of cached grades."""

    @property
    def store(self) -> Path:
        """The store of the run, whose cached grades are `known`."""
        return Path(self.known).parent

    @property
    def workload_name(self) -> str:
        """The workload without its folder."""
        return self.workload.partition(":")[0]

    @property
    def programs_seed(self) -> int | None:
        """The seed of the programs; None of a checkout."""
        name, seed, *_ = (*self.workload.split(":"), "")
        return int(seed or 0) if name == "embedded" else None

    @property
    def budget_scope(self) -> str:
        """`run` or `stage`: the scope of the limits."""
        return "run" if self.mode == "progressive" else "stage"

    def write(self, folder: Path) -> None:
        """Write it to the folder of a run."""
        (folder / CONFIG_FILE).write_text(json.dumps(to_builtins(self), indent=1))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read it from the folder of a run. Raises FileNotFoundError if there is none."""
        fields = json.loads((folder / CONFIG_FILE).read_text())
        return cls(**fields | {name: tuple(fields[name]) for name in ("stages", "allow", "env")})

    def to_event_data(self) -> dict[str, object]:
        """Return the data of the first run event."""
        return {
            "workload": self.workload_name,
            "programs": self.programs_seed,
            "language": self.language,
            "mode": self.mode,
            "arm": self.arm,
            "agent": self.agent,
            "sandbox": self.sandbox,
            "stages": list(self.stages),
            "attempts": self.attempts,
        }
