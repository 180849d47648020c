"""What the driver of a pipeline keeps and tells, at the stage that is graded most quickly."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from recorder.run_events import RunEventClient, RunEventData, serve_run_events
from stumble.pipeline.checkpoint import COSTS, PipelineCheckpoint
from stumble.pipeline.config import Arm, PipelineConfig
from stumble.pipeline.driver import PipelineDriver

RUN = "run"


@dataclass
class Run:
    """The recorder's end: it keeps what it is told, and knows of no cost and no budget."""

    told: list[tuple[str, RunEventData]] = field(default_factory=list)

    def hear(self, name: str, data: RunEventData) -> RunEventData:
        self.told.append((name, data))
        return {"strict": False, "run": RUN} | dict.fromkeys(COSTS)

    def data(self, name: str) -> list[RunEventData]:
        return [data for told, data in self.told if told == name]


def drive(folder: Path, arm: Arm = "resurrect") -> Run:
    """One drive through T0, whose workspace no agent has worked in."""
    asked = PipelineConfig(agent="", stages=("T0",), arm=arm, known=str(folder / "known"))
    run = Run()

    async def main() -> None:
        desk = folder / "desk"
        async with (
            serve_run_events(desk, run.hear),
            RunEventClient(*await asyncio.open_unix_connection(desk)) as teller,
        ):
            await PipelineDriver(folder, asked, PipelineCheckpoint.read(folder), teller).drive()

    asyncio.run(main())
    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run that has not begun."""
    PipelineCheckpoint(folder=tmp_path, run=RUN).write()
    return tmp_path


@pytest.mark.gate
def test_a_failed_stage_is_resurrected_and_keeps_its_score(folder: Path) -> None:
    run = drive(folder)
    (graded,), (resurrection,) = run.data("graded"), run.data("resurrection")
    assert (graded["score"], graded["result"]) == (0.0, "agent_error")
    assert resurrection == {"stage": "T0", "reason": "agent_error", "score": 0.0}
    slot = PipelineCheckpoint.read(folder).load_slot("T0")
    assert slot is not None
    assert slot.provenance == "golden"


@pytest.mark.gate
def test_without_resurrection_what_a_stage_left_is_kept(folder: Path) -> None:
    run = drive(folder, arm="no-resurrection")
    assert run.data("resurrection") == []
    slot = PipelineCheckpoint.read(folder).load_slot("T0")
    assert slot is not None
    assert slot.provenance == "own"


def test_what_is_graded_is_told_again_and_not_graded_again(folder: Path) -> None:
    kept = PipelineCheckpoint.read(folder)
    kept.laid_out = True
    kept.graded["T0"] = [("graded", {"stage": "T0", "score": 70.0, "before": True})]
    kept.write()
    run = drive(folder)
    assert [name for name, _ in run.told] == ["pipeline", "graded"]
    assert run.data("graded") == [{"stage": "T0", "score": 70.0, "before": True}]
