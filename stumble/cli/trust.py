"""`--trust`: before a tape or pack of others starts programs, they are listed and need trust."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli.project_defaults import find_project_file, read_trusted_hashes
from stumble.errors import UsageError
from stumble.notices import print_notice, print_warning

if TYPE_CHECKING:
    from traces.tape.reader import Tape

TRUSTS = "stumble.trusts"
PACKED_COMMANDS = "stumble.packed_commands"
"""Keys of a click context: whether `--trust` is given, and the world commands of an opened pack."""


def trust_option[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Add `--trust`, which `require_trust` reads."""

    def keep(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
        ctx.meta[TRUSTS] = is_given

    return click.option(
        "--trust",
        is_flag=True,
        expose_value=False,
        callback=keep,
        help="Trust a tape or pack that was not recorded here, from now on: its command, its "
        "files and the commands of its world run as you.",
    )(function)


def require_trust(tape: "Tape", command: tuple[str, ...] = (), *, in_place: bool = False) -> None:
    """Check that a tape may start what it names. Raises UsageError with a list of that if not.

    `command` is the agent's, if the tape's is not used; `in_place` omits the files of the tape.
    """
    from stumble.packs.trust import hash_tape, is_recorded_here

    world = dict(_list_packed_commands())
    head = tape.trajectory
    runs = {} if command or not head.command else {"agent": shlex.join(head.command)}
    if head.snapshot is not None and not in_place:
        runs["files"] = f"a copy of {head.workspace}, as recorded"
    if tape.input is not None and (tape.input.data or tape.input.events):
        runs["input"] = "what was typed or piped into the agent"
    if (runs or world) and not (is_recorded_here(tape) and not world):
        require_trusted_hash(hash_tape(tape.path), str(tape.path), runs | world)


def require_trusted_hash(hash: str, name: str, runs: Mapping[str, str]) -> None:
    """Check that what has this hash is trusted; with `--trust` it is from now on.

    Raises UsageError with what it would run.
    """
    from stumble.packs.trust import HASH_DIGITS, is_trusted_hash, remember_trust

    hash = hash[:HASH_DIGITS]
    project = find_project_file(Path.cwd())
    listed = read_trusted_hashes(project) if project else ()
    if is_trusted_hash(hash) or hash in {each[:HASH_DIGITS].lower() for each in listed}:
        return
    lines = "\n".join(f"  {what:7} {text}" for what, text in runs.items())
    if not click.get_current_context().meta.get(TRUSTS):
        raise UsageError(
            f"{name} was not recorded here, and would run as you:\n{lines}\n"
            "read it first (`stumble show`); --trust trusts it from now on, and so does this in "
            f'stumble.toml:\n  [trust]\n  hashes = ["{hash}"]'
        )
    print_notice(f"{name} is trusted from now on; it runs as you:\n{lines}")
    try:
        remember_trust(hash, name)
    except OSError as error:
        print_warning(f"{name} is trusted for this run only: {error}")


def _list_packed_commands() -> Iterator[tuple[str, str]]:
    """Yield the world commands of the opened pack that no option of the command line replaces."""
    context = click.get_current_context()
    for name, text in context.meta.get(PACKED_COMMANDS, {}).items():
        if context.get_parameter_source(name) == click.core.ParameterSource.DEFAULT_MAP:
            yield name, text
