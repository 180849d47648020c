"""Select the calls that a fault targets: a fold over the calls of a run, in the model's order.

The same fold runs over the calls of a recording before anything starts, and over those of a live
run, so a trigger means the same in both. The order is that in which the model asked for the calls,
not that in which their requests arrive: parallel calls race. Random draws depend on the call's
address, not on its turn.
"""

from fnmatch import fnmatchcase
from typing import Literal, Protocol

from faults import jsonpath
from faults.seeded_random import make_draw_address, to_unit_interval
from faults.targeting.read_or_write import classify_call_side
from faults.targeting.triggers import (
    FaultTrigger,
    check_fault_consistency,
    parse_persistence,
    parse_trigger,
)
from traces.conversation.model_turn import ModelTurn
from traces.conversation.tracker import canonicalize_arguments
from traces.did_you_mean import suggest_nearest_name
from traces.model import Fault

SELECTORS = ("tool", "server", "args", "side", "transport", "stage")
SIDES = ("read", "write", "any")
TRANSPORTS = ("http", "mcp", "local")


class SelectableCall(Protocol):
    """A call that a model asked for, in a recording or in a run."""

    @property
    def tool(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def place(self) -> Literal["http", "mcp", "local", "provider", "model"]: ...
    @property
    def server(self) -> str | None: ...
    @property
    def read_only(self) -> bool | None: ...
    @property
    def stage(self) -> str | None: ...


def check_targeting(fault: Fault) -> None:
    """Raise ValueError, with the nearest valid name, if a fault cannot match any call."""
    for name, value in fault.where.items():
        if name not in SELECTORS:
            raise ValueError(
                f"where: no selector is called {name!r}{suggest_nearest_name(name, SELECTORS)}"
            )
        if not value.strip():
            raise ValueError(f"where: {name} is empty, which fits nothing")
        if name == "args":
            jsonpath.check_jsonpath(value)
        known = {"side": SIDES, "transport": TRANSPORTS}.get(name)
        if known is not None and value not in known:
            raise ValueError(f"where: {name} is {value!r}{suggest_nearest_name(value, known)}")
    transport = fault.where.get("transport")
    if (fault.at == "http" and transport in ("mcp", "local")) or (
        fault.at == "mcp" and transport == "http"
    ):
        raise ValueError(f"at={fault.at} and transport={transport} contradict each other")
    check_fault_consistency(fault, parse_trigger(fault), parse_persistence(fault))


def is_matching_call(fault: Fault, call: SelectableCall) -> bool:
    """Return whether a call matches the selectors of a fault."""
    where = fault.where
    if "tool" in where and not _has_tool_name(call, where["tool"]):
        return False
    if "server" in where and not fnmatchcase(call.server or "", where["server"]):
        return False
    if "stage" in where and where["stage"] != call.stage:
        return False
    if where.get("side", "any") not in ("any", classify_call_side(call)):
        return False
    if "transport" in where and where["transport"] != call.place:
        return False
    return "args" not in where or jsonpath.has_query_match(where["args"], call.arguments or "{}")


def _has_tool_name(call: SelectableCall, glob: str) -> bool:
    """Return whether a call is of this tool; for a model's turn, whether its response calls it."""
    if not isinstance(call, ModelTurn):
        return fnmatchcase(call.tool, glob)
    return glob == "*" or any(fnmatchcase(name, glob) for name in call.tools)


class CallSelector:
    """Selects the target calls of one fault; `take` each call once, in the model's order."""

    def __init__(self, fault: Fault, *, seed: int = 0, trace: str = "", rep: int = 0) -> None:
        self._fault, self._seed, self._trace, self._rep = fault, seed, trace, rep
        self._when, self._persist = parse_trigger(fault), parse_persistence(fault)
        if self._when.trigger == "position":
            raise ValueError(f"position={self._when.position} is one of a recording's calls")
        self._calls = self._fitting = 0
        self._begun: int | None = None
        self._keys: set[tuple[str, str]] = set()
        self.late = bool(fault.where.keys() & {"server", "transport"})
        """Whether matching calls are known only when their own requests arrive."""
        self.transient = self._persist.name == "once"
        """Whether the fault applies only to the first attempt of a target call."""

    def take(self, call: SelectableCall) -> bool:
        """Return whether this call, the next of the run, is a target."""
        self._calls += 1
        if not is_matching_call(self._fault, call):
            return False
        self._fitting += 1
        key = call.tool, canonicalize_arguments(call.arguments)
        if self._is_triggered(call):
            self._begun = self._fitting
            self._keys.add(key)
        return self._begun is not None and self._is_persisting(
            self._fitting - self._begun, call, key
        )

    def begin(self, call: SelectableCall) -> None:
        """Begin with the call that was taken last, whatever its trigger."""
        self._begun = self._fitting
        self._keys = {(call.tool, canonicalize_arguments(call.arguments))}

    def _is_triggered(self, call: SelectableCall) -> bool:
        if self._begun is not None and self._when.trigger not in ("every", "probability"):
            return False
        return is_trigger_met(self._when, call, self._calls, self._fitting) and (
            self._when.trigger != "probability" or self._draw_chance(call) < self._when.chance
        )

    def _draw_chance(self, call: SelectableCall) -> float:
        at = make_draw_address(
            seed=self._seed,
            trace=self._trace,
            rep=self._rep,
            fault=f"{self._fault.name} strikes",
            tool=call.tool,
            arguments=canonicalize_arguments(call.arguments),
            occurrence=call.ordinal,
        )
        return to_unit_interval(at)

    def _is_persisting(self, since: int, call: SelectableCall, key: tuple[str, str]) -> bool:
        """Return whether the fault applies `since` matching calls after the first target."""
        number = self._persist.number
        match self._persist.name:
            case "once":
                return since == 0
            case "burst":
                return since < number
            case "until_step":
                return call.step <= number
            case "same_args":
                return key in self._keys
            case "permanent":
                return True
            case "flapping":
                return since % (number + self._persist.off) < number
            case "quota":
                return since >= number


def is_trigger_met(when: FaultTrigger, call: SelectableCall, calls: int, fitting: int) -> bool:
    """Return whether a trigger, random draws aside, lets a fault begin at a matching call.

    `calls` and `fitting` count all calls and the matching calls, including this one.
    """
    match when.trigger:
        case "nth":
            return fitting == when.number
        case "after_calls":
            return calls > when.number
        case "every":
            return fitting % when.number == 0
        case "probability":
            return True
        case "first_write":
            return classify_call_side(call) == "write"
        case "step_range":
            return when.steps[0] <= call.step <= when.steps[1]
        case "position":
            return False
        case "when_arg_matches":
            return jsonpath.has_query_match(when.question, call.arguments or "{}")
