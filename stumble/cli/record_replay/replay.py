"""`stumble replay`: run an agent against its recording, offline."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli import match_options, options
from stumble.cli.trust import require_trust, trust_option
from stumble.errors import ExitCode, signal_to_exit_code
from stumble.notices import print_warning

if TYPE_CHECKING:
    from replay.player import OnMiss
    from stumble.runs.injection import InjectionPlan
    from stumble.runs.isolation import IsolationMode, WorkspaceChoice
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.replay_report import ReplayOptions, ReplayReport
    from stumble.runs.types import ReplayPlan
    from traces.conversation.classify import ExchangeKind
    from traces.model import Fault
    from traces.store.store_dir import StoreDirectory
    from traces.tape.reader import Tape

LIVE_KINDS: Mapping[str, tuple["ExchangeKind", ...]] = {
    "model": ("model",),
    "tools": ("tool",),
    "all": ("model", "tool"),
}


@click.command(
    epilog="Exit codes: 0 the agent followed the recording, 1 it tried to bypass the proxy (with "
    "--isolation require), 2 a rule of --match never applied, or usage, 3 it diverged, 4 no fault "
    "fired.",
)
@options.tape_argument
@trust_option
@click.option(
    "--live", type=click.Choice(sorted(LIVE_KINDS)), help="Forward this kind of traffic upstream."
)
@click.option(
    "--speed",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Speed factor: 1 keeps the recorded pace, 2 is twice as fast, 0 as fast as possible.",
)
@options.match_options
@click.option(
    "--on-miss",
    type=click.Choice(["refuse", "live", "halt"]),
    default="refuse",
    show_default=True,
    help="Response to a request that is not on the tape: refuse it, send it live, or halt (stop "
    "the agent).",
)
@click.option(
    "--after-miss",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=5.0,
    show_default=True,
    help="Seconds after a request that is not on the tape until the agent is ended, if none of its "
    "later requests is.",
)
@click.option(
    "--times",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of replays, one after the other; the exit code is the worst of them.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Print which exchange each request matched, and why.",
)
@click.option(
    "--isolation",
    type=click.Choice(["auto", "network", "require", "off"]),
    default="auto",
    show_default=True,
    help="Isolate the agent from everything but the recording (Linux). require: exit 2 if this "
    "machine cannot isolate, 1 if the agent tried to bypass the proxy; network: isolate the "
    "network only, for agents that build sandboxes; auto: isolate if possible.",
)
@click.option(
    "--limits",
    "limits_text",
    metavar="NAME=VALUE,...",
    help="Most memory (GB), processes and disk (GB) of an isolated agent in a copy: "
    "memory=8,processes=500,disk=20. Default: 80 % of this machine's memory, 4096, 90 % of the "
    "free disk.",
)
@options.workspace_options
@options.fault_injection_options(required=False)
@options.host_option
@options.budget_option(600.0)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.agent_command
def replay(
    tape: Path,
    live: str | None,
    speed: float,
    rule_texts: tuple[str, ...],
    scenario_name: str | None,
    on_miss: "OnMiss",
    after_miss: float,
    times: int,
    explain: bool,
    isolation: "IsolationMode",
    limits_text: str | None,
    workspace_choice: "WorkspaceChoice",
    faults: tuple["Fault", ...],
    seed: int,
    host_texts: tuple[str, ...],
    budget: float,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Run the agent again with every answer from the tape; nothing is sent upstream.

    A request that is not on the tape is refused, with the nearest recorded request as an
    explanation, and gives exit code 3, even if the agent's client hides the error. Without a
    command, runs the recorded one.

    The agent works in a fresh copy of its folder as it was before the recording, at the same
    path. On Linux it can reach nothing but the recording; other connection attempts are reported
    and get no answer.

    \b
    stumble replay refund.tape
    stumble replay refund.tape --isolation require --keep-workspace
    stumble replay refund.tape --in-place -- python my_agent.py
    stumble replay refund.tape --live tools -- python my_agent.py
    stumble replay refund.tape --times 10
    stumble replay refund.tape --explain --match 'ignore:body.metadata.run_id'
    """
    from recorder.agent.time_zone import find_restored_zone
    from replay.matching.rules import parse_match_rule
    from stumble.runs.isolation import plan_isolation
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.replay_report import ReplayOptions, find_worst_exit_code
    from stumble.runs.types import ReplayPlan
    from stumble.store.tape_files import load_tape
    from stumble.user_data.paths import store_root
    from traces.store.store_dir import StoreDirectory
    from traces.tape.reader import read_tape_lazily

    recording = load_tape(tape, read_tape_lazily)
    if recording.cut_at is not None and on_miss == "refuse":
        on_miss = "halt"  # nothing that it asks after that can have an answer
    match_options.check_recorded_rules(recording.trajectory.rules, tape)
    require_trust(recording, command, in_place=workspace_choice.in_place)
    command = options.choose_agent_command(command, recording.trajectory)
    rules = match_options.collect_match_rules(
        match_options.load_match_scenario(scenario_name), rule_texts
    )
    injection_plan = _prepare_injection(recording, faults, seed) if faults else None
    store, kinds = StoreDirectory(store_root()), LIVE_KINDS.get(live or "", ())
    lets_out = f"--live {live}" if live else "--on-miss live" if on_miss == "live" else None
    isolation_plan = plan_isolation(
        recording.trajectory,
        store,
        workspace_choice,
        isolation=isolation,
        live=f"{lets_out} needs the network" if lets_out else None,
        nests=bool(recording.marks),
    )
    if isolation_plan.workspace is None and not as_json:
        click.echo(isolation_plan.describe_workspace(), err=True)
    plan = ReplayPlan(
        workspace=isolation_plan.workspace,
        alone=isolation_plan.is_isolated,
        confined=isolation_plan.weaker is None,
        limits=options.parse_limits(limits_text),
        live=kinds,
        injection_plan=injection_plan,
        speed=speed,
        rules=tuple(parse_match_rule(text) for text in rules),
        on_miss=on_miss,
        after_miss=after_miss if on_miss == "refuse" and not injection_plan else None,
        seed=seed,
        condition="fault" if injection_plan else "clean",
    )
    # With --json the agent's output goes to a log, so that stdout holds the JSON alone.
    output = store.log_path(tape.stem) if as_json else None
    replay_options = ReplayOptions(
        tape=tape,
        cut_at=recording.cut_at,
        recorded_exit=recording.ending.exit_code if recording.ending else None,
        isolation_plan=isolation_plan,
        zone=find_restored_zone(recording.trajectory.zone, os.environ),
        isolation=isolation,
        struck=injection_plan is not None,
        contacts="tool" in kinds,
        explain=explain,
        output=output,
    )
    launch = ColdLauncher(command=command, budget=budget, output=output)
    with options.report_launch_failure(command):
        runs = _run_replays(
            recording,
            plan,
            replay_options,
            launch,
            store,
            options.parse_host_options(host_texts),
            times,
        )
    idle = match_options.find_unplaced_rules(rule_texts, recording.exchanges)
    played = [each.played for each in runs]
    unused = [*match_options.describe_unused_rules(idle, played)]
    _print_replays(runs, times, unused, as_json=as_json)
    if not as_json and any(each.played.exit.out_of_budget for each in runs):
        click.echo(f"the agent was ended after {budget:g} s (--budget)", err=True)
    signal = runs[-1].played.exit.signal
    code = find_worst_exit_code(runs)
    if unused and code == ExitCode.OK:
        code = ExitCode.USAGE
    raise SystemExit(code if signal is None else signal_to_exit_code(signal))


def _print_replays(
    runs: list["ReplayReport"], times: int, unused: list[str], *, as_json: bool
) -> None:
    from stumble.runs.replay_report import replays_to_dict, replays_to_lines
    from stumble.runs.summary import collect_run_warnings

    for why in (*collect_run_warnings([each.played for each in runs]), *unused):
        print_warning(why)
    if as_json:
        click.echo(json.dumps(replays_to_dict(runs, times)))
    else:
        click.echo("\n".join(replays_to_lines(runs, times)), err=True)


def _prepare_injection(
    recording: "Tape", faults: tuple["Fault", ...], seed: int
) -> "InjectionPlan":
    from stumble.runs.fork import find_fork_point

    with options.usage_errors():
        fork_point = find_fork_point(recording, faults, seed=seed)
    return fork_point.injection_plan


def _run_replays(
    recording: "Tape",
    plan: "ReplayPlan",
    asked: "ReplayOptions",
    launch: "ColdLauncher",
    store: "StoreDirectory",
    hosts: Mapping[str, tuple[str, int]],
    times: int,
) -> list["ReplayReport"]:
    """Run all replays in one session; stop if a signal ended an agent."""
    from recorder import event_loop
    from stumble.runs.replay import run_replay
    from stumble.runs.replay_report import summarize_replay
    from stumble.runs.session import open_recorded_session

    async def run() -> "list[ReplayReport]":
        runs: list[ReplayReport] = []
        opening = open_recorded_session(recording, hosts, out=plan.can_go_live)
        async with opening as session:
            while len(runs) < times and not (runs and runs[-1].played.exit.signal):
                played = await run_replay(session, recording, store.tapes, plan, launch)
                runs.append(summarize_replay(asked, played))
                if times > 1 and asked.output is None:
                    line = f"{len(runs)}/{times}: {runs[-1].to_line()}"
                    click.echo("\n".join((*runs[-1].matching, line)), err=True)
        return runs

    return event_loop.run_event_loop(run())
