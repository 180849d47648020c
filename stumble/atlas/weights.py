"""Measured error rates of an atlas, for questions that assume a rate and for weights of faults."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

from stumble.atlas.query import connect_atlas, run_atlas_question
from traces.did_you_mean import suggest_nearest_name

if TYPE_CHECKING:
    import duckdb

PREFIX = "atlas:"
ATLAS_FOLDER = "atlas"
"""The folder of the atlas in a store."""


def resolve_rates(
    parameters: Mapping[str, str], store: Path, takes: Collection[str] = ()
) -> dict[str, str]:
    """Return the parameters with each `atlas:SOURCE` replaced by what that source shows.

    That is its error rate per step; for `weights` its errors by class, as JSON, and with it the
    rate and its interval as `e`, `e_lo` and `e_hi`, if they are in `takes` and not given. Raises
    ValueError if there is no atlas, if it has no error rate of that source, or for `e_quiet`.
    """
    sources = {
        key: value.removeprefix(PREFIX)
        for key, value in parameters.items()
        if value.startswith(PREFIX)
    }
    if not sources:
        return dict(parameters)
    if "e_quiet" in sources:
        raise ValueError(
            "no source of an atlas shows how often wrong values look right; give e_quiet a rate"
        )
    with connect_atlas(store / ATLAS_FOLDER) as connection:
        rows = run_atlas_question(connection, "step_error_rates")
        rates = {str(row["source"]): row for row in rows if row["e"] is not None}
        found = {key: _find_rate(source, rates) for key, source in sources.items()}
        resolved = {key: str(row["e"]) for key, row in found.items()}
        if "weights" in sources:
            resolved |= _describe_errors(found["weights"], takes)
            resolved["weights"] = json.dumps(_count_errors(connection, sources["weights"]))
    return resolved | {key: value for key, value in parameters.items() if key not in sources}


def _find_rate(source: str, rates: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    if source not in rates:
        nearest = suggest_nearest_name(source, rates)
        raise ValueError(f"the atlas has no error rate of {source!r}{nearest}")
    return rates[source]


def _describe_errors(row: Mapping[str, object], takes: Collection[str]) -> dict[str, str]:
    """Return the rate of a row of `step_error_rates` and its bounds, those that are known."""
    named = {"e": row["e"], "e_lo": row["lo"], "e_hi": row["hi"]}
    return {key: str(value) for key, value in named.items() if key in takes and value is not None}


def _count_errors(connection: "duckdb.DuckDBPyConnection", source: str) -> dict[str, int]:
    """Return how many failed calls of each class a source has, without the agents' own commands."""
    counted = connection.execute(
        "SELECT error_class, count(*) FROM call JOIN run USING (run_id)"
        " WHERE source = ? AND is_error AND error_class <> 'command_failed'"
        " GROUP BY ALL ORDER BY 2 DESC, 1",
        [source],
    ).fetchall()
    return {str(name): int(count) for name, count in counted}


class WildWeights(Struct, frozen=True, kw_only=True):
    """Weights of faults by how often their class was seen in a source."""

    source: str
    weights: Mapping[str, float]
    """By operator and persistence; faults whose class was not seen have none."""
    errors: int
    covered: int
    """Errors of a class that some fault makes."""
    left_out: tuple[str, ...]
    """Faults without a weight: no error of a source shows their class, or there was none."""

    def to_dict(self) -> dict[str, object]:
        """Return them as plain data."""
        return asdict(self)

    def describe(self) -> str:
        """Return what the weights rest on, in one line."""
        return (
            f"weights: atlas:{self.source}, {self.covered} of its {self.errors} errors "
            f"({self.covered / self.errors:.0%}) are of a class that these faults make; "
            f"left out: {', '.join(self.left_out) or 'none'}"
        )


def weigh_faults(weights: Mapping[str, float], value: str, store: Path) -> WildWeights:
    """Replace the weights of faults by the errors of their class in the source of `atlas:SOURCE`.

    Several faults of one operator divide its errors as their old weights do. Raises ValueError if
    there is no such source, or none of its errors is of a class of these faults.
    """
    source = value.removeprefix(PREFIX)
    if source == value:
        raise ValueError(f"{value!r}: not {PREFIX}SOURCE")
    with connect_atlas(store / ATLAS_FOLDER) as connection:
        seen = _count_errors(connection, source)
        known = connection.execute(
            "SELECT DISTINCT source FROM call JOIN run USING (run_id) WHERE is_error ORDER BY 1"
        ).fetchall()
    if not seen:
        nearest = suggest_nearest_name(source, [str(name) for (name,) in known])
        raise ValueError(f"the atlas has no error of {source!r}{nearest}")
    by_operator: dict[str, float] = {}
    for fault, weight in weights.items():
        operator = fault.partition(" ")[0]
        by_operator[operator] = by_operator.get(operator, 0.0) + weight
    wild = {
        fault: seen[operator] * weight / by_operator[operator]
        for fault, weight in weights.items()
        if (operator := fault.partition(" ")[0]) in seen and weight > 0
    }
    if not wild:
        raise ValueError(f"no fault makes an error of {source!r}: it has {', '.join(seen)}")
    operators = {fault.partition(" ")[0] for fault in wild}
    return WildWeights(
        source=source,
        weights=wild,
        errors=sum(seen.values()),
        covered=sum(count for name, count in seen.items() if name in operators),
        left_out=tuple(fault for fault in weights if fault not in wild),
    )
