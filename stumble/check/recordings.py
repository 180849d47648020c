"""The clean runs of a check: each task is recorded in a fresh copy of the folder."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from faults.judging.judge import RunEvidence, to_run_evidence
from recorder import event_loop
from recorder.agent.agent_input import PipedInput
from recorder.scratch_folder import make_scratch_folder
from stumble.check.saved_files import PROJECT_FILE, WORKFLOW
from stumble.errors import UsageError
from stumble.packs.pack_manifest import PACK_SUFFIX
from stumble.project_setup.project_files import SCENARIO_NAME
from stumble.runs.environment.workspaces import RecordedWorkspace, snapshot_current_folder
from stumble.runs.environment.worlds import WorldCommands
from stumble.runs.isolation import WorkspaceChoice, plan_isolation
from stumble.runs.launcher import ColdLauncher
from stumble.runs.record import record_run
from stumble.runs.types import RecordPlan, RunLabels, RunResult
from stumble.runs.write_guard import WriteGuard
from stumble.store.tape_rows import write_run_rows
from stumble.user_data.paths import new_trajectory_id
from traces.model import Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape

AGENT_STOP_SECONDS = 5.0
"""Seconds that an agent gets to end after a stop signal."""
LAST_LINES = 3
"""Lines of a failed agent's output that are shown."""


class CleanRecorder(Struct, frozen=True, kw_only=True):
    """Records the agent of a check."""

    name: str
    """The campaign that the recordings belong to."""
    store: TraceStore
    ca: Path
    workspace: RecordedWorkspace
    world: WorldCommands

    @property
    def log(self) -> Path:
        """The file with what the agent printed."""
        return self.store.log_path(self.name)

    def record(
        self,
        task: str,
        command: tuple[str, ...],
        number: int,
        budget: float,
        guard: WriteGuard | None,
        piped: PipedInput,
    ) -> RunResult:
        """Record a task once, with this standard input; a run that a guard or a signal stopped
        leaves no tape.

        Raises OSError if the command cannot be run, UsageError if the world cannot be reset.
        """
        id = new_trajectory_id()
        path = self.store.tapes / f"{id}.tape"
        plan = RecordPlan(
            world=self.world.make_world(has_fresh_copy=True),
            labels=RunLabels(task=task, campaign=self.name, cell=f"record/{number}"),
            workspace=self.workspace.path,
            snapshot=self.workspace.snapshot,
            store=self.store,
            copies=self.workspace,
            guard=guard,
            observed=True,
            input=piped,
        )
        launch = ColdLauncher(
            command=command,
            budget=budget,
            output=self.log,
            patience=AGENT_STOP_SECONDS,
            input=piped,
        )
        with make_scratch_folder() as scratch:
            running = record_run(path, launch, plan, id=id, ca=self.ca, scratch=scratch)
            result = event_loop.run_event_loop(running)
        if result.exit.signal is not None or (guard is not None and guard.refused):
            path.unlink(missing_ok=True)
        else:
            write_run_rows(self.store, (id,))
        return result

    def read_last_output(self) -> str:
        """Return the last lines that the agent printed; empty if it printed none."""
        lines = self.log.read_text("utf-8", "replace").splitlines() if self.log.exists() else []
        return " / ".join(line.strip() for line in lines[-LAST_LINES:] if line.strip())


def take_workspace(store: TraceStore) -> RecordedWorkspace:
    """Keep the current folder for copies. Raises UsageError if that is not possible."""
    snapshot = snapshot_current_folder(store)
    folder = Trajectory(
        id="check", recorded_at=0.0, workspace=str(Path.cwd().resolve()), snapshot=snapshot
    )
    plan = plan_isolation(folder, store, WorkspaceChoice(as_recorded=True), live="it is live")
    if plan.workspace is None:
        raise UsageError("check works in copies of this folder, and none can be made")
    return plan.workspace


def digest_workspace(workspace: RecordedWorkspace) -> str:
    """Digest the contents of a folder, without the files that `check --save` writes."""
    contents = [
        (entry.path, entry.target)
        for entry in workspace.manifest.entries
        if entry.kind in ("file", "link") and not _is_saved_by_check(entry.path)
    ]
    return blake2b(json.dumps(sorted(contents)).encode(), digest_size=8).hexdigest()


def _is_saved_by_check(path: str) -> bool:
    return path in (PROJECT_FILE, WORKFLOW, SCENARIO_NAME) or path.endswith(PACK_SUFFIX)


def find_clean_runs(store: TraceStore, name: str) -> Mapping[str, tuple[RunEvidence, ...]]:
    """Return the recordings of a check by task, the first first; the store must be indexed."""
    with store.open_locked() as connection:
        rows = connection.execute(
            "SELECT task, trajectory_id FROM trajectories"
            " WHERE campaign = $name AND source = 'record' ORDER BY recorded_at, trajectory_id",
            {"name": name},
        ).fetchall()
    found = dict[str, tuple[RunEvidence, ...]]()
    for task, id in rows:
        if (path := store.tapes / f"{id}.tape").exists():
            found[task] = (*found.get(task, ()), to_run_evidence(read_tape(path)))
    return found
