"""`stumble record`: run an agent and record its traffic."""

import os
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from copy import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli import match_options, options
from stumble.cli.daemon_options import check_daemon_options, daemon_options, serve_daemon
from stumble.errors import ExitCode, UsageError, signal_to_exit_code
from stumble.terminal_progress import show_terminal_progress

if TYPE_CHECKING:
    from faults.targeting.bound_fault import BoundFault
    from scenarios.benchmarks.protocol import BenchmarkTask
    from scenarios.workspace.snapshot import SnapshotLimits
    from stumble.runs.environment.upstream_trust import UpstreamTrust
    from stumble.runs.environment.worlds import WorldCommands
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.types import RecordPlan, RunResult
    from traces.model import Fault
    from traces.store.store_dir import StoreDirectory
    from traces.tape.reader import Tape


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Exit code: that of the agent; 127 if its command was not found, 124 if --budget "
    "stopped it, 4 if it exited with 0 but no --fault fired.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the new tape; default: a tape in the store.",
)
@click.option("--agent", help="Name of the agent in the store.")
@click.option("--model", help="Name of the model, if its answers do not contain it.")
@click.option("--task", help="Name of the task in the store.")
@options.host_option
@options.upstream_trust_options
@click.option(
    "--tool",
    "tool_texts",
    multiple=True,
    metavar="NAME=METHOD PATH",
    help='Requests that a tool makes: --tool issue_refund="POST */refunds".',
)
@click.option(
    "--upstream",
    "upstream_texts",
    multiple=True,
    metavar="[PORT=]URL",
    help="Serve this URL under a local base URL, for clients that ignore proxy settings.",
)
@click.option(
    "--base-url-env",
    "base_url_names",
    multiple=True,
    metavar="NAME[=URL]",
    help="Environment variables to set to the local base URL; default: those that clients of "
    "the URL read.",
)
@options.match_options
@click.option(
    "--times",
    type=click.IntRange(1),
    help="Number of runs. Those after the first are offline replays of it; the values in which "
    "they differ (days, clocks, ids, paths) are accepted and printed. By default one such control "
    "replay is made if the requests have values of the run (a random id, a time) and the agent can "
    "be isolated in a copy of its folder; --times 1 makes none.",
)
@options.world_options
@options.fault_injection_options(required=False)
@options.budget_option(None)
@click.option(
    "--redact/--no-redact",
    default=True,
    show_default=True,
    help="Replace keys and other secrets before the tape is written.",
)
@click.option(
    "--websocket/--no-websocket",
    default=True,
    show_default=True,
    help="Allow WebSockets; with --no-websocket the proxy answers an upgrade with status 426.",
)
@click.option(
    "--tty/--no-tty",
    default=True,
    show_default=True,
    help="At a terminal, give the agent one of its own and keep what is typed; with --no-tty it "
    "has yours, and what is typed cannot be replayed.",
)
@options.snapshot_options
@daemon_options
@options.agent_command
def record(
    output: Path | None,
    agent: str | None,
    model: str | None,
    task: str | None,
    host_texts: tuple[str, ...],
    trust: "UpstreamTrust",
    tool_texts: tuple[str, ...],
    upstream_texts: tuple[str, ...],
    base_url_names: tuple[str, ...],
    rule_texts: tuple[str, ...],
    scenario_name: str | None,
    times: int | None,
    world_commands: "WorldCommands",
    budget: float | None,
    redact: bool,
    websocket: bool,
    faults: tuple["Fault", ...],
    seed: int,
    tty: bool,
    limits: "SnapshotLimits | None",
    command: tuple[str, ...],
    daemon: bool,
    listen: str | None,
    metrics: str | None,
    daemon_rules: Path | None,
) -> None:
    """Run an agent, in any language and unmodified, and record all its traffic on a tape.

    Stores a snapshot of the current folder first, so that replays and forks can work in a copy
    of it. Caches (node_modules, .venv) and files with names of secrets (.env, *.pem) are
    excluded; a `.stumbleignore` in .gitignore syntax excludes more, or with `!node_modules/`
    less. Replays mount excluded files from their original place.

    With --fault the fault is injected into the live run; --nth and other triggers count the
    calls in the order in which the model makes them. The run gets no verdict, since it has no
    clean twins; use a recording and `stumble fork` for that.

    \b
    stumble record -o refund.tape -- python my_agent.py
    stumble record --agent mini -- mini -m openai/gpt-4o -t "do the task" -y
    stumble record --match ignore:body.run_id -- python my_agent.py
    stumble record --upstream https://api.openai.com/v1 -- ./agent-without-proxy
    stumble record --snapshot-mb 2000 -- claude -p "fix the failing test"
    stumble record --no-snapshot -- python my_agent.py
    stumble record --fault http_status:code=503 --when probability=0.1 -- python my_agent.py
    stumble record --scenario tasks/fix-ledger -- my-agent -p {instruction}
    stumble record --daemon --listen 127.0.0.1:8080 --daemon-rules rules.toml
    """
    if daemon:
        hosts = options.parse_host_options(host_texts)
        return serve_daemon(listen, metrics, daemon_rules, hosts, trust, command)
    check_daemon_options({"listen": listen, "metrics": metrics, "daemon_rules": daemon_rules})
    command = options.check_agent_command(command)
    if output is not None:
        options.check_new_tape_path(output)

    from recorder.agent.agent_input import (
        mark_terminal_unread,
        open_piped_input,
        was_terminal_read,
    )
    from recorder.agent.typed_input import open_typed_input
    from stumble.runs.environment.base_urls import parse_base_urls
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.types import RecordPlan, RunLabels
    from stumble.user_data.paths import new_experiment_id, store_root
    from traces.store.store_dir import StoreDirectory

    scenario = match_options.load_match_scenario(scenario_name)
    rules = match_options.collect_match_rules(scenario, rule_texts)
    armed = _bind_faults(faults)
    upstreams = parse_base_urls(upstream_texts, base_url_names)
    tools = options.parse_tool_options(tool_texts)
    world = world_commands.make_world(has_fresh_copy=limits is not None)
    hosts = options.parse_host_options(host_texts)
    benchmark = scenario.benchmark if scenario else None
    if benchmark is not None:
        if world is not None:
            raise UsageError(
                f"{scenario_name} has its own world: omit --reset, --verify and --state"
            )
        from stumble.runs.environment.benchmark_setup import fill_agent_command

        command, limits = fill_agent_command(command, benchmark), None
        budget = budget or benchmark.budget
        for line in benchmark.limitations:
            click.echo(f"weaker than in {benchmark.benchmark_format}: {line}", err=True)
    store = StoreDirectory(store_root())
    given = open_piped_input() or (open_typed_input() if tty else None)
    on_terminal = given is None and mark_terminal_unread()
    plan = RecordPlan(
        labels=RunLabels(
            agent=agent,
            model=model,
            scenario=scenario.name if scenario else None,
            task=task or (benchmark.name if benchmark else None),
            experiment=new_experiment_id() if armed else None,
        ),
        rules=rules,
        tools=tools,
        hosts=hosts,
        world=world,
        redact=redact,
        websocket=websocket,
        upstreams=upstreams,
        workspace=None if benchmark else Path.cwd(),
        snapshot=snapshot_workspace(store, limits) if limits else None,
        store=store,
        armed=armed,
        seed=seed,
        trust=trust,
        input=given,
    )
    launch = ColdLauncher(command=command, budget=budget, input=given)
    played = record_to_store(plan, launch, benchmark, store, output)
    unplayable = None
    if on_terminal and was_terminal_read():
        unplayable = "typed input is not recorded: this can be shown, not replayed"
    elif given is not None:
        unplayable = given.to_agent_input().unplayable
    if unplayable:
        click.echo(f"warning: {unplayable}", err=True)
    if played.exit.signal is not None:
        raise SystemExit(signal_to_exit_code(played.exit.signal))
    if played.exit.out_of_budget:
        click.echo(f"the agent was ended after {budget:g} s (--budget)", err=True)
        raise SystemExit(ExitCode.BUDGET)
    follows = played.exit.code == 0 and not armed and world is None and benchmark is None
    if (times is not None or follows) and not unplayable:
        for line in run_controls(played.path, times):
            click.echo(line, err=True)
    if not armed and not played.exit.code:
        next_command = f"stumble show {shlex.quote(str(played.path))}"
        click.echo(f"next: {next_command if unplayable else played.next_command}", err=True)
    missed = ExitCode.NOTHING_FIRED if faults and not played.fired else ExitCode.OK
    raise SystemExit(played.exit.code or missed)


def _bind_faults(faults: tuple["Fault", ...]) -> tuple["BoundFault", ...]:
    """Bind the faults of a live run; a run without any does not load the operators."""
    if not faults:
        return ()
    from faults.targeting.bound_fault import bind_without_recording

    with options.usage_errors():
        return tuple(bind_without_recording(fault) for fault in faults)


def record_to_store(
    plan: "RecordPlan",
    launch: "ColdLauncher",
    benchmark: "BenchmarkTask | None",
    store: "StoreDirectory",
    output: Path | None,
) -> "RunResult":
    """Record one run onto a tape of the store or `output`, and describe it.

    The first command that asks the store for rows writes those of the run.
    """
    from recorder import event_loop
    from recorder.scratch_folder import make_scratch_folder
    from stumble.runs.record import record_run
    from stumble.store.tape_files import keep_tape
    from stumble.user_data.paths import new_trajectory_id, prepare_ca_folder
    from traces.tape.reader import read_tape

    id = new_trajectory_id()
    path = output or store.tapes / f"{id}.tape"

    async def run(scratch: Path) -> "RunResult":
        async with _open_benchmark(plan, launch, benchmark) as (own_plan, own_launch):
            return await record_run(
                path,
                own_launch,
                own_plan,
                id=id,
                ca=prepare_ca_folder(),
                scratch=scratch,
                say=lambda line: click.echo(line, err=True),
            )

    with make_scratch_folder() as scratch, options.report_launch_failure(launch.command, path):
        played = event_loop.run_event_loop(run(scratch))
    lines, command = _describe_recording(read_tape(path), played, launch.command, plan)
    for line in lines:
        click.echo(line, err=True)
    keep_tape(store, path, id)
    return replace(played, next_command=command)


@asynccontextmanager
async def _open_benchmark(
    plan: "RecordPlan", launch: "ColdLauncher", benchmark: "BenchmarkTask | None"
) -> AsyncIterator[tuple["RecordPlan", "ColdLauncher"]]:
    """Set up the benchmark's world; yield plan and launcher with its hosts, world and files."""
    if benchmark is None:
        yield plan, launch
        return
    from stumble.runs.environment.benchmark_setup import (
        configure_benchmark_launcher,
        set_up_benchmark,
    )

    async with set_up_benchmark(benchmark) as stage:
        own_plan = replace(plan, hosts={**stage.hosts, **plan.hosts}, world=stage.world)
        yield own_plan, configure_benchmark_launcher(launch, stage, benchmark)


def run_controls(tape: Path, times: int | None) -> Iterator[str]:
    """Replay a new recording to learn from it; yield lines about that."""
    if times == 1:
        return
    from stumble.drift.control_replays import run_control_replays, run_unasked_control

    yield from run_unasked_control(tape) if times is None else run_control_replays(tape, times - 1)


def _explain_missing_model(
    tape: "Tape", played: "RunResult", command: tuple[str, ...]
) -> Iterator[str]:
    """Yield what is known of an agent whose model traffic was not seen, as `doctor` names it."""
    from stumble.doctor.static_checks import check_agent_program, check_agent_variables
    from stumble.runs.unseen_traffic import describe_connections, describe_earlier_servers

    yield from describe_connections(played.attempts)
    yield from describe_earlier_servers(x.request for x in tape.exchanges)
    for seen, text in (
        *check_agent_program(command, os.environ),
        *check_agent_variables(os.environ),
    ):
        if not seen:
            yield text


def _describe_recording(
    tape: "Tape", played: "RunResult", command: tuple[str, ...], plan: "RecordPlan"
) -> tuple[list[str], str]:
    """Return the lines printed after a recording (summary, injections, warnings), and what is
    worth running next.
    """
    from scenarios.world import CommandWorld
    from stumble.runs.next_command import suggest_next_command
    from stumble.runs.summary import (
        collect_run_warnings,
        describe_injections,
        describe_recording_gaps,
        summarize_tape,
    )
    from stumble.runs.unseen_traffic import describe_unteed_servers
    from traces.conversation.derived_steps import derive_tape_steps

    derived_steps = derive_tape_steps(tape)
    summary = summarize_tape(tape, derived_steps)
    warnings = [*collect_run_warnings([played]), *describe_recording_gaps(tape)]
    warnings += describe_unteed_servers(played.unteed, derived_steps)
    if not summary.model:
        warnings += _explain_missing_model(tape, played, command)
    if not plan.redact:
        warnings.insert(0, f"secrets are in it; `stumble scrub {tape.path}` takes them out")
    headline = f"recorded {tape.path}: {summary.to_line()}"
    lines = [headline, *describe_injections(tape, played)]
    lines += [f"warning: {why}" for why in warnings]
    world = plan.world.list_options() if isinstance(plan.world, CommandWorld) else {}
    # A command with a secret in it is not printed: what is on the tape could not be pasted.
    shown = command if tape.trajectory.command == command else ()
    return lines, suggest_next_command(tape.path, derived_steps, command=shown, world=world)


def snapshot_workspace(store: "StoreDirectory", limits: "SnapshotLimits") -> str | None:
    """Take a snapshot of the current folder; return its name.

    Prints the reason and returns None if the folder exceeds the limits.
    """
    from stumble.runs.environment.workspaces import describe_snapshot, take_folder_snapshot

    try:
        with show_terminal_progress("keeping the workspace") as progress:
            snapshot = take_folder_snapshot(Path.cwd(), store, limits, progress)
    except ValueError as error:
        click.echo(
            f"workspace not kept: {error}; see .stumbleignore, --snapshot-mb and "
            "--snapshot-files in `stumble record --help`",
            err=True,
        )
        return None
    for line in describe_snapshot(snapshot):
        click.echo(f"workspace: {line}", err=True)
    return snapshot.name
