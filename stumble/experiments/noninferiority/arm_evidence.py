"""Evidence of a store on candidate and baseline: the arms, and each root recording."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from stumble.experiments.noninferiority.decision import DifferenceBounds
from stumble.experiments.seals.analysis_terms import Measure
from stumble.store.filter import fetch_named_rows, fetch_question_rows

if TYPE_CHECKING:
    import duckdb

type Pairing = Literal["root", "task"]
"""How roots of both arms are paired: by root recording or by task."""

BASELINE_PREFIX = "baseline: "
"""Prefix of the campaigns of another store, once merged with those of this one."""


class ExperimentArm(Struct, frozen=True, kw_only=True):
    """Runs of one agent with one model in one world, of one campaign or of none."""

    campaign: str | None
    agent: str | None
    model: str | None
    world: str | None
    roots: int
    fired: int
    settled: int
    again: int
    """Runs of cells that were run more than once."""
    seals: Sequence[str]
    """Digests of seals; an empty one for runs without a seal."""
    judge_versions: Sequence[int]
    verifiers: Sequence[str]
    """Digests of the verifiers of the end states, or the names of their kinds."""
    has_second_verifier: bool = False
    """Whether two verifiers judged runs of one recording."""

    @property
    def seal(self) -> str | None:
        """The seal that all of its runs share, or None."""
        return self.seals[0] if len(self.seals) == 1 and self.seals[0] else None

    @property
    def name(self) -> str:
        """The campaign, agent and model."""
        return " ".join(filter(None, (self.campaign, self.agent, self.model))) or "unnamed runs"


class RootEvidence(Struct, frozen=True, kw_only=True):
    """One row of the question `noninferiority`: a root recording, or a task, under both arms.

    Rates are the wanted shares, 0 to 1; None if nothing is known of an arm.
    """

    unit: str
    paired_by: Pairing | None
    cells: int
    known: int
    left_out: int
    candidate: float | None
    baseline: float | None
    difference: float | None
    candidate_least: float | None
    candidate_most: float | None
    baseline_least: float | None
    baseline_most: float | None
    candidate_runs: int
    baseline_runs: int


def query_arms(connection: "duckdb.DuckDBPyConnection") -> tuple[ExperimentArm, ...]:
    """Return all arms with injections."""
    return tuple(
        _row_to_struct(ExperimentArm, row) for row in fetch_question_rows(connection, "arms")
    )


def query_roots(
    connection: "duckdb.DuckDBPyConnection",
    candidate: ExperimentArm,
    baseline: ExperimentArm,
    measure: Measure,
) -> tuple[RootEvidence, ...]:
    """Return every root of either arm."""
    params: dict[str, str | None] = {"measure": measure}
    for prefix, arm in (("", candidate), ("baseline_", baseline)):
        params |= {f"{prefix}{key}": getattr(arm, key) for key in _ARM_COLUMNS}
    return tuple(
        _row_to_struct(RootEvidence, row)
        for row in fetch_question_rows(connection, "noninferiority", **params)
    )


_ARM_COLUMNS = ("campaign", "agent", "model", "world")


def _row_to_struct[T: Struct](kind: type[T], row: Mapping[str, object]) -> T:
    return kind(**{name: row[name] for name in kind.__struct_fields__})


def query_difference_bounds(
    connection: "duckdb.DuckDBPyConnection", roots: Sequence[RootEvidence], level: float
) -> DifferenceBounds:
    """Return the difference over these roots with its bounds, each one-sided at this level."""
    if any(root.paired_by for root in roots):
        differences = [root.difference for root in roots if root.difference is not None]
        [row] = fetch_named_rows(
            connection.execute(_PAIRED_SQL, {"d": differences, "level": level})
        )
    else:
        arms = {
            "c": [root.candidate for root in roots if root.candidate is not None],
            "b": [root.baseline for root in roots if root.baseline is not None],
        }
        [row] = fetch_named_rows(connection.execute(_UNPAIRED_SQL, {**arms, "level": level}))
    return _row_to_struct(DifferenceBounds, row)


_PAIRED_SQL = "SELECT unnest(paired_bounds($d::DOUBLE[], $level::DOUBLE))"
_UNPAIRED_SQL = "SELECT unnest(unpaired_bounds($c::DOUBLE[], $b::DOUBLE[], $level::DOUBLE))"
