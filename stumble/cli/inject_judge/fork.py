"""`stumble fork`: replay up to one call, inject a fault there, continue live, and judge."""

import json
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from stumble.cli import match_options, options
from stumble.cli.exit_codes import UsageError, signal_to_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from stumble.runs.fork import ForkPlan, ForkResult, ForkRun
    from stumble.runs.fork_report import ForkReport
    from stumble.runs.isolation import IsolationPlan
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.types import Hosts
    from traces.model import Fault

FORK_STOP_SECONDS = 5.0
"""Seconds that agents get to exit after a signal to stumble."""
OUTSIDE_SERVER_HINT = (
    "--reset ran in a fresh copy of the folder: if a server outside works on files of that "
    "folder, use --in-place"
)

PIN_HINT = "if a local tool prints something else in each run, --pin sends the recorded result"


@click.command(
    epilog="Exit codes: 0 judged, 3 diverged before the injection, 4 no fault fired, 5 no "
    "verdict possible.",
)
@options.tape_argument
@options.fault_injection_options(required=True)
@click.option(
    "--twins",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Number of clean continuations to compare with: at least 3, or 0 for facts without a "
    "verdict.",
)
@click.option(
    "--times",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of faulted continuations; each samples its own wrong value.",
)
@click.option(
    "--confirm",
    is_flag=True,
    help="Measure the effect of the wrong value: as many runs as twins with one wrong value, and "
    "as many with another one.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Parallel runs; default: one per processor if each run has a copy of the folder and "
    "there is no --reset, else 1.",
)
@click.option(
    "--pin",
    is_flag=True,
    help="Before the injection, send the model the recorded result if a local tool gives another "
    "one; such results are counted.",
)
@options.match_option
@options.world_options
@options.workspace_options
@options.host_option
@options.budget_option(600.0)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.agent_command
def fork(
    tape: Path,
    faults: tuple["Fault", ...],
    seed: int,
    twins: int,
    times: int,
    confirm: bool,
    jobs: int | None,
    pin: bool,
    rule_texts: tuple[str, ...],
    reset: str | None,
    verify: str | None,
    state: str | None,
    in_place: bool,
    as_recorded: bool,
    keep_workspace: bool,
    host_texts: tuple[str, ...],
    budget: float,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Replay up to one call, inject a fault there, continue live, then judge the agent.

    Before the injection the model's answers come from the tape. With --reset, tools run live in
    a world that is reset before each run; without it their answers come from the tape, and a
    call that is not on it ends the run as unknown. Clean twins, continued from the same call
    without a fault, show what the agent does anyway. At the model boundary only the model sees
    the wrong value; the agent's process and files keep the true one.

    Each run works in a fresh copy of the agent's folder as it was before the recording, at the
    same path; --reset and --verify run there too. Servers outside do not see these copies: if
    one works on files of that folder, use --in-place. The network is open in all runs.

    \b
    stumble fork refund.tape --fault http_status:code=503 --where tool=issue_refund \\
        --reset "python reset_shop.py" --verify "python check_shop.py" -- python my_agent.py
    """
    from recorder import event_loop
    from replay.matching.rules import parse_match_rule
    from stumble.pipeline.replay_check import Pipeline, find_passed_stages
    from stumble.runs.environment.worlds import make_command_world
    from stumble.runs.fork import ForkPlan, ForkResult, ForkRun, find_fork_point
    from stumble.runs.fork_report import judge_fork
    from stumble.runs.isolation import max_parallel_runs, plan_isolation
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.summary import collect_run_warnings
    from stumble.store import index
    from stumble.store.tape_files import load_tape
    from stumble.user_data.paths import store_root
    from stumble.verdicts.exclusions import NO_TWINS_NOTE, check_twins
    from traces.store.trace_store import TraceStore

    world = make_command_world(reset, verify, state=state)
    hosts = options.parse_host_options(host_texts)
    recording = load_tape(tape)
    marked = world is None and bool(recording.marks)
    if marked:
        world = Pipeline(find_passed_stages(recording.marks))
    match_options.check_recorded_rules(recording.trajectory.rules, tape)
    rules = tuple(
        parse_match_rule(text) for text in match_options.collect_match_rules(None, rule_texts)
    )
    idle = match_options.find_unplaced_rules(rule_texts, recording.exchanges)
    command = options.check_agent_command(command or recording.trajectory.command)
    with options.usage_errors():
        check_twins(twins)
    if confirm and (times > 1 or not twins):
        raise UsageError("--confirm runs as many forks as twins: needs --twins, excludes --times")
    store = TraceStore(store_root())
    isolation_plan = plan_isolation(
        recording.trajectory,
        store,
        live="the agent is live after the injection",
        in_place=in_place,
        keep=keep_workspace,
        as_recorded=as_recorded,
    )
    with options.usage_errors():
        design = ForkPlan(
            fork_point=find_fork_point(recording, faults, seed=seed),
            twins=twins,
            times=times,
            confirm=confirm,
            world=world,
            seed=seed,
            pin=pin,
            rules=rules,
            workspace=isolation_plan.workspace,
        )
    forked = ForkResult(wanted=design.list_runs())
    jobs = min(
        max_parallel_runs(isolation_plan, jobs, world=world is not None and not marked),
        len(forked.wanted),
    )
    for line in (
        f"injecting into {design.fork_point.describe()}",
        isolation_plan.describe_workspace(),
        *(() if twins else (NO_TWINS_NOTE,)),
    ):
        click.echo(line, err=True)
    passes = jobs == times == 1 and not confirm and not as_json

    def launch(each: ForkRun) -> ColdLauncher:
        shown = passes and each.condition == "fault"
        log = store.log_path(f"{tape.stem}-{each.condition}-{each.rep}")
        return ColdLauncher(
            command=command,
            budget=budget,
            output=None if shown else log,
            patience=FORK_STOP_SECONDS,
        )

    failure: BaseException | None = None
    try:
        with options.report_launch_failure(command):
            running = _run_planned_forks(design, forked, launch, store.tapes, hosts, jobs)
            event_loop.run_event_loop(running)
    except (event_loop.SignalInterrupt, ChildProcessError) as error:
        failure = error  # raised again after the report of the finished runs
    index.refresh_index(store)
    for why in (
        *collect_run_warnings(forked.runs),
        *match_options.describe_unused_rules(idle, forked.runs),
    ):
        click.echo(f"warning: {why}", err=True)
    report = judge_fork(design.fork_point, forked)
    data, lines = _format_fork(report, design, isolation_plan)
    if data["diverged"]:
        lines += _list_divergence_hints(design, in_copy=bool(isolation_plan.workspace and reset))
    click.echo(json.dumps(data) if as_json else "\n".join(lines))
    if failure is not None:
        raise failure
    signal = next((ran.exit.signal for ran in forked.runs if ran.exit.signal), None)
    raise SystemExit(report.code if signal is None else signal_to_exit_code(signal))


async def _run_planned_forks(
    design: "ForkPlan",
    forked: "ForkResult",
    launch: "Callable[[ForkRun], ColdLauncher]",
    tapes: Path,
    hosts: "Hosts",
    jobs: int,
) -> None:
    """Run all forks of a plan in one session, `jobs` at a time."""
    from stumble.runs.fork import run_fork
    from stumble.runs.session import open_replay_session
    from stumble.user_data.paths import prepare_ca_folder

    with TemporaryDirectory(prefix="stumble-") as scratch:
        async with open_replay_session(
            ca=prepare_ca_folder(), scratch=Path(scratch), hosts=hosts, out=True
        ) as session:
            await run_fork(
                session,
                design,
                forked,
                launch,
                tapes,
                jobs=jobs,
                progress=lambda what: click.echo(f"  {what}", err=True),
            )


def _format_fork(
    report: "ForkReport", design: "ForkPlan", isolation_plan: "IsolationPlan"
) -> tuple[dict[str, object], list[str]]:
    """Return the report of a fork as JSON data and as lines, with the confirmation if planned."""
    from stumble.runs.fork_report import confirm_fork, confirmation_to_lines

    kept_copies = [str(ran.kept) for ran in report.forked.runs if ran.kept]
    data = report.to_dict() | isolation_plan.to_dict({}) | {"kept_workspaces": kept_copies}
    lines = [*report.to_lines(), *(f"a copy is in {each}" for each in kept_copies)]
    if design.confirm:
        confirmation = confirm_fork(report.forked, design.twins)
        data["confirmation"] = asdict(confirmation)
        lines += confirmation_to_lines(confirmation)
    return data, lines


def _list_divergence_hints(design: "ForkPlan", *, in_copy: bool) -> list[str]:
    """Return what may help; `in_copy` if --reset ran in a copy of the folder."""
    from replay.result_pinning import find_pinnable_uses

    tool_uses = design.fork_point.derived_steps.tool_uses
    pinnable = not design.pin and find_pinnable_uses(tool_uses)
    return [*([OUTSIDE_SERVER_HINT] if in_copy else []), *([PIN_HINT] if pinnable else [])]
