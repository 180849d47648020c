"""`stumble replay`: run an agent against its recording, without the network."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from stumble import options
from stumble.exits import Exits, interrupted

if TYPE_CHECKING:
    from replay.player import OnMiss
    from stumble.runs import Played, Strike
    from stumble.stagecraft import Isolation
    from traces.kind import Kind
    from traces.tape import Tape

NOT_CONTACTED = "tools were not contacted: this says nothing about recovery"
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
@click.option(
    "--match",
    "rule_texts",
    multiple=True,
    metavar="CLASS:WHERE",
    help="What may differ: ignore:body.metadata.run_id, map:path./v1/runs/*, ignore:query.ts.",
)
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
    on_miss: "OnMiss",
    times: int,
    explain: bool,
    isolation: "Isolation",
    in_place: bool,
    keep_workspace: bool,
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
    from recorder import loop
    from recorder.attempts import Attempt
    from replay.rules import bind
    from stumble import indexing
    from stumble.home import authority, store_root
    from stumble.launch import Cold
    from stumble.runs import Plan, Played, play, theatre
    from stumble.stagecraft import apart, found_out
    from stumble.summary import troubles
    from stumble.tapes import load
    from traces.store import Store

    recording = load(tape)
    command = options.checked(command or recording.trajectory.command)
    with options.usage_errors():
        rules = tuple(bind(text) for text in rule_texts)
    strike = _strike(recording, fault_text, where, nth, persist, place)
    store, hosts = Store(store_root()), options.hosts(host_texts)
    kinds = LIVE.get(live or "", ())
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
        rules=rules,
        on_miss=on_miss,
        seed=seed,
        condition="fault" if strike else "clean",
    )
    # With --json what the agent prints must not mix with what we print.
    output = indexing.log(store, tape.stem) if as_json else None

    runs, said, exits = list[Played](), list[dict[str, object]](), list[Exits]()

    def over(played: Played) -> None:
        code = exit_code(played, struck=strike is None or played.fired > 0)
        exits.append(found_out(isolation, played.attempts, code))
        found = _said(tape, played, output, "tool" in kinds, explain)
        said.append(found | set_apart.said(played.attempts))
        runs.append(played)
        if times > 1 and not as_json:
            lines = (*_matching(found), f"{len(runs)}/{times}: {_line(found, exits[-1])}")
            click.echo("\n".join(lines), err=True)

    async def run() -> None:
        with TemporaryDirectory(prefix="stumble-") as name:
            async with theatre(
                ca=authority(), scratch=Path(name), hosts=hosts, out=plan.out
            ) as house:
                launch = Cold(command=command, budget=budget, output=output)
                while len(runs) < times and not (runs and runs[-1].exit.signal):
                    over(await play(house, recording, indexing.tapes_folder(store), plan, launch))

    with options.started(command):
        loop.run(run())
    indexing.refresh(store)
    warned = [(*troubles(each.untrusted, each.refusals), *each.warnings) for each in runs]
    for why in dict.fromkeys(why for each in warned for why in each):
        click.echo(f"warning: {why}", err=True)
    if as_json:
        several = {"times": times, "followed": exits.count(Exits.OK), "runs": said}
        click.echo(json.dumps(several if times > 1 else said[0]))
    else:
        attempts = sum((Counter(each.attempts) for each in runs), Counter[Attempt]())
        words = _summary(said, exits, times) if times > 1 else _report(said[0], strike is not None)
        lines = [words, set_apart.reached(attempts)]
        lines += [set_apart.where()] if set_apart.workspace else []
        lines += [f"the copy is in {each.kept}" for each in runs if each.kept]
        click.echo("\n".join(lines), err=True)
    if any(each.exit.budget for each in runs) and not as_json:
        click.echo(f"the agent was ended after {budget:g} s (--budget)", err=True)
    if runs[-1].exit.signal is not None:
        raise SystemExit(interrupted(runs[-1].exit.signal))
    raise SystemExit(max(exits, key=_WORSE.index))


def _strike(
    recording: "Tape",
    fault_text: str | None,
    where: tuple[str, ...],
    nth: int,
    persist: str,
    place: str | None,
) -> "Strike | None":
    from stumble.forks import branch
    from stumble.runs import Strike

    if fault_text is None:
        return None
    fault = options.read_fault(fault_text, where, nth, persist, place)
    with options.usage_errors():
        found = branch(recording, fault)
    return Strike(fault=fault, site=found.site, background=found.background)


def _said(
    tape: Path, played: "Played", output: Path | None, contacted: bool, explain: bool
) -> dict[str, object]:
    """The replay as plain data."""
    from replay.difference import matching
    from traces.tape import read

    exchanges = read(played.path).exchanges
    by = [exchange.answered_by for exchange in exchanges]
    why = {"matching": list(matching(exchanges, played.matched))} if explain else {}
    return why | {
        "recording": str(tape),
        "run": played.id,
        "tape": str(played.path),
        "agent_exit": played.exit.code,
        "agent_output": str(output) if output else None,
        "answered": by.count("recorded"),
        "upstream": by.count("live"),
        "struck": played.fired,
        "diverged": list(played.diverged),
        "unasked": list(played.unasked),
        "tools_contacted": contacted,
        "kept_workspace": str(played.kept) if played.kept else None,
    }


def _report(said: Mapping[str, object], struck: bool) -> str:
    """The replay in words."""
    diverged, unasked = said["diverged"], said["unasked"]
    assert isinstance(diverged, list)
    assert isinstance(unasked, list)
    lines = [
        f"replayed {said['recording']}: {said['answered']} answered from the tape"
        + (f", {said['struck']} struck" if struck else "")
        + f", {said['upstream']} upstream, {len(diverged)} diverged"
    ]
    lines = [*_matching(said), *lines, *(f"diverged: {why}" for why in diverged[:3])]
    if unasked and not diverged:
        count = f"{len(unasked)} recorded request{'' if len(unasked) == 1 else 's'}"
        lines.append(
            f"left early: {count} never came, the first is {unasked[0]}; "
            f"the agent exited {said['agent_exit']}"
        )
    if not said["tools_contacted"]:
        lines.append(NOT_CONTACTED)
    return "\n".join(lines)


def _matching(said: Mapping[str, object]) -> list[str]:
    matching = said.get("matching", [])
    assert isinstance(matching, list)
    return matching


def _line(said: Mapping[str, object], code: Exits) -> str:
    """One of several replays."""
    diverged, unasked = said["diverged"], said["unasked"]
    assert isinstance(diverged, list)
    assert isinstance(unasked, list)
    how = _HOW[code]
    if diverged:
        how = f"diverged: {diverged[0]}"
    elif unasked:
        how = f"left early: the first of {len(unasked)} that never came is {unasked[0]}"
    return f"{how}; {said['answered']} answered from the tape, {said['upstream']} upstream"


def _summary(said: Sequence[Mapping[str, object]], exits: Sequence[Exits], times: int) -> str:
    """Several replays in words."""
    counted = ", ".join(f"{exits.count(each)} {_HOW[each]}" for each in _WORSE if each in exits)
    lines = [f"replayed {said[0]['recording']} {len(said)} of {times} times: {counted}"]
    return "\n".join(lines if said[0]["tools_contacted"] else [*lines, NOT_CONTACTED])


_HOW: Mapping[Exits, str] = {
    Exits.OK: "followed the recording",
    Exits.NOTHING_FIRED: "never struck",
    Exits.FINDING: "tried to reach the network",
    Exits.DIVERGED: "diverged",
    Exits.BUDGET: "out of budget",
}
_WORSE = tuple(_HOW)
"""From the best to the worst."""


def exit_code(played: "Played", *, struck: bool) -> Exits:
    """What a replay ends with; `struck` is False where a fault was wanted and none fired."""
    if played.exit.budget:
        return Exits.BUDGET
    if played.diverged or played.unasked:
        return Exits.DIVERGED
    return Exits.OK if struck else Exits.NOTHING_FIRED
