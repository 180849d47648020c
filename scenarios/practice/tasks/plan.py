"""Practice tasks: a prompt, the expected end state of the order book, and a plan that reaches
it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from scenarios.practice.order_book import MORNING_BOOK, OrderBook
from scenarios.practice.tools.json_schema import Json, JsonRow


class StepResults:
    """The results of the steps so far, by step name and field."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[str, JsonRow] = MappingProxyType({})) -> None:
        self._rows = rows

    def with_result(self, step: str, row: JsonRow) -> "StepResults":
        """Return a copy with the result of one more step."""
        return StepResults({**self._rows, step: row})

    def get_text(self, step: str, field: str) -> str:
        """Return a text of a result."""
        return str(self._rows[step][field])

    def has_field(self, step: str, field: str) -> bool:
        """Return whether a step was taken and its result has this field."""
        return field in self._rows.get(step, {})

    def get_number(self, step: str, field: str) -> float:
        """Return a number of a result. Raises TypeError for any other type."""
        value = self._rows[step][field]
        if not isinstance(value, int | float):
            raise TypeError(f"{step}.{field} is {value!r}")
        return value

    def get_int(self, step: str, field: str) -> int:
        """Return an integer of a result."""
        return int(self.get_number(step, field))


type ToolArguments = dict[str, Json]
type RowPicker = Callable[[Sequence[JsonRow]], JsonRow]


class PlanStep(Struct, frozen=True, kw_only=True):
    """One call of the plan. Later steps find its result under `name`."""

    name: str
    why: str
    tool: str
    arguments: Callable[[StepResults], ToolArguments]
    rows: str | None = None
    """The list in the result to pick one row from; None if the result is the row."""
    pick: RowPicker | None = None
    """Picks that row; raises LookupError if no row matches."""
    in_parallel: bool = False
    """True for a call made together with the previous one, whose result it does not need."""
    may_fail: bool = False
    """True if a failure counts as an answer: the call is not repeated, and the plan goes on."""
    condition: Callable[[StepResults], bool] | None = None
    """Decides from the results so far whether to take the step; None always takes it."""


class InjectableCall(NamedTuple):
    """A call suited for fault injection: the nth of a tool, counted in the order of the run."""

    tool: str
    nth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticeTask:
    """One task in the practice world."""

    id: str
    prompt: str
    start: OrderBook = field(default=MORNING_BOOK, repr=False)
    end: OrderBook = field(repr=False)
    """The expected end state of the book; never computed by running the plan."""
    plan: tuple[PlanStep, ...] = field(repr=False)
    final: Callable[[StepResults], str] = field(repr=False)
    """The final answer to the user, with figures."""
    sites: tuple[InjectableCall, ...]
    decisive_fields: tuple[str | None, ...]
    """For each site the field of its result that the end state depends on, or None."""
    tools: tuple[str, ...] = ()
    """The tools that the agent offers; empty for all of the shop."""


def find_first_row(rows: Sequence[JsonRow], key: str, value: Json) -> JsonRow:
    """Return the first row in which a field has this value. Raises LookupError if there is none."""
    for row in rows:
        if row[key] == value:
            return row
    raise LookupError(f"no row has {key} {value}")
