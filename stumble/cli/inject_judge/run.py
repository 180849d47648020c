"""`stumble run`: run a scenario in the practice world or with the user's agent."""

import json
import os
import shlex
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from scenarios.practice import PRACTICE_KEY
from stumble.cli import match_options, options
from stumble.cli.exit_codes import ExitCode, UsageError, signal_to_exit_code

if TYPE_CHECKING:
    from scenarios.benchmarks.protocol import BenchmarkEnvironment
    from stumble.runs.fork_report import ForkReport
    from stumble.runs.scenario_runner import CheckedScenario, RunEnvironment
    from traces.model import Fault
    from traces.store.trace_store import TraceStore
    from traces.tape import Tape


@click.command(
    epilog="Exit codes: 0 judged, 2 invalid scenario, 3 diverged before the injection, 4 no fault "
    "fired, 5 no verdict possible.",
)
@click.argument("name")
@click.option("--command", "text", metavar="COMMAND",
              help="Command of your agent; default: the practice agent.")  # fmt: skip
@click.option("--tape", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Use this recording of the scenario instead of making one.")  # fmt: skip
@options.fault_injection_options(required=False, seed=None, aims=True)
@click.option("--twins", type=click.IntRange(0),
              help="Number of clean continuations: at least 3, or 0 for facts without a verdict; "
              "default: that of the scenario.")  # fmt: skip
@options.world_options
@options.in_place_option
@options.host_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(
    name: str,
    text: str | None,
    tape: Path | None,
    faults: "tuple[Fault, ...]",
    where: tuple[str, ...],
    seed: int | None,
    twins: int | None,
    reset: str | None,
    verify: str | None,
    state: str | None,
    in_place: bool,
    host_texts: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run a scenario: record the agent once, inject the scenario's fault (or --fault), judge.

    NAME is a ready scenario, a scenario file, or the folder of a benchmark task.

    Without --command the practice agent runs in the practice world, with no further setup. With
    --command your own agent runs: name its tool with --where tool=NAME if it differs from the
    scenario's, and give --reset and --verify for your world.

    \b
    stumble run lost-ack-on-refund
    stumble run lost-ack-on-refund --command "python my_agent.py" --where tool=create_refund \\
        --reset "python reset_shop.py" --verify "python check_shop.py"

    A Harbor task folder (Terminal-Bench 2) contains an instruction, a workspace and tests. The
    instruction replaces {instruction} in the agent's command, or is appended to it, and is also
    in STUMBLE_INSTRUCTION. Each run gets a new workspace, and the tests judge a copy of it. No
    container is used: /app, /logs and /tests are mounted in a mount namespace, and a task whose
    Dockerfile has instructions other than WORKDIR, COPY and ENV is refused.

    A tau2 domain folder (tools.py, db.json, policy.md, tasks.json) provides tools through an MCP
    server at {mcp_url} (also in MCP_URL), with fresh data for each run. The verdict compares
    that data with the result of the expected calls, and checks for required statements. No user
    is simulated: the instruction contains the whole request. A scenario file names a task of
    either form with `benchmark = "DIR"` and adds faults.

    \b
    stumble run tasks/fix-ledger --command "my-agent -p {instruction}" \\
        --fault truncate:keep=0.3 --where tool=bash --nth 2
    stumble run domains/airline#12 --command "my-agent --mcp {mcp_url} {instruction}" \\
        --fault lost_ack --where side=write
    """
    from recorder import event_loop
    from stumble.runs.environment.benchmark_setup import fill_agent_command as instructed
    from stumble.runs.scenario_runner import load_checked_scenario
    from stumble.store import index
    from stumble.store.tape_files import load_tape
    from stumble.user_data.paths import store_root
    from stumble.verdicts.exclusions import check_twins
    from traces.store.trace_store import TraceStore

    with options.usage_errors():
        checked = load_checked_scenario(name, faults)
        checked = checked if faults else checked.retarget_faults(options.parse_option_pairs(where))
    scenario = checked.scenario
    twins = scenario.twins if twins is None else twins
    with options.usage_errors():
        check_twins(twins)
    if not checked.faults:
        raise UsageError(f"{name} is a task without a fault: give --fault")
    try:
        command = tuple(shlex.split(text)) if text else scenario.command
        if command and scenario.benchmark is not None:
            command = instructed(command, scenario.benchmark)
    except ValueError as error:
        raise UsageError(f"--command {text!r}: {error}") from None
    recording: Tape | None = None
    if tape is not None:
        recording = load_tape(tape)
        match_options.check_recorded_rules(recording.trajectory.rules, tape)
        command = command or recording.trajectory.command
    if command:
        options.check_agent_command(command)
    elif tape is not None or scenario.practice is None:
        why = (
            f"{tape} names no command" if tape else f"{scenario.path} is not for the practice world"
        )
        raise UsageError(f"{why}: give --command")
    elif reset or verify or state or host_texts:
        raise UsageError(
            "--reset, --verify, --state and --host need --command: they are for your own agent"
        )
    if scenario.benchmark is not None and (reset or verify or state):
        raise UsageError(f"{name} has its own world: omit --reset, --verify and --state")
    store = TraceStore(store_root())
    try:
        report = event_loop.run_event_loop(
            _run_scenario(
                checked,
                command,
                recording,
                store,
                seed=scenario.seed if seed is None else seed,
                twins=twins,
                reset=reset or scenario.reset,
                verify=verify or scenario.verify,
                state=state or scenario.state,
                in_place=in_place,
                host_texts=host_texts,
            )
        )
    except LookupError as error:
        click.echo(f"no fault fired: {error.args[0]}", err=True)
        raise SystemExit(ExitCode.NOTHING_FIRED) from None
    index.refresh_index(store)
    data = {"scenario": scenario.name} | report.to_dict()
    click.echo(json.dumps(data) if as_json else "\n".join(report.to_lines()))
    signal = next((ran.exit.signal for ran in report.forked.runs if ran.exit.signal), None)
    raise SystemExit(report.code if signal is None else signal_to_exit_code(signal))


async def _run_scenario(
    told: "CheckedScenario",
    command: tuple[str, ...],
    recording: "Tape | None",
    store: "TraceStore",
    *,
    seed: int,
    twins: int,
    reset: str | None,
    verify: str | None,
    state: str | None,
    in_place: bool,
    host_texts: tuple[str, ...],
) -> "ForkReport":
    from stumble.runs.environment.benchmark_setup import set_up_benchmark
    from stumble.runs.environment.workspaces import snapshot_current_folder
    from stumble.runs.isolation import plan_isolation
    from stumble.runs.scenario_runner import fork_scenario, open_practice_scenario, record_scenario
    from stumble.runs.session import open_replay_session
    from stumble.user_data.paths import prepare_ca_folder

    scenario, is_practice = told.scenario, not command
    with TemporaryDirectory(prefix="stumble-") as name:
        folder = Path(name)
        async with AsyncExitStack() as stack:
            if is_practice and scenario.practice is not None:
                os.environ.setdefault("OPENAI_API_KEY", PRACTICE_KEY)
                at = open_practice_scenario(scenario, scenario.practice, folder)
                environment = await stack.enter_async_context(at)
            elif scenario.benchmark is not None:
                benchmark = scenario.benchmark
                for line in benchmark.limitations:
                    click.echo(f"weaker than in {benchmark.benchmark_format}: {line}", err=True)
                stage = await stack.enter_async_context(set_up_benchmark(benchmark))
                environment = _prepare_benchmark_agent(told, command, store, stage, host_texts)
            else:
                environment = _prepare_own_agent(
                    told, command, store, reset, verify, state, host_texts
                )
            here = not is_practice and scenario.benchmark is None
            if recording is None:
                click.echo(f"{scenario.name}: recording", err=True)
                recording = await record_scenario(
                    told, environment, store, ca=prepare_ca_folder(), scratch=folder,
                    workspace=Path.cwd() if here else None,
                    snapshot=snapshot_current_folder(store) if here else None,
                )  # fmt: skip
            copies = None
            if here:
                live = "the agent is live after the injection"
                isolation_plan = plan_isolation(
                    recording.trajectory, store, live=live, in_place=in_place, keep=False
                )
                click.echo(isolation_plan.describe_workspace(), err=True)
                copies = isolation_plan.workspace
            session_context = open_replay_session(
                ca=prepare_ca_folder(), scratch=folder, hosts=environment.hosts, out=True
            )
            return await fork_scenario(
                told,
                environment,
                recording,
                await stack.enter_async_context(session_context),
                store,
                seed=seed,
                twins=twins,
                workspace=copies,
                progress=lambda what: click.echo(what, err=True),
            )


def _prepare_own_agent(
    told: "CheckedScenario",
    command: tuple[str, ...],
    store: "TraceStore",
    reset: str | None,
    verify: str | None,
    state: str | None,
    host_texts: tuple[str, ...],
) -> "RunEnvironment":
    """Return the run environment of the user's agent in the user's world."""
    from stumble.runs.environment.worlds import make_command_world
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.scenario_runner import RunEnvironment
    from stumble.runs.types import RunLabels

    scenario = told.scenario

    def launch(name: str) -> ColdLauncher:
        output = store.log_path(f"{scenario.name}-{name}")
        return ColdLauncher(command=command, budget=scenario.budget, output=output)

    return RunEnvironment(
        hosts=options.parse_host_options(host_texts),
        world=make_command_world(
            reset, verify, scenario.answer if reset == scenario.reset else None, state=state
        ),
        launch=launch,
        labels=RunLabels(
            agent=scenario.agent, model=scenario.model, scenario=scenario.name, task=scenario.task
        ),
    )


def _prepare_benchmark_agent(
    told: "CheckedScenario",
    command: tuple[str, ...],
    store: "TraceStore",
    stage: "BenchmarkEnvironment",
    host_texts: tuple[str, ...],
) -> "RunEnvironment":
    """Return the run environment of the user's agent in the world of a benchmark task."""
    from stumble.runs.environment.benchmark_setup import configure_benchmark_launcher
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.scenario_runner import RunEnvironment
    from stumble.runs.types import RunLabels

    scenario = told.scenario
    benchmark = scenario.benchmark
    assert benchmark is not None

    def launch(name: str) -> ColdLauncher:
        output = store.log_path(f"{scenario.name}-{name}")
        return configure_benchmark_launcher(
            ColdLauncher(command=command, budget=scenario.budget, output=output), stage, benchmark
        )

    return RunEnvironment(
        hosts={**stage.hosts, **options.parse_host_options(host_texts)},
        world=stage.world,
        launch=launch,
        labels=RunLabels(
            agent=scenario.agent, model=scenario.model, scenario=scenario.name, task=scenario.task
        ),
    )
