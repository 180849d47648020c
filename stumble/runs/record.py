"""Record one run against the live world."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from recorder.agent.terminal import AgentTerminal
from recorder.agent.time_zone import read_time_zone
from recorder.agent.unseen_traffic import UnseenTrafficWatch
from scenarios.workspace.manifest import ManifestEntry
from scenarios.workspace.stand_ins import save_stand_ins
from scenarios.world import EndState, World
from stumble.runs.budgets import BudgetTap, find_event_listeners
from stumble.runs.environment.outside_changes import settle_outside_changes
from stumble.runs.environment.run_files import (
    describe_end_of_files,
    keep_files_of_copy,
    keep_files_of_recording,
)
from stumble.runs.environment.user_edits import save_end_snapshot
from stumble.runs.environment.workspaces import (
    IN_PLACE,
    RunLocation,
    list_visible_store,
    open_store_blobs,
)
from stumble.runs.environment.worlds import lock_world
from stumble.runs.launcher import follow_conversation
from stumble.runs.session import (
    AgentResult,
    ReplaySession,
    RunOptions,
    open_replay_session,
    run_agent,
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
from traces.model import Trajectory
from traces.redaction.fingerprints import RedactionRecord
from traces.store.store_dir import StoreDirectory
from traces.tape.writer import TapeWriter

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
    declines WebSockets, which none can be injected into.
    """
    async with lock_world(plan.world):
        with plan.copies.copy() if plan.copies else nullcontext(IN_PLACE) as place:
            world = place.bind_world(plan.world)
            if world is not None:
                await world.reset()
            async with open_replay_session(
                ca=ca, scratch=scratch, hosts=plan.hosts, out=True, trust=plan.trust
            ) as session:
                recording = LiveRecording(
                    plan, launch, world, id=id, session=session, say=say, place=place
                )
                result = await recording.run(path)
        await asyncio.to_thread(tape_files.seal_finished_tape, path)
        is_kept = plan.copies is None and plan.store is not None
        if is_kept and plan.store and plan.workspace is not None and plan.snapshot is not None:
            if recording.visible_store:
                save_stand_ins(open_store_blobs(plan.store), id, recording.visible_store)
            at = (plan.store, plan.workspace, id, plan.snapshot, path, say)
            await asyncio.to_thread(_try_save_end_snapshot, *at)
    return result


class LiveRecording:
    """One run against the live world while it goes on."""

    def __init__(
        self,
        plan: RecordPlan,
        launch: AgentLauncher,
        world: World | None,
        *,
        id: str,
        session: ReplaySession,
        say: Callable[[str], object],
        place: RunLocation = IN_PLACE,
    ) -> None:
        self._place = place
        self._plan, self._launch, self._world = plan, launch, world
        self._id, self._session, self._say = id, session, say
        self._began = time.monotonic()
        self._watch = ConversationTap(plan.tools)
        self._unseen = UnseenTrafficWatch(lambda: self._watch.conversations.steps > 0)
        if plan.guard is not None:
            plan.guard.watch = self._watch
        if isinstance(plan.input, AgentTerminal):
            follow_conversation(plan.input, self._watch)
        self.visible_store: tuple[ManifestEntry, ...] = ()
        """What the agent saw of the store and the tape in its folder."""

    async def run(self, path: Path) -> RunResult:
        """Run the agent to its end and close the tape with the verdict on it."""
        plan = self._plan
        secrets = load_user_secrets()
        with TapeWriter(
            path,
            self._make_head(),
            secrets=secrets,
            redact=plan.redact,
            seen=self._find_redactions(),
            origin_key=secrets.key,
        ) as tape:
            in_place = plan.copies is None and plan.workspace is not None
            if in_place and plan.store is not None and plan.snapshot and plan.workspace:
                self.visible_store = list_visible_store(plan.workspace, plan.store, path)
            agent, injector = await self._run_agent(tape)
            if plan.input is not None:
                tape.write_input(plan.input.to_agent_input())
            unseen = describe_untrusted_hosts(agent.untrusted)
            files = await self._keep_files()
            ending = await write_run_ending(
                tape, self._watch, agent.exit, self._world, self._began, unseen=unseen, files=files
            )
        return RunResult(
            id=self._id,
            path=path,
            exit=agent.exit,
            ending=ending,
            fired=injector.fired if injector else 0,
            no_site=tuple(injector.no_site) if injector else (),
            unfired=injector.unfired if injector else (),
            untrusted=agent.untrusted,
            refusals=agent.refusals,
            warnings=agent.warnings,
            attempts=self._unseen.connections,
            unteed=self._unseen.servers,
        )

    async def _keep_files(self) -> EndState | None:
        """Keep what the agent left in its copy; return it if it is the end state.

        Raises OSError or ValueError if it cannot be read.
        """
        if self._plan.copies is None:
            return None
        blobs = self._plan.copies.blobs
        left = await asyncio.to_thread(keep_files_of_copy, self._id, self._place, blobs)
        await asyncio.to_thread(settle_outside_changes, self._place, live=True)
        if not self._plan.observed or left is None:
            return None
        return describe_end_of_files(left, self._place.at_start)

    def _find_redactions(self) -> tuple[RedactionRecord, ...]:
        """Return the secrets whose placeholders the snapshot holds: the tape's are the same."""
        plan = self._plan
        if plan.store is None or plan.snapshot is None:
            return ()
        return open_store_blobs(plan.store).load_redactions()

    def _make_head(self) -> Trajectory:
        plan = self._plan
        head = Trajectory(
            id=self._id,
            recorded_at=0.0,
            world="fresh" if self._world else "none",
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
        return label_trajectory(head, plan.labels, self._launch)

    def _make_budget_tap(self, tape: TapeWriter) -> BudgetTap:
        also = find_event_listeners(self._world)
        return BudgetTap(self._watch, tape, began=self._began, run=self._id, also=also)

    async def _run_agent(self, tape: TapeWriter) -> "tuple[AgentResult, FaultInjector | None]":
        """Run the agent; the proxy relays answers as they are, unless faults may change them."""
        plan, injector, faults = self._plan, None, tuple[object, ...]()
        budgets = self._make_budget_tap(tape) if plan.marked else None
        if plan.armed:
            observations, injector = self._make_injector(tape)
            faults = (observations, injector)
        answers = bool(plan.armed or plan.guard)
        declined = WebSocketDeclineTap() if answers or not plan.websocket else None
        options = RunOptions(
            out=answers,
            relays=not answers,
            place=self._place,
            halted=plan.guard.stopped if plan.guard else None,
            upstreams=plan.upstreams,
            budgets=budgets,
            unseen=self._unseen,
            say=self._say,
        )
        taps = (self._watch, plan.guard, *faults, declined, budgets)
        agent = await run_agent(self._session, self._launch, taps, tape, options, began=self._began)
        return agent, injector

    def _make_injector(self, tape: TapeWriter) -> "tuple[object, FaultInjector]":
        from stumble.runs.injection import injector_without_recording

        plan = self._plan
        return injector_without_recording(
            plan.armed,
            self._watch,
            tape.write_injection,
            run=self._id,
            task=plan.labels.task,
            seed=plan.seed,
            world=self._world is not None,
        )


def _try_save_end_snapshot(
    store: StoreDirectory,
    workspace: Path,
    id: str,
    snapshot: str,
    tape: Path,
    report: Callable[[str], object],
) -> None:
    """Snapshot the folder, so that later edits are distinguished from the agent's writes."""
    try:
        after = save_end_snapshot(store, workspace, id, snapshot)
    except (OSError, ValueError) as error:
        report(f"workspace: later edits will not be known as yours: {error}")
        return
    try:
        blobs = open_store_blobs(store)
        keep_files_of_recording(id, workspace, tape, snapshot, after, blobs)
    except (OSError, ValueError) as error:
        report(f"workspace: what the run changed in it is not kept: {error}")
