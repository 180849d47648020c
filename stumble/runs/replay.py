"""Replay one run: the agent again, against a recording."""

import asyncio
import time
from contextlib import nullcontext
from pathlib import Path

from replay.matching.rules import MatchRules, parse_match_rule
from replay.player import TapePlayer
from replay.result_pinning import ResultPinning
from stumble.pipeline.replay_check import Pipeline
from stumble.runs.budgets import BudgetTap, find_event_listeners
from stumble.runs.environment.base_urls import restore_base_urls
from stumble.runs.environment.workspaces import IN_PLACE, RunLocation
from stumble.runs.environment.worlds import is_world_in_workspace, lock_world
from stumble.runs.session import ReplaySession, RunOptions, run_agent
from stumble.runs.types import (
    AgentLauncher,
    ReplayPlan,
    RunResult,
    label_trajectory,
    write_run_ending,
)
from stumble.store import tape_files
from stumble.user_data.known_secrets import load_user_secrets
from stumble.user_data.paths import new_trajectory_id
from traces.conversation.tracker import ConversationTap
from traces.model import Exchange, Request, Trajectory
from traces.pipeline.stages import describe_stage_differences
from traces.tape import Tape, TapeWriter


async def run_replay(
    session: ReplaySession, recording: Tape, folder: Path, plan: ReplayPlan, launch: AgentLauncher
) -> RunResult:
    """Run the agent once more against a recording, onto a new tape named after its run."""
    shared = None if plan.workspace and is_world_in_workspace(plan.world) else plan.world
    at = plan.workspace.path if plan.workspace else None
    async with lock_world(shared, at):
        with plan.workspace.copy() if plan.workspace else nullcontext(IN_PLACE) as place:
            return await _run_replay_session(session, recording, folder, plan, launch, place)


async def _run_replay_session(
    session: ReplaySession,
    recording: Tape,
    folder: Path,
    plan: ReplayPlan,
    launch: AgentLauncher,
    place: RunLocation,
) -> RunResult:
    world = place.bind_world(plan.world)
    if isinstance(world, Pipeline):
        world = world.new_world()
    if world is not None:
        await world.reset()
    began, run = time.monotonic(), new_trajectory_id()
    rules = tuple(dict.fromkeys((*recording.trajectory.rules, *map(str, plan.rules))))
    watch, halted = ConversationTap(recording.trajectory.tools), asyncio.Event()
    path = folder / f"{run}.tape"
    if plan.can_go_live and session.upstream_port is None:
        raise ValueError("cannot go live: no upstream proxy was started")
    head = _make_replay_head(recording.trajectory, plan, launch, run, rules)
    with TapeWriter(path, head, secrets=load_user_secrets(), recorded=recording.redactions) as tape:
        redact = _leave_unredacted if recording.verbatim else tape.redactor.redact_request
        accepted = MatchRules(map(parse_match_rule, rules), volatile=recording.trajectory.volatile)
        player = TapePlayer(
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
            pin = ResultPinning(plan.pin, player.saved, redact=redact, rules=accepted)
        injector = plan.injection_plan and plan.injection_plan.make_injector(
            watch,
            tape.write_injection,
            run=run,
            seed=plan.seed,
            rep=plan.rep,
            world=plan.world is not None,
        )
        budgets = None
        if recording.marks:
            forked, also = plan.fork is not None, find_event_listeners(world)
            budgets = BudgetTap(
                watch, tape, began=began, run=run, timed=forked, strict=not forked, also=also
            )
        agent = await run_agent(
            session,
            launch,
            (pin, watch, injector, player, budgets),
            tape,
            RunOptions(
                out=plan.can_go_live,
                upstreams=restore_base_urls(recording.trajectory.upstreams),
                place=place,
                alone=plan.alone,
                confined=plan.confined,
                cues=player.find_message_timings,
                retold=player.rewrite_message,
                halted=halted,
                budgets=budgets,
            ),
            began=began,
        )
        unasked = (
            () if plan.fork else tuple(_describe_unasked_exchange(x) for x in player.list_unasked())
        )
        regraded = (
            ()
            if plan.can_go_live or plan.injection_plan
            else _compare_run_events(recording, budgets)
        )
        went_live = len(player.went_live) if plan.on_miss == "live" else 0
        left = (*player.diverged, *regraded, *(() if went_live else unasked))
        ending = await write_run_ending(tape, watch, agent.exit, world, began, left, player.missed)
    await asyncio.to_thread(tape_files.seal_finished_tape, path)
    return RunResult(
        id=run,
        path=path,
        exit=agent.exit,
        ending=ending,
        diverged=(*player.diverged, *regraded),
        missed=tuple(player.missed),
        unasked=unasked,
        went_live=went_live,
        fired=injector.fired if injector else 0,
        no_site=tuple(injector.no_site) if injector else (),
        unfired=injector.unfired if injector else (),
        saved=tuple(x.seq for x in player.saved),
        matched=player.matched,
        cascades=player.cascade_count,
        drifted=pin.drift_count if pin else None,
        untrusted=agent.untrusted,
        refusals=dict(session.refusals),
        warnings=agent.warnings,
        attempts=agent.attempts,
        kept=place.kept,
    )


def _make_replay_head(
    recorded: Trajectory, plan: ReplayPlan, launch: AgentLauncher, id: str, rules: tuple[str, ...]
) -> Trajectory:
    workspace = plan.workspace
    head = Trajectory(
        id=id,
        recorded_at=0.0,
        world="fresh" if plan.world else "recorded",
        source=plan.source,
        condition=plan.condition,
        seed=plan.seed,
        parent=recorded.id,
        forked_at=plan.fork.name if plan.fork else None,
        tools=recorded.tools,
        equivalent=recorded.equivalent,
        upstreams=recorded.upstreams,
        rules=rules,
        volatile=recorded.volatile,
        workspace=str(workspace.path) if workspace else None,
        snapshot=workspace.snapshot if workspace else None,
    )
    return label_trajectory(head, plan.labels.with_defaults_from(recorded), launch)


def _compare_run_events(recording: Tape, budgets: BudgetTap | None) -> tuple[str, ...]:
    """Describe run events of a strict replay that differ from those of its recording."""
    return tuple(describe_stage_differences(recording.marks, budgets.marks)) if budgets else ()


def _leave_unredacted(request: Request) -> Request:
    return request


def _describe_unasked_exchange(exchange: Exchange) -> str:
    return f"exchange {exchange.seq}, {exchange.request.method} {exchange.request.url}"
