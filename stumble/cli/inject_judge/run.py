"""`stumble run`: run a scenario in the practice world or with the user's agent."""

import json
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from scenarios.practice import PRACTICE_KEY
from stumble.cli import match_options, options
from stumble.cli.tape_path import TapePath
from stumble.cli.trust import require_trust, trust_option
from stumble.errors import ExitCode, UsageError, signal_to_exit_code

if TYPE_CHECKING:
    from scenarios.scenario import Scenario
    from stumble.runs.environment.upstream_trust import UpstreamTrust
    from stumble.runs.environment.worlds import WorldCommands
    from stumble.runs.fork_report import ForkReport
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.scenario_runner import CheckedScenario
    from stumble.runs.types import Hosts, RunEnvironment, RunLabels
    from traces.model import Fault
    from traces.store.trace_store import TraceStore
    from traces.tape.reader import Tape


@click.command(
    epilog="Exit codes: 0 judged, 2 invalid scenario, 3 diverged before the injection, 4 no fault "
    "fired, 5 no verdict possible.",
)
@click.argument("name")
@click.option("--command", "text", metavar="COMMAND",
              help="Command of your agent; default: the practice agent.")  # fmt: skip
@click.option("--tape", type=TapePath(),
              help="Use this recording of the scenario instead of making one.")  # fmt: skip
@trust_option
@options.fault_injection_options(required=False, seed=None, aims=True)
@click.option("--twins", type=click.IntRange(0),
              help="Number of clean continuations: at least 3, or 0 for facts without a verdict; "
              "default: that of the scenario.")  # fmt: skip
@options.world_options
@options.in_place_option
@options.host_option
@options.upstream_trust_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(
    name: str,
    text: str | None,
    tape: Path | None,
    faults: "tuple[Fault, ...]",
    where: tuple[str, ...],
    seed: int | None,
    twins: int | None,
    world_commands: "WorldCommands",
    in_place: bool,
    host_texts: tuple[str, ...],
    trust: "UpstreamTrust",
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
    from stumble.runs.environment.worlds import WorldCommands
    from stumble.runs.scenario_runner import fill_practice_command, load_checked_scenario
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
        check_twins(twins)
    if not checked.faults:
        raise UsageError(f"{name} is a task without a fault: give --fault")
    recording = load_tape(tape) if tape else None
    if recording is not None:
        match_options.check_recorded_rules(recording.trajectory.rules, recording.path)
        given = tuple(shlex.split(text)) if text else scenario.command
        require_trust(recording, given, in_place=in_place)
    command = _choose_command(text, scenario, recording)
    has_own_world = any(world_commands)
    if not command and (has_own_world or host_texts):
        raise UsageError(
            "--reset, --verify, --state, --ledger and --host need --command: they are for your own "
            "agent"
        )
    practises = bool(scenario.practice and scenario.command) and not (text or has_own_world)
    if practises and scenario.practice is not None:
        command = fill_practice_command(command, scenario.practice)
    if scenario.benchmark is not None and has_own_world:
        raise UsageError(f"{name} has its own world: omit --reset, --verify, --state and --ledger")
    own = WorldCommands(
        scenario.reset,
        scenario.verify,
        scenario.state,
        scenario.ledger,
        ",".join(scenario.ledger_key) or None,
    )
    store = TraceStore(store_root())
    plan = _ScenarioPlan(
        checked=checked,
        command=command,
        practises=practises,
        store=store,
        seed=scenario.seed if seed is None else seed,
        twins=twins,
        world=world_commands.with_defaults_from(own),
        in_place=in_place,
        hosts=options.parse_host_options(host_texts),
        trust=trust,
    )
    try:
        report = event_loop.run_event_loop(_run_scenario(plan, recording))
    except LookupError as error:
        click.echo(f"no fault fired: {error.args[0]}", err=True)
        raise SystemExit(ExitCode.NOTHING_FIRED) from None
    index.refresh_index(store)
    data = {"scenario": scenario.name} | report.to_dict()
    click.echo(json.dumps(data) if as_json else "\n".join(report.to_lines()))
    signal = next((ran.exit.signal for ran in report.forked.runs if ran.exit.signal), None)
    raise SystemExit(report.code if signal is None else signal_to_exit_code(signal))


def _choose_command(
    text: str | None, scenario: "Scenario", recording: "Tape | None"
) -> tuple[str, ...]:
    """Return the agent's command; () for the practice agent. Raises UsageError if none fits."""
    from stumble.runs.environment.benchmark_setup import fill_agent_command

    try:
        command = tuple(shlex.split(text)) if text else scenario.command
        if command and scenario.benchmark is not None:
            command = fill_agent_command(command, scenario.benchmark)
    except ValueError as error:
        raise UsageError(f"--command {text!r}: {error}") from None
    if recording is not None:
        command = command or recording.trajectory.command
    if command:
        return options.check_agent_command(command)
    if recording is not None:
        raise UsageError(f"{recording.path} names no command: give --command")
    if scenario.practice is None:
        raise UsageError(f"{scenario.path} is not for the practice world: give --command")
    return ()


class _ScenarioPlan(Struct, frozen=True, kw_only=True):
    """A scenario with the user's choices."""

    checked: "CheckedScenario"
    command: tuple[str, ...]
    """The command of the user's agent; () for the practice agent."""
    practises: bool
    """Whether the user's agent works in the practice world."""
    store: "TraceStore"
    seed: int
    twins: int
    world: "WorldCommands"
    in_place: bool
    hosts: "Hosts"
    trust: "UpstreamTrust"

    @property
    def scenario(self) -> "Scenario":
        return self.checked.scenario

    @property
    def uses_folder(self) -> bool:
        """Whether the agent works in the user's folder, of which each run gets a copy."""
        return bool(self.command) and self.scenario.benchmark is None

    @property
    def labels(self) -> "RunLabels":
        from stumble.runs.types import RunLabels

        scenario = self.scenario
        return RunLabels(
            agent=scenario.agent, model=scenario.model, scenario=scenario.name, task=scenario.task
        )

    def make_launcher(self, name: str) -> "ColdLauncher":
        """Return how the user's agent starts in the run of that name."""
        from stumble.runs.launcher import ColdLauncher

        output = self.store.log_path(f"{self.scenario.name}-{name}")
        return ColdLauncher(command=self.command, budget=self.scenario.budget, output=output)


async def _run_scenario(plan: _ScenarioPlan, recording: "Tape | None") -> "ForkReport":
    """Record the scenario unless there is a recording, fork it, and judge."""
    from stumble.runs.environment.workspaces import snapshot_current_folder
    from stumble.runs.fork import ForkPlan, find_fork_point
    from stumble.runs.isolation import WorkspaceChoice, plan_isolation
    from stumble.runs.scenario_runner import fork_scenario, record_scenario
    from stumble.runs.session import open_replay_session
    from stumble.user_data.paths import prepare_ca_folder

    store, ca, workspace = plan.store, prepare_ca_folder(), None
    with TemporaryDirectory(prefix="stumble-") as name:
        folder = Path(name)
        async with _open_environment(plan, folder) as environment:
            if recording is None:
                click.echo(f"{plan.scenario.name}: recording", err=True)
                recording = await record_scenario(
                    plan.checked,
                    environment,
                    store,
                    ca=ca,
                    scratch=folder,
                    workspace=Path.cwd() if plan.uses_folder else None,
                    snapshot=snapshot_current_folder(store) if plan.uses_folder else None,
                )
            if plan.uses_folder:
                isolation_plan = plan_isolation(
                    recording.trajectory,
                    store,
                    WorkspaceChoice(in_place=plan.in_place),
                    live="the agent is live after the injection",
                )
                click.echo(isolation_plan.describe_workspace(), err=True)
                workspace = isolation_plan.workspace
            design = ForkPlan(
                fork_point=find_fork_point(recording, plan.checked.faults, seed=plan.seed),
                twins=plan.twins,
                world=environment.world,
                seed=plan.seed,
                workspace=workspace,
            )
            async with open_replay_session(
                ca=ca,
                scratch=folder,
                hosts=environment.hosts,
                out=True,
                trust=environment.trust,
            ) as session:
                return await fork_scenario(
                    design,
                    environment,
                    session,
                    store,
                    progress=lambda what: click.echo(what, err=True),
                )


@asynccontextmanager
async def _open_environment(plan: _ScenarioPlan, folder: Path) -> AsyncIterator["RunEnvironment"]:
    """Set up the practice world, the world of a benchmark task, or that of the user."""
    from stumble.runs.environment.benchmark_setup import (
        configure_benchmark_launcher,
        set_up_benchmark,
    )
    from stumble.runs.scenario_runner import open_practice_scenario, open_practice_world
    from stumble.runs.types import RunEnvironment

    scenario, benchmark = plan.scenario, plan.scenario.benchmark
    if plan.practises and scenario.practice is not None:
        launch, labels = plan.make_launcher, plan.labels
        async with open_practice_world(scenario.practice, folder, launch, labels) as environment:
            yield environment
    elif not plan.command and scenario.practice is not None:
        os.environ.setdefault("OPENAI_API_KEY", PRACTICE_KEY)
        async with open_practice_scenario(scenario, scenario.practice, folder) as environment:
            yield environment
    elif benchmark is not None:
        for line in benchmark.limitations:
            click.echo(f"weaker than in {benchmark.benchmark_format}: {line}", err=True)
        async with set_up_benchmark(benchmark) as stage:
            yield RunEnvironment(
                hosts={**stage.hosts, **plan.hosts},
                world=stage.world,
                launch=lambda name: configure_benchmark_launcher(
                    plan.make_launcher(name), stage, benchmark
                ),
                labels=plan.labels,
                trust=plan.trust,
            )
    else:
        answer = scenario.answer if plan.world.reset == scenario.reset else None
        yield RunEnvironment(
            hosts=plan.hosts,
            world=plan.world.make_world(answer, has_fresh_copy=not plan.in_place),
            launch=plan.make_launcher,
            labels=plan.labels,
            trust=plan.trust,
        )
