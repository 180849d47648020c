"""A run: what is asked of it, how it begins and how it ends.

    open a tape - start the listener with its taps - build the agent's environment - start the
    agent and pass its output through - stop everything - ask the verifier - close the tape

`stumble.recording` puts mitmproxy in front of the live world. `stumble.playing` puts the
performer in front, with a recording behind it and, only where something may go live, an inner
mitmproxy as the way out. Both write the same tape.
"""

import time
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from recorder.attempts import Attempt
from recorder.cage import Cage
from recorder.process import Ended as Exit
from replay.lanes import Fork
from replay.match import Match
from replay.player import OnMiss
from replay.rules import Rule
from scenarios.world import CommandWorld, World
from stumble.workspaces import Workspace
from traces.conversation import Watch
from traces.kind import Kind
from traces.model import Condition, Ended, Ending, Trajectory
from traces.story import ToolUse
from traces.tape import Writer
from traces.volatile import VERSION

if TYPE_CHECKING:
    from stumble.strikes import Strike

type Hosts = Mapping[str, tuple[str, int]]


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
    campaign: str | None = None
    cell: str | None = None
    experiment: str | None = None
    """The fork or campaign that it is part of."""
    controls: tuple[str, ...] = ()
    """The cells of its clean twins, where a campaign plans them."""

    def over(self, parent: Trajectory) -> "Labels":
        """These, and the parent's where these say nothing; an experiment has its own runs alone."""
        return Labels(
            agent=self.agent or parent.agent,
            model=self.model or parent.model,
            scenario=self.scenario or parent.scenario,
            task=self.task or parent.task,
            trial=self.trial if self.trial is not None else parent.trial,
            campaign=self.campaign,
            cell=self.cell,
            experiment=self.experiment,
            controls=self.controls,
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


def trajectory(
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
    equivalent: Mapping[str, tuple[str, ...]] | None = None,
    upstreams: Mapping[str, tuple[str, ...]] | None = None,
    rules: tuple[str, ...] = (),
    volatile: int = VERSION,
    workspace: Path | None = None,
    snapshot: str | None = None,
) -> Trajectory:
    """What a tape says first: whose run it is, and of what."""
    return Trajectory(
        id=id,
        recorded_at=time.time(),
        agent=labels.agent,
        model=labels.model,
        scenario=labels.scenario,
        task=labels.task,
        trial=labels.trial,
        campaign=labels.campaign,
        cell=labels.cell,
        experiment=labels.experiment,
        controls=labels.controls,
        condition=condition,
        world=world,  # type: ignore[arg-type]
        seed=seed,
        parent=parent,
        forked_at=forked_at,
        source=source,
        command=launch.command,
        warm=launch.warm,
        tools=tools or {},
        equivalent=equivalent or {},
        upstreams=upstreams or {},
        rules=rules,
        volatile=volatile,
        workspace=str(workspace) if workspace else None,
        snapshot=snapshot,
    )


async def close(
    tape: Writer,
    watch: Watch,
    exit: Exit,
    world: World | None,
    began: float,
    left: Collection[str] = (),
    missed: Collection[str] = (),
    unseen: Collection[str] = (),
) -> Ending:
    """Ask the verifier and write how the run ended, and what nothing could be seen of.

    Only a run that the agent itself brought to an end is verified: what diverged, ran out of
    budget, asked for what no tape holds or was stopped by us neither passed nor failed.
    """
    at = time.monotonic() - began
    how: Ended = "diverged" if left else "replay_miss" if missed else ended(exit, watch)
    judged = world is not None and how in ("final", "crash")
    said = watch.conversations.said
    verdict = await world.verify(said) if world is not None and judged else None
    state = verdict.state if verdict else None
    judgement = verdict.detail if verdict else None
    ending = Ending(
        ended=how,
        exit_code=exit.code,
        passed=verdict.passed if verdict else None,
        verifier=type(world).__name__ if world is not None else None,
        at=at,
        detail=next(iter((*left, *missed)), judgement or next(iter(unseen), judgement)),
        state=state.digest if state else None,
        state_text=state.text if state else "",
        state_of=state.of if state else None,
        verifier_of=world.digest if isinstance(world, CommandWorld) else None,
    )
    tape.ending(ending)
    return ending
