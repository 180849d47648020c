"""`stumble accept`: learn match rules from a replay that diverged, or record the agent again."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli import match_options, options
from stumble.cli.tape_path import TapePath
from stumble.cli.trust import trust_option
from stumble.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from stumble.runs.environment.worlds import WorldCommands


@click.command(
    epilog="Exit codes: 0 every difference is accepted, 1 a difference is not a volatile value, "
    "or with --record the agent failed, 2 no replay to learn from.",
)
@options.changed_tape_argument
@click.argument("run", required=False, type=TapePath())
@click.option("--dry-run", is_flag=True, help="Print the rules without writing them.")
@click.option(
    "--answers",
    is_flag=True,
    help="Learn from live answers alone: of the last fork, or of RUN, before its fault.",
)
@click.option(
    "--record",
    "anew",
    is_flag=True,
    help="Accept any change: record the agent again, live, in the current folder, with the "
    "command of TAPE, and replace TAPE. If the agent fails, or ends wrong by --verify, TAPE stays.",
)
@trust_option
@options.host_option
@options.world_options
def accept(
    tape: Path,
    run: Path | None,
    dry_run: bool,
    answers: bool,
    anew: bool,
    host_texts: tuple[str, ...],
    world_commands: "WorldCommands",
) -> None:
    """Learn from a diverged replay which values change from run to run.

    Compares the recording with its last replay or fork, or with RUN: one of these, or a second
    recording of the same agent. If a request differs only in days, clocks, ids (uuid), numbers
    (counter, pid, port) or paths, and no answer gave the agent that value, adds a rule for that
    type at that place to the tape. The same for a live answer of a tool, if nothing later uses the
    value. Any other change still diverges. `stumble show` lists the rules of a tape.

    After an edit of the agent, --record makes a new recording instead. It has the labels and rules
    of the old one, which stays in the store under its id. The world is reset as for `record`, by
    --reset or [world] of stumble.toml; a recording of a fresh world is not replaced without it.

    \b
    stumble replay refund.tape; stumble accept refund.tape; stumble replay refund.tape
    stumble accept refund.tape --dry-run
    stumble accept refund.tape second.tape
    stumble accept refund.tape --answers
    stumble accept refund.tape --record
    """
    from stumble.cli.record_again import record_again
    from stumble.drift.volatile_rules import (
        LearnedRules,
        find_latest_replay,
        learn_answer_rules,
        learn_volatile_rules,
    )
    from stumble.packs.trust import hash_tape, is_trusted_hash, remember_trust
    from stumble.store.tape_files import load_tape
    from stumble.user_data.paths import store_root
    from traces.tape.appended_rules import add_rules

    recording = load_tape(tape)
    match_options.check_recorded_rules(recording.trajectory.rules, tape)
    if anew:
        if run is not None or dry_run or answers:
            raise UsageError("--record makes its own run: omit RUN, --answers and --dry-run")
        world, hosts = world_commands.make_world(), options.parse_host_options(host_texts)
        raise SystemExit(record_again(recording, tape, hosts, world))
    if host_texts:
        raise UsageError("--host is for --record")
    tapes = store_root() / "tapes"
    other = load_tape(run) if run else find_latest_replay(tapes, recording, is_live=answers)
    if other is None:
        what = "fork" if answers else "replay"
        raise UsageError(
            f"no {what} of {tape} is in {store_root()}: run `stumble {what} {tape}` first"
        )
    lesson = LearnedRules() if answers else learn_volatile_rules(recording, other)
    lesson += learn_answer_rules(recording, other)
    for line in lesson.to_lines():
        click.echo(line)
    if not lesson.rules and not lesson.left:
        click.echo(f"{other.path}: no new difference from {tape}")
    if lesson.rules and not dry_run:
        is_trusted = is_trusted_hash(hash_tape(tape))
        try:
            add_rules(tape, map(str, lesson.rules))
        except BlockingIOError:
            raise UsageError(f"{tape} is being written") from None
        if is_trusted:
            remember_trust(hash_tape(tape), str(tape))
    if lesson.left:
        click.echo(f"a change that is meant: stumble accept {tape} --record", err=True)
    raise SystemExit(ExitCode.FINDING if lesson.left else ExitCode.OK)
