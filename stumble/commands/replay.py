"""`stumble replay`: run an agent against its recording, without the network."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from stumble import options
from stumble.exits import Exits, interrupted

NOT_CONTACTED = "tools were not contacted: this says nothing about recovery"
NOT_ISOLATED = (
    "not isolated: traffic that does not honour the proxy variables would not be seen here"
)
LIVE = {"model": ("model",), "tools": ("tool",), "all": ("model", "tool")}


@click.command(
    short_help="Run an agent against its recording, without the network.",
    epilog="Exit codes: 0 followed the recording, 3 diverged from it, 4 the fault never fired.",
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
@options.fault_options(required=False)
@options.host_option
@options.budget_option(600.0)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.agent_command
def replay(
    tape: Path,
    live: str | None,
    speed: float,
    fault_text: str | None,
    where: tuple[str, ...],
    nth: int,
    persist: str,
    place: str | None,
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

    \b
    stumble replay refund.tape -- python my_agent.py
    stumble replay refund.tape --live tools -- python my_agent.py
    """
    from recorder import loop
    from stumble import indexing
    from stumble.forks import branch
    from stumble.home import authority, store_root
    from stumble.launch import Cold
    from stumble.runs import Plan, Played, Strike, play, theatre
    from stumble.tapes import load
    from traces.store import Store
    from traces.tape import read

    recording = load(tape)
    command = options.checked(command or recording.trajectory.command)
    strike = None
    if fault_text is not None:
        fault = options.read_fault(fault_text, where, nth, persist, place)
        with options.usage_errors():
            found = branch(recording, fault)
        strike = Strike(fault=fault, site=found.site, background=found.background)
    store = Store(store_root())
    kinds: Collection[str] = LIVE.get(live or "", ())

    async def run() -> Played:
        with TemporaryDirectory(prefix="stumble-") as scratch:
            async with theatre(
                ca=authority(),
                scratch=Path(scratch),
                hosts=options.hosts(host_texts),
                out=bool(kinds),
            ) as house:
                plan = Plan(
                    live=kinds,  # type: ignore[arg-type]
                    strike=strike,
                    speed=speed,
                    seed=seed,
                    condition="fault" if strike else "clean",
                )
                folder = indexing.tapes_folder(store)
                # With --json what the agent prints must not mix with what we print.
                output = indexing.log(store, tape.stem) if as_json else None
                launch = Cold(command=command, budget=budget, output=output)
                return await play(house, recording, folder, plan, launch)

    with options.started(command):
        played = loop.run(run())
    indexing.refresh(store)
    after = read(played.path)
    by = [exchange.answered_by for exchange in after.exchanges]
    contacted = "tool" in kinds
    if as_json:
        said = {
            "recording": str(tape),
            "run": played.id,
            "tape": str(played.path),
            "agent_exit": played.exit.code,
            "agent_output": str(indexing.log(store, tape.stem)),
            "answered": by.count("recorded"),
            "upstream": by.count("live"),
            "struck": played.fired,
            "diverged": list(played.diverged),
            "unasked": list(played.unasked),
            "tools_contacted": contacted,
            "isolated": False,
        }
        click.echo(json.dumps(said))
    else:
        struck = f", {played.fired} struck" if strike else ""
        click.echo(
            f"replayed {tape}: {by.count('recorded')} answered from the tape{struck}, "
            f"{by.count('live')} upstream, {len(played.diverged)} diverged",
            err=True,
        )
        for why in played.diverged[:3]:
            click.echo(f"diverged: {why}", err=True)
        if played.unasked and not played.diverged:
            click.echo(_left_early(played.unasked, played.exit.code), err=True)
        if played.exit.budget:
            click.echo(f"the agent was ended after {budget:g} s (--budget)", err=True)
        if not contacted:
            click.echo(NOT_CONTACTED, err=True)
        click.echo(NOT_ISOLATED, err=True)
    if played.exit.signal is not None:
        raise SystemExit(interrupted(played.exit.signal))
    left = played.diverged or played.unasked
    raise SystemExit(_exit(left, played.exit.budget, strike, played.fired))


def _left_early(unasked: Sequence[str], code: int) -> str:
    count = f"{len(unasked)} recorded request{'' if len(unasked) == 1 else 's'}"
    return f"left early: {count} never came, the first is {unasked[0]}; the agent exited {code}"


def _exit(diverged: Collection[str], budget: bool, strike: object, fired: int) -> Exits:
    if budget:
        return Exits.BUDGET
    if diverged:
        return Exits.DIVERGED
    return Exits.NOTHING_FIRED if strike is not None and not fired else Exits.OK
