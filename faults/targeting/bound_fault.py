"""A fault bound to a run: the calls it targets, and how often it was injected."""

from msgspec import Struct

from faults.operator import COPY, Operator
from faults.specs.spec_check import bind_operator
from faults.targeting.model_turns import find_wanted_tool
from faults.targeting.selector import CallSelector
from faults.targeting.site import InjectionSite
from traces.conversation.model_turn import ModelTurn
from traces.conversation.tracker import STRONG_JOINS, TrackedCall
from traces.model import Fault, Place


class BoundFault(Struct, frozen=True, kw_only=True):
    """A fault, and the recorded call at which it begins; None if there is no recording."""

    fault: Fault
    site: InjectionSite | None = None
    trace: str | None = None
    """Identifies the recording in random draws; None if there is no recording."""


def bind_without_recording(fault: Fault) -> BoundFault:
    """Bind a fault for a run without a recording; raises ValueError if the fault needs one."""
    bind_operator(fault)
    CallSelector(fault)
    if fault.at == "model" and find_wanted_tool(fault):
        raise ValueError(
            "at=model with tool needs a recording: which tool an answer calls is not known before"
        )
    return BoundFault(fault=fault)


class FaultState:
    """State of one fault in one run."""

    def __init__(self, armed: BoundFault, seed: int, trace: str, rep: int) -> None:
        self.fault, self.site = armed.fault, armed.site
        self.operator: Operator = bind_operator(armed.fault)
        self.copy = str(armed.fault.params.get(COPY, "both"))
        recording = trace if armed.trace is None else armed.trace
        self.aim = CallSelector(armed.fault, seed=seed, trace=recording, rep=rep)
        before = armed.site.before if armed.site else ()
        matches = [self.aim.take(use) for use in before]
        if (
            matches and not matches[-1]
        ):  # a repetition, or a sham: the site is that of the first injection
            self.aim.begin(before[-1])
        self.reached = False
        """Whether the run reached a call that the fault targets."""
        self._begun = armed.site is None
        self._seen: set[TrackedCall | ModelTurn] = set()
        self._struck: set[TrackedCall | ModelTurn] = set()
        self.held = self.fired = 0
        self.first: str | None = None
        """The id of its first injection."""

    def take(self, call: TrackedCall | ModelTurn) -> None:
        """Count a call; calls before the site were counted in the recording."""
        if call in self._seen:
            return
        if self.aim.late or isinstance(call, ModelTurn):
            self._seen.add(call)
        if self._begun:
            matches = self.aim.take(call)
        else:
            assert self.site is not None
            self._begun = matches = self.site.is_call(call)
        if matches:
            self._struck.add(call)

    def is_due(self, call: TrackedCall | ModelTurn, place: Place) -> bool:
        """Return whether the fault applies to the next attempt of a call at this place."""
        if self.aim.late or isinstance(call, ModelTurn):
            self.take(call)
        limit = self.fault.max_injections
        if limit is not None and self.fired + self.held >= limit:
            return False
        return call in self._struck and self._find_place(call) == place

    def _find_place(self, call: TrackedCall | ModelTurn) -> Place | None:
        if isinstance(call, ModelTurn):
            return "model"
        if self.site is not None:
            return self.site.place
        own_place = (
            call.reached_over
            if call.reached_over and call.exchanges[0][1] in STRONG_JOINS
            else None
        )
        if self.fault.at is not None:
            unreachable = self.fault.at in ("http", "mcp") and self.fault.at != own_place
            return None if unreachable else self.fault.at
        return (
            own_place
            if own_place and self.operator.can_inject_at(own_place, stdio=call.stdio)
            else "model-boundary"
        )

    def find_recorded_turn(self, call: TrackedCall | ModelTurn) -> ModelTurn | None:
        """Return the recorded turn equal to this one; None for a call or if it is not the site."""
        turn = self.site.turn if self.site else None
        return turn if turn and isinstance(call, ModelTurn) and turn.is_same_turn(call) else None

    def use_attempt(self, call: TrackedCall | ModelTurn) -> None:
        """Use up one attempt of a call, if the fault does not persist."""
        if self.aim.transient:
            self._struck.discard(call)
