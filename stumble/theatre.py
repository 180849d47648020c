"""Where agents act to a recording or to faults: the performer, and a stage for each run."""

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from recorder import marks, stdio
from recorder.adapters import Adapted, adapt
from recorder.attempts import Attempt
from recorder.authority import certificate
from recorder.cage import Cage
from recorder.environment import NODE_HOOK, bundle, environment
from recorder.process import Ended as Exit
from recorder.tee import VARIABLE
from replay.performer import Performer
from stumble.exits import Exits
from stumble.marking import Marking
from stumble.runs import Hosts, Launch
from stumble.upstreams import Upstream, ports, told, variables
from stumble.workspaces import IN_PLACE, Place
from traces.tape import Writer
from traces.taps import Taps

MARKS = "marks"
TEES = "tees"
"""The socket by which tees find the run, in a folder that is ours alone."""
LONGEST = 64
"""Characters of that folder's own folder: the whole path has to fit into 107 (unix(7))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theatre:
    """What all replayed runs of a process share: one performer, one way out, one CA bundle."""

    performer: Performer
    bundle: Path
    upstream_port: int | None = None
    refusals: Mapping[str, str] = field(default_factory=dict)
    """The user's proxies that have not taken our login so far, and what to do."""


@contextmanager
def desk() -> Iterator[Path]:
    """Where the tees find the run: of this user alone, and short."""
    usual = gettempdir()
    place = usual if len(usual) <= LONGEST else "/tmp"
    with TemporaryDirectory(prefix="stumble-", dir=place) as name:
        yield Path(name) / TEES


@asynccontextmanager
async def theatre(*, ca: Path, scratch: Path, hosts: Hosts, out: bool) -> AsyncIterator[Theatre]:
    """Open a theatre; where `out` is False, no code that could reach anybody is even loaded."""
    trusted = bundle(certificate(ca), scratch, os.environ)
    performer = Performer(confdir=ca)
    if not out:
        yield Theatre(performer=performer, bundle=trusted)
        return
    from recorder.outer import way_out
    from recorder.proxy import proxy

    began, seqs = time.monotonic(), itertools.count()
    async with proxy(
        Taps(),
        confdir=ca,
        began=began,
        seqs=seqs,
        hosts=hosts,
        upstream_ca=trusted,
        way=way_out(os.environ),
        inner=True,
    ) as inner:
        yield Theatre(
            performer=performer,
            bundle=trusted,
            upstream_port=inner.port,
            refusals=inner.refusals,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """How an agent ended on a stage, and what was seen there."""

    exit: Exit
    untrusted: Mapping[str, str]
    warnings: tuple[str, ...]
    attempts: Mapping[Attempt, int] = field(default_factory=dict)


async def act(
    house: Theatre,
    launch: Launch,
    taps: Iterable[object],
    tape: Writer,
    *,
    began: float,
    out: bool,
    upstreams: tuple[Upstream, ...],
    place: Place = IN_PLACE,
    alone: bool = False,
    cues: stdio.Cues = lambda start: (),
    retold: stdio.Retold = lambda message: message,
    halted: asyncio.Event | None = None,
    marking: Marking | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> Acted:
    """Run the agent on a stage of its own: what no tap answers goes out, where anything may."""
    cage, way, counted = None, None, itertools.count()
    async with AsyncExitStack() as stack:
        if out and house.upstream_port is not None:
            from replay.bridge import Bridge
            from replay.upstream import InnerProxy

            inner = InnerProxy("127.0.0.1", house.upstream_port, began)
            way = Bridge(await stack.enter_async_context(inner))
        chain, where = (
            Taps(t for t in (*taps, way, tape) if t is not None),
            stack.enter_context(desk()),
        )
        listening = stdio.listening(
            chain,
            where,
            began=began,
            seqs=counted,
            decides=True,
            way_out=out,
            cues=cues,
            retold=retold,
        )
        tees = await stack.enter_async_context(listening)
        marked = await stack.enter_async_context(markable(where, marking))
        stage = await stack.enter_async_context(
            house.performer.stage(
                chain, began=began, seqs=counted, upstream=way, origins=ports(upstreams)
            )
        )
        if place.room or alone:
            ours = (stage.port, *stage.origins.values()) if alone else ()
            cage = Cage(room=place.room, ports=ours, serve=stage.serve)
            await stack.enter_async_context(cage)
        env = environment(
            os.environ, proxy_url=stage.url, bundle=house.bundle, node_hook=NODE_HOOK
        ) | variables(upstreams, stage.origins)
        for line in told(upstreams, stage.origins):
            say(line)
        cwd = place.cwd or launch.cwd
        env, adapted = teed(launch, env | dict(place.env) | marked, tees, cwd)
        running = launch(env, command=adapted.command, cage=cage, cwd=place.cwd)
        stops = (stage.failed,) if halted is None else (stage.failed, halted)
        exit = await _unless(stops, running)
    return Acted(
        exit=exit,
        untrusted=dict(stage.untrusted),
        warnings=adapted.warnings,
        attempts=cage.attempts if cage else {},
    )


@asynccontextmanager
async def markable(place: Path, marking: Marking | None) -> AsyncIterator[dict[str, str]]:
    """What tells the agent's command where it can tell facts; nothing where it is not to."""
    if marking is None:
        yield {}
        return
    path = place.with_name(MARKS)
    async with marks.listening(path, marking.heard) as desk:
        marking.say = desk.say
        yield {marks.VARIABLE: str(path)}


def teed(
    launch: Launch, env: Mapping[str, str], tees: stdio.Stdio, cwd: Path | None
) -> tuple[dict[str, str], Adapted]:
    """The agent's environment, which names the run, and its command with servers behind tees."""
    ours = dict(env) | {VARIABLE: str(tees.path)}
    tees.put_back.update(stdio.changed(os.environ, ours))
    cwd, folder = cwd or Path.cwd(), tees.path.parent
    return ours, adapt(launch.command, ours, run=tees.path, folder=folder, cwd=cwd)


async def _unless(stops: Iterable[asyncio.Event], running: Coroutine[None, None, Exit]) -> Exit:
    """How the agent ended; it is ended at once where one of these is set.

    Where that is because a tap failed the stage raises why.
    """
    agent = asyncio.create_task(running)
    waits = [asyncio.create_task(stop.wait()) for stop in stops]
    try:
        await asyncio.wait((agent, *waits), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        if not agent.done():
            agent.cancel()
            await asyncio.wait((agent,))
    return Exit(code=Exits.HARNESS) if agent.cancelled() else agent.result()
