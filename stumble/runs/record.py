"""Record one run against the live world."""

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recorder.agent.env import NODE_HOOK, build_agent_env, write_ca_bundle
from recorder.agent.time_zone import read_time_zone
from recorder.ca import ensure_ca_certificate
from recorder.mcp import stdio
from scenarios.workspace.manifest import ManifestEntry
from scenarios.workspace.stand_ins import save_stand_ins
from scenarios.world import World
from stumble.runs.budgets import BudgetTap, find_event_listeners
from stumble.runs.decision_log import log_decisions
from stumble.runs.environment.base_urls import (
    build_base_url_variables,
    collect_origin_ports,
    describe_base_urls,
)
from stumble.runs.environment.run_files import keep_files_of_recording
from stumble.runs.environment.user_edits import save_end_snapshot
from stumble.runs.environment.workspaces import (
    IN_PLACE,
    list_visible_store,
    open_store_blobs,
)
from stumble.runs.environment.worlds import lock_world
from stumble.runs.session import (
    AgentResult,
    RunOptions,
    listen_for_run_events,
    make_tee_socket_path,
    open_replay_session,
    run_agent,
    wrap_with_tees,
)
from stumble.runs.summary import describe_untrusted_hosts
from stumble.runs.types import (
    AgentLauncher,
    RecordPlan,
    RunResult,
    label_trajectory,
    write_run_ending,
)
from stumble.store import tape_files
from stumble.user_data.known_secrets import load_user_secrets
from traces.bodies.websocket import WebSocketDeclineTap
from traces.conversation.tracker import ConversationTap
from traces.conversation.volatile_fields import VOLATILE_VERSION
from traces.model import AgentInput, Trajectory
from traces.store.store_dir import StoreDirectory
from traces.tape import TapeWriter
from traces.taps import TapChain

if TYPE_CHECKING:
    from faults.injector.injector import FaultInjector


async def record_run(
    path: Path,
    launch: AgentLauncher,
    plan: RecordPlan,
    *,
    id: str,
    ca: Path,
    scratch: Path,
    say: Callable[[str], object] = lambda line: None,
) -> RunResult:
    """Run the agent against the live world and record its traffic on a new tape.

    A tape in a store is named after `id`, by which the store finds it again. A run with faults
    goes through a replay session, which can delay and cut answers, and declines WebSockets.
    """
    async with lock_world(plan.world):
        world = IN_PLACE.bind_world(plan.world)
        if world is not None:
            await world.reset()
        recording = LiveRecording(
            launch=launch, plan=plan, id=id, ca=ca, scratch=scratch, say=say, world=world
        )
        result = await recording.run(path)
        await asyncio.to_thread(tape_files.seal_finished_tape, path)
        if plan.store is not None and plan.workspace is not None and plan.snapshot is not None:
            if recording.visible_store:
                save_stand_ins(open_store_blobs(plan.store), id, recording.visible_store)
            at = (plan.store, plan.workspace, id, plan.snapshot, path, say)
            await asyncio.to_thread(_try_save_end_snapshot, *at)
    return result


@dataclass(frozen=True, kw_only=True)
class LiveRecording:
    """One run against the live world while it goes on."""

    launch: AgentLauncher
    plan: RecordPlan
    id: str
    ca: Path
    scratch: Path
    say: Callable[[str], object]
    world: World | None
    began: float = field(default_factory=time.monotonic)
    watch: ConversationTap = field(init=False)
    visible_store: tuple[ManifestEntry, ...] = field(init=False, default=())
    """What the agent saw of the store and the tape in its folder."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "watch", ConversationTap(self.plan.tools))

    async def run(self, path: Path) -> RunResult:
        """Run the agent to its end and close the tape with the verdict on it."""
        plan, injector = self.plan, None
        secrets = load_user_secrets()
        with TapeWriter(path, self._make_head(), secrets=secrets, redact=plan.redact) as tape:
            budgets = self._make_budget_tap(tape) if plan.marked else None
            if plan.store is not None and plan.snapshot is not None and plan.workspace is not None:
                seen = list_visible_store(plan.workspace, plan.store, path)
                object.__setattr__(self, "visible_store", seen)
            if plan.armed:
                agent, refusals, injector = await self._run_with_faults(tape, budgets)
            else:
                agent, refusals = await self._run_with_proxy(tape, budgets)
            if (given := plan.input) is not None:
                tape.write_input(AgentInput(data=given.kept, whole=given.is_whole))
            unseen = describe_untrusted_hosts(agent.untrusted)
            ending = await write_run_ending(
                tape, self.watch, agent.exit, self.world, self.began, unseen=unseen
            )
        return RunResult(
            id=self.id,
            path=path,
            exit=agent.exit,
            ending=ending,
            fired=injector.fired if injector else 0,
            no_site=tuple(injector.no_site) if injector else (),
            unfired=injector.unfired if injector else (),
            untrusted=agent.untrusted,
            refusals=refusals,
            warnings=agent.warnings,
        )

    def _make_head(self) -> Trajectory:
        plan = self.plan
        head = Trajectory(
            id=self.id,
            recorded_at=0.0,
            world="fresh" if self.world else "none",
            source="resume" if plan.before else "record",
            condition="fault" if plan.armed else "clean",
            seed=plan.seed if plan.armed else None,
            parent=plan.before,
            tools=plan.tools,
            equivalent=plan.equivalent,
            upstreams={each.text: each.variables for each in plan.upstreams},
            rules=plan.rules,
            volatile=VOLATILE_VERSION,
            workspace=str(plan.workspace) if plan.workspace else None,
            snapshot=plan.snapshot,
            zone=read_time_zone(os.environ),
        )
        return label_trajectory(head, plan.labels, self.launch)

    def _make_budget_tap(self, tape: TapeWriter) -> BudgetTap:
        also = find_event_listeners(self.world)
        return BudgetTap(self.watch, tape, began=self.began, run=self.id, also=also)

    async def _run_with_faults(
        self, tape: TapeWriter, budgets: BudgetTap | None
    ) -> "tuple[AgentResult, Mapping[str, str], FaultInjector]":
        from stumble.runs.injection import injector_without_recording

        plan = self.plan
        observations, injector = injector_without_recording(
            plan.armed,
            self.watch,
            tape.write_injection,
            run=self.id,
            task=plan.labels.task,
            seed=plan.seed,
            world=self.world is not None,
        )
        taps = (self.watch, observations, injector, WebSocketDeclineTap(), budgets)
        options = RunOptions(out=True, upstreams=plan.upstreams, budgets=budgets, say=self.say)
        async with open_replay_session(
            ca=self.ca, scratch=self.scratch, hosts=plan.hosts, out=True
        ) as session:
            agent = await run_agent(session, self.launch, taps, tape, options, began=self.began)
            return agent, dict(session.refusals), injector

    def _add_upstream_ca(self, bundle: Path) -> Path:
        """Return a bundle with the user's CA of servers, which agents need not trust."""
        if self.plan.upstream_ca is None:
            return bundle
        path = self.scratch / "upstream-ca.pem"
        path.write_bytes(bundle.read_bytes() + b"\n" + self.plan.upstream_ca.read_bytes())
        return path

    async def _run_with_proxy(
        self, tape: TapeWriter, budgets: BudgetTap | None
    ) -> tuple[AgentResult, Mapping[str, str]]:
        """Run the agent behind the proxy; return also the proxies that refused our login."""
        from recorder.proxy.corporate_proxy import read_proxy_settings
        from recorder.proxy.recording import start_recording_proxy
        from recorder.proxy.route import UpstreamRoute

        upstreams, began, seqs = self.plan.upstreams, self.began, itertools.count()
        declined = None if self.plan.websocket else WebSocketDeclineTap()
        logged = log_decisions((self.watch, declined, budgets))
        taps = TapChain(t for t in (*logged, tape) if t is not None)
        bundle = write_ca_bundle(ensure_ca_certificate(self.ca), self.scratch, os.environ)
        with make_tee_socket_path() as socket_path:
            async with (
                start_recording_proxy(
                    taps,
                    confdir=self.ca,
                    began=began,
                    seqs=seqs,
                    upstream=UpstreamRoute(
                        hosts=self.plan.hosts,
                        ca_file=self._add_upstream_ca(bundle),
                        proxies=read_proxy_settings(os.environ),
                        insecure=self.plan.insecure,
                        client_cert=self.plan.client_cert,
                    ),
                    origins=collect_origin_ports(upstreams),
                ) as proxy,
                stdio.serve_tees(taps, socket_path, began=began, seqs=seqs) as tees,
                listen_for_run_events(socket_path, budgets) as event_env,
            ):
                env = build_agent_env(
                    os.environ, proxy_url=proxy.url, bundle=bundle, node_hook=NODE_HOOK
                ) | build_base_url_variables(upstreams, proxy.origins)
                for line in describe_base_urls(upstreams, proxy.origins):
                    self.say(line)
                cwd = self.launch.cwd
                env, adapted = wrap_with_tees(self.launch, env | event_env, tees, cwd)
                exit = await self.launch(env, command=adapted.command)
            agent = AgentResult(
                exit=exit, untrusted=dict(proxy.mistrusted), warnings=adapted.warnings
            )
            return agent, dict(proxy.refusals)


def _try_save_end_snapshot(
    store: StoreDirectory,
    workspace: Path,
    id: str,
    snapshot: str,
    tape: Path,
    say: Callable[[str], object],
) -> None:
    """Snapshot the folder, so that later edits are distinguished from the agent's writes."""
    try:
        after = save_end_snapshot(store, workspace, id, snapshot)
    except (OSError, ValueError) as error:
        say(f"workspace: later edits will not be known as yours: {error}")
        return
    try:
        blobs = open_store_blobs(store)
        keep_files_of_recording(id, workspace, tape, snapshot, after, blobs)
    except (OSError, ValueError) as error:
        say(f"workspace: what the run changed in it is not kept: {error}")
