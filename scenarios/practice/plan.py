"""What a task is: a prompt, what the book must hold in the end, and a plan that gets there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from scenarios.practice.book import MORNING, Book
from scenarios.practice.schema import Json, Row


class Seen:
    """What the steps so far have found, by step name and field."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[str, Row] = MappingProxyType({})) -> None:
        self._rows = rows

    def plus(self, step: str, row: Row) -> "Seen":
        """The same and what one more step found."""
        return Seen({**self._rows, step: row})

    def text(self, step: str, field: str) -> str:
        """A text that was found."""
        return str(self._rows[step][field])

    def has(self, step: str, field: str) -> bool:
        """Whether a step was taken and found this."""
        return field in self._rows.get(step, {})

    def number(self, step: str, field: str) -> float:
        """A number that was found."""
        value = self._rows[step][field]
        if not isinstance(value, int | float):
            raise TypeError(f"{step}.{field} is {value!r}")
        return value

    def whole(self, step: str, field: str) -> int:
        """A whole number that was found."""
        return int(self.number(step, field))


type Arguments = dict[str, Json]
type Pick = Callable[[Sequence[Row]], Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of the plan. Later steps find its result under `name`."""

    name: str
    why: str
    tool: str
    arguments: Callable[[Seen], Arguments]
    rows: str | None = None
    """The list in the result to pick one row from; None where the result is the row."""
    pick: Pick | None = None
    """Chooses that row; LookupError where no row will do."""
    beside: bool = False
    """True for a call that is made together with the one before it, whose result it needs not."""
    may_fail: bool = False
    """True where a failure is an answer, too: nobody repeats the call or gives up for it."""
    only: Callable[[Seen], bool] | None = None
    """Whether it is taken, from what was seen so far; None where it always is."""


class Site(NamedTuple):
    """A call worth striking: the nth of a tool, counted in the order of the run."""

    tool: str
    nth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One piece of work in the practice world."""

    id: str
    prompt: str
    start: Book = field(default=MORNING, repr=False)
    end: Book = field(repr=False)
    """What the book holds when the work is done; never computed by running the plan."""
    plan: tuple[Step, ...] = field(repr=False)
    final: Callable[[Seen], str] = field(repr=False)
    """What to tell the user, with figures."""
    sites: tuple[Site, ...]
    live: tuple[str | None, ...]
    """For each site the field of its result on which the end state depends, if one does."""


def first(rows: Sequence[Row], key: str, value: Json) -> Row:
    """The first row in which a field has this value; LookupError where there is none."""
    for row in rows:
        if row[key] == value:
            return row
    raise LookupError(f"no row has {key} {value}")
