"""What was counted and what was not, and the popular figures with what is wrong with them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.values import Row, Section, Table, count, whole
from stumble.selection import rows

if TYPE_CHECKING:
    import duckdb

FATES = {
    "judged": "judged: reached the agent, clean twins pass, the class is known",
    "absorbed": "absorbed: a retry of the client hid it (handled, not judged)",
    "ended_before": "the run was over before the agent could see it",
    "undecided": "whether it reached the agent could not be decided",
    "no_site": "no_site: it could not strike there",
    "not_fired": "not_fired: no call came that it was aimed at",
    "cut_off": "the run was cut off by the harness or by the end of the recording",
    "several_faults": "several faults struck the run: the outcome belongs to all together",
    "baseline_failed": "the clean twins fail without it",
    "few_twins": "fewer than 3 clean twins",
    "baseline_unknown": "nobody knows whether the clean twins end right",
    "no_verdict": "no verdict: what decides it is not known",
}


def exclusions(connection: "duckdb.DuckDBPyConnection", name: Callable[[Row], str]) -> Section:
    """Every planned fault once, under what it counts for."""
    found = rows(connection, "exclusions")
    if not found:
        return Section(
            name="exclusions",
            title="Counted and excluded",
            nothing="No faults were planned, so none were excluded.",
        )
    whose: dict[str, list[Row]] = {}
    for row in found:
        whose.setdefault(name(row), []).append(row)
    judged, planned = _sum(found, "judged"), sum(whole(row, "faults") for row in found)
    return Section(
        name="exclusions",
        title="Counted and excluded",
        lead=(
            f"Of {planned:,} planned faults {judged:,} were judged. Each fault stands once, under "
            "the first reason that fits; what is excluded is in no rate, neither as a pass nor "
            "as a failure.",
        ),
        tables=(
            Table(
                caption="Planned faults, by what became of their verdict",
                columns=("counted as", *whose, "operators"),
                rows=tuple(
                    (
                        words,
                        *(count(_sum(some, fate)) for some in whose.values()),
                        ", ".join(sorted({str(r["op"]) for r in found if r["fate"] == fate})),
                    )
                    for fate, words in _fates(found).items()
                ),
            ),
        ),
    )


def _fates(found: Sequence[Row]) -> dict[str, str]:
    """What faults here were counted as, the known ones first."""
    here = [str(row["fate"]) for row in found]
    return {fate: words for fate, words in FATES.items() if fate in here} | {
        fate: fate for fate in here if fate not in FATES
    }


def _sum(found: Sequence[Row], fate: str) -> int:
    return sum(whole(row, "faults") for row in found if row["fate"] == fate)
