"""Record the agent of a tape again, live, and put the new recording in its place."""

from copy import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli import options
from stumble.cli.record_replay.record import record_to_store, run_controls, snapshot_workspace
from stumble.cli.trust import require_trust
from stumble.errors import ExitCode, UsageError, signal_to_exit_code

if TYPE_CHECKING:
    from scenarios.world import World
    from stumble.runs.types import Hosts, RecordPlan, RunResult
    from traces.store.store_dir import StoreDirectory
    from traces.tape.reader import Tape


def record_again(recording: "Tape", tape: Path, hosts: "Hosts", world: "World | None") -> int:
    """Run the recorded command in the current folder, live, and replace `tape`; return the exit
    code.

    The new tape has the labels, tools, rules and base URLs of the old one. It replaces the old one
    only if the agent ended with exit code 0 and the world does not call the end wrong; the store
    keeps the old one under its id. Raises UsageError for a tape that no `stumble record` made, and
    for one of a fresh world if there is none now.
    """
    from stumble.runs.launcher import ColdLauncher
    from stumble.user_data.paths import store_root
    from traces.store.store_dir import StoreDirectory

    old = recording.trajectory
    if old.source != "record" or not old.command:
        raise UsageError(f"{tape} cannot be recorded again: it is no recording of a command")
    if old.world == "fresh" and world is None:
        raise UsageError(
            f"{tape} was recorded in a world that was reset before it: give --reset and --verify, "
            "or [world] in stumble.toml"
        )
    require_trust(recording, in_place=True)
    command = options.choose_agent_command((), old)
    store = StoreDirectory(store_root())
    new = tape.with_name(f"{tape.stem}.new.tape")
    options.check_new_tape_path(new)
    plan = replace(_plan_recording(recording, store, hosts), world=world)
    played = record_to_store(plan, ColdLauncher(command=command, budget=None), None, store, new)
    if played.exit.signal is not None or played.exit.code:
        new.unlink(missing_ok=True)
        click.echo(f"{tape} stays as it was: the agent failed (run {played.id})", err=True)
        signal = played.exit.signal
        return ExitCode.FINDING if signal is None else signal_to_exit_code(signal)
    if played.ending.passed is False:
        new.unlink(missing_ok=True)
        click.echo(f"{tape} stays as it was: the run ended wrong (run {played.id})", err=True)
        return ExitCode.FINDING
    for line in run_controls(new, None):
        click.echo(line, err=True)
    _put_in_place(new, tape, store, played)
    click.echo(f"{tape} is now run {played.id}; before, it was {old.id}")
    return ExitCode.OK


def _plan_recording(recording: "Tape", store: "StoreDirectory", hosts: "Hosts") -> "RecordPlan":
    from scenarios.workspace.snapshot import SnapshotLimits
    from stumble.runs.environment.base_urls import parse_base_urls
    from stumble.runs.types import RecordPlan, RunLabels

    old = recording.trajectory
    names = [f"{name}={url}" for url, names in old.upstreams.items() for name in names]
    return RecordPlan(
        labels=RunLabels(agent=old.agent, model=old.model, scenario=old.scenario, task=old.task),
        rules=old.rules,
        tools=old.tools,
        equivalent=old.equivalent,
        hosts=hosts,
        upstreams=parse_base_urls(old.upstreams, names),
        workspace=Path.cwd(),
        snapshot=snapshot_workspace(store, SnapshotLimits()) if old.snapshot else None,
        store=store,
    )


def _put_in_place(new: Path, tape: Path, store: "StoreDirectory", played: "RunResult") -> None:
    """Replace the tape; a symbolic link of the store to the new one's first name is set again."""
    link = store.tapes / f"{played.id}.tape"
    new.replace(tape)
    if link.is_symlink():
        link.unlink()
        link.symlink_to(tape.resolve())
