"""What an operator is: a decorated pure function `(exchange, rng, *, params) -> exchange`.

No clock, no I/O, no global chance. Its name is the function's name, its parameters are its
keyword-only arguments, its help is its docstring. Before, options were declared a second time
in a table; here the signature is the declaration, and `bind` checks a fault against it before
anything starts.

What it bends is an exchange wherever it strikes. At http and in model traffic that is the one on
the wire. At the model boundary it stands for the tool's result itself: asked with `CALL tool:NAME`
and the arguments, answered 200 with the result's text. At mcp it is the one or the other, as the
operator says. There the place shows what came out of it by what the operator says in `shows`:
`none` is another result, `flag` a result that is marked as an error, `jsonrpc` an error of the
protocol, `text` words in the result.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, NamedTuple, Protocol

from faults.body import NoSite
from faults.parameters import SEEN, Between, JsonPath, OneOf, parameters
from faults.seen import NOTHING, Seen
from traces.model import Exchange, Place, Scalar

__all__ = [
    "OPERATORS", "Between", "Channel", "JsonPath", "OneOf", "Operator", "Shows", "named",
    "operator",
]  # fmt: skip

type Family = Literal["T", "E", "S", "V", "X", "sham"]
type Channel = Literal["http", "jsonrpc", "flag", "text", "none"]
type Need = Literal["write", "world"]


class Bend(Protocol):
    """The function of an operator."""

    __name__: str

    def __call__(self, exchange: Exchange, rng: Random, /, **params: Scalar) -> Exchange: ...


class Shows(NamedTuple):
    """How a fault shows at one place: the channel that says so, and what the agent gets."""

    channel: Channel
    how: str
    wire: bool = False
    """At mcp: whether the message's own transport is bent, and not the result in it."""
    stdio: Channel | None = None
    """Of what bends the transport, the channel over stdio; None where that has no such thing."""


COPY = "copy"
"""Which of the two copies of an MCP server's result are bent; no operator is told."""
_COPY = inspect.Parameter(
    COPY,
    inspect.Parameter.KEYWORD_ONLY,
    default="both",
    annotation=Literal["both", "content", "structuredContent"],
)

BENT: Mapping[Place, Shows] = {
    "http": Shows("none", "another body in the tool's answer"),
    "mcp": Shows("none", "another text in `content` and `structuredContent`, or in that of `copy`"),
    "model-boundary": Shows("none", "another text in the tool's result"),
}
"""Of what changes a result and does not say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator and what is known of it without running it."""

    name: str
    code: str
    """Its number in the taxonomy: T1, E1, S1, V1, ..."""
    family: Family
    bend: Callable[..., Exchange]
    forwards: bool
    """False where the request never reaches the tool, so that it has no effect there."""
    shows: Mapping[Place, Shows]
    fresh: bool
    """True where what it puts there is nowhere else, so that its fate can be traced."""
    needs: tuple[Need, ...]
    help: str

    @property
    def places(self) -> tuple[Place, ...]:
        """Where it can strike."""
        return tuple(self.shows)

    def reaches(self, place: Place, *, stdio: bool = False) -> bool:
        """Whether it can strike there; over stdio there is no status to answer with."""
        if place not in self.places:
            return False
        shows = self.shows[place]
        return not (place == "mcp" and stdio and shows.wire and shows.stdio is None)

    @property
    def params(self) -> Mapping[str, inspect.Parameter]:
        """Its parameters by name."""
        return parameters(self.bend)

    @property
    def takes(self) -> Mapping[str, inspect.Parameter]:
        """Its parameters, and that of the place mcp where it bends a part of a result."""
        bends = self.family in ("S", "V") and "mcp" in self.shows and not self.shows["mcp"].wire
        return {**self.params, COPY: _COPY} if bends else self.params

    def effective(self, params: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """All its parameters: those given, and the defaults of the rest."""
        return {name: params.get(name, each.default) for name, each in self.params.items()}

    def __call__(
        self,
        exchange: Exchange,
        rng: Random,
        params: Mapping[str, Scalar],
        seen: Seen = NOTHING,
    ) -> Exchange:
        """The bent exchange; NoSite where there is nothing to bend, or what it needs is not."""
        if "write" in self.needs and seen.writes is False:
            raise NoSite(f"{self.name} needs a call that writes, and this one reads")
        if "world" in self.needs and not seen.world:
            raise NoSite(f"{self.name} needs a world that can be set back (--reset, --verify)")
        wants = SEEN in inspect.signature(self.bend).parameters
        return self.bend(exchange, rng, **params, **({SEEN: seen} if wants else {}))


OPERATORS: dict[str, Operator] = {}


def operator(
    code: str,
    *,
    shows: Mapping[Place, Shows] = BENT,
    forwards: bool = True,
    fresh: bool = False,
    needs: tuple[Need, ...] = (),
) -> Callable[[Callable[..., Exchange]], Callable[..., Exchange]]:
    """Register a function as the operator of its own name.

    `code` is its family's letter and a number; ValueError where another has its name or code.
    """

    def register(bend: Callable[..., Exchange]) -> Callable[..., Exchange]:
        name = bend.__name__
        known = {name for each in OPERATORS.values() for name in (each.name, each.code.lower())}
        if name in known or code.lower() in known:
            raise ValueError(f"there is a fault called {name} or {code} already")
        if code != "sham" and (code[:1] not in ("T", "E", "S", "V", "X") or not code[1:]):
            raise ValueError(f"{name}: {code!r} is no letter of a family (TESVX) and a number")
        family: Family = "sham" if code == "sham" else code[0]  # type: ignore[assignment]
        OPERATORS[name] = Operator(
            name=name,
            code=code,
            family=family,
            bend=bend,
            forwards=forwards,
            shows=shows,
            fresh=fresh,
            needs=needs,
            help=inspect.getdoc(bend) or "",
        )
        return bend

    return register


def named(name: str) -> Operator | None:
    """The operator of a name or code, among those that are loaded."""
    for each in OPERATORS.values():
        if each.name == name or each.code.lower() == name.lower():
            return each
    return None
