"""Two runs, models, agents or campaigns beside each other."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from stumble.report.side_by_side import StepPair, align_runs, is_same_step
from traces.conversation.derived_steps import derive_tape_steps
from traces.store.sql import run_question
from traces.tape.reader import read_tape

if TYPE_CHECKING:
    import duckdb

KINDS = ("campaign", "model", "agent")
LARGEST_RUNS = 1 << 27
MOST_CHOICES = 200
MOST_FLIPS = 100


class RatePair(Struct, frozen=True, kw_only=True):
    """A measure of both, in percent; the difference with its interval, or why there is none."""

    measure: str
    part: str
    pairs: int
    a: float | None
    b: float | None
    delta: float | None
    interval: tuple[float, float] | None
    reason: str


class Flip(Struct, frozen=True, kw_only=True):
    """An injection that ended otherwise under B."""

    trace: str
    cell: str
    class_a: str
    class_b: str
    injection_a: str
    injection_b: str


class RunsCompared(Struct, frozen=True, kw_only=True):
    """Two runs aligned: all rows, and the first that differs."""

    rows: tuple[StepPair, ...]
    first: int | None


class GroupsCompared(Struct, frozen=True, kw_only=True):
    """Two campaigns, models or agents."""

    kind: str
    rates: tuple[RatePair, ...]
    flips: tuple[Flip, ...]


def list_choices(connection: "duckdb.DuckDBPyConnection") -> dict[str, list[str]]:
    """Return the names that can be compared, by kind."""
    return {
        kind: [
            str(name) for (name,) in connection.execute(
                f"select distinct {kind} from trajectories where {kind} is not null"
                f" order by 1 limit {MOST_CHOICES}"
            ).fetchall()
        ]
        for kind in KINDS
    }  # fmt: skip


def compare_runs(tapes: Path, a: str, b: str) -> RunsCompared:
    """Align two runs by tool and arguments. Raises OSError or ValueError without their tapes."""
    paths = [tapes / f"{id}.tape" for id in (a, b)]
    if sum(path.stat().st_size for path in paths) > LARGEST_RUNS:
        raise ValueError("their tapes are too large for a page")
    one, two = (derive_tape_steps(read_tape(path)) for path in paths)
    rows = align_runs(one, two)
    return RunsCompared(
        rows=rows, first=next((at for at, row in enumerate(rows) if not is_same_step(row)), None)
    )


def compare_groups(
    connection: "duckdb.DuckDBPyConnection", kind: str, a: str, b: str
) -> GroupsCompared:
    """Answer the questions of `stumble compare`."""
    named = {"a": a, "b": b, "by": kind}
    rates, flips = (_ask(connection, question, named) for question in ("compare", "flips"))
    return GroupsCompared(
        kind=kind,
        rates=tuple(_build_rate(row) for row in rates),
        flips=tuple(_build_flip(row) for row in flips[:MOST_FLIPS]),
    )


def _ask(
    connection: "duckdb.DuckDBPyConnection", question: str, values: Mapping[str, str]
) -> list[Mapping[str, object]]:
    answer = run_question(connection, question, **values)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def _build_rate(row: Mapping[str, object]) -> RatePair:
    low, high = _percent(row["lo"]), _percent(row["hi"])
    return RatePair(
        measure=str(row["measure"]).replace("_", " "),
        part=str(row["part"]),
        pairs=row["pairs"] if isinstance(row["pairs"], int) else 0,
        a=_percent(row["rate_a"]),
        b=_percent(row["rate_b"]),
        delta=_percent(row["delta"]),
        interval=None if low is None or high is None else (low, high),
        reason=str(row["reason"] or "").replace("_", " "),
    )


def _build_flip(row: Mapping[str, object]) -> Flip:
    return Flip(
        trace=str(row["trace"]),
        cell=str(row["cell"]),
        class_a=str(row["class_a"] or "unsettled"),
        class_b=str(row["class_b"] or "unsettled"),
        injection_a=str(row["injection_a"]),
        injection_b=str(row["injection_b"]),
    )


def _percent(value: object) -> float | None:
    return 100 * float(value) if isinstance(value, int | float) else None
