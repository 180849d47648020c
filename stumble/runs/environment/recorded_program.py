"""The program of a recorded command, on this machine."""

import os
from pathlib import Path

from stumble.notices import print_notice
from stumble.packs.pack_needs import find_program_here
from traces.model import Trajectory


def use_recorded_program(trajectory: Trajectory) -> tuple[str, ...]:
    """Return the recorded command; a program that is not here is replaced by one of the same name,
    with a note.
    """
    recorded = trajectory.command
    if not recorded or is_in_workspace(recorded[0], trajectory.workspace):
        return recorded
    found = find_program_here(recorded)
    if found is None or found == recorded[0]:
        return recorded
    print_notice(f"{recorded[0]} is not on this machine: using {found}")
    return (found, *recorded[1:])


def is_in_workspace(program: str, workspace: str | None) -> bool:
    """Whether a program lies in the agent's folder, of which a run has a copy."""
    if workspace is None or os.sep not in program:
        return False
    return (Path(workspace) / program).is_relative_to(workspace)
