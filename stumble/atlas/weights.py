"""Measured error rates of an atlas, for questions that take a rate as an assumption."""

from collections.abc import Mapping
from pathlib import Path

from stumble.atlas.query import connect_atlas, run_atlas_question
from traces.did_you_mean import suggest_nearest_name

PREFIX = "atlas:"


def resolve_rates(parameters: Mapping[str, str], atlas: Path) -> dict[str, str]:
    """Return the parameters with each `atlas:SOURCE` replaced by that source's error rate per step.

    Raises ValueError if there is no atlas, or it has no error rate of that source.
    """
    if not any(value.startswith(PREFIX) for value in parameters.values()):
        return dict(parameters)
    with connect_atlas(atlas) as connection:
        rates = {
            row["source"]: row["e"] for row in run_atlas_question(connection, "step_error_rates")
        }
    return {key: _resolve(value, rates) for key, value in parameters.items()}


def _resolve(value: str, rates: Mapping[object, object]) -> str:
    if not value.startswith(PREFIX):
        return value
    source = value.removeprefix(PREFIX)
    if rates.get(source) is None:
        known = [str(name) for name, rate in rates.items() if rate is not None]
        raise ValueError(
            f"the atlas has no error rate of {source!r}{suggest_nearest_name(source, known)}; it "
            f"has {', '.join(known) or 'none'}"
        )
    return str(rates[source])
