"""Replay one run: the agent again, against a recording."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from copy import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from replay.matching.rules import MatchRules, parse_match_rule
from replay.model_substitution import ModelSubstitution
from replay.player import PlaybackOptions, TapePlayer
from replay.prompt_edit import PromptSubstitution
from replay.result_pinning import ResultPinning
from scenarios.pipeline.replay_check import Pipeline
from scenarios.world import EndState, World
from stumble.runs.budgets import BudgetTap, find_event_listeners
from stumble.runs.environment.base_urls import restore_base_urls
from stumble.runs.environment.outside_changes import settle_outside_changes
from stumble.runs.environment.run_files import describe_end_of_files, keep_files_of_copy
from stumble.runs.environment.workspaces import IN_PLACE, RunLocation
from stumble.runs.environment.worlds import is_world_in_workspace, lock_world
from stumble.runs.launcher import with_recorded_input
from stumble.runs.miss_timer import MissTimer
from stumble.runs.session import ReplaySession, RunOptions, run_agent
from stumble.runs.types import (
    MAX_UNASKED,
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
from traces.tape.reader import Tape
from traces.tape.writer import TapeWriter

if TYPE_CHECKING:  # a replay without a fault does not load the operators
    from faults.injector.injector import FaultInjector


async def run_replay(
    session: ReplaySession, recording: Tape, folder: Path, plan: ReplayPlan, launch: AgentLauncher
) -> RunResult:
    """Run the agent once more against a recording, onto a new tape named after its run."""
    shared = None if plan.workspace and is_world_in_workspace(plan.world) else plan.world
    at = plan.workspace.path if plan.workspace else None
    async with lock_world(shared, at):
        with plan.workspace.copy() if plan.workspace else nullcontext(IN_PLACE) as place:
            return await _run_replay_session(session, recording, folder, plan, launch, place)


MAX_ATTEMPTS = 3
"""How often a run of a fork is made that leaves the recording before the fork."""


async def run_until_it_follows(
    session: ReplaySession,
    recording: Tape,
    folder: Path,
    plan: ReplayPlan,
    make_launcher: Callable[[], AgentLauncher],
) -> RunResult:
    """Make a run of a fork again, at most twice, if it left the recording before the fork.

    Nothing was injected then, so the run says nothing about the fault: the agent's parallel
    requests raced, or a live answer had a value that only another run can tell from a change.
    """
    for number in range(MAX_ATTEMPTS):
        again = replace(plan, remade=number)
        result = await run_replay(session, recording, folder, again, make_launcher())
        left = bool(result.diverged) and result.exit.signal is None
        if not left or number == MAX_ATTEMPTS - 1:
            break
        result.path.unlink(missing_ok=True)
    return result


class _ReplayTaps(Struct, frozen=True, kw_only=True):
    """What takes part in one replayed run, in the order in which it sees an exchange."""

    pin: ResultPinning | None
    watch: ConversationTap
    injector: "FaultInjector | None"
    player: TapePlayer
    misses: MissTimer | None
    budgets: BudgetTap | None
    substitution: ModelSubstitution | None
    prompt: PromptSubstitution | None

    def __iter__(self) -> Iterator[object]:
        sent = (self.misses, self.budgets, self.substitution, self.prompt)
        prefix = self.player.prefix if self.player.compares_prefix else None
        return iter((self.pin, self.watch, prefix, self.injector, self.player, *sent))


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
    began, run, halted = time.monotonic(), new_trajectory_id(), asyncio.Event()
    if plan.can_go_live and session.route is None:
        raise ValueError("cannot go live: the session was opened without a way out")
    head = _make_replay_head(recording.trajectory, plan, launch, run)
    path = folder / f"{run}.tape"
    secrets = load_user_secrets()
    with TapeWriter(
        path, head, secrets=secrets, recorded=recording.redactions, origin_key=secrets.key
    ) as tape:
        taps = _make_replay_taps(
            recording,
            plan,
            head,
            tape,
            began=began,
            world=world,
            halted=halted,
            key=secrets.key,
        )
        if recording.input is not None:
            tape.write_input(recording.input)
        agent = await run_agent(
            session,
            with_recorded_input(launch, recording, taps.watch),
            taps,
            tape,
            RunOptions(
                out=plan.can_go_live,
                upstreams=restore_base_urls(recording.trajectory.upstreams),
                place=place,
                zone=recording.trajectory.zone,
                alone=plan.alone,
                confined=plan.confined,
                limits=plan.limits,
                cues=taps.player.find_message_timings,
                retold=taps.player.rewrite_message,
                is_due=taps.player.is_chunk_due,
                halted=halted,
                budgets=taps.budgets,
                other_model=plan.other_model,
            ),
            began=began,
        )
        files, files_unknown = await _keep_files(run, plan, place)
        outside = await asyncio.to_thread(settle_outside_changes, place, live=plan.can_go_live)
        found = _find_differences(recording, plan, taps)
        left = (*found.diverged, *(() if found.went_live else found.unasked))
        missed = taps.player.missed
        ending = await write_run_ending(
            tape, taps.watch, agent.exit, world, began, left, missed, files=files
        )
    await asyncio.to_thread(tape_files.seal_finished_tape, path)
    player, injector = taps.player, taps.injector
    return RunResult(
        id=run,
        path=path,
        exit=agent.exit,
        ending=ending,
        diverged=found.diverged,
        missed=tuple(missed),
        unasked=found.unasked,
        unasked_more=found.unasked_more,
        background=tuple(player.background),
        answered_by=tape.count_answers(),
        went_live=found.went_live,
        fired=injector.fired if injector else 0,
        no_site=tuple(injector.no_site) if injector else (),
        unfired=injector.unfired if injector else (),
        saved=tuple(x.seq for x in player.saved),
        matched=player.matched,
        cascades=player.cascade_count,
        drifted=taps.pin.drift_count if taps.pin else None,
        substituted=player.prefix.substituted,
        renamed=dict(player.prefix.renamed),
        remade=plan.remade,
        untrusted=agent.untrusted,
        refusals=agent.refusals,
        warnings=(*agent.warnings, *files_unknown, *outside, *_check_prompt(taps.prompt)),
        attempts=agent.attempts,
        temporary=agent.kept,
        kept=place.kept,
    )


async def _keep_files(
    run: str, plan: ReplayPlan, place: RunLocation
) -> tuple[EndState | None, tuple[str, ...]]:
    """Keep what the agent left in its copy; return it as an end state, or why it is not known."""
    if plan.workspace is None:
        return None, ()
    try:
        left = await asyncio.to_thread(keep_files_of_copy, run, place, plan.workspace.blobs)
    except (OSError, ValueError) as error:
        return None, (f"workspace: what the run left in its copy is not kept: {error}",)
    if not plan.observed or left is None:
        return None, ()
    return describe_end_of_files(left, place.at_start), ()


def _make_replay_taps(
    recording: Tape,
    plan: ReplayPlan,
    head: Trajectory,
    tape: TapeWriter,
    *,
    began: float,
    world: World | None,
    halted: asyncio.Event,
    key: bytes,
) -> _ReplayTaps:
    watch = ConversationTap(recording.trajectory.tools, recording.exchanges)
    redact = _leave_unredacted if recording.verbatim else tape.redactor.redact_request
    rules = MatchRules(map(parse_match_rule, head.rules), volatile=recording.trajectory.volatile)
    player = TapePlayer(
        recording,
        watch,
        options=PlaybackOptions(
            live=plan.live,
            fork=plan.fork,
            speed=plan.speed,
            on_miss=plan.on_miss,
            halt=halted.set,
            controls=plan.controls,
            given=plan.workspace.find_placeholders() if plan.workspace else (),
        ),
        redact=redact,
        rules=rules,
        key=key,
    )
    pin = ResultPinning(plan.pin, player.saved, redact=redact, rules=rules) if plan.pin else None
    injector = None
    if plan.injection_plan is not None:
        injector = plan.injection_plan.make_injector(
            watch,
            tape.write_injection,
            run=head.id,
            seed=plan.seed,
            rep=plan.rep,
            world=plan.world is not None or plan.observed,
        )
    budgets, other = None, plan.other_model
    if recording.marks:
        forked, also = plan.fork is not None, find_event_listeners(world)
        budgets = BudgetTap(
            watch, tape, began=began, run=head.id, timed=forked, strict=not forked, also=also
        )
        if recording.cut_at is not None and not plan.can_go_live:
            budgets.most_events, budgets.reach_cut = len(recording.marks), halted.set
    return _ReplayTaps(
        pin=pin,
        watch=watch,
        injector=injector,
        player=player,
        misses=MissTimer(plan.after_miss, halted.set) if plan.after_miss is not None else None,
        budgets=budgets,
        substitution=ModelSubstitution(other.name) if other and not other.provider else None,
        prompt=PromptSubstitution(plan.prompt_edits) if plan.prompt_edits else None,
    )


def _check_prompt(prompt: PromptSubstitution | None) -> Iterator[str]:
    if prompt is not None and not prompt.edited:
        yield "prompt: no live request had the text to replace, so the run went on without the edit"


class _Differences(NamedTuple):
    """How a replay differed from its recording."""

    diverged: tuple[str, ...]
    unasked: tuple[str, ...]
    unasked_more: int
    went_live: int


def _find_differences(recording: Tape, plan: ReplayPlan, taps: _ReplayTaps) -> _Differences:
    player, regraded = taps.player, tuple[str, ...]()
    if taps.budgets and not plan.can_go_live and not plan.injection_plan:
        marks = taps.budgets.marks[: taps.budgets.most_events]
        regraded = tuple(describe_stage_differences(recording.marks, marks))
    listed = () if plan.fork else player.list_unasked(MAX_UNASKED)
    more = player.unused_count - len(listed) if len(listed) == MAX_UNASKED else 0
    went_live = len(player.went_live) if plan.on_miss == "live" else 0
    return _Differences(
        (*player.diverged, *regraded),
        tuple(map(_describe_unasked_exchange, listed)),
        more,
        went_live,
    )


def _make_replay_head(
    recorded: Trajectory, plan: ReplayPlan, launch: AgentLauncher, id: str
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
        rules=tuple(dict.fromkeys((*recorded.rules, *map(str, plan.rules)))),
        volatile=recorded.volatile,
        workspace=str(workspace.path) if workspace else None,
        snapshot=workspace.snapshot if workspace else None,
        zone=recorded.zone,
        remade=plan.remade,
    )
    return label_trajectory(head, plan.labels.with_defaults_from(recorded), launch)


def _leave_unredacted(request: Request) -> Request:
    return request


def _describe_unasked_exchange(exchange: Exchange) -> str:
    return f"exchange {exchange.seq}, {exchange.request.method} {exchange.request.url}"
