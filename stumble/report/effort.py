"""What getting up again took: steps and seconds until then, and what runs cost."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.values import (
    Chart,
    Figure,
    Row,
    Section,
    Table,
    Unit,
    count,
    figure,
    number,
    whole,
)
from stumble.selection import rows

if TYPE_CHECKING:
    import duckdb

KINDS = {
    "record": "recorded",
    "clean": "clean twins",
    "sham": "with a sham",
    "fault": "with a fault",
    "replay": "replayed",
}


def recovery_time(connection: "duckdb.DuckDBPyConnection", name: Callable[[Row], str]) -> Section:
    """Steps until recovered injections were noticed, and what they took beyond clean twins."""
    found, title = rows(connection, "time_to_recovery"), "Time to recovery"
    if not found:
        return Section(
            name="recovery_time",
            title=title,
            nothing="Nothing was recovered from, so there is no time that it took.",
        )
    groups: dict[str, list[Row]] = {}
    for row in found:
        groups.setdefault(name(row), []).append(row)
    return Section(
        name="recovery_time",
        title=title,
        lead=(
            "Of recovered injections: how many steps of the agent it took from the struck result "
            "to the first hard sign that it noticed, and how much longer the whole run was than "
            "its clean twins. Means are over traces.",
        ),
        charts=tuple(chart for who, some in groups.items() if (chart := _chart(who, some))),
        tables=(
            Table(
                caption="Time to recovery, by agent and operator",
                columns=(
                    "operator",
                    "agent",
                    "recovered",
                    "steps to notice",
                    "most steps to notice",
                    "steps more",
                    "seconds more",
                ),
                rows=tuple(
                    (
                        str(row["op"]),
                        name(row),
                        count(whole(row, "recovered")),
                        _mean(row, "steps_to_notice", "steps"),
                        _longest(row),
                        _mean(row, "extra_steps", "steps"),
                        _mean(row, "extra_seconds", "seconds"),
                    )
                    for row in found
                ),
            ),
        ),
    )


def _mean(row: Row, column: str, unit: Unit) -> Figure:
    return figure(row, column, unit=unit, reason="all_alike", unknown="not_recorded")


def _longest(row: Row) -> Figure:
    return figure(row, "steps_to_notice_max", unit="count", unknown="not_recorded")


def _chart(who: str, some: Sequence[Row]) -> Chart | None:
    steps = Counter[int]()
    for row in some:
        notices = row["notices"]
        steps.update(notices if isinstance(notices, list) else ())
    if not steps:
        return None
    drawn = [{"steps": n, "recovered": steps[n]} for n in sorted(steps)]
    said = ", ".join(f"{steps[n]} after {n} step{'' if n == 1 else 's'}" for n in sorted(steps))
    return Chart(
        drawing="recovery_time",
        of=f"{who}, {steps.total()} recovered",
        says=f"{who}: noticed {said}.",
        rows=tuple(drawn),
    )


def cost(connection: "duckdb.DuckDBPyConnection", name: Callable[[Row], str]) -> Section:
    """Steps, tokens, seconds and dollars of a run, by what was done to it."""
    found = rows(connection, "cost_by_condition")
    if not found:
        return Section(name="cost", title="Cost", nothing="There are no runs to tell a cost of.")
    order = list(KINDS)
    found = tuple(
        sorted(
            found,
            key=lambda row: (
                str(row["model"]),
                order.index(str(row["kind"])) if row["kind"] in order else len(order),
            ),
        )
    )
    unpriced = sum(whole(row, "unpriced") for row in found)
    return Section(
        name="cost",
        title="Cost",
        lead=(
            "What a run took, as a mean over traces with its 95 % interval. Tokens and dollars "
            "count model calls that a tape answered as well, which nobody had to pay for again.",
        ),
        tables=(
            Table(
                caption="Cost of a run, by agent and condition",
                columns=(
                    "agent",
                    "runs",
                    "how many",
                    "steps",
                    "tokens",
                    "seconds",
                    "dollars",
                    "dollars in all",
                ),
                rows=tuple(
                    (
                        name(row),
                        KINDS.get(str(row["kind"]), str(row["kind"])),
                        count(whole(row, "runs")),
                        figure(row, "steps", unit="steps", reason="all_alike"),
                        figure(
                            row, "tokens", unit="tokens", reason="all_alike", unknown="not_recorded"
                        ),
                        figure(
                            row,
                            "seconds",
                            unit="seconds",
                            reason="all_alike",
                            unknown="not_recorded",
                        ),
                        figure(row, "cost_usd", unit="usd", reason="all_alike", unknown="no_price"),
                        _in_all(row),
                    )
                    for row in found
                ),
            ),
        ),
        notes=(f"{unpriced:,} runs have no known price; dollars leave them out.",)
        if unpriced
        else (),
    )


def _in_all(row: Row) -> str:
    whole_cost = number(row, "cost_total")
    said = Figure(value=whole_cost, unit="usd", reason="no_price").point
    unpriced = whole(row, "unpriced")
    return f"at least {said}" if whole_cost is not None and unpriced else said
