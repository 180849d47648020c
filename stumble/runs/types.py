"""Types of a run: its plan, its labels and its result; and how its tape ends.

    open a tape - start the listener with its taps - build the agent's environment - start the
    agent and pass its output through - stop everything - ask the verifier - close the tape

`stumble.runs.record` puts mitmproxy in front of the live world. `stumble.runs.replay` puts the
replay server in front, with a recording behind it and, only if something may go live, an inner
mitmproxy as its upstream. Both write the same tape.
"""

import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from copy import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from recorder.agent.blocked_connections import BlockedConnection
from recorder.agent.isolation import AgentIsolation
from recorder.agent.process import AgentExit
from recorder.agent.run_limits import RunLimits
from replay.fork_state import Fork
from replay.live_prefix import AnswerControls
from replay.matching.index import RequestMatch
from replay.matching.rules import MatchRule
from replay.player import OnMiss
from replay.prompt_edit import PromptEdit
from scenarios.effect_ledger import EffectReading, LedgerWorld
from scenarios.world import CommandWorld, EndState, World
from stumble.llm.model_choice import ModelChoice
from stumble.runs.environment.base_urls import BaseUrlMapping
from stumble.runs.environment.upstream_trust import NO_MORE_TRUST, UpstreamTrust
from stumble.runs.environment.workspaces import RecordedWorkspace
from traces.conversation.classify import ExchangeKind
from traces.conversation.derived_steps import ToolUse
from traces.conversation.tracker import ConversationTap
from traces.model import Condition, EndReason, RunEnding, Trajectory
from traces.store.store_dir import StoreDirectory
from traces.tape.writer import TapeWriter

if TYPE_CHECKING:
    from faults.targeting.bound_fault import BoundFault
    from recorder.agent.agent_input import PipedInput
    from recorder.agent.typed_input import RecordedTerminal
    from stumble.runs.injection import InjectionPlan
    from stumble.runs.write_guard import WriteGuard

type Hosts = Mapping[str, tuple[str, int]]


class AgentLauncher(Protocol):
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
        cage: AgentIsolation | None = None,
        cwd: Path | None = None,
    ) -> Coroutine[None, None, AgentExit]:
        """`command` is the agent's with what an adapter added for this run."""


class RunLabels(Struct, frozen=True, kw_only=True):
    """Labels of a run in the store; all of them optional."""

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
    seal: str | None = None
    """The digest of the sealed plan that the run belongs to."""

    def with_defaults_from(self, parent: Trajectory) -> "RunLabels":
        """These, and the parent's where these say nothing; an experiment has its own runs alone."""
        return RunLabels(
            agent=self.agent or parent.agent,
            model=self.model or parent.model,
            scenario=self.scenario or parent.scenario,
            task=self.task or parent.task,
            trial=self.trial if self.trial is not None else parent.trial,
            campaign=self.campaign,
            cell=self.cell,
            experiment=self.experiment,
            controls=self.controls,
            seal=self.seal,
        )


class RunEnvironment(Struct, frozen=True, kw_only=True):
    """What the runs of one agent have in common: hosts, world, agent, labels and workspace."""

    hosts: Hosts
    world: World | None
    launch: Callable[[str], AgentLauncher]
    """Returns the launcher of the run of that name."""
    labels: RunLabels
    workspace: RecordedWorkspace | None = None
    """The folder of which each run gets a copy; None runs the agent in place."""
    trust: UpstreamTrust = NO_MORE_TRUST


class RecordPlan(Struct, frozen=True, kw_only=True):
    """Plan of one run against the live world: its world, its labels and its recording options."""

    hosts: Hosts = field(default_factory=dict)
    world: World | None = None
    labels: RunLabels = field(default_factory=RunLabels)
    tools: Mapping[str, str] = field(default_factory=dict)
    equivalent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    redact: bool = True
    websocket: bool = True
    """Whether the agent may open WebSockets; a run with faults declines them."""
    upstreams: tuple[BaseUrlMapping, ...] = ()
    workspace: Path | None = None
    snapshot: str | None = None
    store: StoreDirectory | None = None
    """Keeps the files that the run left in its workspace."""
    armed: "tuple[BoundFault, ...]" = ()
    """Faults to inject into the live run."""
    seed: int = 0
    marked: bool = False
    """Whether the command may report run events, which the tape keeps."""
    before: str | None = None
    """The run that this one continues."""
    trust: UpstreamTrust = NO_MORE_TRUST
    input: "PipedInput | RecordedTerminal | None" = None
    """What the launcher gives the agent as standard input, to be kept."""
    copies: RecordedWorkspace | None = None
    """The folder of which the run gets a copy; None runs the agent in place."""
    guard: "WriteGuard | None" = None
    """Stops the run at the first request that may change something outside of its copy."""
    observed: bool = False
    """Whether the files left are its end state, as no command verifies it."""


class ReplayPlan(Struct, frozen=True, kw_only=True):
    """Plan of one replayed run: what comes from the tape, what is live, what is injected."""

    source: str = "replay"
    condition: Condition = "clean"
    live: Collection[ExchangeKind] = ()
    fork: Fork | None = None
    injection_plan: "InjectionPlan | None" = None
    world: World | None = None
    seed: int = 0
    rep: int = 0
    speed: float = 0
    rules: tuple[MatchRule, ...] = ()
    """Request differences to accept, in addition to the recording's rules."""
    on_miss: OnMiss = "refuse"
    after_miss: float | None = None
    """Seconds after a refused request until the agent is ended, if nothing else is answered; None
    lets it go on."""
    pin: tuple[ToolUse, ...] = ()
    """Recorded calls whose results replace those of this run."""
    other_model: ModelChoice | None = None
    """The model that live model requests are sent to; None for the one that the agent names."""
    prompt_edits: tuple[PromptEdit, ...] = ()
    """Texts of the prompt that are replaced in live model requests."""
    workspace: RecordedWorkspace | None = None
    """The folder of which this run gets a copy; None runs the agent in place."""
    confined: bool = True
    """Whether an agent that is alone has a PID and a user namespace of its own."""
    limits: RunLimits | None = None
    """What such an agent may use at most."""
    alone: bool = False
    """Whether the agent runs in a network namespace that contains only the proxy."""
    labels: RunLabels = field(default_factory=RunLabels)
    remade: int = 0
    """How many runs left the recording before the fork, and were made again as this one."""
    controls: AnswerControls = field(default_factory=AnswerControls)
    """What the runs of one fork know about the live answers before it."""
    observed: bool = False
    """Whether the end is judged by what the run did, as no command verifies it."""

    @property
    def can_go_live(self) -> bool:
        """Whether anything may go live."""
        return bool(self.live) or self.fork is not None or self.on_miss == "live"


MAX_UNASKED = 1000
"""Recorded requests that never came and are listed: of a large tape, none is read beyond them."""


class RunResult(Struct, frozen=True, kw_only=True):
    """Result of a finished run: its tape, the agent's exit, the player's and injector's counts."""

    id: str
    path: Path
    exit: AgentExit
    ending: RunEnding
    diverged: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    """The first MAX_UNASKED exchanges that a replay without a fork did not request, as `exchange
    SEQ, METHOD URL`."""
    unasked_more: int = 0
    background: tuple[str, ...] = ()
    """Endpoints of requests that a rule left out of the comparison."""
    """Recorded exchanges that were not used either, and not read."""
    answered_by: Mapping[str, int] = field(default_factory=dict)
    """How many exchanges each answerer answered (see `traces.model.Exchange.answered_by`)."""
    went_live: int = 0
    """Requests that are not in the recording and that `on_miss="live"` sent upstream."""
    fired: int = 0
    no_site: tuple[str, ...] = ()
    """Why no fault could be injected into calls that were reached."""
    unfired: tuple[str, ...] = ()
    """The names of faults that reached no call at all."""
    saved: tuple[int, ...] = ()
    matched: Mapping[int, RequestMatch] = field(default_factory=dict)
    """What each request, by its seq, was answered with, and why."""
    cascades: int = 0
    """Lanes that a fork was not made in and that went live."""
    drifted: int | None = None
    """Number of pinned results of local tools; None if pinning was not requested."""
    substituted: int = 0
    """Values of live answers before the fork for which the agent got the recorded ones."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Recorded values that live requests had another value for: ids that the world made anew."""
    remade: int = 0
    """How many runs left the recording before the fork, and were made again as this one."""
    untrusted: Mapping[str, str] = field(default_factory=dict)
    """Hosts for which the agent did not take our certificate, and why: nothing was seen there."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """The user's proxies that did not take our login, and what to do."""
    warnings: tuple[str, ...] = ()
    """Traffic of the agent's MCP servers that is not recorded, and what to do."""
    attempts: Mapping[BlockedConnection, int] = field(default_factory=dict)
    temporary: tuple[Path, ...] | None = None
    """The user's temporary files that the agent kept; None if all of them."""
    """Connections that an agent tried past the proxy, and how often."""
    unteed: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """Commands of MCP servers over stdio that had no tee, and how often each was started."""
    kept: Path | None = None
    """The agent's workspace copy, if it was to be kept."""
    next_command: str = ""
    """What is worth running after a recording."""


def classify_ending(exit: AgentExit, watch: ConversationTap) -> EndReason:
    """How a run ended, from the exit and the last thing a model said.

    An agent that exits with an error after its final answer has ended with a final answer;
    one that exits with an error while calls were open has crashed. One that we were told to stop
    says nothing of itself.
    """
    if exit.signal is not None:
        return "harness"
    if exit.out_of_budget:
        return "budget"
    last = watch.conversations.last
    final = last is not None and not last.calls and last.finish is not None
    return "final" if exit.code == 0 or final else "crash"


def label_trajectory(head: Trajectory, labels: RunLabels, launch: AgentLauncher) -> Trajectory:
    """Return the head of a tape with the run's labels and the agent's command."""
    return replace(
        head,
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
        seal=labels.seal,
        command=launch.command,
        warm=launch.warm,
    )


async def write_run_ending(
    tape: TapeWriter,
    watch: ConversationTap,
    exit: AgentExit,
    world: World | None,
    began: float,
    left: Collection[str] = (),
    missed: Collection[str] = (),
    unseen: Collection[str] = (),
    files: EndState | None = None,
) -> RunEnding:
    """Ask the verifier and write how the run ended, and what nothing could be seen of.

    Only a run that the agent itself brought to an end is verified: what diverged, ran out of
    budget, asked for what no tape holds or was stopped by us neither passed nor failed. `files` is
    the end state if no command prints one.
    """
    at = time.monotonic() - began
    how: EndReason = (
        "diverged" if left else "replay_miss" if missed else classify_ending(exit, watch)
    )
    judged = world is not None and how in ("final", "crash")
    said = watch.conversations.said
    verdict = await world.verify(said) if world is not None and judged else None
    state = (verdict.state if verdict else None) or files
    judgement = verdict.detail if verdict else None
    effects = await _read_effects(world, how)
    ending = RunEnding(
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
        effects=effects.counts if effects else {},
        effect_names=effects.names if effects else {},
        effects_of=effects.of if effects else None,
        effects_unknown=effects.why if effects else None,
        printed="" if watch.conversations.last else exit.printed,
    )
    tape.write_ending(ending)
    return ending


async def _read_effects(world: World | None, how: EndReason) -> EffectReading | None:
    """Read the ledger of a run that its agent ended, or that ran out of budget: a loop may pay."""
    if not isinstance(world, LedgerWorld) or how not in ("final", "crash", "budget"):
        return None
    return await world.read_effects()
