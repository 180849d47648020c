"""What became of faults, by operator, persistence and how hard they were to detect."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.headline import handled, recovered, silent
from stumble.report.values import Chart, Row, Section, Table, count, whole
from stumble.selection import view

if TYPE_CHECKING:
    import duckdb

OUTCOMES: tuple[tuple[str, str], ...] = (
    ("absorbed", "absorbed by the client"),
    ("recovered", "recovered"),
    ("masked", "masked"),
    ("honest_fail", "honestly failed"),
    ("noticed_wrong", "noticed, yet wrong"),
    ("silent_wrong", "silently wrong"),
    ("crashed", "crashed"),
    ("unsettled", "no verdict"),
)
"""Each outcome as its column is called, and in words; handled ones first."""
DETECT = {
    "D0": "D0, an explicit error",
    "D1": "D1, the syntax tells",
    "D2": "D2, it contradicts what is in view",
    "D3": "D3, only asking again tells",
    "D4": "D4, nothing here could tell",
}
NOT_RATED = "not rated"
LARGEST = 24
"""How many rows one picture shows."""


def outcomes(connection: "duckdb.DuckDBPyConnection", name: Callable[[Row], str]) -> Section:
    """Bars of outcomes for each agent, then rates with intervals as a table."""
    found = sorted(view(connection, "recovery_by_site"), key=_order)
    found = [row for row in found if whole(row, "fired")]
    if not found:
        return Section(
            name="outcomes",
            title="Outcomes by fault",
            nothing="No fault struck, so there are no outcomes.",
        )
    groups: dict[str, list[Row]] = {}
    for row in found:
        groups.setdefault(name(row), []).append(row)
    seen = {key for row in found for key, _ in OUTCOMES if _shares(row).get(key)}
    return Section(
        name="outcomes",
        title="Outcomes by fault",
        lead=(
            "Each bar is all strikes of one operator at one detectability; its parts are their "
            "outcomes. The first four are handled, the others are not.",
        ),
        charts=tuple(_chart(who, some) for who, some in groups.items()),
        legend=tuple((key, words) for key, words in OUTCOMES if key in seen),
        tables=(_table(found, name),),
        notes=tuple(_left_out(groups)),
    )


def fault(row: Row) -> str:
    """`digit, same_args`: an operator, and what is unusual about how it struck."""
    said = str(row["op"])
    if row.get("persist") not in (None, "once"):
        said += f", {row['persist']}"
    return said if row.get("place") in (None, "http") else f"{said}, at {row['place']}"


def _order(row: Row) -> tuple[str, str, str]:
    return str(row["detect"] or "-"), fault(row), str(row["model"])


def _shares(row: Row) -> dict[str, int]:
    """How many strikes had which outcome; together they are all that fired."""
    known = {key: whole(row, key) for key, _ in OUTCOMES[1:7]}
    absorbed = min(whole(row, "absorbed"), whole(row, "settled"))
    rest = whole(row, "fired") - absorbed - sum(known.values())
    return {"absorbed": absorbed, **known, "unsettled": max(rest, 0)}


def _chart(who: str, some: Sequence[Row]) -> Chart:
    drawn: list[Row] = []
    said = []
    for row in sorted(some, key=lambda row: -whole(row, "fired"))[:LARGEST]:
        shares, label = _shares(row), f"{fault(row)} \u00b7 {row['detect'] or NOT_RATED}"
        fired = whole(row, "fired")
        drawn += [
            {
                "fault": label,
                "detect": str(row["detect"] or ""),
                "outcome": key,
                "at": at,
                "share": shares[key] / fired,
                "count": shares[key],
                "fired": fired,
            }
            for at, (key, _) in enumerate(OUTCOMES)
            if shares[key]
        ]
        parts = [f"{shares[key]} {words}" for key, words in OUTCOMES if shares[key]]
        said.append(f"{label}: {', '.join(parts)} of {fired}")
    drawn.sort(key=lambda row: (str(row["detect"]), str(row["fault"])))
    return Chart(drawing="outcomes", of=who, says=f"{who}. {'; '.join(said)}.", rows=tuple(drawn))


def _left_out(groups: dict[str, list[Row]]) -> list[str]:
    return [
        f"{who}: the picture shows the {LARGEST} most frequent of {len(some)} kinds of faults, "
        "the table all."
        for who, some in groups.items()
        if len(some) > LARGEST
    ]


def _table(found: Sequence[Row], name: Callable[[Row], str]) -> Table:
    return Table(
        caption="Rates by operator and detectability, with 95 % intervals",
        columns=(
            "fault",
            "agent",
            "detectability",
            "struck",
            "reached",
            "handled",
            "recovered",
            "silently wrong",
        ),
        rows=tuple(
            (
                fault(row),
                name(row),
                str(row["detect"] or NOT_RATED),
                count(whole(row, "fired")),
                count(whole(row, "consumed")),
                handled(row),
                recovered(row),
                silent(row),
            )
            for row in found
        ),
    )
