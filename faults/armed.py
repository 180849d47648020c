"""A fault that is ready to strike: which calls of a run it comes to, and how often it has."""

from dataclasses import dataclass

from faults.aim import Aim
from faults.binding import bind
from faults.operator import COPY, Operator
from faults.site import Site
from faults.turns import named
from traces.conversation import STRONG, Call
from traces.model import Fault, Place
from traces.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """A fault, and the call of the recording with which it begins; None where none is known."""

    fault: Fault
    site: Site | None = None
    trace: str | None = None
    """What names the recording in draws of where to strike; None where there is none."""


def live(fault: Fault) -> Armed:
    """A fault for a run of which there is no recording; ValueError where it needs one."""
    bind(fault)
    Aim(fault)
    if fault.at == "model" and named(fault):
        raise ValueError(
            "at=model with tool needs a recording: which tool an answer calls is not known before"
        )
    return Armed(fault=fault)


class Arm:
    """One fault in one run."""

    def __init__(self, armed: Armed, seed: int, trace: str, rep: int) -> None:
        self.fault, self.site = armed.fault, armed.site
        self.operator: Operator = bind(armed.fault)
        self.copy = str(armed.fault.params.get(COPY, "both"))
        named = trace if armed.trace is None else armed.trace
        self.aim = Aim(armed.fault, seed=seed, trace=named, rep=rep)
        before = armed.site.before if armed.site else ()
        taken = [self.aim.take(use) for use in before]
        if taken and not taken[-1]:  # a repetition, or a sham: the site is that of the first
            self.aim.begin(before[-1])
        self.reached = False
        """Whether it came to a call that it was aimed at."""
        self._begun = armed.site is None
        self._seen: set[Call | Turn] = set()
        self._struck: set[Call | Turn] = set()
        self.held = self.fired = 0
        self.first: str | None = None
        """The id of its first injection."""

    def take(self, call: Call | Turn) -> None:
        """Count a call; what came before the site was counted in the recording."""
        if call in self._seen:
            return
        if self.aim.late or isinstance(call, Turn):
            self._seen.add(call)
        if self._begun:
            strikes = self.aim.take(call)
        else:
            assert self.site is not None
            self._begun = strikes = self.site.is_call(call)
        if strikes:
            self._struck.add(call)

    def strikes(self, call: Call | Turn, place: Place) -> bool:
        """Whether it strikes the next attempt of a call here, if it can."""
        if self.aim.late or isinstance(call, Turn):
            self.take(call)
        limit = self.fault.max_injections
        if limit is not None and self.fired + self.held >= limit:
            return False
        return call in self._struck and self._place(call) == place

    def _place(self, call: Call | Turn) -> Place | None:
        if isinstance(call, Turn):
            return "model"
        if self.site is not None:
            return self.site.place
        own = call.over if call.over and call.exchanges[0][1] in STRONG else None
        if self.fault.at is not None:
            apart = self.fault.at in ("http", "mcp") and self.fault.at != own
            return None if apart else self.fault.at
        return own if own and self.operator.reaches(own, stdio=call.stdio) else "model-boundary"

    def recorded(self, call: Call | Turn) -> Turn | None:
        """The recording's turn that this one is; None for a call, and where it is no site."""
        turn = self.site.turn if self.site else None
        return turn if turn and isinstance(call, Turn) and turn.again(call) else None

    def spend(self, call: Call | Turn) -> None:
        """What does not persist strikes one attempt of a call, or finds that it cannot."""
        if self.aim.transient:
            self._struck.discard(call)
