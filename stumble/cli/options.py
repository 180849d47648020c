"""Options that several commands share, and their parsers."""

import errno
import functools
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli.tape_path import TapePath
from stumble.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from recorder.agent.run_limits import RunLimits
    from stumble.llm.model_choice import ModelChoice
    from traces.model import Fault, Trajectory

type Command = Callable[..., None]


def agent_command[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Add the agent's command, given after `--`."""
    return click.argument("command", nargs=-1, type=click.UNPROCESSED)(function)


def _list_fault_options(
    required: bool, seed: int | None, *, persist: str | None
) -> tuple[Callable[[Callable[..., object]], Callable[..., object]], ...]:
    return (
        click.option("--fault", "texts", required=required, multiple=True,
                     metavar="NAME:KEY=VALUE,...",
                     help="Fault to inject, see `stumble faults`; repeat it to inject several in "
                          "one run."),
        click.option("--where", "where", multiple=True, metavar="KEY=VALUE",
                     help="Select calls: tool=search*, server=HOST, args='@.amount > 100', "
                          "side=write, transport=mcp."),
        click.option("--nth", type=int, metavar="N",
                     help="Inject into the Nth selected call, in recorded order; default: 1."),
        click.option("--when", "when", multiple=True, metavar="KEY=VALUE",
                     help="Trigger, instead of --nth: every=3, after_calls=5, probability=0.1, "
                          "first_write, "
                          "step_range=3-8, position=early, when_arg_matches='@.amount > 100'."),
        click.option("--persist", default=persist, show_default=persist is not None,
                     metavar="NAME:KEY=VALUE,...",
                     help="Later calls to inject into as well: same_args, permanent, burst:n=3, "
                          "until_step:step=9, flapping:on=2,off=3, quota:n=4."),
        click.option("--max-injections", type=int, metavar="N",
                     help="Maximum number of injections in a run."),
        click.option("--at", "place", metavar="PLACE",
                     help="Injection place: http, mcp, model-boundary (the model's next request) "
                          "or model (the model's answers, which --nth then counts). Default: the "
                          "call's own HTTP or MCP exchange if the recording has it, else "
                          "model-boundary."),
        click.option("--seed", type=click.IntRange(1 - 2**53, 2**53 - 1), default=seed,
                     show_default=seed is not None,
                     help="Random seed; the same seed gives the same injections on every "
                          "machine."),
    )  # fmt: skip


def fault_texts_options[R](function: Callable[..., R]) -> Callable[..., R]:
    """Add the options that describe faults, none with a default; the command gets them as they
    are given.
    """
    options = _list_fault_options(False, None, persist=None)
    return functools.reduce(lambda f, option: option(f), reversed(options), function)


def fault_injection_options[R](
    required: bool, *, seed: int | None = 0, aims: bool = False
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Add the options that describe faults; the command gets `faults` and `seed`.

    With `aims` it gets the `--where` texts too, to apply them to faults of a scenario.
    """
    options = _list_fault_options(required, seed, persist="once")

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def wrapper(
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
                parse_fault_options(text, where, nth, when, persist, max_injections, place)
                for text in texts
            )
            return function(faults=faults, **({"where": where} if aims else {}), **rest)

        return functools.reduce(lambda f, option: option(f), reversed(options), wrapper)

    return decorate


def match_option[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Add `--match`: differences accepted in a replay, or in a fork before the injection."""
    return click.option(
        "--match",
        "rule_texts",
        multiple=True,
        metavar="CLASS:WHERE",
        help="Accept a difference between requests: ignore:body.metadata.run_id, "
        "map:path./v1/runs/*, ignore:query.ts, 'background:POST https://t.example/events'.",
    )(function)


def match_options[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Add `--match` and `--scenario`: differences accepted in a replay."""
    scenario = click.option(
        "--scenario",
        "scenario_name",
        metavar="NAME|FILE",
        help="Take match rules from this scenario's [match] table; `record` also accepts a "
        "benchmark task, as `run` does.",
    )
    return match_option(scenario(function))


def host_option[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Add `--host`: addresses of hosts, read by `parse_host_options`."""
    return click.option(
        "--host",
        "host_texts",
        multiple=True,
        metavar="NAME=HOST:PORT",
        help="Connect to HOST:PORT for requests to host NAME.",
    )(function)


def upstream_trust_options[R](function: Callable[..., R]) -> Callable[..., R]:
    """Add the options that live requests over TLS may need; the command gets `trust`."""

    @functools.wraps(function)
    def wrapper(
        *,
        insecure_hosts: tuple[str, ...],
        upstream_ca: Path | None,
        client_cert: Path | None,
        **rest: object,
    ) -> R:
        from stumble.runs.environment.upstream_trust import UpstreamTrust

        trust = UpstreamTrust(
            insecure=frozenset(insecure_hosts), ca=upstream_ca, client_cert=client_cert
        )
        return function(trust=trust, **rest)

    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    insecure = click.option(
        "--insecure-upstream",
        "insecure_hosts",
        multiple=True,
        metavar="HOST",
        help="Do not verify the certificate of HOST, as the agent itself does not.",
    )
    authority = click.option(
        "--upstream-ca", type=file, help="PEM file with more certificate authorities of servers."
    )
    own = click.option(
        "--client-cert",
        type=file,
        help="PEM file with a certificate and its key, for servers that want one.",
    )
    return insecure(authority(own(wrapper)))


def world_command_options[R](function: Callable[..., R]) -> Callable[..., R]:
    """Add the options of a world; the command gets five texts."""
    verify = click.option(
        "--verify",
        metavar="COMMAND",
        help="Command that exits with 0 if the end state is right, 1 if it is wrong.",
    )
    reset = click.option(
        "--reset", metavar="COMMAND", help="Command that resets the world before each run."
    )
    state = click.option(
        "--state",
        metavar="COMMAND",
        help="Command that prints the end state without volatile values (times, random ids). "
        "Without --verify a run is right if its end state equals that of a clean twin.",
    )
    ledger = click.option(
        "--ledger",
        metavar="COMMAND|URL",
        help="Command or HTTP address that lists the committed effects as JSON, for the facts "
        "double_action and lost_action.",
    )
    ledger_key = click.option(
        "--ledger-key",
        metavar="NAME,...",
        help="Members of an entry of --ledger that identify what the effect is for; default: key.",
    )
    return reset(verify(state(ledger(ledger_key(function)))))


def world_options[R](function: Callable[..., R]) -> Callable[..., R]:
    """Add the options of a world; the command gets `world_commands`."""

    @functools.wraps(function)
    def wrapper(
        *,
        reset: str | None,
        verify: str | None,
        state: str | None,
        ledger: str | None,
        ledger_key: str | None,
        **rest: object,
    ) -> R:
        from stumble.runs.environment.worlds import WorldCommands

        commands = WorldCommands(reset, verify, state, ledger, ledger_key)
        return function(world_commands=commands, **rest)

    return world_command_options(wrapper)


def in_place_option[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Add `--in-place`: run in the caller's folder."""
    return click.option(
        "--in-place",
        is_flag=True,
        help="Run in the current folder, where local commands take effect, instead of a fresh "
        "copy of the recorded folder.",
    )(function)


def writable_option[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Add `--writable PATH`: paths outside of a copy in which commands take effect."""
    return click.option(
        "--writable",
        type=click.Path(exists=True, path_type=Path),
        multiple=True,
        metavar="PATH",
        help="Let commands change this file or folder outside the copy (repeatable); changes "
        "elsewhere are thrown away.",
    )(function)


def workspace_options[R](function: Callable[..., R]) -> Callable[..., R]:
    """Add the options for the agent's workspace; the command gets `workspace_choice`."""
    keep = click.option(
        "--keep-workspace", is_flag=True, help="Keep the workspace copies and print their paths."
    )
    as_recorded = click.option(
        "--as-recorded",
        is_flag=True,
        help="Exclude edits made to the folder since the recording.",
    )

    @functools.wraps(function)
    def wrapper(
        *,
        in_place: bool,
        as_recorded: bool,
        keep_workspace: bool,
        writable: tuple[Path, ...],
        **rest: object,
    ) -> R:
        from stumble.runs.isolation import WorkspaceChoice

        choice = WorkspaceChoice(
            in_place=in_place, as_recorded=as_recorded, keep=keep_workspace, writable=writable
        )
        return function(workspace_choice=choice, **rest)

    return in_place_option(as_recorded(keep(writable_option(wrapper))))


def snapshot_options[R](function: Callable[..., R]) -> Callable[..., R]:
    """Add the snapshot options; the command gets `limits`, or None for no snapshot."""
    options = (
        click.option("--snapshot/--no-snapshot", "wanted", default=True, show_default=True,
                     help="Store a snapshot of the current folder before the agent starts, for "
                          "replays and forks."),
        click.option("--snapshot-mb", type=click.IntRange(1), default=256, show_default=True,
                     metavar="MB", help="Take no snapshot of a folder larger than this, in MB."),
        click.option("--snapshot-files", type=click.IntRange(1), default=50_000,
                     show_default=True, metavar="N",
                     help="Take no snapshot of a folder with more files than this."),
    )  # fmt: skip

    @functools.wraps(function)
    def wrapper(*, wanted: bool, snapshot_mb: int, snapshot_files: int, **rest: object) -> R:
        from scenarios.workspace.snapshot import SnapshotLimits

        limits = SnapshotLimits(bytes=snapshot_mb << 20, files=snapshot_files)
        return function(limits=limits if wanted else None, **rest)

    return functools.reduce(lambda f, option: option(f), reversed(options), wrapper)


class PositiveSeconds(click.FloatRange):
    """A finite number of seconds above 0; refuses `nan` and `inf`."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number of seconds. Raises click.BadParameter if it is not finite."""
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a finite number of seconds.", param, ctx)
        return seconds


def budget_option[**P, R](seconds: float | None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Add `--budget`: time limit of the agent in seconds; None for no limit."""
    return click.option(
        "--budget",
        type=PositiveSeconds(),
        metavar="SECONDS",
        default=seconds,
        show_default=seconds is not None,
        help="Stop the agent after this many seconds"
        + ("." if seconds is not None else "; default: no limit."),
    )


MEMORY_SHARE, DISK_SHARE, MAX_PROCESSES = 0.8, 0.9, 4096
"""Default limits: of this machine's memory, of the free temporary disk, and a number."""


def parse_limits(text: str | None) -> "RunLimits":
    """Parse `memory=GB,processes=N,disk=GB`; what is not given is the default.

    Raises UsageError.
    """
    from recorder.agent.run_limits import RunLimits

    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    usual: dict[str, float] = {
        "memory": MEMORY_SHARE * memory / 1e9,
        "processes": MAX_PROCESSES,
        "disk": DISK_SHARE * shutil.disk_usage(tempfile.gettempdir()).free / 1e9,
    }
    for name, value in parse_option_pairs(tuple(text.split(",")) if text else ()).items():
        try:
            usual[name] = float(value) if name in usual else math.nan
        except ValueError:
            usual[name] = math.nan
        if not 0 < usual[name] < math.inf:
            raise UsageError(f"--limits {name}={value}: memory=GB, processes=N or disk=GB, above 0")
    return RunLimits(
        memory=int(usual["memory"] * 1e9),
        processes=int(usual["processes"]),
        disk=int(usual["disk"] * 1e9),
    )


def parse_fault_options(
    text: str,
    where: tuple[str, ...],
    nth: int | None,
    when: tuple[str, ...],
    persist: str,
    max_injections: int | None,
    place: str | None,
) -> "Fault":
    """Return the fault that the options describe, by the rules of a fault table in a file.

    Raises UsageError if the options are invalid.
    """
    from faults.specs.spec_parser import parse_fault
    from faults.specs.spec_syntax import parse_key_values as scalars

    table = {
        "fault": text,
        "nth": nth,
        "persist": persist,
        "max_injections": max_injections,
        "at": place,
    }
    with usage_errors():
        return parse_fault(table | {"where": parse_option_pairs(where), "when": scalars(when)})


def parse_option_pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """Parse KEY=VALUE options. Raises UsageError if one has no `=` or a key is given twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{text!r} is not KEY=VALUE")
        if key in pairs:
            raise UsageError(f"{key!r} is given twice")
        pairs[key] = value
    return pairs


def parse_tool_options(texts: tuple[str, ...]) -> dict[str, str]:
    """Parse `NAME="METHOD GLOB"` options. Raises UsageError if a pattern is invalid."""
    from traces.route_patterns import check_route_pattern

    patterns = parse_option_pairs(texts)
    for name, text in patterns.items():
        try:
            check_route_pattern(text)
        except ValueError as error:
            raise UsageError(f"--tool {name}: {error}") from None
    return patterns


def parse_host_options(texts: tuple[str, ...]) -> Mapping[str, tuple[str, int]]:
    """Parse `NAME=HOST:PORT` options to name -> (host, port). Raises UsageError."""
    addresses = {}
    for name, value in parse_option_pairs(texts).items():
        address, _, port = value.rpartition(":")
        if not address or not port.isdecimal():
            raise UsageError(f"--host {name}={value}: not NAME=HOST:PORT")
        addresses[name] = (address, int(port))
    return addresses


def check_agent_command(command: tuple[str, ...], *, search: bool = True) -> tuple[str, ...]:
    """Return the agent's command if it can be run; exit with 127 or 126 if it cannot.

    Without `search` its program need not be here: it is in a copy that is still to be made.

    Raises UsageError if no command is given, a tape could not hold it or the folder's name, or the
    user's proxy settings are invalid.
    """
    from recorder.proxy.corporate_proxy import read_proxy_settings
    from stumble.user_data.paths import is_utf8

    try:
        read_proxy_settings(os.environ)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not command:
        raise UsageError("no agent command: give it after --, as in: -- python my_agent.py")
    for text in (*command, str(Path.cwd())):
        if not is_utf8(text):
            path = text.encode(errors="backslashreplace").decode()
            raise UsageError(f"{path} is not UTF-8, as text of a tape must be; rename it")
    if search and shutil.which(command[0]) is None:
        there = Path(command[0]).exists()
        why = "is not executable" if there else "command not found"
        click.echo(f"stumble: {command[0]}: {why}; nothing was run", err=True)
        raise SystemExit(126 if there else ExitCode.NO_COMMAND)
    return command


def tape_argument[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Add the argument TAPE: an existing recording, or a pack with one."""
    # Eager: the options of a pack are defaults of those that follow.
    return click.argument("tape", type=TapePath(), is_eager=True)(function)


def changed_tape_argument[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Add the argument TAPE: an existing recording that the command changes, so no pack."""
    return click.argument("tape", type=TapePath(writable=True))(function)


def choose_agent_command(command: tuple[str, ...], recorded: "Trajectory") -> tuple[str, ...]:
    """Return the given command, else the recorded one, as this machine can run it; see
    `check_agent_command`.
    """
    from stumble.runs.environment.recorded_program import is_in_workspace, use_recorded_program

    chosen = command or use_recorded_program(recorded)
    in_copy = not command and chosen and is_in_workspace(chosen[0], recorded.workspace)
    return check_agent_command(chosen, search=not in_copy)


def check_new_tape_path(path: Path) -> None:
    """Raise UsageError if no new tape can be created at `path`."""
    if path.exists():
        raise UsageError(f"{path} exists already; a tape is never overwritten")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path}: {path.parent} is not writable")


@contextmanager
def report_launch_failure(command: tuple[str, ...], tape: Path | None = None) -> Iterator[None]:
    """If the operating system cannot run the agent, print one line and exit with 127 or 126.

    `tape` is deleted if it holds no exchange.
    """
    from traces.tape.reader import read_tape

    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EACCES, errno.ENOEXEC):
            raise
        if tape is not None and tape.exists() and not read_tape(tape).exchanges:
            tape.unlink()
        what = error.filename or command[0]
        click.echo(f"stumble: {what} could not be used: {error.strerror}", err=True)
        missing = error.errno == errno.ENOENT
        raise SystemExit(ExitCode.NO_COMMAND if missing else 126) from None


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn LookupError and ValueError into UsageError: one line and exit code 2."""
    try:
        yield
    except (LookupError, ValueError) as error:
        raise UsageError(str(error)) from None


def parse_model_choices(texts: Iterable[str]) -> "tuple[ModelChoice, ...]":
    """Parse the models of --model, which may be repeated or separated by commas.

    Raises ValueError if one has no name.
    """
    from stumble.llm.model_choice import ModelChoice

    names = (name.strip() for text in texts for name in text.split(","))
    return tuple(map(ModelChoice.parse, dict.fromkeys(names)))
