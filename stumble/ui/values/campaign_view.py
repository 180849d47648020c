"""Campaigns: a list, and the grid of trace x fault of one."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from stumble.campaigns.progress_file import WrittenProgress
from stumble.report.outcomes import OUTCOME_LABELS, format_fault_label
from stumble.ui.sql import read_page_sql
from stumble.ui.values.formats import format_count, format_dollars, format_seconds, format_when
from stumble.verdicts.exclusions import describe_exclusion
from traces.model import Trajectory
from traces.store.sql import run_question

if TYPE_CHECKING:
    import duckdb

_LABELS = dict(OUTCOME_LABELS)
MOST_CELLS = 20_000
WANTED_HALF_WIDTH = 10
"""Percentage points on either side of a rate that decide most questions."""


class CampaignRow(Struct, frozen=True, kw_only=True):
    """A campaign as listed."""

    name: str
    begun: str
    runs: str
    open: int
    """Runs without an end."""
    cost: str
    outcomes: tuple[tuple[str, str, int], ...]


class GridCell(Struct, frozen=True, kw_only=True):
    """One injection in the grid; running ones have no id yet."""

    injection: str | None
    outcome: str
    words: str
    reason: str = ""
    """Why it has no verdict, and what to do; empty if it has one."""


class GridRow(Struct, frozen=True, kw_only=True):
    """A trace with its cells for each fault."""

    trace: str
    cells: tuple[tuple[GridCell, ...], ...]


class CampaignRate(Struct, frozen=True, kw_only=True):
    """A rate with its interval in percent; the interval is None with a reason."""

    who: str
    measure: str
    rate: float | None
    interval: tuple[float, float] | None
    judged: str
    reason: str
    more: int | None = None
    """Further traces until the interval reaches ± WANTED_HALF_WIDTH points; 0 if it does."""


class CampaignView(Struct, frozen=True, kw_only=True):
    """One campaign."""

    name: str
    facts: tuple[tuple[str, str], ...]
    faults: tuple[str, ...]
    rows: tuple[GridRow, ...]
    rates: tuple[CampaignRate, ...]
    running: int
    is_running: bool
    is_finished: bool
    """Whether all planned runs are done; False if the plan is unknown."""

    @property
    def reasons(self) -> tuple[tuple[str, int], ...]:
        """Why cells are grey, each reason with its number, the most frequent first."""
        cells = (cell for row in self.rows for some in row.cells for cell in some)
        return tuple(Counter(cell.reason for cell in cells if cell.reason).most_common())


def list_campaigns(connection: "duckdb.DuckDBPyConnection") -> tuple[CampaignRow, ...]:
    """Return the campaigns, the newest first."""
    rows = connection.execute(read_page_sql("campaigns")).fetchall()
    counts: dict[str, dict[str, int]] = {}
    for campaign, outcome, n in connection.execute(read_page_sql("campaign_outcomes")).fetchall():
        counts.setdefault(campaign, {})[outcome] = n
    return tuple(
        CampaignRow(
            name=name,
            begun=format_when(started),
            runs=format_count(runs),
            open=unended,
            cost=format_dollars(cost),
            outcomes=tuple(_list_outcomes(counts.get(name, {}))),
        )
        for name, started, runs, unended, cost in rows
    )


def _list_outcomes(counts: Mapping[str, int]) -> Iterator[tuple[str, str, int]]:
    for key, words in OUTCOME_LABELS:
        if counts.get(key):
            yield key, words, counts[key]


def read_campaign(
    connection: "duckdb.DuckDBPyConnection",
    name: str,
    running: tuple[Trajectory, ...] | None,
    progress: WrittenProgress | None = None,
    max_cost: float | None = None,
) -> CampaignView | None:
    """Read a campaign; None if the store has no run of it.

    `running` are its unfinished runs, None if no session of it runs; `max_cost` is in dollars.
    """
    is_running, running = running is not None, running or ()
    [(runs, unended, cost, tokens, started)] = connection.execute(
        read_page_sql("campaign_totals"), {"name": name}
    ).fetchall()
    if not runs and not is_running:
        return None
    faults, rows = _build_grid(connection, name, running)
    return CampaignView(
        name=name,
        facts=(
            ("begun (UTC)", format_when(started)),
            ("runs", _format_share(runs, progress)),
            ("not ended", format_count(unended + len(running))),
            ("tokens", format_count(None if tokens is None else int(tokens))),
            ("cost so far", format_cost_share(cost, max_cost)),
            *(_list_remaining(progress) if progress and is_running else ()),
        ),
        faults=faults,
        rows=rows,
        rates=tuple(_list_rates(connection, name)),
        running=len(running),
        is_running=is_running,
        is_finished=progress is not None and 0 < progress.wanted <= progress.done,
    )


def _format_share(runs: int, progress: WrittenProgress | None) -> str:
    """Format the runs in the store, and how many are planned if that is known."""
    if progress is None or not progress.wanted:
        return format_count(runs)
    return f"{format_count(runs)}; {progress.done:,} of {progress.wanted:,} planned are done"


def format_cost_share(cost: float | None, max_cost: float | None) -> str:
    """Format a cost; against its limit, with the share."""
    if max_cost is None:
        return format_dollars(cost)
    share = f", {100 * cost / max_cost:.0f} %" if cost is not None and max_cost else ""
    return f"{format_dollars(cost)} of at most {format_dollars(max_cost)}{share}"


def _list_remaining(progress: WrittenProgress) -> Iterator[tuple[str, str]]:
    left = progress.seconds_left
    yield "time left", "not known yet" if left is None else f"about {format_seconds(left)}"


def _build_grid(
    connection: "duckdb.DuckDBPyConnection", name: str, running: tuple[Trajectory, ...]
) -> tuple[tuple[str, ...], tuple[GridRow, ...]]:
    answer = connection.execute(
        read_page_sql("campaign_cells"), {"name": name, "cells": MOST_CELLS}
    )
    columns = [column[0] for column in answer.description or ()]
    cells: dict[tuple[str, str], list[GridCell]] = {}
    for values in answer.fetchall():
        row = dict(zip(columns, values, strict=True))
        key = str(row["trace"]), format_fault_label(row)
        cells.setdefault(key, []).append(_build_cell(row))
    for run in running:
        if run.condition == "fault":
            fault = _read_cell_fault(run.cell or "")
            key = run.task or run.parent or run.id, fault
            cell = GridCell(injection=None, outcome="running", words=f"running: {run.cell}")
            cells.setdefault(key, []).append(cell)
    faults = tuple(sorted({fault for _, fault in cells}))
    traces = sorted({trace for trace, _ in cells})
    return faults, tuple(
        GridRow(
            trace=trace,
            cells=tuple(tuple(cells.get((trace, fault), ())) for fault in faults),
        )
        for trace in traces
    )


def _read_cell_fault(address: str) -> str:
    """Return `digit, same_args` of `get_order#1@http/digit(field=x),same_args/seed 1/rep 0`."""
    spec = (address.split("/") + ["", "fault"])[1]
    persist = spec.rpartition("),")[2] if ")," in spec else "once"
    row = {"op": spec.partition("(")[0], "persist": persist, "place": None}
    return format_fault_label(row)


def _build_cell(row: Mapping[str, object]) -> GridCell:
    outcome = "absorbed" if row["state"] == "absorbed" else str(row["class"] or "unsettled")
    outcome = outcome if outcome in _LABELS else "unsettled"
    reason = _explain_no_verdict(row) if outcome == "unsettled" else ""
    words = f"{row['model'] or 'a model'}: {_LABELS[outcome]}{reason and f', {reason}'}"
    return GridCell(injection=str(row["injection_id"]), outcome=outcome, words=words, reason=reason)


def _explain_no_verdict(row: Mapping[str, object]) -> str:
    if row["class"] is None and row["delivered_wrong"]:
        return "delivered wrong, and whether it was noticed is not known"
    if row["state"] == "ended_before":
        return "the run was over before its model could see the fault"
    return describe_exclusion(str(row["excluded"] or "no_verdict"))


def _list_rates(connection: "duckdb.DuckDBPyConnection", name: str) -> Iterator[CampaignRate]:
    answer = run_question(connection, "gate", campaign=name)
    columns = [column[0] for column in answer.description or ()]
    for values in answer.fetchall():
        row = dict(zip(columns, values, strict=True))
        low, high, rate = row["known_lo"], row["known_hi"], row["rate"]
        unknown = (
            f"; {row['unknown']} unknown: {row['least']:.0%} to {row['most']:.0%}"
            if row["unknown"]
            else ""
        )
        yield CampaignRate(
            who=" \u00b7 ".join(str(row[key]) for key in ("agent", "model") if row[key]),
            measure=str(row["measure"]).replace("_", " "),
            rate=None if rate is None else 100 * float(rate),
            interval=None if low is None or high is None else (100 * low, 100 * high),
            judged=f"{row['hits']} of {row['cases']} in {row['traces']} traces{unknown}",
            reason=str(row["reason"] or ""),
            more=None
            if low is None or high is None
            else count_more_traces(int(row["traces"]), 100 * low, 100 * high),
        )


def count_more_traces(traces: int, low: float, high: float) -> int:
    """Return how many further traces narrow an interval to ± WANTED_HALF_WIDTH points.

    The width of an interval over clusters falls with the root of their number.
    """
    half = (high - low) / 2
    return max(0, math.ceil(traces * (half / WANTED_HALF_WIDTH) ** 2) - traces)
