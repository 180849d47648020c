"""What an operator is: a decorated pure function `(exchange, rng, *, params) -> exchange`.

No clock, no I/O, no global chance. Its name is the function's name, its parameters are its
keyword-only arguments, its help is its docstring. Before, options were declared a second time
in a table; here the signature is the declaration, and `bind` checks a fault against it before
anything starts.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, NamedTuple, Protocol

from faults.aim import check
from traces.model import Exchange, Fault, Place, Scalar
from traces.nearest import nearest

type Family = Literal["T", "E", "S", "V", "X", "sham"]


class Bend(Protocol):
    """The function of an operator."""

    __name__: str

    def __call__(self, exchange: Exchange, rng: Random, /, **params: Scalar) -> Exchange: ...


class Between(NamedTuple):
    """The least and the most a parameter may be; stands in its annotation."""

    least: float
    most: float


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
    channel: Literal["http", "jsonrpc", "flag", "text", "none"]
    places: tuple[Place, ...]
    help: str

    @property
    def params(self) -> Mapping[str, inspect.Parameter]:
        """Its parameters by name."""
        parameters = inspect.signature(self.bend).parameters
        return {n: p for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY}

    def effective(self, params: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """All its parameters: those given, and the defaults of the rest."""
        return {name: params.get(name, each.default) for name, each in self.params.items()}

    def __call__(self, exchange: Exchange, rng: Random, params: Mapping[str, Scalar]) -> Exchange:
        return self.bend(exchange, rng, **params)


OPERATORS: dict[str, Operator] = {}


def operator(
    code: str,
    *,
    forwards: bool = True,
    channel: Literal["http", "jsonrpc", "flag", "text", "none"] = "none",
    places: tuple[Place, ...] = ("http", "model-boundary"),
) -> Callable[[Callable[..., Exchange]], Callable[..., Exchange]]:
    """Register a function as the operator of its own name."""

    def register(bend: Callable[..., Exchange]) -> Callable[..., Exchange]:
        name = bend.__name__
        family: Family = "sham" if code == "sham" else code[0]  # type: ignore[assignment]
        OPERATORS[name] = Operator(
            name=name,
            code=code,
            family=family,
            bend=bend,
            forwards=forwards,
            channel=channel,
            places=places,
            help=inspect.getdoc(bend) or "",
        )
        return bend

    return register


def bind(fault: Fault) -> Operator:
    """The operator of a fault, once all that the fault says has been checked.

    ValueError, in one line with the nearest valid name, for an unknown operator, parameter or
    selector, a parameter of the wrong type, or a place where the operator makes no sense.
    """
    if fault.name not in OPERATORS:
        raise ValueError(f"no fault is called {fault.name!r}{nearest(fault.name, OPERATORS)}")
    found = OPERATORS[fault.name]
    for name, value in fault.params.items():
        if name not in found.params:
            has = nearest(name, found.params) if found.params else "; it takes none"
            raise ValueError(f"{fault.name} has no parameter {name!r}{has}")
        _check(fault.name, found.params[name], value)
    if fault.at is not None and fault.at not in found.places:
        places = " or ".join(found.places)
        raise ValueError(f"{fault.name} cannot strike at {fault.at}, only at {places}")
    if "path" in fault.where and found.family not in ("V", "S", "sham"):
        raise ValueError(f"where: {fault.name} bends no part of a result, so path says nothing")
    check(fault)
    return found


def _check(fault: str, parameter: inspect.Parameter, value: Scalar) -> None:
    wanted = type(parameter.default)
    names = {int: "whole number", float: "number", str: "text", bool: "true or false"}
    if type(value) is not wanted and not (wanted is float and type(value) is int):
        raise ValueError(
            f"{fault}: {parameter.name} is {value!r}, not a {names[wanted]} "
            f"(default {parameter.default!r})"
        )
    for bound in getattr(parameter.annotation, "__metadata__", ()):
        if isinstance(value, int | float) and not bound.least <= value <= bound.most:
            within = f"{bound.least:g} to {bound.most:g}"
            raise ValueError(f"{fault}: {parameter.name} is {value}, not within {within}")
