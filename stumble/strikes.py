"""What strikes in a run, apart from `runs`: where nothing strikes, no fault is loaded."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from faults.armed import Armed
from faults.nemesis import Nemesis
from faults.seen import NOTHING, Seen
from faults.site import Site
from faults.sofar import Sofar
from traces.conversation import Watch
from traces.model import Injection


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """Faults, the first of them bound to a site of the recording."""

    armed: tuple[Armed, ...]
    site: Site
    background: frozenset[str] = frozenset()
    seen: Seen = NOTHING

    def nemesis(
        self,
        watch: Watch,
        tell: Callable[[Injection], None],
        *,
        run: str,
        seed: int,
        rep: int,
        world: bool,
    ) -> Nemesis:
        """Who strikes in one run; `tell` is told of each injection."""
        return Nemesis(
            self.armed,
            watch,
            tell,
            run=run,
            # What was said before the call names the trace: two recordings of the same
            # conversation are struck alike, on any machine.
            trace=self.site.prefix,
            seed=seed,
            rep=rep,
            background=self.background,
            seen=replace(self.seen, world=world),
        )


def unrehearsed(
    armed: tuple[Armed, ...],
    watch: Watch,
    tell: Callable[[Injection], None],
    *,
    run: str,
    task: str | None,
    seed: int,
    world: bool,
) -> tuple[Sofar, Nemesis]:
    """Who watches and who strikes in a run that follows no recording.

    So none names the trace, and a prompt may hold the date: the task does. What a fault needs to
    have seen, it has from the run itself.
    """
    seen = Sofar(watch, world=world)
    return seen, Nemesis(armed, watch, tell, run=run, trace=task or "", seed=seed, seen=seen)
