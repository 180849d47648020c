"""A fork with its controls: k faulted continuations of a prefix, and k clean ones.

The clean twins are shams at the same site, so that all of them are held back, left and made
live in exactly the same way; what differs is the lie alone.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from faults.armed import Armed
from faults.atoms import atoms
from faults.binding import bind
from faults.judge import TWINS
from faults.seen import Seen, seen
from faults.site import Site, select, settled, trace
from faults.turns import numbered
from replay.lanes import Fork
from replay.pin import pinnable
from scenarios.world import World
from stumble.home import new_experiment
from stumble.playing import play
from stumble.runs import Labels, Launch, Plan, Played
from stumble.strikes import Strike
from stumble.theatre import Theatre
from stumble.workspaces import Workspace
from traces.model import Condition, Fault
from traces.story import Story, tell
from traces.tape import Tape

SHAM = "sham"


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A place in a recording to fork at, and all that its runs have in common."""

    recording: Tape
    told: Story
    site: Site
    """The first call that is struck."""
    armed: tuple[Armed, ...]
    """The faults, and which of them begin with that call; the others count as the run goes on."""
    background: frozenset[str]
    seen: Seen

    @property
    def fault(self) -> Fault:
        """The first fault."""
        return self.armed[0].fault

    @property
    def strike(self) -> Strike:
        """What is struck in a run."""
        return Strike(armed=self.armed, site=self.site, background=self.background, seen=self.seen)

    def describe(self) -> str:
        """`issue_refund (step 7) at http with http_status(code=503), once`."""
        bent = " and ".join(_bent(armed.fault) for armed in self.armed if armed.site)
        later = "".join(f"; then {_bent(a.fault)}" for a in self.armed if a.site is None)
        return f"{self._what()} at {self.site.place} with {bent}{later}"

    def _what(self) -> str:
        if self.site.turn is not None:
            return numbered(self.site.turn)
        use = self.told.use(self.site.call_id)
        return self.site.tool + (f" (step {use.step})" if use else "")


def _bent(fault: Fault) -> str:
    operator = bind(fault)
    chosen = operator.effective(fault.params)
    params = ", ".join(f"{key}={value}" for key, value in chosen.items() if value != "")
    return f"{operator.name}({params}), {fault.persist}"


def branch(
    recording: Tape,
    faults: Fault | Sequence[Fault],
    told: Story | None = None,
    *,
    seed: int = 0,
    rep: int = 0,
) -> Branch:
    """The branch that a fault asks for, or that of several at the first call they strike.

    ValueError or LookupError, before anything starts, where a fault or its site is wrong.
    """
    faults = (faults,) if isinstance(faults, Fault) else faults
    told = told or tell(recording)
    places = {fault.at for fault in faults}
    if "model" in places and len(places) > 1:
        raise ValueError("faults at the model and faults at tools cannot strike together")
    sites = [select(told, fault, bind(fault), seed=seed, rep=rep) for fault in faults]
    first, named = min(sites, key=lambda site: len(site.before)), trace(told)
    settled_ones = [settled(told, fault, seed=seed, rep=rep) for fault in faults]
    armed = [
        Armed(fault=fault, site=site, trace=named)
        if len(site.before) == len(first.before)
        else Armed(fault=replace(fault, at=site.place), trace=named)
        for fault, site in zip(settled_ones, sites, strict=True)
    ]
    return Branch(
        recording=recording,
        told=told,
        site=first,
        armed=tuple(sorted(armed, key=lambda each: each.site is None)),
        background=background(told),
        seen=seen(told, recording.exchanges),
    )


def background(told: Story) -> frozenset[str]:
    """All atoms of a recording: a wrong value must be none of them, so that it can be traced."""
    texts = [step.message for step in told.steps]
    for use in told.uses:
        texts += [use.arguments, use.result or ""]
    return frozenset().union(*(atoms(text) for text in texts)) if texts else frozenset()


def plan(
    found: Branch,
    condition: Condition,
    *,
    world: World | None,
    seed: int,
    rep: int = 0,
    pin: bool = False,
    labels: Labels | None = None,
    workspace: Workspace | None = None,
) -> Plan:
    """The plan of one continuation: faulted, or a sham at the same site."""
    strike = found.strike
    if condition != "fault":
        # A sham stands where the first fault stands, once: it has nothing to persist.
        fault = Fault(name=SHAM, at=found.fault.at)
        strike = replace(strike, armed=(Armed(fault=fault, site=found.site),))
    return Plan(
        source="fork",
        condition=condition,
        fork=Fork(
            found.site.call_id,
            None if found.site.alone else found.site.prefix,
            world is not None,
            found.site.turn,
        ),
        strike=strike,
        world=world,
        seed=seed,
        rep=rep,
        pin=pinnable(found.told.uses) if pin else (),
        labels=labels or Labels(),
        workspace=workspace,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """One run of a fork."""

    condition: Condition
    rep: int
    of: int

    def __str__(self) -> str:
        if self.condition == "clean":
            return f"clean twin {self.rep + 1} of {self.of}"
        return "faulted run" if self.of == 1 else f"faulted run {self.rep + 1} of {self.of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A branch, and how often and in what surroundings it is gone on from.

    ValueError where results are to be pinned and there are none.
    """

    found: Branch
    twins: int = TWINS
    times: int = 1
    """How many faulted runs there are."""
    confirm: bool = False
    """Whether as many runs as there are twins meet one same strike, and as many a second one."""
    world: World | None = None
    seed: int = 0
    pin: bool = False
    workspace: Workspace | None = None
    labels: Labels = field(default_factory=lambda: Labels(experiment=new_experiment()))
    """What all of its runs are called: they are one experiment."""
    condition: Condition | None = None
    """What its runs count as; None for clean and fault, by what strikes them."""

    def __post_init__(self) -> None:
        if self.pin and not pinnable(self.found.told.uses):
            raise ValueError(
                "--pin puts the recorded results of local tools into requests, and this recording "
                "has none: leave it out"
            )

    def continuations(self) -> tuple[Continuation, ...]:
        """All runs, the clean ones first: one that leaves the recording ends it."""
        clean = (Continuation(condition="clean", rep=n, of=self.twins) for n in range(self.twins))
        times = 2 * self.twins if self.confirm else self.times
        faulted = (Continuation(condition="fault", rep=n, of=times) for n in range(times))
        return (*clean, *faulted)

    def plan(self, each: Continuation) -> Plan:
        """The plan of one of them."""
        planned = plan(
            self.found,
            each.condition,
            world=self.world,
            seed=self.seed,
            rep=each.rep // self.twins if self.confirm else each.rep,
            pin=self.pin,
            labels=self.labels,
            workspace=self.workspace,
        )
        return replace(planned, condition=self.condition or planned.condition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """What a fork with its controls gave so far."""

    wanted: tuple[Continuation, ...]
    played: dict[Continuation, Played] = field(default_factory=dict)
    """The runs that are over, whichever was first."""

    @property
    def runs(self) -> tuple[Played, ...]:
        """All runs that are over, in the order in which they were wanted."""
        return tuple(self.played[each] for each in self.wanted if each in self.played)

    @property
    def finished(self) -> tuple[Played, ...]:
        """Those that were not ended by a signal to us."""
        return tuple(run for run in self.runs if run.exit.signal is None)

    def of(self, condition: Condition) -> tuple[Played, ...]:
        """The finished runs of that condition."""
        wanted = (each for each in self.wanted if each.condition == condition)
        played = (self.played[each] for each in wanted if each in self.played)
        return tuple(run for run in played if run.exit.signal is None)


type Launching = Callable[[Continuation], Launch]


async def fork(
    house: Theatre,
    design: Design,
    forked: Forked,
    launch: Launching,
    folder: Path,
    *,
    jobs: int = 1,
    progress: Callable[[str], object] = lambda what: None,
) -> None:
    """Run the continuations, `jobs` at once, each onto a tape of its own.

    No more are started once one has left the recording, and all end once we are told to end. What
    is over is in `forked`, whatever happens; ChildProcessError where a world could not be set
    back.
    """
    todo = iter(forked.wanted)

    async def work() -> bool:
        """Whether all may go on."""
        for each in todo:
            if any(run.diverged for run in forked.runs):
                break
            progress(str(each))
            played = await play(
                house, design.found.recording, folder, design.plan(each), launch(each)
            )
            forked.played[each] = played
            if played.exit.signal is not None:
                return False
            if jobs > 1:
                progress(f"{len(forked.played)} of {len(forked.wanted)} are over")
        return True

    workers = [asyncio.create_task(work()) for _ in range(jobs)]
    try:
        for worker in asyncio.as_completed(workers):
            if not await worker:
                break
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
