"""A fork with its controls: one faulted continuation of a prefix, and k clean ones.

The clean twins are shams at the same site, so that all of them are held back, left and made
live in exactly the same way; what differs is the lie alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from faults.atoms import atoms
from faults.binding import bind
from faults.judge import TWINS
from faults.nemesis import Armed
from faults.seen import Seen, seen
from faults.site import Site, select, settled
from replay.lanes import Fork
from scenarios.world import World
from stumble.runs import Labels, Launch, Plan, Played, Strike, Theatre, play
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
        use = self.told.use(self.site.call_id)
        step = f" (step {use.step})" if use else ""
        bent = " and ".join(_bent(armed.fault) for armed in self.armed if armed.site)
        later = "".join(f"; then {_bent(a.fault)}" for a in self.armed if a.site is None)
        return f"{self.site.tool}{step} at {self.site.place} with {bent}{later}"


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
    sites = [select(told, fault, bind(fault), seed=seed, rep=rep) for fault in faults]
    first = min(sites, key=lambda site: len(site.before))
    armed = [
        Armed(fault=fault, site=site)
        if len(site.before) == len(first.before)
        else Armed(fault=replace(settled(told, fault, seed=seed, rep=rep), at=site.place))
        for fault, site in zip(faults, sites, strict=True)
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
        ),
        strike=strike,
        world=world,
        seed=seed,
        rep=rep,
        labels=labels or Labels(),
        workspace=workspace,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """What a fork with its controls gave."""

    faulted: Played | None
    """None where a clean twin already left the recording, or we were told to stop."""
    twins: tuple[Played, ...]

    @property
    def runs(self) -> tuple[Played, ...]:
        """All of them, in the order in which they were run."""
        return self.twins if self.faulted is None else (*self.twins, self.faulted)


async def fork(
    house: Theatre,
    found: Branch,
    launch: Callable[[Condition, int], Launch],
    folder: Path,
    *,
    world: World | None = None,
    seed: int = 0,
    twins: int = TWINS,
    labels: Labels | None = None,
    workspace: Workspace | None = None,
    progress: Callable[[str], object] = lambda what: None,
) -> Forked:
    """Run k clean continuations and one faulted one, each onto a tape of its own.

    With a workspace each has a copy of its own.
    """

    def planned(condition: Condition, rep: int = 0) -> Plan:
        return plan(
            found, condition, world=world, seed=seed, rep=rep, labels=labels, workspace=workspace
        )

    clean = []
    for rep in range(twins):
        progress(f"clean twin {rep + 1} of {twins}")
        twin = planned("clean", rep)
        clean.append(await play(house, found.recording, folder, twin, launch("clean", rep)))
        if clean[-1].diverged or clean[-1].exit.signal:
            return Forked(faulted=None, twins=tuple(clean))
    progress("faulted run")
    faulted = await play(house, found.recording, folder, planned("fault"), launch("fault", 0))
    return Forked(faulted=faulted, twins=tuple(clean))
