"""Fault injection for a run: a module apart, so that runs without faults load no fault code."""

import time
from collections.abc import Callable
from copy import replace

from msgspec import Struct

from faults.injector.injector import FaultInjector, RunSeeds
from faults.targeting.bound_fault import BoundFault
from faults.targeting.live_observations import LiveObservations
from faults.targeting.observations import NO_OBSERVATIONS, CleanObservations
from faults.targeting.site import InjectionSite
from traces.conversation.tracker import ConversationTap
from traces.model import Injection


class InjectionPlan(Struct, frozen=True, kw_only=True):
    """Faults, the first of them bound to a site of the recording."""

    bound_faults: tuple[BoundFault, ...]
    site: InjectionSite
    background: frozenset[str] = frozenset()
    observations: CleanObservations = NO_OBSERVATIONS

    def make_injector(
        self,
        watch: ConversationTap,
        tell: Callable[[Injection], None],
        *,
        run: str,
        seed: int,
        rep: int,
        world: bool,
    ) -> FaultInjector:
        """Return the injector of one run; it calls `tell` with each injection."""
        return FaultInjector(
            self.bound_faults,
            watch,
            tell,
            # The messages before the call name the trace: two recordings of the same
            # conversation get the same injections, on any machine.
            seeds=RunSeeds(run=run, trace=self.site.prefix, seed=seed, rep=rep, began=time.time()),
            background=self.background,
            seen=replace(self.observations, world=world),
        )


def injector_without_recording(
    armed: tuple[BoundFault, ...],
    watch: ConversationTap,
    report: Callable[[Injection], None],
    *,
    run: str,
    task: str | None,
    seed: int,
    world: bool,
) -> tuple[LiveObservations, FaultInjector]:
    """Return the observer and the injector of a run that follows no recording.

    So none names the trace, and a prompt may hold the date: the task does. What a fault needs to
    have seen, it has from the run itself.
    """
    seen = LiveObservations(watch, world=world)
    seeds = RunSeeds(run=run, trace=task or "", seed=seed, began=time.time())
    return seen, FaultInjector(armed, watch, report, seeds=seeds, seen=seen)
