"""Options that several commands share, and what they mean as values."""

import errno
import functools
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.exits import Exits, Wrong

if TYPE_CHECKING:
    from traces.model import Fault

type Command = Callable[..., None]


def agent_command[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """The agent's own command, behind `--`."""
    return click.argument("command", nargs=-1, type=click.UNPROCESSED)(function)


def fault_options[R](
    required: bool, *, seed: int | None = 0, aims: bool = False
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """What is to go wrong, and where: the command is given `faults` and `seed`.

    One that `aims` has faults from elsewhere too, and is given `where` for them.
    """
    options = (
        click.option("--fault", "texts", required=required, multiple=True,
                     metavar="NAME:KEY=VALUE,...",
                     help="What goes wrong; `stumble faults` lists them. Several strike together."),
        click.option("--where", "where", multiple=True, metavar="KEY=VALUE",
                     help="Which calls: tool=search*, server=HOST, args='@.amount > 100', "
                          "side=write, transport=mcp."),
        click.option("--nth", type=int, metavar="N",
                     help="Which of these calls, in the order of the recording; by default the "
                          "first."),
        click.option("--when", "when", multiple=True, metavar="KEY=VALUE",
                     help="Another trigger: every=3, after_calls=5, probability=0.1, first_write, "
                          "step_range=3-8, position=early, when_arg_matches='@.amount > 100'."),
        click.option("--persist", default="once", show_default=True, metavar="NAME:KEY=VALUE,...",
                     help="Which later calls are struck too: same_args, permanent, burst:n=3, "
                          "until_step:step=9, flapping:on=2,off=3, quota:n=4."),
        click.option("--max-injections", type=int, metavar="N", help="Strike no more often."),
        click.option("--at", "place", metavar="PLACE",
                     help="Where it strikes, http, model-boundary or model; by default http where "
                          "the recording joins the call to its request, else in the model's next "
                          "request. At model it strikes the model's own answers, which --nth "
                          "then counts."),
        click.option("--seed", type=int, default=seed, show_default=seed is not None,
                     help="Same seed, same strikes, on every machine."),
    )  # fmt: skip

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def told(
            *,
            texts: tuple[str, ...],
            where: tuple[str, ...],
            nth: int | None,
            when: tuple[str, ...],
            persist: str,
            max_injections: int | None,
            place: str | None,
            **rest: object,
        ) -> R:
            faults = tuple(
                read_fault(text, where, nth, when, persist, max_injections, place) for text in texts
            )
            return function(faults=faults, **({"where": where} if aims else {}), **rest)

        return functools.reduce(lambda f, option: option(f), reversed(options), told)

    return decorate


def match_options[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """What may differ in a replay."""
    rules = click.option(
        "--match",
        "rule_texts",
        multiple=True,
        metavar="CLASS:WHERE",
        help="What may differ: ignore:body.metadata.run_id, map:path./v1/runs/*, ignore:query.ts.",
    )
    scenario = click.option(
        "--scenario",
        "scenario_name",
        metavar="NAME|FILE",
        help="A scenario that says so in its table [match]; `record` takes a benchmark's task "
        "too, as `run` does.",
    )
    return rules(scenario(function))


def host_option[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Where hosts really are; read by `hosts`."""
    return click.option(
        "--host",
        "host_texts",
        multiple=True,
        metavar="NAME=HOST:PORT",
        help="Where a host of this name really is.",
    )(function)


def world_options[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """The commands of a world."""
    verify = click.option(
        "--verify", metavar="COMMAND", help="Exits 0 if the end state is right, 1 if not."
    )
    reset = click.option("--reset", metavar="COMMAND", help="Sets the world back before a run.")
    state = click.option(
        "--state",
        metavar="COMMAND",
        help="Prints the end state, without what varies (times, random ids). Without --verify a "
        "run is right if it ends as a clean twin does.",
    )
    return reset(verify(state(function)))


def workspace_options[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Where the agent works."""
    here = click.option(
        "--in-place",
        is_flag=True,
        help="Run in the folder itself, where local commands really run again, instead of in a "
        "fresh copy of it as it was recorded.",
    )
    keep = click.option(
        "--keep-workspace", is_flag=True, help="Keep the copies, and say where they are."
    )
    return here(keep(function))


def snapshot_options[R](function: Callable[..., R]) -> Callable[..., R]:
    """What is kept of the folder: the command is given `limits`, or None for nothing."""
    options = (
        click.option("--snapshot/--no-snapshot", "wanted", default=True, show_default=True,
                     help="Keep what is in this folder before the agent starts, for replays "
                          "and forks."),
        click.option("--snapshot-mb", type=click.IntRange(1), default=256, show_default=True,
                     help="Keep no folder larger than this."),
        click.option("--snapshot-files", type=click.IntRange(1), default=50_000,
                     show_default=True, help="Keep no folder of more files than this."),
    )  # fmt: skip

    @functools.wraps(function)
    def told(*, wanted: bool, snapshot_mb: int, snapshot_files: int, **rest: object) -> R:
        from scenarios.workspace.snapshot import Limits

        limits = Limits(bytes=snapshot_mb << 20, files=snapshot_files)
        return function(limits=limits if wanted else None, **rest)

    return functools.reduce(lambda f, option: option(f), reversed(options), told)


class Seconds(click.FloatRange):
    """A number of seconds above 0, and no text that Python reads as one: `nan`, `inf`."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; a usage error where it is none."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no number of seconds.", param, ctx)
        return found


def budget_option[**P, R](seconds: float | None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """How long an agent may take; None is for ever."""
    return click.option(
        "--budget",
        type=Seconds(),
        metavar="SECONDS",
        default=seconds,
        show_default=seconds is not None,
        help="End the agent after this long.",
    )


def read_fault(
    text: str,
    where: tuple[str, ...],
    nth: int | None,
    when: tuple[str, ...],
    persist: str,
    max_injections: int | None,
    place: str | None,
) -> "Fault":
    """The fault that the options describe, by the same rules as a table of a file."""
    from faults.grammar import pairs as scalars
    from faults.reading import fault

    table = {
        "fault": text,
        "nth": nth,
        "persist": persist,
        "max_injections": max_injections,
        "at": place,
    }
    with usage_errors():
        return fault(table | {"where": pairs(where), "when": scalars(when)})


def pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """KEY=VALUE options as a mapping; Wrong where one is not, or a key comes twice."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise Wrong(f"{text!r} is not KEY=VALUE")
        if key in found:
            raise Wrong(f"{key!r} is said twice")
        found[key] = value
    return found


def tools(texts: tuple[str, ...]) -> dict[str, str]:
    """`NAME="METHOD GLOB"` options as a mapping; Wrong where no request can be meant."""
    from traces.requests import check

    found = pairs(texts)
    for name, text in found.items():
        try:
            check(text)
        except ValueError as error:
            raise Wrong(f"--tool {name}: {error}") from None
    return found


def hosts(texts: tuple[str, ...]) -> Mapping[str, tuple[str, int]]:
    """`NAME=HOST:PORT` options as a mapping."""
    found = {}
    for name, value in pairs(texts).items():
        address, _, port = value.rpartition(":")
        if not address or not port.isdecimal():
            raise Wrong(f"--host {name}={value}: not NAME=HOST:PORT")
        found[name] = (address, int(port))
    return found


def checked(command: tuple[str, ...]) -> tuple[str, ...]:
    """The agent's command, once it is known to be there; exit 127 or 126 where it is not.

    Wrong where the user's own settings name a way out that cannot be taken.
    """
    from recorder.outer import way_out

    try:
        way_out(os.environ)
    except ValueError as error:
        raise Wrong(str(error)) from None
    if not command:
        raise Wrong("no agent command: put it behind --, as in: -- python my_agent.py")
    if shutil.which(command[0]) is None:
        there = Path(command[0]).exists()
        why = "is not executable" if there else "command not found"
        click.echo(f"stumble: {command[0]}: {why}; nothing was run", err=True)
        raise SystemExit(126 if there else Exits.NO_COMMAND)
    return command


def tape_path[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """The recording to work on."""
    kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.argument("tape", type=kind)(function)


def check_new(path: Path) -> None:
    """Refuse a path at which no new tape can be made."""
    if path.exists():
        raise Wrong(f"{path} is there already; a tape is never written over")
    if not path.parent.is_dir():
        raise Wrong(f"{path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise Wrong(f"{path}: {path.parent} is not writable")


@contextmanager
def started(command: tuple[str, ...], tape: Path | None = None) -> Iterator[None]:
    """Where the system will not run the agent's program: one line, 127 or 126.

    An empty tape goes; one on which anything was seen stays, whatever happened.
    """
    from traces.tape import read

    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EACCES, errno.ENOEXEC):
            raise
        if tape is not None and tape.exists() and not read(tape).exchanges:
            tape.unlink()
        what = error.filename or command[0]
        click.echo(f"stumble: {what} could not be used: {error.strerror}", err=True)
        missing = error.errno == errno.ENOENT
        raise SystemExit(Exits.NO_COMMAND if missing else 126) from None


@contextmanager
def usage_errors() -> Iterator[None]:
    """What a fault or a selector gets wrong ends as one line and exit 2."""
    try:
        yield
    except (LookupError, ValueError) as error:
        raise Wrong(str(error)) from None
