"""Analysis of a sealed campaign, fixed before its first run: the table [seal] of its file.

[seal]
margin = 0.05                   largest accepted loss of the rate
measure = ["ends-right"]        of ends-right, handled and silent; each has to pass
alpha = 0.05                    the probability to pass a candidate worse by the margin
looks = 4                       evenly spaced, or fractions: [0.5, 0.75, 1.0]
spending = "obrien-fleming"     or pocock: the division of alpha among the looks
against = "nightly-before"      the baseline: a campaign, seal, agent, model or store
max_unknown = 0.1               the share of unknown outcomes above which there is no answer
files = ["prompts/*.md"]        more files of the agent that are fixed
except = ["run.log"]            files of commands that are not, since runs change them
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast, get_args

from msgspec import Struct

from scenarios.toml_reader import TypedTable
from stumble.experiments.seals.alpha_spending import SPENDINGS, Spending, check_looks

type Measure = Literal["ends-right", "handled", "silent"]
"""The counted faulted runs: with a right end state; with that or an honest failure; or with a
wrong end state and no sign of notice."""

MEASURES: tuple[Measure, ...] = get_args(Measure.__value__)
SEAL_KEYS = "margin measure alpha looks spending against max_unknown files except"


class AnalysisTerms(Struct, frozen=True, kw_only=True):
    """The analysis: non-inferiority of each measure by one margin."""

    margin: float
    """The rate may be worse by less than this, between 0 and 1."""
    measures: tuple[Measure, ...] = ("ends-right",)
    alpha: float = 0.05
    looks: tuple[float, ...] = (1.0,)
    """Fractions of the root recordings after which there is an analysis; the last is 1."""
    spending: Spending = "obrien-fleming"
    against: str | None = None
    max_unknown: float = 0.1
    files: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the sealed terms as plain data; files are sealed by their digests."""
        return {
            "margin": self.margin,
            "measure": list(self.measures),
            "alpha": self.alpha,
            "looks": list(self.looks),
            "spending": self.spending,
            "against": self.against,
            "max_unknown": self.max_unknown,
        }


def parse_terms(said: Mapping[str, object], path: Path) -> AnalysisTerms:
    """Parse the terms of a campaign's table. Raises ScenarioError if missing or invalid."""
    table = TypedTable(path, "", said).get_table("seal")
    table.allow_only(SEAL_KEYS)
    terms = AnalysisTerms(
        margin=_parse_share(table, "margin"),
        measures=_parse_measures(table),
        alpha=_parse_share(table, "alpha", 0.05, most=0.5),
        looks=_parse_looks(table),
        spending=_parse_spending(table),
        against=table.get_text("against"),
        max_unknown=_parse_share(table, "max_unknown", 0.1, least=0.0),
        files=table.get_texts("files"),
        left_out=table.get_texts("except"),
    )
    try:
        check_looks(terms.looks, terms.alpha)
    except ValueError as error:
        raise table.make_error("looks", str(error)) from None
    return terms


def parse_sealed_terms(sealed: Mapping[str, object], path: Path) -> AnalysisTerms:
    """Parse the terms of a seal."""
    return parse_terms({"seal": {k: v for k, v in sealed.items() if v is not None}}, path)


def _parse_share(
    table: TypedTable,
    key: str,
    default: float | None = None,
    *,
    least: float = 1e-9,
    most: float = 1.0,
) -> float:
    value = table.entries.get(key, default)
    if value is None:
        raise table.make_error(key, "is missing: by how much the rate may be worse, as 0.05")
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < most:
        raise table.make_error(key, f"{value!r} is not a share between 0 and {most:g}")
    return float(value)


def _parse_measures(table: TypedTable) -> tuple[Measure, ...]:
    value = table.entries.get("measure", "ends-right")
    names = [value] if isinstance(value, str) else list(table.get_texts("measure"))
    for name in names:
        if name not in MEASURES:
            raise table.make_error("measure", f"{name!r} is none of {', '.join(MEASURES)}")
    if not names:
        raise table.make_error("measure", "names no measure")
    return cast(tuple[Measure, ...], tuple(dict.fromkeys(names)))


def _parse_looks(table: TypedTable) -> tuple[float, ...]:
    value = table.entries.get("looks", 1)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return tuple((number + 1) / value for number in range(value))
    if not isinstance(value, list) or not value:
        raise table.make_error(
            "looks", f"{value!r} is neither a number of looks nor a list of shares"
        )
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in value):
        raise table.make_error("looks", f"{value!r} is not a list of shares")
    if value[-1] != 1:
        raise table.make_error("looks", f"the last is 1, all that is planned, not {value[-1]!r}")
    return tuple(map(float, value))


def _parse_spending(table: TypedTable) -> Spending:
    name = table.get_text("spending") or "obrien-fleming"
    for spending in SPENDINGS:
        if name == spending:
            return spending
    raise table.make_error("spending", f"{name!r} is none of {', '.join(SPENDINGS)}")
