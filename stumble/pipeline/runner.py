"""Recording of a pipeline run: its folder, command and tape."""

import sys
from collections.abc import Callable
from copy import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from recorder import event_loop
from recorder.scratch_folder import make_scratch_folder
from sandbox.deep_folders import cut_deep_folders
from scenarios.pipeline.replay_check import Pipeline
from scenarios.pipeline.workload import choose_workload
from scenarios.practice.pipeline_model import (
    MODEL_HOST,
    is_practice_model,
    serve_practice_model,
)
from scenarios.workspace.snapshot import SnapshotLimits
from stumble.errors import UsageError
from stumble.llm.prices import compute_token_cost
from stumble.pipeline.checkpoint import COSTS, PipelineCheckpoint
from stumble.pipeline.config import WORKSPACE_FOLDER, PipelineConfig
from stumble.runs.environment.workspaces import take_folder_snapshot
from stumble.runs.launcher import ColdLauncher
from stumble.runs.record import record_run
from stumble.runs.types import Hosts, RecordPlan, RunLabels, RunResult
from stumble.store import index
from stumble.user_data.paths import new_trajectory_id, prepare_ca_folder
from traces.did_you_mean import suggest_nearest_name
from traces.store.rows import measure_interrupted_tape
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape

if TYPE_CHECKING:
    from faults.targeting.bound_fault import BoundFault

RUNS, KNOWN = "pipelines", "graded"
DRIVER_COMMAND = (sys.executable, "-m", "stumble", "pipeline", "drive", ".")
WORKSPACE_LIMITS = SnapshotLimits(bytes=1 << 30, files=50_000)


class PipelineEnvironment(Struct, frozen=True, kw_only=True):
    """Store, hosts, faults and labels of a recording."""

    store: TraceStore
    hosts: Hosts
    agent: str | None = None
    """The name of the agent."""
    rules: tuple[str, ...] = ()
    armed: "tuple[BoundFault, ...]" = ()
    seed: int = 0
    say: Callable[[str], object] = lambda line: None


def record_pipeline_run(
    ground: PipelineEnvironment,
    asked: PipelineConfig,
    prepare: Callable[[Path], object] | None = None,
) -> RunResult:
    """Record a new run; `prepare` creates its workspace instead of the starter."""
    id = new_trajectory_id()
    folder = ground.store.root / RUNS / id
    folder.mkdir(parents=True)
    asked = replace(asked, known=str(ground.store.root / KNOWN))
    if asked.stages != ("T0",):
        asked = replace(asked, workload=choose_workload(asked.workload))
    asked.write(folder)
    checkpoint = PipelineCheckpoint(folder=folder, run=id)
    if prepare is not None:
        prepare(folder)
        checkpoint.laid_out = True
    checkpoint.write()
    return _record_pipeline(ground, asked, checkpoint)


def resume_pipeline_run(ground: PipelineEnvironment, id: str) -> RunResult:
    """Record the rest of a run. Raises UsageError if it is unknown or complete."""
    folder = ground.store.root / RUNS / id
    if not (folder / "state.json").exists():
        names = [each.name for each in (ground.store.root / RUNS).glob("*")]
        raise UsageError(f"no run {id!r} of the pipeline is here{suggest_nearest_name(id, names)}")
    config, checkpoint = PipelineConfig.read(folder), PipelineCheckpoint.read(folder)
    if all(stage in checkpoint.graded for stage in config.stages):
        raise UsageError(f"the run {id} is over: all its stages are graded")
    _keep_interrupted_cost(ground.store, config, checkpoint)
    cut_deep_folders(str(folder / WORKSPACE_FOLDER))
    checkpoint.before, checkpoint.run = checkpoint.run, new_trajectory_id()
    checkpoint.write()
    if not is_practice_model(config.model) or MODEL_HOST in ground.hosts:
        return _record_pipeline(ground, config, checkpoint)
    with serve_practice_model() as hosts:
        resumed = replace(ground, hosts={**ground.hosts, **hosts})
        return _record_pipeline(resumed, config, checkpoint)


def _keep_interrupted_cost(
    store: TraceStore, config: PipelineConfig, checkpoint: PipelineCheckpoint
) -> None:
    """Keep what a run had spent at the stage that it was interrupted in; unknown without a tape."""
    path = store.tapes / f"{checkpoint.run}.tape"
    if path.exists():
        interrupted = measure_interrupted_tape(read_tape(path), compute_token_cost)
        if interrupted is not None:
            stage, cost = interrupted
            checkpoint.spent[stage] = cost
    else:
        following = next(stage for stage in config.stages if stage not in checkpoint.graded)
        checkpoint.spent[following] = dict.fromkeys(COSTS)


def _record_pipeline(
    ground: PipelineEnvironment, asked: PipelineConfig, kept: PipelineCheckpoint
) -> RunResult:
    store, folder = ground.store, kept.folder
    ground.say(f"pipeline: run {folder.name}")
    snapshot = take_folder_snapshot(folder, store, WORKSPACE_LIMITS, lambda done, of: None)
    path = store.tapes / f"{kept.run}.tape"
    plan = RecordPlan(
        hosts=ground.hosts,
        world=Pipeline(frozenset(asked.stages)),
        labels=RunLabels(
            agent=ground.agent or asked.agent.split()[0].rpartition("/")[2],
            model=asked.model,
            task=f"pipeline:{asked.workload_name}",
        ),
        rules=ground.rules,
        armed=ground.armed,
        seed=ground.seed,
        workspace=folder,
        snapshot=snapshot.name,
        store=store,
        marked=True,
        before=kept.before,
    )
    with make_scratch_folder() as scratch:
        result = event_loop.run_event_loop(
            record_run(
                path,
                ColdLauncher(command=DRIVER_COMMAND, cwd=folder),
                plan,
                id=kept.run,
                ca=prepare_ca_folder(),
                scratch=scratch,
                say=ground.say,
            )
        )
    index.refresh_index(store)
    return result
