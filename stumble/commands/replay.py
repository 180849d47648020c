"""`stumble replay`: run an agent against its recording, without the network."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from stumble import matching, options
from stumble.exits import interrupted

if TYPE_CHECKING:
    from replay.player import OnMiss
    from stumble.launch import Cold
    from stumble.replayed import Asked, Replayed
    from stumble.runs import Plan
    from stumble.stagecraft import Isolation
    from stumble.strikes import Strike
    from traces.folder import Folder
    from traces.kind import Kind
    from traces.model import Fault
    from traces.tape import Tape

LIVE: Mapping[str, tuple["Kind", ...]] = {
    "model": ("model",),
    "tools": ("tool",),
    "all": ("model", "tool"),
}


@click.command(
    short_help="Run an agent against its recording, without the network.",
    epilog="Exit codes: 0 followed the recording, 1 it tried to reach past it (with --isolation "
    "require), 3 diverged from it, 4 the fault never fired.",
)
@options.tape_path
@click.option("--live", type=click.Choice(sorted(LIVE)), help="Let this kind of traffic out.")
@click.option(
    "--speed",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="1 keeps the recorded pace, 2 is twice as fast, 0 as fast as possible.",
)
@options.match_options
@click.option(
    "--on-miss",
    type=click.Choice(["refuse", "live", "halt"]),
    default="refuse",
    show_default=True,
    help="What becomes of a request that is not on the tape; halt ends the agent.",
)
@click.option(
    "--times",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Replay so often, one after the other; the worst exit code counts.",
)
@click.option("--explain", is_flag=True, help="Say of each request what it matched, and why.")
@click.option(
    "--isolation",
    type=click.Choice(["auto", "require", "off"]),
    default="auto",
    show_default=True,
    help="Let the agent reach nothing but the recording (Linux); `require` exits 2 where that "
    "cannot be had, and 1 where the agent tried to.",
)
@options.workspace_options
@options.fault_options(required=False)
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
    times: int,
    explain: bool,
    isolation: "Isolation",
    in_place: bool,
    keep_workspace: bool,
    faults: tuple["Fault", ...],
    seed: int,
    host_texts: tuple[str, ...],
    budget: float,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Run the agent again with every answer from the tape; nothing goes upstream.

    A request that the recording does not hold is refused, explained by the nearest one that it
    does hold, and ends in exit code 3, even where the agent's own client swallows it. Without
    a command the one that was recorded is run.

    The agent works in a fresh copy of its folder as it was before the recording, at the same
    path, and on Linux can reach nothing but the recording; what it tries to reach otherwise is
    reported and gets no answer.

    \b
    stumble replay refund.tape
    stumble replay refund.tape --isolation require --keep-workspace
    stumble replay refund.tape --in-place -- python my_agent.py
    stumble replay refund.tape --live tools -- python my_agent.py
    stumble replay refund.tape --times 10
    stumble replay refund.tape --explain --match 'ignore:body.metadata.run_id'
    """
    from replay.rules import bind
    from stumble.home import store_root
    from stumble.launch import Cold
    from stumble.replayed import Asked, data, words, worst
    from stumble.runs import Plan
    from stumble.stagecraft import apart
    from stumble.summary import troubles
    from stumble.tapes import load
    from traces.folder import Folder
    from traces.tape import browse

    recording = load(tape, browse)
    matching.check(recording.trajectory.rules, tape)
    command = options.checked(command or recording.trajectory.command)
    rules = matching.rules(matching.scenario(scenario_name), rule_texts)
    strike = _strike(recording, faults, seed) if faults else None
    store, kinds = Folder(store_root()), LIVE.get(live or "", ())
    lets_out = f"--live {live}" if live else "--on-miss live" if on_miss == "live" else None
    set_apart = apart(
        recording.trajectory,
        store,
        isolation=isolation,
        live=f"{lets_out} needs the network" if lets_out else None,
        in_place=in_place,
        keep=keep_workspace,
    )
    if set_apart.workspace is None and not as_json:
        click.echo(set_apart.where(), err=True)
    for line in set_apart.outdated(command):
        click.echo(line, err=True)
    plan = Plan(
        workspace=set_apart.workspace,
        alone=set_apart.alone,
        live=kinds,
        strike=strike,
        speed=speed,
        rules=tuple(bind(text) for text in rules),
        on_miss=on_miss,
        seed=seed,
        condition="fault" if strike else "clean",
    )
    # With --json what the agent prints must not mix with what we print.
    output = store.log(tape.stem) if as_json else None
    asked = Asked(
        tape=tape,
        apart=set_apart,
        isolation=isolation,
        struck=strike is not None,
        contacts="tool" in kinds,
        explain=explain,
        output=output,
    )
    launch = Cold(command=command, budget=budget, output=output)
    with options.started(command):
        runs = _runs(recording, plan, asked, launch, store, options.hosts(host_texts), times)
    for why in troubles(each.played for each in runs):
        click.echo(f"warning: {why}", err=True)
    if as_json:
        click.echo(json.dumps(data(runs, times)))
    else:
        click.echo("\n".join(words(runs, times)), err=True)
        if any(each.played.exit.budget for each in runs):
            click.echo(f"the agent was ended after {budget:g} s (--budget)", err=True)
    signal = runs[-1].played.exit.signal
    raise SystemExit(worst(runs) if signal is None else interrupted(signal))


def _strike(recording: "Tape", faults: tuple["Fault", ...], seed: int) -> "Strike":
    from stumble.forks import branch

    with options.usage_errors():
        found = branch(recording, faults, seed=seed)
    return found.strike


def _runs(
    recording: "Tape",
    plan: "Plan",
    asked: "Asked",
    launch: "Cold",
    store: "Folder",
    hosts: Mapping[str, tuple[str, int]],
    times: int,
) -> list["Replayed"]:
    """All replays, in one theatre; a signal that ends an agent ends them."""
    from recorder import loop
    from stumble.home import authority
    from stumble.playing import play
    from stumble.replayed import replayed
    from stumble.theatre import theatre

    async def run() -> "list[Replayed]":
        runs: list[Replayed] = []
        with TemporaryDirectory(prefix="stumble-") as name:
            async with theatre(
                ca=authority(), scratch=Path(name), hosts=hosts, out=plan.out
            ) as house:
                while len(runs) < times and not (runs and runs[-1].played.exit.signal):
                    folder = store.tapes
                    played = await play(house, recording, folder, plan, launch)
                    runs.append(replayed(asked, played))
                    if times > 1 and asked.output is None:
                        line = f"{len(runs)}/{times}: {runs[-1].line()}"
                        click.echo("\n".join((*runs[-1].matching, line)), err=True)
        return runs

    return loop.run(run())
