"""How a run is set apart: which folder the agent works in, what it can reach, and how that is said.

Only a strict replay is hermetic. What goes live, wholly or after a strike, needs the network.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from recorder.attempts import Attempt
from recorder.cage import lacks
from stumble.exits import Exits, Wrong
from stumble.workspaces import MAPPED, Workspace, recorded
from traces.folder import Folder
from traces.model import Trajectory

type Isolation = Literal["auto", "require", "off"]

UNSEEN = "traffic that does not honour the proxy variables would not be seen here"
REAL = "local commands really run again there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """What sets a run apart from the user's own folder and from the network."""

    workspace: Workspace | None
    in_place: str | None
    """Why the agent runs in the folder itself; None where it gets a copy."""
    open: str | None
    """Why the agent can reach the network; None where it can reach nothing but us."""

    @property
    def alone(self) -> bool:
        """Whether the agent can reach nothing but us."""
        return self.open is None

    def where(self) -> str:
        """Where the agent runs, in a line."""
        if self.workspace is None:
            return f"workspace: in place, {self.in_place}; {REAL}"
        if self.workspace.mapped is None:
            return "workspace: a fresh copy, as recorded"
        return (
            f"workspace: a fresh copy, as recorded, at a path of its own ({MAPPED}), since "
            f"{self.workspace.mapped}; what was not kept is linked, and changes there are real"
        )

    def reached(self, attempts: Mapping[Attempt, int]) -> str:
        """What the agent could reach and tried to, in a line."""
        if self.open is not None:
            return f"not isolated: {self.open}; {UNSEEN}"
        if not attempts:
            return "isolated: nothing but the recording could be reached"
        count = sum(attempts.values())
        places = ", ".join(
            f"{attempt}" + (f" ({n} times)" if n > 1 else "") for attempt, n in attempts.items()
        )
        tried = "1 attempt" if count == 1 else f"{count} attempts"
        return f"isolated: {tried} to reach the network past the proxy got nothing: {places}"

    def outdated(self, command: Sequence[str]) -> tuple[str, ...]:
        """A line where what the command names is no longer as recorded."""
        names = self.workspace.outdated(command) if self.workspace else ()
        if not names:
            return ()
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return (
            f"warning: {names[0]}{more} changed since it was recorded; this run uses it as it "
            "was, --in-place as it is",
        )

    def said(self, attempts: Mapping[Attempt, int]) -> dict[str, object]:
        """The same as plain data."""
        return {
            "isolated": self.open is None,
            "not_isolated": self.open,
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
            "mapped": self.workspace.mapped if self.workspace else None,
        }


def apart(
    recording: Trajectory,
    store: Folder,
    *,
    isolation: Isolation = "auto",
    live: str | None = None,
    in_place: bool,
    keep: bool,
) -> Apart:
    """How runs of a recording are set apart; `live` says what lets them reach the network.

    Wrong for options that exclude each other, and where isolation is required and not to be had.
    """
    if in_place and keep:
        raise Wrong("--keep-workspace keeps a copy, and --in-place makes none")
    found = "--in-place" if in_place else recorded(recording, store, keep=keep)
    reason = live or ("--isolation off" if isolation == "off" else lacks().alone)
    if isolation == "require" and reason is not None:
        raise Wrong(f"--isolation require cannot be had: {reason}")
    return Apart(
        workspace=found if isinstance(found, Workspace) else None,
        in_place=found if isinstance(found, str) else None,
        open=reason,
    )


def at_once(set_apart: Apart, asked: int | None, *, world: bool) -> int:
    """How many runs may go on at once: as many as asked for, else as the surroundings allow.

    Runs with a copy of the folder each, and nothing to set back, are in nobody's way. What
    --reset sets back may lie in that copy or be one for all, which only its user knows. Wrong
    where it cannot lie in a copy.
    """
    if asked is not None and asked > 1 and world and set_apart.workspace is None:
        raise Wrong(
            f"--jobs {asked}: without a copy of the folder for each run there is one world for "
            "all, and each run would set back that of another"
        )
    if asked is not None:
        return asked
    return (os.process_cpu_count() or 1) if set_apart.workspace and not world else 1


def found_out(isolation: Isolation, attempts: Mapping[Attempt, int], code: Exits) -> Exits:
    """The exit code: an attempt is a finding where isolation was required."""
    return Exits.FINDING if isolation == "require" and attempts and code == Exits.OK else code
