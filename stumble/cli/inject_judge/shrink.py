"""`stumble shrink`: the smallest set of faults that still breaks a run."""

import glob
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from stumble.cli import match_options, options
from stumble.cli.tape_path import TapePath, find_tape
from stumble.cli.trust import require_trust, trust_option
from stumble.errors import ExitCode, UsageError, signal_to_exit_code

if TYPE_CHECKING:
    from scenarios.world import World
    from stumble.runs.environment.upstream_trust import UpstreamTrust
    from stumble.runs.environment.workspaces import RecordedWorkspace
    from stumble.runs.environment.worlds import WorldCommands
    from stumble.runs.fork import ForkPoint, ForkRun
    from stumble.runs.isolation import WorkspaceChoice
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.session import ReplaySession
    from stumble.runs.shrink import Faults, FaultShrinker
    from stumble.runs.types import Hosts, RunResult
    from traces.store.store_dir import StoreDirectory
    from traces.store.trace_store import TraceStore
    from traces.tape.reader import Tape

SHRINK_STOP_SECONDS = 5.0
"""Seconds that agents get to exit after a signal to stumble."""


@click.command(
    epilog="Exit codes: 0 shrunk, or already minimal; 1 the agent fails without any fault, "
    "3 diverged before the injection, 5 the faults did not make the agent fail again.",
)
@click.argument("run", metavar="RUN")
@trust_option
@click.option(
    "--recording",
    type=TapePath(),
    help="The forked recording, if it is not in the store.",
)
@click.option(
    "--times",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Runs per set of faults; the set counts if more than half of them fail.",
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=40,
    show_default=True,
    help="Maximum number of fault sets to try.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the smallest set of faults as a scenario file for `stumble run`.",
)
@options.world_options
@options.workspace_options
@options.host_option
@options.upstream_trust_options
@options.budget_option(600.0)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.agent_command
def shrink(
    *,
    run: str,
    recording: Path | None,
    times: int,
    most: int,
    output: Path | None,
    world_commands: "WorldCommands",
    workspace_choice: "WorkspaceChoice",
    host_texts: tuple[str, ...],
    trust: "UpstreamTrust",
    budget: float,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Find the smallest set of faults of a run that still makes the agent fail.

    First runs the agent without any fault; if it fails then, no fault is the cause. Else removes
    faults until none can be removed, then injects the remaining ones once and earlier, as long
    as the end state is wrong or the agent crashes. These runs (condition shrink) enter no rate.

    RUN is the id of a run of `stumble fork`, a unique prefix of it, or its tape. Every try forks
    the recording again: give the --reset and --verify of that fork.

    \b
    stumble shrink 20261121T2204 --reset "python reset_shop.py" --verify "python check_shop.py"
    stumble shrink a.tape -o smallest.toml --times 3 --reset ... --verify ... -- python my_agent.py
    """  # fmt: skip
    from recorder import event_loop
    from stumble.runs.isolation import plan_isolation
    from stumble.runs.shrink import FaultShrinker, rebuild_faults
    from stumble.store import index
    from stumble.store.tape_files import load_tape
    from stumble.user_data.paths import store_root
    from traces.conversation.derived_steps import derive_tape_steps
    from traces.store.trace_store import TraceStore

    world = world_commands.make_world(has_fresh_copy=not workspace_choice.in_place)
    if world is None or world_commands.verify is None:
        raise UsageError(
            "shrink needs --verify: it judges the end state, and runs no twins that --state could "
            "compare it with"
        )
    if output is not None:
        options.check_new_tape_path(output)
    store = TraceStore(store_root())
    faulted_run = load_tape(_find_run_tape(store, run))
    parent = load_tape(recording or _find_parent_tape(store, faulted_run))
    match_options.check_recorded_rules(parent.trajectory.rules, parent.path)
    for each in (faulted_run, parent):
        require_trust(each, command, in_place=workspace_choice.in_place)
    command = options.choose_agent_command(command, faulted_run.trajectory)
    live = "the agent is live after the injection"
    isolation_plan = plan_isolation(
        parent.trajectory,
        store,
        workspace_choice,
        live=live,
    )
    forking = _FaultSetForker(
        recording=parent,
        store=store,
        world=world,
        workspace=isolation_plan.workspace,
        hosts=options.parse_host_options(host_texts),
        trust=trust,
        command=command,
        budget=budget,
        seed=faulted_run.trajectory.seed or 0,
        times=times,
    )
    with options.usage_errors():
        faults = rebuild_faults(faulted_run.injections, derive_tape_steps(faulted_run))
        forking.find_branch(faults)
    if not faults:
        raise UsageError(f"{run} has no injected fault")
    click.echo(isolation_plan.describe_workspace(), err=True)
    shrinking = FaultShrinker(forking.breaks, most)
    try:
        with options.report_launch_failure(command):
            left = event_loop.run_event_loop(forking.find_smallest(faults, shrinking))
    except _DivergedEarly as error:
        click.echo(f"diverged: {error}", err=True)
        raise SystemExit(ExitCode.DIVERGED) from None
    finally:
        index.refresh_index(store)
    if forking.signal is not None:
        raise SystemExit(signal_to_exit_code(forking.signal))
    if output is not None and left:
        output.write_text(_format_fault_scenario(run, left), encoding="utf-8")
    data = _shrink_to_dict(run, faults, left, shrinking)
    lines = _format_shrink_lines(left, shrinking, output, parent)
    click.echo(json.dumps(data) if as_json else "\n".join(lines))
    if left is None:
        raise SystemExit(ExitCode.NOT_ENOUGH)
    raise SystemExit(ExitCode.OK if left else ExitCode.FINDING)


class _DivergedEarly(Exception):
    """The agent diverged from the recording before the injection."""


class _FaultSetForker(Struct, kw_only=True):
    """Forks a recording with successive sets of faults."""

    recording: "Tape"
    store: "TraceStore"
    world: "World"
    workspace: "RecordedWorkspace | None"
    hosts: "Hosts"
    trust: "UpstreamTrust"
    command: tuple[str, ...]
    budget: float
    seed: int
    times: int
    signal: int | None = None
    session: "ReplaySession | None" = None
    tries: int = 0

    def find_branch(self, faults: "Faults") -> "ForkPoint":
        """Return the first call of a fault set. Raises LookupError or ValueError if none fits."""
        from stumble.runs.fork import find_fork_point

        return find_fork_point(self.recording, faults, seed=self.seed)

    @asynccontextmanager
    async def open_session(self) -> AsyncIterator[None]:
        """Open the replay session that all forks run in."""
        from stumble.runs.session import open_recorded_session

        opening = open_recorded_session(self.recording, self.hosts, trust=self.trust)
        async with opening as self.session:
            yield

    async def find_smallest(self, faults: "Faults", shrinking: "FaultShrinker") -> "Faults | None":
        """Return the smallest set that breaks the run, () if it breaks without any fault, and
        None if these faults do not break it again.
        """
        async with self.open_session():
            if await self.breaks_without_faults(faults):
                return ()
            return await shrinking.shrink(faults) if await shrinking.breaks_run(faults) else None

    async def breaks(self, faults: "Faults") -> bool:
        """Return True if more than half of the runs end wrong; False if no call fits the set."""
        try:
            fork_point = self.find_branch(faults)
        except LookupError as error:
            click.echo(f"  not tried: {error}", err=True)
            return False
        return await self._most_runs_break(fork_point, fork_point.describe(), faulted=True)

    async def breaks_without_faults(self, faults: "Faults") -> bool:
        """Return True if more than half of the clean runs from the same call end wrong."""
        return await self._most_runs_break(
            self.find_branch(faults), "no fault at all", faulted=False
        )

    async def _most_runs_break(self, found: "ForkPoint", what: str, *, faulted: bool) -> bool:
        from stumble.runs.fork import ForkPlan, ForkResult, run_fork

        self.tries += 1
        design = ForkPlan(
            fork_point=found,
            twins=0 if faulted else self.times,
            times=self.times if faulted else 0,
            world=self.world,
            seed=self.seed,
            workspace=self.workspace,
            condition="shrink",
        )
        forked = ForkResult(wanted=design.list_runs())
        assert self.session is not None
        await run_fork(self.session, design, forked, self._make_launch, self.store.tapes)
        for each in forked.runs:
            if each.diverged:
                raise _DivergedEarly(each.diverged[0])
            self.signal = self.signal or each.exit.signal
        if self.signal is not None:
            raise SystemExit(signal_to_exit_code(self.signal))
        broken = sum(_has_ended_wrong(each) for each in forked.runs)
        how = f"{broken} of {self.times} broken"
        click.echo(f"  try {self.tries}: {what}: {how}", err=True)
        return 2 * broken > self.times

    def _make_launch(self, each: "ForkRun") -> "ColdLauncher":
        from stumble.runs.launcher import ColdLauncher

        log = self.store.log_path(f"shrink-{self.tries}-{each.rep}")
        return ColdLauncher(
            command=self.command, budget=self.budget, output=log, patience=SHRINK_STOP_SECONDS
        )


def _has_ended_wrong(played: "RunResult") -> bool:
    from faults.judging.judge import ENDINGS_FAILED

    return played.ending.passed is False or played.ending.ended in ENDINGS_FAILED


def _find_run_tape(store: "StoreDirectory", run: str) -> Path:
    """Find the tape of a run given by path, id or unique prefix. Raises UsageError."""
    if Path(run).is_file():
        return find_tape(Path(run))
    matches = sorted(store.tapes.glob(f"{glob.escape(run)}*.tape"))
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            f"{len(matches)} runs begin with {run}, as {matches[0].stem} and {matches[1].stem}"
        )
    raise UsageError(f"no run begins with {run}; `stumble sql forks` lists them")


def _find_parent_tape(store: "StoreDirectory", tape: "Tape") -> Path:
    parent = tape.trajectory.parent
    if parent is None:
        raise UsageError(f"{tape.trajectory.id} is not a fork")
    path = store.tapes / f"{parent}.tape"
    if not path.exists():
        raise UsageError(f"the store has no tape of the forked run {parent}: give --recording")
    return path


def _shrink_to_dict(
    run: str, faults: "Faults", left: "Faults | None", shrinking: "FaultShrinker"
) -> dict[str, object]:
    from stumble.runs.shrink import fault_to_options as as_options

    return {
        "run": run,
        "faults": [as_options(each) for each in faults],
        "left": None if left is None else [as_options(each) for each in left],
        "tried": len(shrinking.asked),
        "spent": shrinking.is_exhausted,
    }


def _format_shrink_lines(
    left: "Faults | None", shrinking: "FaultShrinker", output: Path | None, parent: "Tape"
) -> Iterator[str]:
    from stumble.runs.shrink import fault_to_options as as_options

    if left is None:
        yield "the faults of this run did not break the agent again; --times 5 runs it more often"
        return
    if not left:
        yield "0 faults left: the agent breaks without any fault, so no fault is the cause"
        return
    yield (
        f"{_format_plural(len(left), 'fault')} left after "
        f"{_format_plural(len(shrinking.asked), 'set')} tried:"
    )
    yield from (f"  {as_options(each)}" for each in left)
    if shrinking.is_exhausted:
        yield "stopped at --most, so a smaller set may exist"
    if output is not None:
        yield f"stumble run {output} --tape {parent.path} runs it again"


def _format_fault_scenario(run: str, left: "Faults") -> str:
    from stumble.runs.shrink import faults_to_toml

    title = 'title = "The smallest set of faults that breaks a run"'
    about = f"A minimal subset of the faults of {run}: no single one can be removed."
    return f'{title}\nabout = "{about}"\n\n{faults_to_toml(left)}'


def _format_plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
