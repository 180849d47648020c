"""Noticing as signal detection: hits on faults against false alarms on shams."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.outcomes import NOT_RATED
from stumble.report.values import Chart, Figure, Row, Section, Table, figure, number
from stumble.selection import rows

if TYPE_CHECKING:
    import duckdb

EVERY = "all faults"


def notice(connection: "duckdb.DuckDBPyConnection", name: Callable[[Row], str]) -> Section:
    """How often faults were noticed, how often shams were, and how far the two are apart."""
    found, title = rows(connection, "signal_detection"), "Noticed, or alarmed"
    if not found:
        return Section(
            name="notice",
            title=title,
            nothing="No fault reached an agent and could be judged, so there is nothing to notice.",
        )
    groups: dict[str, list[Row]] = {}
    for row in found:
        groups.setdefault(name(row), []).append(row)
    return Section(
        name="notice",
        title=title,
        lead=(
            "An agent that sees faults everywhere notices all of them. So each point sets the "
            "share of faults that were noticed against the share of shams, which change nothing, "
            "that were \u201cnoticed\u201d all the same. Far above the diagonal is good; on it "
            "notice means nothing. The cross is the 95 % interval of both.",
        ),
        charts=tuple(chart for who, some in groups.items() if (chart := _chart(who, some))),
        tables=(_table(found, name),),
        notes=tuple(
            f"{who}: no sham was judged, so that it has no point: how much of its notice is false "
            "is not known."
            for who, some in groups.items()
            if number(some[0], "false_alarm") is None
        ),
    )


def _of(row: Row) -> str:
    return EVERY if row["detect"] is None else str(row["detect"] or NOT_RATED)


def _hit(row: Row) -> Figure:
    return figure(row, "hit", n="faults", reason="few_traces")


def _alarm(row: Row) -> Figure:
    return figure(row, "false_alarm", n="shams", reason="few_traces", unknown="no_shams")


def _chart(who: str, some: Sequence[Row]) -> Chart | None:
    pooled = next((row for row in some if row["detect"] is None), None)
    if pooled is None or number(pooled, "false_alarm") is None:
        return None
    drawn: list[Row] = [
        {
            "hit": number(row, "hit"),
            "hit_lo": number(row, "hit_lo"),
            "hit_hi": number(row, "hit_hi"),
            "alarm": number(row, "false_alarm"),
            "alarm_lo": number(row, "false_alarm_lo"),
            "alarm_hi": number(row, "false_alarm_hi"),
            "label": ", ".join(
                _of(each) for each in some if each is not pooled and _same(each, row)
            ),
            "main": row is pooled,
        }
        for at, row in enumerate(some)
        if row is pooled or not any(_same(row, each) for each in some[:at] if each is not pooled)
    ]
    says = f"{who}: noticed {_hit(pooled).text} of faults and {_alarm(pooled).text} of shams."
    return Chart(drawing="notice", of=who, says=says, rows=tuple(drawn))


def _same(one: Row, two: Row) -> bool:
    """Whether two points lie on one another, so that one label names both."""
    return all(one[column] == two[column] for column in ("hit", "false_alarm"))


def _table(found: Sequence[Row], name: Callable[[Row], str]) -> Table:
    return Table(
        caption="Notice of faults, by detectability, and of shams",
        columns=("agent", "faults", "noticed", "false alarms on shams", "difference", "d\u2032"),
        rows=tuple(
            (
                name(row),
                _of(row),
                _hit(row),
                _alarm(row),
                figure(row, "youden", unknown="no_shams"),
                _d_prime(row),
            )
            for row in found
        ),
    )


def _d_prime(row: Row) -> str:
    value = number(row, "d_prime")
    if value is not None:
        return f"{value:.2f}"
    alarm = number(row, "false_alarm")
    return "not known (no shams)" if alarm is None else "not known (a rate of 0 or 1)"
