"""The life of a run: one agent, once, against the world or a recording, onto a tape.

    open a tape - start the listener with its taps - build the agent's environment - start the
    agent and pass its output through - stop everything - ask the verifier - close the tape

Two ways to listen. `record` puts mitmproxy in front of the live world. `play` puts the
performer in front, with a recording behind it and, only where something may go live, an inner
mitmproxy as the way out.
"""

import asyncio
import itertools
import os
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Protocol

from recorder import stdio
from recorder.adapters import Adapted, adapt
from recorder.attempts import Attempt
from recorder.authority import certificate
from recorder.cage import Cage
from recorder.environment import NODE_HOOK, bundle, environment
from recorder.process import Ended as Exit
from recorder.tee import VARIABLE
from replay.lanes import Fork
from replay.match import Match
from replay.performer import Performer
from replay.pin import Pin
from replay.player import OnMiss, Player
from replay.rules import Rule, Rules, bind
from scenarios.world import World
from stumble import tapes
from stumble.exits import Exits
from stumble.home import new_id
from stumble.upstreams import Upstream, ports, remembered, told, variables
from stumble.workspaces import IN_PLACE, Place, Workspace
from traces.conversation import Watch
from traces.kind import Kind
from traces.model import Condition, Ended, Ending, Exchange, Request, Trajectory
from traces.redact import secrets
from traces.story import ToolUse
from traces.tape import Tape, Writer
from traces.taps import Taps
from traces.volatile import VERSION
from traces.websocket import NoWebSocket

if TYPE_CHECKING:
    from faults.nemesis import Armed
    from stumble.strikes import Strike

type Hosts = Mapping[str, tuple[str, int]]

TEES = "tees"
"""The socket by which tees find the run, in a folder that is ours alone."""
LONGEST = 64
"""Characters of that folder's own folder: the whole path has to fit into 107 (unix(7))."""


class Launch(Protocol):
    """Starts the agent with an environment and returns how it ended."""

    @property
    def command(self) -> tuple[str, ...]: ...
    @property
    def warm(self) -> bool: ...
    @property
    def cwd(self) -> Path | None: ...
    def __call__(
        self,
        env: Mapping[str, str],
        *,
        command: tuple[str, ...] | None = None,
        cage: Cage | None = None,
        cwd: Path | None = None,
    ) -> Coroutine[None, None, Exit]:
        """`command` is the agent's with what an adapter added for this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What a run is called in the store; all of it optional."""

    agent: str | None = None
    model: str | None = None
    scenario: str | None = None
    task: str | None = None
    trial: int | None = None

    def over(self, parent: Trajectory) -> "Labels":
        """These, and the parent's where these say nothing."""
        return Labels(
            agent=self.agent or parent.agent,
            model=self.model or parent.model,
            scenario=self.scenario or parent.scenario,
            task=self.task or parent.task,
            trial=self.trial if self.trial is not None else parent.trial,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One replayed run: what comes from the tape, what is live, what is struck."""

    source: str = "replay"
    condition: Condition = "clean"
    live: Collection[Kind] = ()
    fork: Fork | None = None
    strike: "Strike | None" = None
    world: World | None = None
    seed: int = 0
    rep: int = 0
    speed: float = 0
    rules: tuple[Rule, ...] = ()
    """What of a request may differ from the recorded one, beside what the recording says."""
    on_miss: OnMiss = "refuse"
    pin: tuple[ToolUse, ...] = ()
    """The recorded calls whose results are put in the place of those of this run."""
    workspace: Workspace | None = None
    """The folder of which this run gets a copy; None runs the agent in place."""
    alone: bool = False
    """Whether the agent runs in a network namespace in which there is nothing but us."""
    labels: Labels = field(default_factory=Labels)

    @property
    def out(self) -> bool:
        """Whether anything may go live."""
        return bool(self.live) or self.fork is not None or self.on_miss == "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A run that is over: its tape, how the agent ended, and what the player and nemesis saw."""

    id: str
    path: Path
    exit: Exit
    ending: Ending
    diverged: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    """What a replay without a fork never asked for, as `exchange SEQ, METHOD URL`."""
    fired: int = 0
    no_site: tuple[str, ...] = ()
    """Why calls that were reached could not be struck."""
    unfired: tuple[str, ...] = ()
    """The names of faults that reached no call at all."""
    saved: tuple[int, ...] = ()
    matched: Mapping[int, Match] = field(default_factory=dict)
    """What each request, by its seq, was answered with, and why."""
    cascades: int = 0
    """Lanes that a fork was not made in and that went live."""
    drifted: int | None = None
    """Results of local tools that were pinned; None where none were to be."""
    untrusted: Mapping[str, str] = field(default_factory=dict)
    """Hosts for which the agent did not take our certificate, and why: nothing was seen there."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """The user's proxies that did not take our login, and what to do."""
    warnings: tuple[str, ...] = ()
    """What of the agent's MCP servers is not seen, and what to do."""
    attempts: Mapping[Attempt, int] = field(default_factory=dict)
    """What an agent that was alone tried to reach past the proxy, and how often."""
    kept: Path | None = None
    """The copy that the agent worked in, where it was to stay."""


def ended(exit: Exit, watch: Watch) -> Ended:
    """How a run ended, from the exit and the last thing a model said.

    An agent that exits with an error after its final answer has ended with a final answer;
    one that exits with an error while calls were open has crashed. One that we were told to stop
    says nothing of itself.
    """
    if exit.signal is not None:
        return "harness"
    if exit.budget:
        return "budget"
    last = watch.conversations.last
    final = last is not None and not last.calls and last.finish is not None
    return "final" if exit.code == 0 or final else "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Theatre:
    """What all replayed runs of a process share: one performer, one way out, one CA bundle."""

    performer: Performer
    bundle: Path
    upstream_port: int | None = None
    refusals: Mapping[str, str] = field(default_factory=dict)
    """The user's proxies that have not taken our login so far, and what to do."""


@contextmanager
def _desk() -> Iterator[Path]:
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
    rules: tuple[str, ...] = (),
    redact: bool = True,
    websocket: bool = True,
    upstreams: tuple[Upstream, ...] = (),
    say: Callable[[str], object] = lambda line: None,
    workspace: Path | None = None,
    snapshot: str | None = None,
    armed: "tuple[Armed, ...]" = (),
    seed: int = 0,
) -> Played:
    """Run the agent against the live world and keep what was said, on a new tape.

    A tape that lies in a store is named after `id`, by which the store finds it again. With
    faults the performer listens, which can hold answers back and cut them, and WebSockets are
    declined.
    """
    if world is not None:
        await world.reset()
    labels = labels or Labels()
    began, watch = time.monotonic(), Watch(tools)
    trajectory = _trajectory(
        labels,
        launch,
        id=id,
        world="fresh" if world else "none",
        source="record",
        condition="fault" if armed else "clean",
        seed=seed if armed else None,
        tools=tools,
        upstreams={each.text: each.variables for each in upstreams},
        rules=rules,
        workspace=workspace,
        snapshot=snapshot,
    )
    nemesis = None
    with Writer(path, trajectory, secrets=secrets(os.environ), redact=redact) as tape:
        if armed:
            from stumble.strikes import unrehearsed

            nemesis = unrehearsed(
                armed,
                watch,
                tape.injection,
                run=id,
                task=labels.task,
                seed=seed,
                world=world is not None,
            )
            async with theatre(ca=ca, scratch=scratch, hosts=hosts or {}, out=True) as house:
                acted = await _act(
                    house,
                    launch,
                    (watch, nemesis, NoWebSocket()),
                    tape,
                    began=began,
                    out=True,
                    upstreams=upstreams,
                    say=say,
                )
                refusals = dict(house.refusals)
        else:
            shown = (watch, tape) if websocket else (watch, NoWebSocket(), tape)
            acted, refusals = await _listen(
                launch,
                Taps(shown),
                began=began,
                ca=ca,
                scratch=scratch,
                hosts=hosts or {},
                upstreams=upstreams,
                say=say,
            )
        ending = await _close(tape, watch, acted.exit, world, began)
    await asyncio.to_thread(tapes.close, path)
    return Played(
        id=trajectory.id,
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
    say: Callable[[str], object],
) -> tuple["_Acted", dict[str, str]]:
    """Run the agent with mitmproxy in front of the live world; its refusals of our login too."""
    from recorder.outer import way_out
    from recorder.proxy import proxy

    trusted, seqs = bundle(certificate(ca), scratch, os.environ), itertools.count()
    with _desk() as desk:
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
            stdio.listening(taps, desk, began=began, seqs=seqs) as tees,
        ):
            env = environment(
                os.environ, proxy_url=listening.url, bundle=trusted, node_hook=NODE_HOOK
            ) | variables(upstreams, listening.origins)
            for line in told(upstreams, listening.origins):
                say(line)
            env, adapted = _teed(launch, env, tees, launch.cwd)
            exit = await launch(env, command=adapted.command)
        acted = _Acted(exit=exit, untrusted=dict(listening.mistrusted), warnings=adapted.warnings)
        return acted, dict(listening.refusals)


async def play(house: Theatre, recording: Tape, folder: Path, plan: Plan, launch: Launch) -> Played:
    """Run the agent once more against a recording, onto a new tape named after its run."""
    with plan.workspace.copy() if plan.workspace else nullcontext(IN_PLACE) as place:
        return await _play(house, recording, folder, plan, launch, place)


async def _play(
    house: Theatre, recording: Tape, folder: Path, plan: Plan, launch: Launch, place: Place
) -> Played:
    world = place.world(plan.world)
    if world is not None:
        await world.reset()
    began, run = time.monotonic(), new_id()
    rules = tuple(dict.fromkeys((*recording.trajectory.rules, *map(str, plan.rules))))
    watch, halted = Watch(recording.trajectory.tools), asyncio.Event()
    path = folder / f"{run}.tape"
    if plan.out and house.upstream_port is None:
        raise ValueError("this plan goes live, but the theatre has no way out")
    trajectory = _trajectory(
        plan.labels.over(recording.trajectory),
        launch,
        id=run,
        world="fresh" if plan.world else "recorded",
        source=plan.source,
        condition=plan.condition,
        seed=plan.seed,
        parent=recording.trajectory.id,
        forked_at=plan.fork.call_id if plan.fork else None,
        tools=recording.trajectory.tools,
        upstreams=recording.trajectory.upstreams,
        rules=rules,
        volatile=recording.trajectory.volatile,
        workspace=plan.workspace.path if plan.workspace else None,
        snapshot=plan.workspace.snapshot if plan.workspace else None,
    )
    with Writer(path, trajectory, secrets=secrets(os.environ)) as tape:
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
        acted = await _act(
            house,
            launch,
            (pin, watch, nemesis, player),
            tape,
            began=began,
            out=plan.out,
            upstreams=remembered(recording.trajectory.upstreams),
            place=place,
            alone=plan.alone,
            cues=player.cues,
            retold=player.retold,
            halted=halted,
        )
        unasked = () if plan.fork else tuple(_named(x) for x in player.unasked())
        left = (*player.diverged, *unasked)
        ending = await _close(tape, watch, acted.exit, world, began, left, player.missed)
    await asyncio.to_thread(tapes.close, path)
    return Played(
        id=run,
        path=path,
        exit=acted.exit,
        ending=ending,
        diverged=tuple(player.diverged),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Acted:
    """How an agent ended on a stage, and what was seen there."""

    exit: Exit
    untrusted: Mapping[str, str]
    warnings: tuple[str, ...]
    attempts: Mapping[Attempt, int] = field(default_factory=dict)


async def _act(
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
    say: Callable[[str], object] = lambda line: None,
) -> _Acted:
    """Run the agent on a stage of its own: what no tap answers goes out, where anything may."""
    cage, way, counted = None, None, itertools.count()
    async with AsyncExitStack() as stack:
        if out and house.upstream_port is not None:
            from replay.bridge import Bridge
            from replay.upstream import InnerProxy

            inner = InnerProxy("127.0.0.1", house.upstream_port, began)
            way = Bridge(await stack.enter_async_context(inner))
        chain = Taps(tap for tap in (*taps, way, tape) if tap is not None)
        listening = stdio.listening(
            chain,
            stack.enter_context(_desk()),
            began=began,
            seqs=counted,
            decides=True,
            way_out=out,
            cues=cues,
            retold=retold,
        )
        tees = await stack.enter_async_context(listening)
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
        env, adapted = _teed(launch, env | dict(place.env), tees, cwd)
        running = launch(env, command=adapted.command, cage=cage, cwd=place.cwd)
        stops = (stage.failed,) if halted is None else (stage.failed, halted)
        exit = await _unless(stops, running)
    return _Acted(
        exit=exit,
        untrusted=dict(stage.untrusted),
        warnings=adapted.warnings,
        attempts=cage.attempts if cage else {},
    )


def _teed(
    launch: Launch, env: Mapping[str, str], tees: stdio.Stdio, cwd: Path | None
) -> tuple[dict[str, str], Adapted]:
    """The agent's environment, which names the run, and its command with servers behind tees."""
    ours = dict(env) | {VARIABLE: str(tees.path)}
    tees.put_back.update(stdio.changed(os.environ, ours))
    cwd, folder = cwd or Path.cwd(), tees.path.parent
    return ours, adapt(launch.command, ours, run=tees.path, folder=folder, cwd=cwd)


def _as_it_is(request: Request) -> Request:
    return request


def _named(exchange: Exchange) -> str:
    return f"exchange {exchange.seq}, {exchange.request.method} {exchange.request.url}"


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


def _trajectory(
    labels: Labels,
    launch: Launch,
    *,
    id: str,
    source: str,
    world: str,
    condition: Condition = "clean",
    seed: int | None = None,
    parent: str | None = None,
    forked_at: str | None = None,
    tools: Mapping[str, str] | None = None,
    upstreams: Mapping[str, tuple[str, ...]] | None = None,
    rules: tuple[str, ...] = (),
    volatile: int = VERSION,
    workspace: Path | None = None,
    snapshot: str | None = None,
) -> Trajectory:
    return Trajectory(
        id=id,
        recorded_at=time.time(),
        agent=labels.agent,
        model=labels.model,
        scenario=labels.scenario,
        task=labels.task,
        trial=labels.trial,
        condition=condition,
        world=world,  # type: ignore[arg-type]
        seed=seed,
        parent=parent,
        forked_at=forked_at,
        source=source,
        command=launch.command,
        warm=launch.warm,
        tools=tools or {},
        upstreams=upstreams or {},
        rules=rules,
        volatile=volatile,
        workspace=str(workspace) if workspace else None,
        snapshot=snapshot,
    )


async def _close(
    tape: Writer,
    watch: Watch,
    exit: Exit,
    world: World | None,
    began: float,
    left: Collection[str] = (),
    missed: Collection[str] = (),
) -> Ending:
    """Ask the verifier and write how the run ended.

    Only a run that the agent itself brought to an end is verified: what diverged, ran out of
    budget, asked for what no tape holds or was stopped by us neither passed nor failed.
    """
    at = time.monotonic() - began
    how: Ended = "diverged" if left else "replay_miss" if missed else ended(exit, watch)
    judged = world is not None and how in ("final", "crash")
    verdict = await world.verify() if world is not None and judged else None
    ending = Ending(
        ended=how,
        exit_code=exit.code,
        passed=verdict.passed if verdict else None,
        verifier=type(world).__name__ if world is not None else None,
        at=at,
        detail=next(iter((*left, *missed)), verdict.detail if verdict else None),
    )
    tape.ending(ending)
    return ending
