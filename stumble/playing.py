"""A run that is played to: an agent once more, against a recording."""

import asyncio
import os
import time
from contextlib import nullcontext
from pathlib import Path

from replay.pin import Pin
from replay.player import Player
from replay.rules import Rules, bind
from stumble import tapes
from stumble.home import new_id
from stumble.marking import Marking, hearing
from stumble.pipeline.verdict import Pipeline
from stumble.runs import Launch, Plan, Played, close, trajectory
from stumble.theatre import Theatre, act
from stumble.upstreams import remembered
from stumble.workspaces import IN_PLACE, Place
from stumble.worlds import hold_world, is_in_workspace
from traces.conversation import Watch
from traces.model import Exchange, Request
from traces.redact import secrets
from traces.stages import differences
from traces.tape import Tape, Writer


async def play(house: Theatre, recording: Tape, folder: Path, plan: Plan, launch: Launch) -> Played:
    """Run the agent once more against a recording, onto a new tape named after its run."""
    shared = None if plan.workspace and is_in_workspace(plan.world) else plan.world
    at = plan.workspace.path if plan.workspace else None
    async with hold_world(shared, at):
        with plan.workspace.copy() if plan.workspace else nullcontext(IN_PLACE) as place:
            return await _play(house, recording, folder, plan, launch, place)


async def _play(
    house: Theatre, recording: Tape, folder: Path, plan: Plan, launch: Launch, place: Place
) -> Played:
    world = place.world(plan.world)
    if isinstance(world, Pipeline):
        world = world.anew()
    if world is not None:
        await world.reset()
    began, run = time.monotonic(), new_id()
    rules = tuple(dict.fromkeys((*recording.trajectory.rules, *map(str, plan.rules))))
    watch, halted = Watch(recording.trajectory.tools), asyncio.Event()
    path = folder / f"{run}.tape"
    if plan.out and house.upstream_port is None:
        raise ValueError("this plan goes live, but the theatre has no way out")
    head = trajectory(
        plan.labels.over(recording.trajectory),
        launch,
        id=run,
        world="fresh" if plan.world else "recorded",
        source=plan.source,
        condition=plan.condition,
        seed=plan.seed,
        parent=recording.trajectory.id,
        forked_at=plan.fork.name if plan.fork else None,
        tools=recording.trajectory.tools,
        equivalent=recording.trajectory.equivalent,
        upstreams=recording.trajectory.upstreams,
        rules=rules,
        volatile=recording.trajectory.volatile,
        workspace=plan.workspace.path if plan.workspace else None,
        snapshot=plan.workspace.snapshot if plan.workspace else None,
    )
    with Writer(path, head, secrets=secrets(os.environ)) as tape:
        redact = _as_it_is if recording.verbatim else tape.redactor.request
        accepted = Rules(map(bind, rules), volatile=recording.trajectory.volatile)
        player = Player(
            recording,
            watch,
            live=plan.live,
            fork=plan.fork,
            speed=plan.speed,
            redact=redact,
            rules=accepted,
            on_miss=plan.on_miss,
            halt=halted.set,
        )
        pin = None
        if plan.pin:
            pin = Pin(plan.pin, player.saved, redact=redact, rules=accepted)
        nemesis = plan.strike and plan.strike.nemesis(
            watch,
            tape.injection,
            run=run,
            seed=plan.seed,
            rep=plan.rep,
            world=plan.world is not None,
        )
        marking = None
        if recording.marks:
            forked, also = plan.fork is not None, hearing(world)
            marking = Marking(
                watch, tape, began=began, run=run, timed=forked, strict=not forked, also=also
            )
        acted = await act(
            house,
            launch,
            (pin, watch, nemesis, player, marking),
            tape,
            began=began,
            out=plan.out,
            upstreams=remembered(recording.trajectory.upstreams),
            place=place,
            alone=plan.alone,
            cues=player.cues,
            retold=player.retold,
            halted=halted,
            marking=marking,
        )
        unasked = () if plan.fork else tuple(_named(x) for x in player.unasked())
        regraded = () if plan.out or plan.strike else _regraded(recording, marking)
        left = (*player.diverged, *regraded, *unasked)
        ending = await close(tape, watch, acted.exit, world, began, left, player.missed)
    await asyncio.to_thread(tapes.close, path)
    return Played(
        id=run,
        path=path,
        exit=acted.exit,
        ending=ending,
        diverged=(*player.diverged, *regraded),
        missed=tuple(player.missed),
        unasked=unasked,
        fired=nemesis.fired if nemesis else 0,
        no_site=tuple(nemesis.no_site) if nemesis else (),
        unfired=nemesis.unfired if nemesis else (),
        saved=tuple(x.seq for x in player.saved),
        matched=player.matched,
        cascades=player.cascades,
        drifted=pin.drifted if pin else None,
        untrusted=acted.untrusted,
        refusals=dict(house.refusals),
        warnings=acted.warnings,
        attempts=acted.attempts,
        kept=place.kept,
    )


def _regraded(recording: Tape, marking: Marking | None) -> tuple[str, ...]:
    """What a strict replay told otherwise than its recording, where that told anything."""
    return tuple(differences(recording.marks, marking.marks)) if marking else ()


def _as_it_is(request: Request) -> Request:
    return request


def _named(exchange: Exchange) -> str:
    return f"exchange {exchange.seq}, {exchange.request.method} {exchange.request.url}"
