"""Operators: decorated pure functions `(exchange, rng, *, params) -> exchange`.

No clock, no I/O, no global random state. The operator's name is the function's name, its parameters
are the keyword-only arguments, its help is the docstring. The signature is the only declaration of
the parameters; `bind_operator` checks a fault against it before anything starts.

An operator always changes an exchange. At http and in model traffic it is the exchange on the wire.
At the model boundary it represents the tool's result alone: the request is `CALL tool:NAME` with
the arguments, the response is 200 with the result's text. At mcp it is one or the other, as
declared by the operator (`FaultVisibility.wire`); the channel in `shows` then decides how the
changed exchange appears: `none` as another result, `flag` as a result marked as an error, `jsonrpc`
as a protocol error, `text` as text in the result.
"""

import inspect
from collections.abc import Callable, Mapping
from random import Random
from typing import Literal, NamedTuple

from msgspec import Struct

from faults.operator_parameters import (
    OBSERVATIONS_KEYWORD,
    JsonPath,
    NumberRange,
    OneOf,
    read_operator_parameters,
)
from faults.response_body import NoInjectionSite
from faults.targeting.observations import NO_OBSERVATIONS, CleanObservations
from traces.model import Exchange, Place, Scalar

__all__ = [
    "OPERATORS",
    "NumberRange",
    "Channel",
    "JsonPath",
    "OneOf",
    "Operator",
    "FaultVisibility",
    "find_loaded_operator",
    "operator",
]

type Family = Literal["T", "E", "S", "V", "X", "sham"]
type Channel = Literal["http", "jsonrpc", "flag", "text", "none"]
type Need = Literal["write", "world"]


class FaultVisibility(NamedTuple):
    """How a fault shows at one place: the reporting channel, and a description for users."""

    channel: Channel
    how: str
    wire: bool = False
    """At mcp: whether the exchange of the message itself is changed, and not the result in it."""
    stdio: Channel | None = None
    """If `wire`: the channel over stdio; None if the fault does not exist over stdio."""


COPY = "copy"
"""Parameter that selects which of the two copies in an MCP server's result is changed; not passed
to operators."""
_COPY = inspect.Parameter(
    COPY,
    inspect.Parameter.KEYWORD_ONLY,
    default="both",
    annotation=Literal["both", "content", "structuredContent"],
)

CHANGED_RESULT: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("none", "another body in the tool's answer"),
    "mcp": FaultVisibility(
        "none", "another text in `content` and `structuredContent`, or in that of `copy`"
    ),
    "model-boundary": FaultVisibility("none", "another text in the tool's result"),
}
"""Visibility of operators that change a result without reporting an error."""


class Operator(Struct, frozen=True, kw_only=True):
    """An operator and its static properties."""

    name: str
    code: str
    """Number in the taxonomy: T1, E1, S1, V1, ..."""
    family: Family
    function: Callable[..., Exchange]
    forwards: bool
    """False if the request never reaches the tool, so that it has no effect there."""
    shows: Mapping[Place, FaultVisibility]
    fresh: bool
    """True if the injected value occurs nowhere else, so that its use can be traced."""
    needs: tuple[Need, ...]
    by_hand: bool
    """True if the user gives the value, which then need not be plausible."""
    ends_session: bool
    """True if the MCP session of the call is unknown to its server from then on."""
    help: str

    @property
    def places(self) -> tuple[Place, ...]:
        """The places at which the operator can inject."""
        return tuple(self.shows)

    def can_inject_at(self, place: Place, *, stdio: bool = False) -> bool:
        """Return whether the operator can inject at a place; over stdio there is no HTTP status."""
        if place not in self.places:
            return False
        shows = self.shows[place]
        return not (place == "mcp" and stdio and shows.wire and shows.stdio is None)

    @property
    def params(self) -> Mapping[str, inspect.Parameter]:
        """The parameters by name."""
        return read_operator_parameters(self.function)

    @property
    def accepted_params(self) -> Mapping[str, inspect.Parameter]:
        """The parameters, and `copy` if the operator changes part of a result at mcp."""
        changes_result = (
            self.family in ("S", "V") and "mcp" in self.shows and not self.shows["mcp"].wire
        )
        return {**self.params, COPY: _COPY} if changes_result else self.params

    def with_defaults(self, params: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return all parameters: the given ones, and the defaults of the rest."""
        return {name: params.get(name, each.default) for name, each in self.params.items()}

    def __call__(
        self,
        exchange: Exchange,
        rng: Random,
        params: Mapping[str, Scalar],
        seen: CleanObservations = NO_OBSERVATIONS,
    ) -> Exchange:
        """Return the changed exchange.

        Raises NoInjectionSite if there is nothing to change or a need of the operator is not met.
        """
        if "write" in self.needs and seen.writes is False:
            raise NoInjectionSite(f"{self.name} needs a call that writes, and this one reads")
        if "world" in self.needs and not seen.world:
            raise NoInjectionSite(
                f"{self.name} needs a world that can be set back (--reset, --verify)"
            )
        needs_observations = OBSERVATIONS_KEYWORD in inspect.signature(self.function).parameters
        return self.function(
            exchange, rng, **params, **({OBSERVATIONS_KEYWORD: seen} if needs_observations else {})
        )


OPERATORS: dict[str, Operator] = {}


def operator(
    code: str,
    *,
    shows: Mapping[Place, FaultVisibility] = CHANGED_RESULT,
    forwards: bool = True,
    fresh: bool = False,
    needs: tuple[Need, ...] = (),
    by_hand: bool = False,
    ends_session: bool = False,
) -> Callable[[Callable[..., Exchange]], Callable[..., Exchange]]:
    """Register a function as the operator of the same name.

    `code` is the family's letter and a number. Raises ValueError if the name or code is taken.
    """

    def register(exchange: Callable[..., Exchange]) -> Callable[..., Exchange]:
        name = exchange.__name__
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
            function=exchange,
            forwards=forwards,
            shows=shows,
            fresh=fresh,
            needs=needs,
            by_hand=by_hand,
            ends_session=ends_session,
            help=inspect.getdoc(exchange) or "",
        )
        return exchange

    return register


def find_loaded_operator(name: str) -> Operator | None:
    """Return the loaded operator with this name or code; None if there is none."""
    for candidate in OPERATORS.values():
        if candidate.name == name or candidate.code.lower() == name.lower():
            return candidate
    return None
