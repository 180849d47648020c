"""Isolation of a run: the agent's folder, what it can reach, and the lines about both.

Only a strict replay is hermetic. A run that goes live, at once or after an injection, needs the
network.
"""

from collections.abc import Mapping
from copy import replace
from pathlib import Path
from typing import Literal

from msgspec import Struct

from recorder.agent.blocked_connections import BlockedConnection
from recorder.agent.isolation import find_missing_capabilities
from recorder.agent.scratch_paths import list_scratch_folders
from stumble.errors import ExitCode, UsageError
from stumble.packs.packed_snapshots import is_packed_snapshot
from stumble.processors import count_usable_processors
from stumble.runs.environment.workspaces import (
    WORKSPACE_VARIABLE,
    RecordedWorkspace,
    explain_missing_copy,
    find_recorded_workspace,
    format_first_names,
)
from traces.model import Trajectory
from traces.store.store_dir import StoreDirectory

type IsolationMode = Literal["auto", "network", "require", "off"]

UNSEEN_TRAFFIC_NOTE = "traffic that does not honour the proxy variables would not be seen here"
WEAK_ISOLATION_NOTE = "an agent that means to can leave it by other processes"
NESTED_SANDBOX_REASON = "the pipeline's driver builds the sandboxes of its agent and graders itself"
NETWORK_ONLY_REASON = "--isolation network, for an agent that builds sandboxes itself"
REAL_COMMANDS_NOTE = "local commands really run again there"


class IsolationPlan(Struct, frozen=True, kw_only=True):
    """How a run is isolated from the user's folder and from the network."""

    workspace: RecordedWorkspace | None
    in_place: str | None
    """Why the agent runs in the folder itself; None where it gets a copy."""
    not_isolated: str | None
    """Why the agent can reach the network; None if it can reach only the proxy."""
    weaker: str | None = None
    """Why an agent that reaches only the proxy has no PID namespace; None if it has one."""

    @property
    def is_isolated(self) -> bool:
        """Whether the agent can reach only the proxy."""
        return self.not_isolated is None

    def describe_workspace(self, temporary: tuple[Path, ...] | None = None) -> str:
        """Where the agent runs, in lines; `temporary` as in `RunResult`."""
        if self.workspace is None:
            return f"workspace: in place, {self.in_place}; {REAL_COMMANDS_NOTE}"
        return (
            f"workspace: a fresh copy, as "
            f"recorded{self._describe_edits()}{self._describe_mapping()}"
            f"{self._describe_outside(temporary)}"
        )

    def _describe_outside(self, temporary: tuple[Path, ...] | None) -> str:
        assert self.workspace is not None
        if self.workspace.mapped is not None:
            return ""
        if self.workspace.unprotected is not None:
            why = self.workspace.unprotected
            return f"\noutside: not protected, {why}; commands change files elsewhere"
        kept = (*map(str, list_scratch_folders()), *map(str, self.workspace.writable))
        real = ", ".join(("/run", *(kept if temporary is None else map(str, temporary))))
        return f"\noutside: changes of files elsewhere are thrown away, except in {real}"

    def _describe_edits(self) -> str:
        assert self.workspace is not None
        if self.workspace.edits:
            return (
                f", with your edits to {format_first_names(self.workspace.edits)} "
                f"(--as-recorded omits them)"
            )
        if self.workspace.differing or self.workspace.unknown:
            differing = format_first_names(self.workspace.differing) or "anything"
            return (
                f"; whether {differing} was edited since is not known, since "
                f"{self.workspace.unknown}; --in-place uses the folder as it is now"
            )
        return ""

    def _describe_mapping(self) -> str:
        assert self.workspace is not None
        if self.workspace.mapped is None:
            return ""
        real = f"{self.workspace.path} itself and files elsewhere can be changed"
        return (
            f", at a path of its own ({WORKSPACE_VARIABLE}), since {self.workspace.mapped}; {real}"
        )

    def describe_attempts(self, attempts: Mapping[BlockedConnection, int]) -> str:
        """What the agent could reach and tried to, in a line."""
        if self.not_isolated is not None:
            return f"not isolated: {self.not_isolated}; {UNSEEN_TRAFFIC_NOTE}"
        if self.weaker is not None:
            return f"isolated, but by its network alone: {self.weaker}; {WEAK_ISOLATION_NOTE}"
        if not attempts:
            return "isolated: nothing but the recording could be reached"
        count = sum(attempts.values())
        places = ", ".join(
            f"{attempt}" + (f" ({n} times)" if n > 1 else "") for attempt, n in attempts.items()
        )
        tried = "1 attempt" if count == 1 else f"{count} attempts"
        return f"isolated: {tried} to reach the network past the proxy got nothing: {places}"

    def to_dict(self, attempts: Mapping[BlockedConnection, int]) -> dict[str, object]:
        """The same as plain data."""
        return {
            "isolated": self.not_isolated is None,
            "not_isolated": self.not_isolated,
            "isolation_weaker": self.weaker,
            "attempts": [
                {
                    "address": attempt.address,
                    "port": attempt.port,
                    "protocol": attempt.protocol,
                    "name": attempt.name,
                    "count": count,
                }
                for attempt, count in attempts.items()
            ],
            "workspace": str(self.workspace.path) if self.workspace else None,
            "in_place": self.in_place,
            "edits": list(self.workspace.edits) if self.workspace else [],
            "edits_unknown": self.workspace.unknown if self.workspace else None,
            "mapped": self.workspace.mapped if self.workspace else None,
            "outside_unprotected": self.workspace.unprotected if self.workspace else None,
        }


class WorkspaceChoice(Struct, frozen=True, kw_only=True):
    """Where a user wants the agent to work: by default in a fresh copy with the user's edits."""

    in_place: bool = False
    as_recorded: bool = False
    """Without the edits made to the folder since the recording."""
    keep: bool = False
    """Keep the copies."""
    writable: tuple[Path, ...] = ()
    """Paths outside of the copies in which commands take effect."""

    def check(self) -> None:
        """Raise UsageError if the choices exclude each other."""
        if self.in_place and self.keep:
            raise UsageError("--keep-workspace keeps a copy, and --in-place makes none")
        if self.in_place and self.writable:
            raise UsageError(
                "--writable opens a path to a copy's commands, and --in-place makes none"
            )
        if self.in_place and self.as_recorded:
            raise UsageError("--as-recorded leaves edits out of a copy, and --in-place makes none")


def plan_isolation(
    recording: Trajectory,
    store: StoreDirectory,
    choice: WorkspaceChoice,
    *,
    isolation: IsolationMode = "auto",
    live: str | None = None,
    nests: bool = False,
) -> IsolationPlan:
    """How runs of a recording are set apart; `live` says what lets them reach the network.

    A command that `nests` builds sandboxes of its own, which its own isolation would forbid.

    Wrong for options that exclude each other, if isolation is required and unavailable, and if
    there is no snapshot to copy: the recorded commands would run in the caller's own folder.
    """
    choice.check()
    nested = (
        NESTED_SANDBOX_REASON if nests else NETWORK_ONLY_REASON if isolation == "network" else None
    )
    found = (
        "--in-place"
        if choice.in_place
        else find_recorded_workspace(recording, store, keep=choice.keep)
    )
    if isinstance(found, str) and not choice.in_place:
        raise UsageError(explain_missing_copy(recording, store, found))
    if isinstance(found, RecordedWorkspace):
        writable = tuple(path.resolve() for path in choice.writable)
        unprotected = explain_unprotected(writable, nested)
        found = replace(found, writable=writable, unprotected=unprotected)
    if isinstance(found, RecordedWorkspace) and not choice.as_recorded:
        found = apply_user_edits(found, recording, store)
    reason = live or (
        "--isolation off" if isolation == "off" else find_missing_capabilities().alone
    )
    weaker = (nested or find_missing_capabilities().processes) if reason is None else None
    if isolation == "require" and (why := reason or weaker) is not None:
        raise UsageError(f"--isolation require cannot be had: {why}")
    return IsolationPlan(
        workspace=found if isinstance(found, RecordedWorkspace) else None,
        in_place=found if isinstance(found, str) else None,
        not_isolated=reason,
        weaker=weaker,
    )


def explain_unprotected(writable: tuple[Path, ...], nested: str | None) -> str | None:
    """Return why files outside of a copy are not protected from commands; None if they are.

    `nested` is why the command is taken to build sandboxes of its own: a docker engine mounts
    folders as it sees them, and it sees no overlay of ours.
    """
    if Path("/") in writable:
        return "--writable /"
    return nested or find_missing_capabilities().outside


def apply_user_edits(
    workspace: RecordedWorkspace, recording: Trajectory, store: StoreDirectory
) -> RecordedWorkspace:
    """Return the workspace with the user's edits since it was recorded."""
    from stumble.runs.environment.user_edits import find_user_edits

    if is_packed_snapshot(workspace.blobs, workspace.snapshot):
        return workspace  # the folder at its path here is another one
    edits = find_user_edits(recording, store, workspace.manifest)
    if edits.unknown is not None:
        return replace(workspace, unknown=edits.unknown, differing=edits.names)
    if not edits.names:
        return workspace
    name = workspace.blobs.save_manifest(edits.manifest)
    return replace(workspace, snapshot=name, manifest=edits.manifest, edits=edits.names)


def max_parallel_runs(set_apart: IsolationPlan, asked: int | None, *, world: bool) -> int:
    """How many runs may go on at once: as many as asked for, else as the surroundings allow.

    Runs with a copy of the folder each, and nothing to reset, do not interfere. A world that
    --reset resets may be in that copy or shared, which only its user knows. Raises UsageError
    if it cannot be in a copy.
    """
    if asked is not None and asked > 1 and world and set_apart.workspace is None:
        raise UsageError(
            f"--jobs {asked}: without a copy of the folder for each run there is one world for "
            "all, and each run would set back that of another"
        )
    if asked is not None:
        return asked
    return count_usable_processors() if set_apart.workspace and not world else 1


def isolation_exit_code(
    isolation: IsolationMode, attempts: Mapping[BlockedConnection, int], code: ExitCode
) -> ExitCode:
    """The exit code: an attempt is a finding where isolation was required."""
    return ExitCode.FINDING if isolation == "require" and attempts and code == ExitCode.OK else code
