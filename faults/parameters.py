"""What the parameters of an operator may be, as its signature says it.

ms: Annotated[float, Between(0, 3_600_000)] = 1000.0     a number within bounds
code: Annotated[int, OneOf((401, 403))] = 401            one of these numbers
how: Literal["reset", "fin"] = "reset"                   one of these words
path: Annotated[str, JsonPath()] = ""                    a JSONPath, or nothing
seen: Seen = NOTHING                                     no parameter: what was recorded
"""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, NamedTuple, get_args, get_origin

from faults import query
from traces.model import Scalar

SEEN = "seen"
"""The keyword by which an operator asks for what was recorded."""

_NAMES: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
}


class Between(NamedTuple):
    """The least and the most a parameter may be; stands in its annotation."""

    least: float
    most: float

    @property
    def words(self) -> str:
        """What it may be."""
        return f"{self.least:g} to {self.most:g}"

    def problem(self, value: Scalar) -> str | None:
        """What is wrong with a value."""
        if isinstance(value, int | float) and self.least <= value <= self.most:
            return None
        return f"is {value}, not within {self.words}"


class OneOf(NamedTuple):
    """The parameter is one of these numbers; stands in its annotation."""

    values: tuple[int, ...]

    @property
    def words(self) -> str:
        """What it may be."""
        return " or ".join(map(str, self.values))

    def problem(self, value: Scalar) -> str | None:
        """What is wrong with a value."""
        if value in self.values:
            return None
        return f"is {value}, not {self.words}"


class JsonPath(NamedTuple):
    """The parameter is a JSONPath (RFC 9535), or empty; stands in its annotation."""

    @property
    def words(self) -> str:
        """What it may be."""
        return "a JSONPath such as $.total or $.lines[0].price"

    def problem(self, value: Scalar) -> str | None:
        """What is wrong with a value."""
        if value == "":
            return None
        if not str(value).startswith("$"):
            return f"is {value!r}, which must begin with $"
        try:
            query.check(str(value))
        except ValueError as error:
            return str(error)
        return None


@lru_cache(256)
def parameters(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    """The parameters of an operator's function, by name."""
    found = inspect.signature(function).parameters
    return {n: p for n, p in found.items() if p.kind is p.KEYWORD_ONLY and n != SEEN}


def choices(parameter: inspect.Parameter) -> tuple[str, ...]:
    """The words a parameter may be; none where it is free."""
    annotation = parameter.annotation
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def allowed(parameter: inspect.Parameter) -> str | None:
    """What a parameter may be, in words; None where its type says it all."""
    if words := choices(parameter):
        return ", ".join(words)
    bounds = getattr(parameter.annotation, "__metadata__", ())
    return next((bound.words for bound in bounds), None)


def check(fault: str, parameter: inspect.Parameter, value: Scalar) -> None:
    """ValueError, in one line with the nearest valid word, where a value will not do."""
    wanted, name = type(parameter.default), parameter.name
    if type(value) is not wanted and not (wanted is float and type(value) is int):
        default = f"(default {parameter.default!r})"
        raise ValueError(f"{fault}: {name} is {value!r}, not {_NAMES[wanted]} {default}")
    words = choices(parameter)
    if words and value not in words:
        close = get_close_matches(str(value), words, n=1, cutoff=0.4)
        hint = f"did you mean {close[0]}?" if close else f"it may be {', '.join(words)}"
        raise ValueError(f"{fault}: {name} is {value!r}; {hint}")
    for bound in getattr(parameter.annotation, "__metadata__", ()):
        if (problem := bound.problem(value)) is not None:
            raise ValueError(f"{fault}: {name} {problem}")
