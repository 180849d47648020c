"""`stumble accept`: learn match rules for volatile values from a replay that diverged."""

from pathlib import Path

import click

from stumble.cli import match_options, options
from stumble.cli.exit_codes import ExitCode, UsageError
from stumble.cli.tape_path import TapePath


@click.command(
    epilog="Exit codes: 0 every difference is accepted, 1 a difference is not a volatile value, "
    "2 no replay to learn from.",
)
@options.changed_tape_argument
@click.argument("run", required=False, type=TapePath())
@click.option("--dry-run", is_flag=True, help="Print the rules without writing them.")
def accept(tape: Path, run: Path | None, dry_run: bool) -> None:
    """Learn from a diverged replay which values change from run to run.

    Compares the recording with its last replay, or with RUN: a replay or a second recording of
    the same agent. If a request differs only in days, clocks, ids (uuid), numbers (counter, pid,
    port) or paths, and no answer gave the agent that value, adds a rule for that type at that
    place to the tape. Any other change still diverges. `stumble show` lists the rules of a tape.

    \b
    stumble replay refund.tape; stumble accept refund.tape; stumble replay refund.tape
    stumble accept refund.tape --dry-run
    stumble accept refund.tape second.tape
    """
    from stumble.drift.volatile_rules import find_latest_replay, learn_volatile_rules
    from stumble.store.tape_files import load_tape
    from stumble.user_data.paths import store_root
    from traces.tape import add_rules

    recording = load_tape(tape)
    match_options.check_recorded_rules(recording.trajectory.rules, tape)
    other = load_tape(run) if run else find_latest_replay(store_root() / "tapes", recording)
    if other is None:
        raise UsageError(
            f"no replay of {tape} is in {store_root()}: run `stumble replay {tape}` first"
        )
    lesson = learn_volatile_rules(recording, other)
    for line in lesson.to_lines():
        click.echo(line)
    if not lesson.rules and not lesson.left:
        click.echo(f"{other.path}: no new difference from {tape}")
    if lesson.rules and not dry_run:
        try:
            add_rules(tape, map(str, lesson.rules))
        except BlockingIOError:
            raise UsageError(f"{tape} is being written") from None
    raise SystemExit(ExitCode.FINDING if lesson.left else ExitCode.OK)
