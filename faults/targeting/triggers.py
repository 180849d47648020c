"""Triggers and persistence of faults: when a fault begins, and which later calls it affects.

A trigger sets where the fault begins. It counts the calls that match the fault's selectors, in the
order in which the model asked for them:

    nth=K                  the Kth matching call; the first by default
    after_calls=N          the first matching call that comes after N calls of any tool
    every=K                every Kth matching call
    probability=P          each matching call with this probability, from the seed
    first_write            the first matching call that writes, by the tool's name
    step_range=A-B         the first matching call requested in these steps, as `show` counts them
    position=WHICH         early, mid or late: a call of that third of the recording, from the seed;
                           uniform: any of them
    when_arg_matches=Q     the first matching call whose arguments match a query (see `jsonpath`)

Persistence sets which later calls, with all their attempts, are affected too:

    once                   none: not even the client's retry of the same call
    burst:n=N              the next ones, until N calls are affected
    until_step:step=S      all of them up to that step
    same_args              those of the same tool with the same arguments: the same value again
    permanent              all of them
    flapping:on=A,off=B    A of them are affected, then B are not, and so on
    quota:n=N              the first N pass, all later ones are affected
"""  # fmt: skip

from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct

from faults import jsonpath
from faults.specs.spec_syntax import parse_spec_text
from traces.did_you_mean import suggest_nearest_name
from traces.model import Fault, Scalar

type Trigger = Literal[
    "nth",
    "after_calls",
    "every",
    "probability",
    "first_write",
    "step_range",
    "position",
    "when_arg_matches",
]
type Position = Literal["early", "mid", "late", "uniform"]
type Persistence = Literal[
    "once", "burst", "until_step", "same_args", "permanent", "flapping", "quota"
]

TRIGGERS: tuple[Trigger, ...] = get_args(Trigger.__value__)
POSITIONS: tuple[Position, ...] = get_args(Position.__value__)
PERSISTENCES: Mapping[Persistence, tuple[str, ...]] = {
    "once": (),
    "burst": ("n",),
    "until_step": ("step",),
    "same_args": (),
    "permanent": (),
    "flapping": ("on", "off"),
    "quota": ("n",),
}
REPEATING_TRIGGERS: tuple[Trigger, ...] = ("every", "probability")
"""Triggers that can begin more than once."""


class FaultTrigger(Struct, frozen=True, kw_only=True):
    """A trigger with its value."""

    trigger: Trigger = "nth"
    number: int = 1
    """Value of nth, after_calls and every."""
    chance: float = 1.0
    steps: tuple[int, int] = (1, 1)
    position: Position = "uniform"
    question: str = ""


class FaultPersistence(Struct, frozen=True, kw_only=True):
    """How a fault persists."""

    name: Persistence = "once"
    number: int = 1
    """Value of burst, until_step, quota, and `on` of flapping."""
    off: int = 1


def parse_trigger(fault: Fault) -> FaultTrigger:
    """Return the trigger of a fault; raises ValueError if it is invalid or there are two."""
    values = dict(fault.when)
    if fault.nth is not None:
        if "nth" in values:
            raise ValueError("nth is said twice, by itself and in when")
        values["nth"] = fault.nth
    for name in values:
        if name not in TRIGGERS:
            raise ValueError(
                f"when: no trigger is called {name!r}{suggest_nearest_name(name, TRIGGERS)}"
            )
    if len(values) > 1:
        raise ValueError(f"when: {' and '.join(values)} contradict each other; say one of them")
    for name in TRIGGERS:
        if name in values:
            return _parse_trigger_value(name, values[name])
    return FaultTrigger()


def _parse_trigger_value(trigger: Trigger, value: Scalar) -> FaultTrigger:
    match trigger:
        case "nth" | "every":
            return FaultTrigger(trigger=trigger, number=_check_least_number(trigger, value, 1))
        case "after_calls":
            return FaultTrigger(trigger=trigger, number=_check_least_number(trigger, value, 0))
        case "probability":
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
                raise ValueError(f"probability is {value!r}, not a number above 0 and up to 1")
            return FaultTrigger(trigger=trigger, chance=value)
        case "first_write":
            if value is not True:
                raise ValueError(f"first_write is {value!r}; it takes no value but true")
            return FaultTrigger(trigger=trigger)
        case "step_range":
            return FaultTrigger(trigger=trigger, steps=_parse_step_range(value))
        case "position":
            for position in POSITIONS:
                if value == position:
                    return FaultTrigger(trigger=trigger, position=position)
            raise ValueError(f"position is {value!r}{suggest_nearest_name(str(value), POSITIONS)}")
        case "when_arg_matches":
            jsonpath.check_jsonpath(str(value))
            return FaultTrigger(trigger=trigger, question=str(value))


def _parse_step_range(value: Scalar) -> tuple[int, int]:
    """Parse `34` or `3-8`."""
    first, dash, last = str(value).partition("-")
    if first.isdecimal() and (last if dash else first).isdecimal():
        steps = int(first), int(last if dash else first)
        if 1 <= steps[0] <= steps[1]:
            return steps
    raise ValueError(f"step_range is {value!r}, not FROM-TO, as in 3-8, nor one step")


def _check_least_number(name: str, value: Scalar, minimum: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name} is {value!r}, not a whole number from {minimum}")
    return value


def parse_persistence(fault: Fault) -> FaultPersistence:
    """Return how a fault persists; raises ValueError if it is invalid."""
    text, values = parse_spec_text(fault.persist)
    name = next((name for name in PERSISTENCES if name == text), None)
    if name is None:
        raise ValueError(
            f"persist: nothing is called {text!r}{suggest_nearest_name(text, PERSISTENCES)}"
        )
    keys = PERSISTENCES[name]
    for key in values:
        if key not in keys:
            hint = suggest_nearest_name(key, keys) if keys else "; it takes none"
            raise ValueError(f"persist: {name} has no parameter {key!r}{hint}")
    for key in keys:
        if key not in values:
            example = ",".join(f"{each}=3" for each in keys)
            raise ValueError(f"persist: {name} needs {key}, as in {name}:{example}")
    numbers = [_check_least_number(f"persist: {name}: {key}", values[key], 1) for key in keys]
    return FaultPersistence(name=name, number=numbers[0] if numbers else 1, off=(*numbers, 1, 1)[1])


def check_fault_consistency(fault: Fault, when: FaultTrigger, persist: FaultPersistence) -> None:
    """Raise ValueError if parts of a fault contradict each other."""
    side, limit = fault.where.get("side"), fault.max_injections
    repeats = when.trigger in REPEATING_TRIGGERS
    if when.trigger == "first_write" and side == "read":
        raise ValueError("first_write and side=read contradict each other")
    if repeats and persist.name in ("permanent", "until_step", "flapping", "quota"):
        raise ValueError(
            f"{when.trigger} and persist={persist.name} contradict each other: "
            f"{when.trigger} begins again and again, {persist.name} only once"
        )
    if (
        persist.name == "until_step"
        and when.trigger == "step_range"
        and persist.number < when.steps[0]
    ):
        raise ValueError(
            f"step_range={when.steps[0]}-{when.steps[1]} begins after until_step:step="
            f"{persist.number} is over"
        )
    if limit is not None and limit < 1:
        raise ValueError(f"max_injections is {limit}, not a whole number from 1")
    if limit is not None and limit > 1 and persist.name == "once" and not repeats:
        raise ValueError(f"max_injections={limit} contradicts persist=once, which selects one call")
