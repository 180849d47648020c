"""Which calls a fault strikes: a fold over the calls of a run, told as the model asked for them.

The same fold runs over the calls of a recording, before anything starts, and over those of a run
while it goes on; so a trigger means the same in both. The order in which calls were asked for
counts, and not that in which their requests arrive: parallel calls race. Chance belongs to the
call, by its address, and not to its turn.
"""

from fnmatch import fnmatchcase
from typing import Literal, Protocol

from faults import query
from faults.address import address, share
from faults.side import acts
from faults.when import When, agree, persist, when
from traces.conversation import canonical_arguments
from traces.model import Fault
from traces.nearest import nearest
from traces.turn import Turn

SELECTORS = ("tool", "server", "args", "side", "transport", "stage")
SIDES = ("read", "write", "any")
TRANSPORTS = ("http", "mcp", "local")


class Asked(Protocol):
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


def check(fault: Fault) -> None:
    """ValueError, with the nearest valid name, where a fault can be aimed at nothing."""
    for name, value in fault.where.items():
        if name not in SELECTORS:
            raise ValueError(f"where: no selector is called {name!r}{nearest(name, SELECTORS)}")
        if not value.strip():
            raise ValueError(f"where: {name} is empty, which fits nothing")
        if name == "args":
            query.check(value)
        known = {"side": SIDES, "transport": TRANSPORTS}.get(name)
        if known is not None and value not in known:
            raise ValueError(f"where: {name} is {value!r}{nearest(value, known)}")
    over = fault.where.get("transport")
    if (fault.at == "http" and over in ("mcp", "local")) or (fault.at == "mcp" and over == "http"):
        raise ValueError(f"at={fault.at} and transport={over} contradict each other")
    agree(fault, when(fault), persist(fault))


def fits(fault: Fault, call: Asked) -> bool:
    """Whether a call is one of those that the selectors of a fault name."""
    where = fault.where
    if "tool" in where and not _named(call, where["tool"]):
        return False
    if "server" in where and not fnmatchcase(call.server or "", where["server"]):
        return False
    if "stage" in where and where["stage"] != call.stage:
        return False
    if where.get("side", "any") not in ("any", acts(call)):
        return False
    if "transport" in where and where["transport"] != call.place:
        return False
    return "args" not in where or query.holds(where["args"], call.arguments or "{}")


def _named(call: Asked, glob: str) -> bool:
    """Whether a call is one of a tool; a model's turn, whether its answer calls one."""
    if not isinstance(call, Turn):
        return fnmatchcase(call.tool, glob)
    return glob == "*" or any(fnmatchcase(name, glob) for name in call.tools)


class Aim:
    """What one fault strikes in one run; `take` each call once, in the order of asking."""

    def __init__(self, fault: Fault, *, seed: int = 0, trace: str = "", rep: int = 0) -> None:
        self._fault, self._seed, self._trace, self._rep = fault, seed, trace, rep
        self._when, self._persist = when(fault), persist(fault)
        if self._when.trigger == "position":
            raise ValueError(f"position={self._when.position} is one of a recording's calls")
        self._calls = self._fitting = 0
        self._begun: int | None = None
        self._keys: set[tuple[str, str]] = set()
        self.late = bool(fault.where.keys() & {"server", "transport"})
        """Whether the calls that fit are known only when their own requests come."""
        self.transient = self._persist.name == "once"
        """Whether only the first attempt of a struck call is."""

    def take(self, call: Asked) -> bool:
        """Whether this call, the next of the run, is struck."""
        self._calls += 1
        if not fits(self._fault, call):
            return False
        self._fitting += 1
        key = call.tool, canonical_arguments(call.arguments)
        if self._begins(call):
            self._begun = self._fitting
            self._keys.add(key)
        return self._begun is not None and self._goes_on(self._fitting - self._begun, call, key)

    def begin(self, call: Asked) -> None:
        """Begin with the call that was taken last, whatever its trigger says."""
        self._begun = self._fitting
        self._keys = {(call.tool, canonical_arguments(call.arguments))}

    def _begins(self, call: Asked) -> bool:
        if self._begun is not None and self._when.trigger not in ("every", "probability"):
            return False
        return begins(self._when, call, self._calls, self._fitting) and (
            self._when.trigger != "probability" or self._drawn(call) < self._when.chance
        )

    def _drawn(self, call: Asked) -> float:
        at = address(
            seed=self._seed,
            trace=self._trace,
            rep=self._rep,
            fault=f"{self._fault.name} strikes",
            tool=call.tool,
            arguments=canonical_arguments(call.arguments),
            occurrence=call.ordinal,
        )
        return share(at)

    def _goes_on(self, since: int, call: Asked, key: tuple[str, str]) -> bool:
        """Whether it strikes `since` calls that fit after the one with which it began."""
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


def begins(when: When, call: Asked, calls: int, fitting: int) -> bool:
    """Whether a trigger lets a fault begin at a call that fits, but for chance.

    `calls` and `fitting` count all calls and those that fit, with this one.
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
            return acts(call) == "write"
        case "step_range":
            return when.steps[0] <= call.step <= when.steps[1]
        case "position":
            return False
        case "when_arg_matches":
            return query.holds(when.question, call.arguments or "{}")
