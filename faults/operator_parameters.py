"""Parameters of operators, declared by the annotations of the function's signature.

ms: Annotated[float, NumberRange(0, 3_600_000)] = 1000.0     a number within bounds
code: Annotated[int, OneOf((401, 403))] = 401                one of these numbers
how: Literal["reset", "fin"] = "reset"                       one of these words
path: Annotated[str, JsonPath()] = ""                        a JSONPath, or empty
seen: CleanObservations = NO_OBSERVATIONS                    not a parameter: observed calls
"""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, NamedTuple, get_args, get_origin

from faults import jsonpath
from traces.model import Scalar

OBSERVATIONS_KEYWORD = "seen"
"""Keyword argument with which an operator requests the clean observations."""

_NAMES: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
}


class NumberRange(NamedTuple):
    """Bounds of a numeric parameter, both inclusive; used in its annotation."""

    least: float
    most: float

    @property
    def description(self) -> str:
        """The valid values, in words."""
        return f"{self.least:g} to {self.most:g}"

    def find_problem(self, value: Scalar) -> str | None:
        """Describe why a value is invalid; None if it is valid."""
        if isinstance(value, int | float) and self.least <= value <= self.most:
            return None
        return f"is {value}, not within {self.description}"


class OneOf(NamedTuple):
    """Valid numbers of a parameter; used in its annotation."""

    values: tuple[int, ...]

    @property
    def description(self) -> str:
        """The valid values, in words."""
        return " or ".join(map(str, self.values))

    def find_problem(self, value: Scalar) -> str | None:
        """Describe why a value is invalid; None if it is valid."""
        if value in self.values:
            return None
        return f"is {value}, not {self.description}"


class JsonPath(NamedTuple):
    """Marks a parameter as a JSONPath (RFC 9535) or empty; used in its annotation."""

    @property
    def description(self) -> str:
        """The valid values, in words."""
        return "a JSONPath such as $.total or $.lines[0].price"

    def find_problem(self, value: Scalar) -> str | None:
        """Describe why a value is invalid; None if it is valid."""
        if value == "":
            return None
        if not str(value).startswith("$"):
            return f"is {value!r}, which must begin with $"
        try:
            jsonpath.check_jsonpath(str(value))
        except ValueError as error:
            return str(error)
        return None


@lru_cache(256)
def read_operator_parameters(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of an operator's function, by name."""
    parameters = inspect.signature(function).parameters
    return {
        n: p
        for n, p in parameters.items()
        if p.kind is p.KEYWORD_ONLY and n != OBSERVATIONS_KEYWORD
    }


def list_parameter_choices(parameter: inspect.Parameter) -> tuple[str, ...]:
    """Return the valid words of a parameter; empty if it is not a Literal."""
    annotation = parameter.annotation
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def describe_parameter_values(parameter: inspect.Parameter) -> str | None:
    """Describe the valid values of a parameter; None if its type says enough."""
    if words := list_parameter_choices(parameter):
        return ", ".join(words)
    bounds = getattr(parameter.annotation, "__metadata__", ())
    return next((bound.description for bound in bounds), None)


def check_parameter(fault: str, parameter: inspect.Parameter, value: Scalar) -> None:
    """Raise ValueError if a value is invalid: one line, with the nearest valid word."""
    expected_type, name = type(parameter.default), parameter.name
    if type(value) is not expected_type and not (expected_type is float and type(value) is int):
        default = f"(default {parameter.default!r})"
        raise ValueError(f"{fault}: {name} is {value!r}, not {_NAMES[expected_type]} {default}")
    words = list_parameter_choices(parameter)
    if words and value not in words:
        matches = get_close_matches(str(value), words, n=1, cutoff=0.4)
        hint = f"did you mean {matches[0]}?" if matches else f"it may be {', '.join(words)}"
        raise ValueError(f"{fault}: {name} is {value!r}; {hint}")
    for bound in getattr(parameter.annotation, "__metadata__", ()):
        if (problem := bound.find_problem(value)) is not None:
            raise ValueError(f"{fault}: {name} {problem}")
