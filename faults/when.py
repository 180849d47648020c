"""When a fault begins to strike, and which later calls it strikes too: said as values, and checked.

A trigger says where it begins. It counts the calls that fit the fault's selectors, one after the
other as the model asked for them:

    nth=K                  the Kth of them; the first where nothing is said
    after_calls=N          the first of them that comes after N calls of any tool
    every=K                every Kth of them
    probability=P          each of them by chance, from the seed
    first_write            the first of them that writes, as far as the tool's name says
    step_range=A-B         the first of them that is asked for in these steps, as `show` counts them
    position=WHICH         early, mid or late: one of that third of the recording's, from the seed;
                           uniform: one of all
    when_arg_matches=Q     the first whose arguments answer a question (see `query`) with yes

and what persists strikes each attempt of later calls too:

    once                   nothing more: not even the attempt by which a client tries again
    burst:n=N              the next ones, until N calls are struck
    until_step:step=S      all of them up to that step
    same_args              those of the same tool with the same arguments: the same lie again
    permanent              all of them
    flapping:on=A,off=B    A of them are struck, then B are not, and so on
    quota:n=N              N of them pass first, and all later ones are struck
"""  # fmt: skip

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from faults import query
from faults.grammar import parse
from traces.model import Fault, Scalar
from traces.nearest import nearest

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
AGAIN: tuple[Trigger, ...] = ("every", "probability")
"""Triggers that begin again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A trigger with its value."""

    trigger: Trigger = "nth"
    number: int = 1
    """Of nth, after_calls and every."""
    chance: float = 1.0
    steps: tuple[int, int] = (1, 1)
    position: Position = "uniform"
    question: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Persist:
    """How a fault persists."""

    name: Persistence = "once"
    number: int = 1
    """Of burst, until_step, quota, and `on` of flapping."""
    off: int = 1


def when(fault: Fault) -> When:
    """The trigger of a fault; ValueError where it has none that can be, or two."""
    said = dict(fault.when)
    if fault.nth is not None:
        if "nth" in said:
            raise ValueError("nth is said twice, by itself and in when")
        said["nth"] = fault.nth
    for name in said:
        if name not in TRIGGERS:
            raise ValueError(f"when: no trigger is called {name!r}{nearest(name, TRIGGERS)}")
    if len(said) > 1:
        raise ValueError(f"when: {' and '.join(said)} contradict each other; say one of them")
    for name in TRIGGERS:
        if name in said:
            return _when(name, said[name])
    return When()


def _when(trigger: Trigger, value: Scalar) -> When:
    match trigger:
        case "nth" | "every":
            return When(trigger=trigger, number=_number(trigger, value, 1))
        case "after_calls":
            return When(trigger=trigger, number=_number(trigger, value, 0))
        case "probability":
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
                raise ValueError(f"probability is {value!r}, not a number above 0 and up to 1")
            return When(trigger=trigger, chance=value)
        case "first_write":
            if value is not True:
                raise ValueError(f"first_write is {value!r}; it takes no value but true")
            return When(trigger=trigger)
        case "step_range":
            return When(trigger=trigger, steps=_steps(value))
        case "position":
            for position in POSITIONS:
                if value == position:
                    return When(trigger=trigger, position=position)
            raise ValueError(f"position is {value!r}{nearest(str(value), POSITIONS)}")
        case "when_arg_matches":
            query.check(str(value))
            return When(trigger=trigger, question=str(value))


def _steps(value: Scalar) -> tuple[int, int]:
    """`34` or `3-8`."""
    first, dash, last = str(value).partition("-")
    if first.isdecimal() and (last if dash else first).isdecimal():
        steps = int(first), int(last if dash else first)
        if 1 <= steps[0] <= steps[1]:
            return steps
    raise ValueError(f"step_range is {value!r}, not FROM-TO, as in 3-8, nor one step")


def _number(name: str, value: Scalar, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is {value!r}, not a whole number from {least}")
    return value


def persist(fault: Fault) -> Persist:
    """How a fault persists; ValueError where it says it in no way that can be."""
    text, said = parse(fault.persist)
    name = next((name for name in PERSISTENCES if name == text), None)
    if name is None:
        raise ValueError(f"persist: nothing is called {text!r}{nearest(text, PERSISTENCES)}")
    wanted = PERSISTENCES[name]
    for key in said:
        if key not in wanted:
            has = nearest(key, wanted) if wanted else "; it takes none"
            raise ValueError(f"persist: {name} has no parameter {key!r}{has}")
    for key in wanted:
        if key not in said:
            example = ",".join(f"{each}=3" for each in wanted)
            raise ValueError(f"persist: {name} needs {key}, as in {name}:{example}")
    numbers = [_number(f"persist: {name}: {key}", said[key], 1) for key in wanted]
    return Persist(name=name, number=numbers[0] if numbers else 1, off=(*numbers, 1, 1)[1])


def agree(fault: Fault, when: When, persist: Persist) -> None:
    """ValueError where what is said of a fault cannot all be."""
    side, most = fault.where.get("side"), fault.max_injections
    again = when.trigger in AGAIN
    if when.trigger == "first_write" and side == "read":
        raise ValueError("first_write and side=read contradict each other")
    if again and persist.name in ("permanent", "until_step", "flapping", "quota"):
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
    if most is not None and most < 1:
        raise ValueError(f"max_injections is {most}, not a whole number from 1")
    if most is not None and most > 1 and persist.name == "once" and not again:
        raise ValueError(f"max_injections={most} contradicts persist=once, which strikes one call")
