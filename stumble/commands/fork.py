"""`stumble fork`: follow the recording up to a call, break that call, and go on live."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from stumble import matching, options
from stumble.exits import Exits, interrupted

if TYPE_CHECKING:
    from traces.model import Fault

OUTSIDE = (
    "--reset ran in a fresh copy of the folder: if a server outside works on files of that "
    "folder, use --in-place"
)


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
    help="Clean continuations to compare with.",
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
    reset: str | None,
    verify: str | None,
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
    from stumble import indexing
    from stumble.forks import Branch, Forked, branch
    from stumble.forks import fork as run_fork
    from stumble.home import authority, store_root
    from stumble.launch import Cold
    from stumble.runs import theatre
    from stumble.stagecraft import apart
    from stumble.summary import troubles
    from stumble.tapes import load
    from stumble.verdicts import report, verdict
    from stumble.worlds import by_command
    from traces.model import Condition
    from traces.store import Store

    world = by_command(reset, verify)
    hosts = options.hosts(host_texts)
    recording = load(tape)
    matching.check(recording.trajectory.rules, tape)
    command = options.checked(command or recording.trajectory.command)
    with options.usage_errors():
        found: Branch = branch(recording, faults, seed=seed)
    store = Store(store_root())
    set_apart = apart(
        recording.trajectory,
        store,
        live="after the strike the agent is live",
        in_place=in_place,
        keep=keep_workspace,
    )
    for line in (
        f"striking {found.describe()}",
        set_apart.where(),
        *set_apart.outdated(command),
    ):
        click.echo(line, err=True)

    def launch(condition: Condition, rep: int) -> Cold:
        quiet = as_json or condition != "fault"
        output = indexing.log(store, f"{tape.stem}-{condition}-{rep}") if quiet else None
        return Cold(command=command, budget=budget, output=output)

    async def run() -> Forked:
        with TemporaryDirectory(prefix="stumble-") as scratch:
            async with theatre(
                ca=authority(), scratch=Path(scratch), hosts=hosts, out=True
            ) as house:
                return await run_fork(
                    house,
                    found,
                    launch,
                    indexing.tapes_folder(store),
                    world=world,
                    seed=seed,
                    twins=twins,
                    workspace=set_apart.workspace,
                    progress=lambda what: click.echo(f"  {what}", err=True),
                )

    with options.started(command):
        forked = loop.run(run())
    indexing.refresh(store)
    for why in troubles(forked.runs):
        click.echo(f"warning: {why}", err=True)
    kept = [str(ran.kept) for ran in forked.runs if ran.kept]
    said = verdict(found, forked) | set_apart.said({}) | {"kept_workspaces": kept}
    lines = [report(said), *(f"a copy is in {each}" for each in kept)]
    if said["diverged"] and set_apart.workspace and reset:
        lines.append(OUTSIDE)
    click.echo(json.dumps(said) if as_json else "\n".join(lines))
    signal = next((ran.exit.signal for ran in forked.runs if ran.exit.signal), None)
    raise SystemExit(_code(said) if signal is None else interrupted(signal))


def _code(said: Mapping[str, object]) -> Exits:
    if said["diverged"]:
        return Exits.DIVERGED
    if not said["fired"]:
        return Exits.NOTHING_FIRED
    return Exits.OK if said["outcome"] else Exits.NOT_ENOUGH
