"""One session for all runs: one proxy server, and for each run a listener with its taps."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING

from msgspec import Struct, field

from recorder import run_events
from recorder.agent.adapters import AdaptedCommand, adapt_agent_command
from recorder.agent.blocked_connections import BlockedConnection
from recorder.agent.env import NODE_HOOK, add_server_hooks, build_agent_env, write_ca_bundle
from recorder.agent.isolation import AgentIsolation, find_missing_capabilities
from recorder.agent.process import AgentExit
from recorder.agent.run_limits import RunLimits
from recorder.agent.time_zone import ZONE_VARIABLE, find_restored_zone
from recorder.agent.unseen_traffic import UnseenTrafficWatch
from recorder.ca import ensure_ca_certificate
from recorder.mcp import stdio
from recorder.mcp.tee import RUN_SOCKET_VARIABLE
from recorder.proxy.server import ChunkDue, ProxyServer, RunListener
from stumble.errors import ExitCode
from stumble.llm.model_choice import ModelChoice
from stumble.runs.budgets import BudgetTap
from stumble.runs.decision_log import log_decisions
from stumble.runs.environment.base_urls import (
    BaseUrlMapping,
    build_base_url_variables,
    collect_origin_ports,
    describe_base_urls,
)
from stumble.runs.environment.upstream_trust import NO_MORE_TRUST, UpstreamTrust
from stumble.runs.environment.workspaces import IN_PLACE, RunLocation
from stumble.runs.types import AgentLauncher, Hosts
from stumble.user_data.paths import prepare_ca_folder
from traces.tape.reader import Tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

if TYPE_CHECKING:
    from recorder.proxy.route import UpstreamRoute
    from recorder.proxy.websocket_over_http import WebSocketOverHttp

EVENT_SOCKET_NAME = "marks"
TEE_SOCKET_NAME = "tees"
"""The socket by which tees find the run, in a folder that is ours alone."""
MAX_FOLDER_LENGTH = 64
"""Characters of that folder's own folder: the whole path has to fit into 107 (unix(7))."""


class ReplaySession(Struct, frozen=True, kw_only=True):
    """State that all runs of a process share: proxy server, route, CA bundle."""

    performer: ProxyServer
    ca: Path
    """The folder of the certificate authority."""
    bundle: Path
    route: "UpstreamRoute | None" = None
    """How live requests reach servers; None if none may leave."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Corporate proxies that have refused the login so far, and what to do."""


@contextmanager
def make_tee_socket_path() -> Iterator[Path]:
    """Yield a short path for the tees' socket, in a folder that only this user can read."""
    usual = gettempdir()
    place = usual if len(usual) <= MAX_FOLDER_LENGTH else "/tmp"
    with TemporaryDirectory(prefix="stumble-", dir=place) as name:
        yield Path(name) / TEE_SOCKET_NAME


@asynccontextmanager
async def open_replay_session(
    *, ca: Path, scratch: Path, hosts: Hosts, out: bool, trust: UpstreamTrust = NO_MORE_TRUST
) -> AsyncIterator[ReplaySession]:
    """Open a session; if `out` is False, no code that can reach the network is loaded."""
    trusted = write_ca_bundle(ensure_ca_certificate(ca), scratch, os.environ)
    performer = ProxyServer(confdir=ca)
    if not out:
        yield ReplaySession(performer=performer, ca=ca, bundle=trusted)
        return
    route = trust.make_route(hosts, trusted, scratch)
    yield ReplaySession(performer=performer, ca=ca, bundle=trusted, route=route)


@asynccontextmanager
async def open_recorded_session(
    recording: Tape, hosts: Hosts, *, out: bool = True, trust: UpstreamTrust = NO_MORE_TRUST
) -> AsyncIterator[ReplaySession]:
    """Open a session for runs against a recording, with a model for its pipeline if it has one."""
    from scenarios.practice.pipeline_model import serve_recorded_model

    with TemporaryDirectory(prefix="stumble-") as name:
        ca, scratch = prepare_ca_folder(), Path(name)
        async with (
            serve_recorded_model(recording, hosts) as served,
            open_replay_session(
                ca=ca, scratch=scratch, hosts=served, out=out, trust=trust
            ) as session,
        ):
            yield session


class AgentResult(Struct, frozen=True, kw_only=True):
    """How an agent ended behind its listener, and what the listener recorded of it."""

    exit: AgentExit
    untrusted: Mapping[str, str]
    warnings: tuple[str, ...]
    refusals: Mapping[str, str]
    """Corporate proxies that refused the login, and what to do."""
    attempts: Mapping[BlockedConnection, int] = field(default_factory=dict)
    kept: tuple[Path, ...] | None = None
    """The user's temporary files that it kept; None if all of them."""


class RunOptions(Struct, frozen=True, kw_only=True):
    """How one agent runs in front of the proxy."""

    out: bool = False
    """Whether a request that no tap answers goes to the live world."""
    relays: bool = False
    """Whether servers are directly behind the proxy, so that the bytes of their answers pass as
    they are; no tap may answer then, nor change an answer."""
    upstreams: tuple[BaseUrlMapping, ...] = ()
    place: RunLocation = IN_PLACE
    zone: str | None = None
    """The time zone for the agent; None leaves it that of this process."""
    alone: bool = False
    """Whether the agent has a network namespace from which only the proxy can be reached."""
    confined: bool = True
    """Whether an agent that is alone has PID and user namespaces, if the machine has them."""
    limits: RunLimits | None = None
    """What an agent with PID namespaces and a copy may use at most."""
    cues: stdio.StdioTimingFn = lambda start: ()
    retold: stdio.MessageRewriter = lambda message: message
    is_due: ChunkDue = lambda exchange, number: True
    halted: asyncio.Event | None = None
    """Ends the agent at once when it is set."""
    unseen: UnseenTrafficWatch | None = None
    """Looks for what goes past the proxy, and for servers without a tee."""
    budgets: BudgetTap | None = None
    other_model: ModelChoice | None = None
    """The model that answers live model requests, if it is one of another provider."""
    say: Callable[[str], object] = lambda line: None


async def run_agent(
    session: ReplaySession,
    launch: AgentLauncher,
    taps: Iterable[object],
    tape: TapeWriter,
    options: RunOptions,
    *,
    began: float,
) -> AgentResult:
    """Run the agent behind a listener of its own, with these taps before the tape.

    `began` is the run's zero on the monotonic clock, in seconds.
    """
    isolation, upstream, proxy, seqs = None, None, None, itertools.count()
    async with AsyncExitStack() as stack:
        if options.out and session.route is not None:
            upstream = await _open_upstream(
                stack, session.route, session.refusals, began, options.other_model
            )
        logged = log_decisions(taps)
        chain = TapChain(tap for tap in (*logged, upstream, tape) if tap is not None)
        socket_path = stack.enter_context(make_tee_socket_path())
        tees = await stack.enter_async_context(
            stdio.serve_tees(
                chain,
                socket_path,
                began=began,
                seqs=seqs,
                decides=not options.relays,
                way_out=options.out or options.relays,
                cues=options.cues,
                retold=options.retold,
                is_due=options.is_due,
            )
        )
        events = listen_for_run_events(socket_path, options.budgets)
        event_env = await stack.enter_async_context(events)
        origins = collect_origin_ports(options.upstreams)
        if options.relays and session.route is not None:
            from recorder.proxy.recording import start_recording_proxy

            relaying = start_recording_proxy(
                chain,
                confdir=session.ca,
                began=began,
                seqs=seqs,
                upstream=session.route,
                origins=origins,
                server=session.performer,
            )
            proxy = await stack.enter_async_context(relaying)
            listener = proxy.listener
        else:
            listener = await stack.enter_async_context(
                session.performer.create_listener(
                    chain,
                    began=began,
                    seqs=seqs,
                    upstream=upstream,
                    origins=origins,
                    is_due=options.is_due,
                )
            )
        place = options.place
        if place.room or options.alone:
            isolation = await stack.enter_async_context(
                _make_isolation(listener, options, (socket_path.parent, session.bundle.parent))
            )
        env = build_agent_env(
            os.environ, proxy_url=listener.url, bundle=session.bundle, node_hook=NODE_HOOK
        ) | build_base_url_variables(options.upstreams, listener.origins)
        if zone := find_restored_zone(options.zone, env):
            env[ZONE_VARIABLE] = zone
        for line in describe_base_urls(options.upstreams, listener.origins):
            options.say(line)
        cwd = place.start or launch.cwd
        env, adapted = wrap_with_tees(launch, env | dict(place.env) | event_env, tees, cwd)
        if options.unseen is not None:
            looking = options.unseen.look_around((listener.port, *listener.origins.values()))
            await stack.enter_async_context(looking)
        running = launch(env, command=adapted.command, cage=isolation, cwd=place.start)
        stops = [listener.failed, *([options.halted] if options.halted else [])]
        exit = await _run_until_stopped(stops, running)
    return AgentResult(
        exit=exit,
        untrusted=dict(proxy.mistrusted if proxy else listener.untrusted),
        warnings=() if tees.served else adapted.warnings,
        refusals=dict(proxy.refusals if proxy else session.refusals),
        attempts=isolation.attempts if isolation else {},
        kept=isolation.kept if isolation else None,
    )


async def _open_upstream(
    stack: AsyncExitStack,
    route: "UpstreamRoute",
    refusals: dict[str, str],
    began: float,
    other_model: ModelChoice | None,
) -> "WebSocketOverHttp":
    """The tap that sends requests to servers."""
    from recorder.proxy.upstream import OriginClient
    from recorder.proxy.websocket_over_http import WebSocketOverHttp

    inner = await stack.enter_async_context(OriginClient(route, began, refusals))
    if other_model is None or other_model.provider is None:
        return WebSocketOverHttp(inner)
    from stumble.llm.translated_upstream import TranslatedUpstream

    return WebSocketOverHttp(TranslatedUpstream(inner, other_model, began))


def _make_isolation(
    listener: RunListener, options: RunOptions, folders: tuple[Path, ...]
) -> AgentIsolation:
    ports = (listener.port, *listener.origins.values()) if options.alone else ()
    confined = options.alone and options.confined
    return AgentIsolation(
        room=options.place.room,
        ports=ports,
        serve=listener.serve_socket,
        processes=confined and find_missing_capabilities().processes is None,
        shown=folders,
        limits=options.limits,
    )


@asynccontextmanager
async def listen_for_run_events(
    place: Path, marking: BudgetTap | None
) -> AsyncIterator[dict[str, str]]:
    """Yield the variable that names the run event socket; no variable without a budget tap."""
    if marking is None:
        yield {}
        return
    path = place.with_name(EVENT_SOCKET_NAME)
    async with run_events.serve_run_events(path, marking.handle_run_event) as desk:
        marking.say = desk.send_word
        yield {run_events.RUN_EVENTS_VARIABLE: str(path)}


def wrap_with_tees(
    launch: AgentLauncher, env: Mapping[str, str], tees: stdio.McpStdioContext, cwd: Path | None
) -> tuple[dict[str, str], AdaptedCommand]:
    """The agent's environment, which names the run, and its command with servers behind tees."""
    ours = add_server_hooks(env) | {RUN_SOCKET_VARIABLE: str(tees.path)}
    tees.changed_variables.update(stdio.find_changed_variables(os.environ, ours))
    cwd, folder = cwd or Path.cwd(), tees.path.parent
    return ours, adapt_agent_command(launch.command, ours, run=tees.path, folder=folder, cwd=cwd)


async def _run_until_stopped(
    stops: Iterable[asyncio.Event], running: Coroutine[None, None, AgentExit]
) -> AgentExit:
    """Return how the agent ended; cancel it as soon as one of these events is set.

    If a tap failed, the listener raises the cause.
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
    return AgentExit(code=ExitCode.HARNESS) if agent.cancelled() else agent.result()
