"""`stumble fork`: follow the recording up to a call, break that call, and go on live."""

import json
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from stumble import matching, options
from stumble.exits import Wrong, interrupted

if TYPE_CHECKING:
    from traces.model import Fault

PATIENCE = 5.0
"""Seconds that agents get to end once we are told to."""
OUTSIDE = (
    "--reset ran in a fresh copy of the folder: if a server outside works on files of that "
    "folder, use --in-place"
)

DRIFTED = "if a local tool says something else each time, --pin tells the model what was recorded"


@click.command(
    short_help="Follow a recording, break one call, go on live, and judge.",
    epilog="Exit codes: 0 judged, 3 diverged first, 4 nothing fired, 5 cannot be judged.",
)
@options.tape_path
@options.fault_options(required=True)
@click.option(
    "--twins",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Clean continuations to compare with: 3 or more, or 0 for facts without a verdict.",
)
@click.option(
    "--times",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Faulted continuations; each draws anew what a fault leaves to chance.",
)
@click.option(
    "--confirm",
    is_flag=True,
    help="Settle by runs what the wrong value changed: as many runs as twins with one strike, and "
    "as many with a second one in its place.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Runs at once; by default one, or as many as there are processors where each run has a "
    "copy of the folder and no --reset.",
)
@click.option(
    "--pin",
    is_flag=True,
    help="Up to the strike, tell the model the recorded result where a local tool now says "
    "another; they are counted.",
)
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
    reset: str | None,
    verify: str | None,
    state: str | None,
    in_place: bool,
    keep_workspace: bool,
    host_texts: tuple[str, ...],
    budget: float,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Replay up to one call, strike it, and let the agent go on live; then judge what it did.

    Up to the strike the model's answers come from the tape. With --reset, tools run live in a
    world that is set back before each run; without it they come from the tape, and a call that
    the tape does not hold ends the run as unknown. Clean twins, struck by nothing at the same
    place, show what the agent does anyway. The agent's own process and files keep the true
    value; what is struck is what its model is told.

    Each run works in a fresh copy of the agent's folder as it was before the recording, at the
    same path; --reset and --verify run there too. A server outside does not see these copies:
    where it works on files of that folder, use --in-place. The network is open in all runs.

    \b
    stumble fork refund.tape --fault http_status:code=503 --where tool=issue_refund \\
        --reset "python reset_shop.py" --verify "python check_shop.py" -- python my_agent.py
    """
    from recorder import loop
    from replay.pin import pinnable
    from stumble import indexing
    from stumble.exclusions import WITHOUT_TWINS, check_twins
    from stumble.forks import Continuation, Design, Forked, branch
    from stumble.forks import fork as run_fork
    from stumble.home import authority, store_root
    from stumble.launch import Cold
    from stumble.pipeline.verdict import Pipeline, passed
    from stumble.stagecraft import apart, at_once
    from stumble.summary import troubles
    from stumble.tapes import load
    from stumble.theatre import theatre
    from stumble.verdicts import confirmed, findings, told
    from stumble.worlds import by_command
    from traces.store import Store

    world = by_command(reset, verify, state=state)
    hosts = options.hosts(host_texts)
    recording = load(tape)
    marked = world is None and bool(recording.marks)
    if marked:
        world = Pipeline(passed(recording.marks))
    matching.check(recording.trajectory.rules, tape)
    command = options.checked(command or recording.trajectory.command)
    with options.usage_errors():
        check_twins(twins)
    if confirm and (times > 1 or not twins):
        raise Wrong("--confirm strikes as many runs twice as there are twins: say no --times")
    store = Store(store_root())
    set_apart = apart(
        recording.trajectory,
        store,
        live="after the strike the agent is live",
        in_place=in_place,
        keep=keep_workspace,
    )
    with options.usage_errors():
        design = Design(
            found=branch(recording, faults, seed=seed),
            twins=twins,
            times=times,
            confirm=confirm,
            world=world,
            seed=seed,
            pin=pin,
            workspace=set_apart.workspace,
        )
    forked = Forked(wanted=design.continuations())
    jobs = min(at_once(set_apart, jobs, world=world is not None and not marked), len(forked.wanted))
    for line in (
        f"striking {design.found.describe()}",
        set_apart.where(),
        *set_apart.outdated(command),
        *(() if twins else (WITHOUT_TWINS,)),
    ):
        click.echo(line, err=True)
    passes = jobs == times == 1 and not confirm and not as_json

    def launch(each: Continuation) -> Cold:
        shown = passes and each.condition == "fault"
        log = store.log(f"{tape.stem}-{each.condition}-{each.rep}")
        return Cold(
            command=command,
            budget=budget,
            output=None if shown else log,
            patience=PATIENCE,
        )

    async def run() -> None:
        with TemporaryDirectory(prefix="stumble-") as scratch:
            async with theatre(
                ca=authority(), scratch=Path(scratch), hosts=hosts, out=True
            ) as house:
                await run_fork(
                    house,
                    design,
                    forked,
                    launch,
                    store.tapes,
                    jobs=jobs,
                    progress=lambda what: click.echo(f"  {what}", err=True),
                )

    broke: BaseException | None = None
    try:
        with options.started(command):
            loop.run(run())
    except (loop.Interrupted, ChildProcessError) as error:
        broke = error  # raised again when it was said what is finished
    indexing.refresh(store)
    for why in troubles(forked.runs):
        click.echo(f"warning: {why}", err=True)
    kept = [str(ran.kept) for ran in forked.runs if ran.kept]
    gave = findings(design.found, forked)
    said = gave.said() | set_apart.said({}) | {"kept_workspaces": kept}
    lines = [*gave.report(), *(f"a copy is in {each}" for each in kept)]
    if confirm:
        settled = confirmed(forked, twins)
        said["confirmation"] = asdict(settled)
        lines += told(settled)
    if said["diverged"] and set_apart.workspace and reset:
        lines.append(OUTSIDE)
    if said["diverged"] and not pin and pinnable(design.found.told.uses):
        lines.append(DRIFTED)
    click.echo(json.dumps(said) if as_json else "\n".join(lines))
    if broke is not None:
        raise broke
    signal = next((ran.exit.signal for ran in forked.runs if ran.exit.signal), None)
    raise SystemExit(gave.code if signal is None else interrupted(signal))
