"""A run in the live world, and what was said there."""

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from recorder import stdio
from recorder.authority import certificate
from recorder.environment import NODE_HOOK, bundle, environment
from scenarios.world import World
from stumble import tapes
from stumble.marking import Marking, hearing
from stumble.runs import Hosts, Labels, Launch, Played, close, trajectory
from stumble.summary import blind
from stumble.theatre import Acted, act, desk, markable, teed, theatre
from stumble.upstreams import Upstream, ports, told, variables
from stumble.workspaces import IN_PLACE
from stumble.worlds import in_turn
from traces.conversation import Watch
from traces.redact import secrets
from traces.tape import Writer
from traces.taps import Taps
from traces.websocket import NoWebSocket

if TYPE_CHECKING:
    from faults.armed import Armed


@in_turn
async def record(
    path: Path,
    launch: Launch,
    *,
    id: str,
    ca: Path,
    scratch: Path,
    hosts: Hosts | None = None,
    world: World | None = None,
    labels: Labels | None = None,
    tools: Mapping[str, str] | None = None,
    equivalent: Mapping[str, tuple[str, ...]] | None = None,
    rules: tuple[str, ...] = (),
    redact: bool = True,
    websocket: bool = True,
    upstreams: tuple[Upstream, ...] = (),
    say: Callable[[str], object] = lambda line: None,
    workspace: Path | None = None,
    snapshot: str | None = None,
    armed: "tuple[Armed, ...]" = (),
    seed: int = 0,
    marked: bool = False,
    before: str | None = None,
) -> Played:
    """Run the agent against the live world and keep what was said, on a new tape.

    A tape that lies in a store is named after `id`, by which the store finds it again. With
    faults the performer listens, which can hold answers back and cut them, and WebSockets are
    declined. The command may tell facts where it is to be `marked`, and go on from
    where the run `before` was ended.
    """
    world = IN_PLACE.world(world)
    if world is not None:
        await world.reset()
    labels = labels or Labels()
    began, watch = time.monotonic(), Watch(tools)
    head = trajectory(
        labels,
        launch,
        id=id,
        world="fresh" if world else "none",
        source="resume" if before else "record",
        condition="fault" if armed else "clean",
        seed=seed if armed else None,
        parent=before,
        tools=tools,
        equivalent=equivalent,
        upstreams={each.text: each.variables for each in upstreams},
        rules=rules,
        workspace=workspace,
        snapshot=snapshot,
    )
    nemesis = None
    with Writer(path, head, secrets=secrets(os.environ), redact=redact) as tape:
        marking = Marking(watch, tape, began=began, run=id, also=hearing(world)) if marked else None
        if armed:
            from stumble.strikes import unrehearsed

            seen, nemesis = unrehearsed(
                armed,
                watch,
                tape.injection,
                run=id,
                task=labels.task,
                seed=seed,
                world=world is not None,
            )
            async with theatre(ca=ca, scratch=scratch, hosts=hosts or {}, out=True) as house:
                acted = await act(
                    house,
                    launch,
                    (watch, seen, nemesis, NoWebSocket(), marking),
                    tape,
                    began=began,
                    out=True,
                    upstreams=upstreams,
                    marking=marking,
                    say=say,
                )
                refusals = dict(house.refusals)
        else:
            shown = (watch, None if websocket else NoWebSocket(), marking, tape)
            acted, refusals = await _listen(
                launch,
                Taps(tap for tap in shown if tap is not None),
                began=began,
                ca=ca,
                scratch=scratch,
                hosts=hosts or {},
                upstreams=upstreams,
                marking=marking,
                say=say,
            )
        ending = await close(tape, watch, acted.exit, world, began, unseen=blind(acted.untrusted))
    await asyncio.to_thread(tapes.close, path)
    return Played(
        id=id,
        path=path,
        exit=acted.exit,
        ending=ending,
        fired=nemesis.fired if nemesis else 0,
        no_site=tuple(nemesis.no_site) if nemesis else (),
        unfired=nemesis.unfired if nemesis else (),
        untrusted=acted.untrusted,
        refusals=refusals,
        warnings=acted.warnings,
    )


async def _listen(
    launch: Launch,
    taps: Taps,
    *,
    began: float,
    ca: Path,
    scratch: Path,
    hosts: Hosts,
    upstreams: tuple[Upstream, ...],
    marking: Marking | None,
    say: Callable[[str], object],
) -> tuple[Acted, dict[str, str]]:
    """Run the agent with mitmproxy in front of the live world; its refusals of our login too."""
    from recorder.outer import way_out
    from recorder.proxy import proxy

    trusted, seqs = bundle(certificate(ca), scratch, os.environ), itertools.count()
    with desk() as place:
        async with (
            proxy(
                taps,
                confdir=ca,
                began=began,
                seqs=seqs,
                hosts=hosts,
                upstream_ca=trusted,
                way=way_out(os.environ),
                origins=ports(upstreams),
            ) as listening,
            stdio.listening(taps, place, began=began, seqs=seqs) as tees,
            markable(place, marking) as told_where,
        ):
            env = environment(
                os.environ, proxy_url=listening.url, bundle=trusted, node_hook=NODE_HOOK
            ) | variables(upstreams, listening.origins)
            for line in told(upstreams, listening.origins):
                say(line)
            env, adapted = teed(launch, env | told_where, tees, launch.cwd)
            exit = await launch(env, command=adapted.command)
        acted = Acted(exit=exit, untrusted=dict(listening.mistrusted), warnings=adapted.warnings)
        return acted, dict(listening.refusals)
