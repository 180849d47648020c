"""The headline: a sentence and three rates for each agent."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from stumble.report.model import (
    AgentKey,
    ReportChart,
    ReportFigure,
    ReportSection,
    ReportTable,
    make_count_figure,
    make_figure,
    read_row_count,
    read_row_text,
    sum_row_counts,
)
from stumble.store.filter import ReportRow, fetch_question_rows
from stumble.verdicts.exclusions import MIXED_VERDICT_REMEDIES, describe_exclusion

if TYPE_CHECKING:
    import duckdb

HEADLINE_TERMS = (
    "Each interval is a 95 % interval over traces (a recording, or a task, with all its repeats): "
    "if the whole study were made again and again on other traces of this kind, 95 of 100 such "
    "intervals would hold the rate of the runs whose value is known. Unknown runs are in none: "
    "with all of them against and all of them for, the rate is at the ends of its bounds, which "
    "stand first if they are wider than the interval. What the judge reads wrongly is in neither. "
    "Fewer than 5 traces have no interval."
)
NO_RUNS = "There are no runs in what was selected."
NO_FAULTS = (
    "No fault fired in what was selected, so nothing can be said about recovery: "
    "`stumble fork TAPE --fault NAME --where tool=TOOL` injects one."
)


def build_headline_section(
    connection: "duckdb.DuckDBPyConnection",
    name: Callable[[ReportRow], str],
    unfinished: Mapping[AgentKey, str],
) -> ReportSection:
    """Build the section with the rates of handled, recovered and silently wrong.

    Agents with an unfinished sealed plan get no rates.
    """
    rows = [
        _blank_unfinished_rates(row, unfinished)
        for row in fetch_question_rows(connection, "recovery_by_model")
    ]
    contents = fetch_question_rows(connection, "contents")
    lead = [_describe_contents(contents)] if contents else []
    if not rows:
        why = NO_FAULTS if contents else NO_RUNS
        return ReportSection(name="headline", title="Headline", lead=tuple(lead), nothing=why)
    lead += [_write_headline_sentence(row, name(row)) for row in rows] + [HEADLINE_TERMS]
    return ReportSection(
        name="headline",
        title="Headline",
        lead=tuple(lead),
        charts=tuple(
            _make_rates_chart(words, ink, [(name(row), rate(row)) for row in rows])
            for words, ink, rate in (
                ("handled", "honest_fail", make_handled_figure),
                ("recovered", "recovered", make_recovered_figure),
                ("silently wrong", "silent_wrong", make_silent_figure),
            )
        ),
        tables=(_make_headline_table(rows, name),),
        notes=_list_headline_notes(contents),
    )


def make_handled_figure(row: ReportRow) -> ReportFigure:
    """Make the share that ended right and was reported so, or failed honestly, of fired faults."""
    return make_figure(row, "handled_rate", n="handled_rate_of", reason="nothing_judged")


def make_recovered_figure(row: ReportRow) -> ReportFigure:
    """Make the share noticed and ended right, of the faults that could be noticed."""
    return make_figure(row, "recovery_rate", n="recovery_rate_of", reason="nothing_judged")


def make_silent_figure(row: ReportRow) -> ReportFigure:
    """Make the share wrong and never noticed, of the faults that reached the agent."""
    return make_figure(row, "silent_rate", n="silent_rate_of", reason="nothing_judged")


def make_ends_right_figure(row: ReportRow) -> ReportFigure:
    """Make the share whose verified end is right, of fired faults."""
    return make_figure(row, "ends_right_rate", n="ends_right_rate_of", reason="nothing_judged")


def _describe_contents(contents: Sequence[ReportRow]) -> str:
    runs, faulted = (
        sum_row_counts(contents, "runs"),
        [r for r in contents if r["condition"] == "fault"],
    )
    models = len({row["model"] for row in contents})
    runs_text = (
        f"{runs:,} run{'' if runs == 1 else 's'} of {models} model{'' if models == 1 else 's'}"
    )
    shams = sum(read_row_count(row, "runs") for row in contents if row["condition"] == "sham")
    return f"{runs_text}: {sum_row_counts(faulted, 'runs'):,} with a fault, {shams:,} with a sham."


def _blank_unfinished_rates(row: ReportRow, unfinished: Mapping[AgentKey, str]) -> ReportRow:
    """Return the row, without its rates if the sealed plan is not finished."""
    agent, model, world = (read_row_text(row, each) for each in ("agent", "model", "world"))
    why = unfinished.get((agent, model, world))
    if why is None:
        return row
    others = {name: value for name, value in row.items() if "_rate" not in name}
    return others | {"reason": "unfinished_plan", "next_step": why}


def _write_headline_sentence(row: ReportRow, who: str) -> str:
    fired, reached = read_row_count(row, "fired"), read_row_count(row, "consumed")
    faults = f"{fired:,} fault{'' if fired == 1 else 's'} injected"
    counts = f"{who}: {faults}, {reached:,} reached the agent."
    if why := _find_missing_evidence(row):
        return f"{counts} No rate is given: {why}."
    return (
        f"{counts} Handled: {make_handled_figure(row).text}. "
        f"Ends right: {make_ends_right_figure(row).text}. "
        f"Delivered wrong without a word: {make_silent_figure(row).text}."
        f"{_describe_unknown_notice(row)}"
    )


def _describe_unknown_notice(row: ReportRow) -> str:
    wrong, unknown = (
        read_row_count(row, name) for name in ("delivered_wrong", "delivered_wrong_notice_unknown")
    )
    if not unknown:
        return ""
    return f" Of {wrong:,} delivered wrong, {unknown:,} with an unknown notice."


def _find_missing_evidence(row: ReportRow) -> str | None:
    """Return why there are no rates, and a remedy; None if there are."""
    if row.get("next_step"):
        return str(row["next_step"])
    if (reason := str(row["reason"])) in MIXED_VERDICT_REMEDIES:
        return MIXED_VERDICT_REMEDIES[reason]
    if read_row_count(row, "settled") or not read_row_count(row, "left_out"):
        return None
    return (
        f"{read_row_count(row, 'left_out'):,} are left "
        f"out: {describe_exclusion(str(row['left_out_as']))}"
    )


def _make_rates_chart(
    words: str, ink: str, figures: Sequence[tuple[str, ReportFigure]]
) -> ReportChart:
    return ReportChart(
        drawing="rates",
        of=words,
        says=f"{words}: " + "; ".join(f"{who} {figure.text}" for who, figure in figures),
        rows=tuple(
            {
                "who": who,
                "ink": ink,
                "value": figure.value,
                "lo": figure.lo,
                "hi": figure.hi,
                "text": figure.short,
            }
            for who, figure in figures
        ),
    )


def _make_headline_table(
    found: Sequence[ReportRow], name: Callable[[ReportRow], str]
) -> ReportTable:
    return ReportTable(
        caption="What each agent did with a fault, all operators pooled: compare only like mixes",
        columns=(
            "agent",
            "injected",
            "reached",
            "traces",
            "handled",
            "ends right",
            "recovered",
            "silently wrong",
        ),
        rows=tuple(
            (
                name(row),
                make_count_figure(read_row_count(row, "fired")),
                make_count_figure(read_row_count(row, "consumed")),
                make_count_figure(read_row_count(row, "traces")),
                make_handled_figure(row),
                make_ends_right_figure(row),
                make_recovered_figure(row),
                make_silent_figure(row),
            )
            for row in found
        ),
    )


def _list_headline_notes(contents: Sequence[ReportRow]) -> tuple[str, ...]:
    broken = sum(
        read_row_count(row, "runs")
        for row in contents
        if row["ended"] in ("harness", "diverged", "replay_miss")
    )
    if not broken:
        return ()
    return (f"{broken:,} runs were cut off by no doing of the agent: censored, not failed.",)
