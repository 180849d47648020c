"""The headline: what each agent did with what went wrong, in a sentence and three rates."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.values import Chart, Figure, Row, Section, Table, count, figure, total, whole
from stumble.selection import rows

if TYPE_CHECKING:
    import duckdb

MEANING = (
    "Each interval is a 95 % interval over traces (a recording, or a task, with all its repeats): "
    "if the whole study were made again and again on other traces of this kind, 95 of 100 such "
    "intervals would hold the true rate. Fewer than 5 traces have none."
)
NO_RUNS = "There are no runs in what was selected."
NO_FAULTS = (
    "No fault struck in what was selected, so nothing can be said about recovery: "
    "`stumble fork TAPE --fault NAME --where tool=TOOL` makes one strike."
)


def headline(connection: "duckdb.DuckDBPyConnection", name: Callable[[Row], str]) -> Section:
    """How much was handled, recovered from and delivered wrong without a word."""
    found = rows(connection, "recovery_by_model")
    contents = rows(connection, "contents")
    lead = [_what(contents)] if contents else []
    if not found:
        why = NO_FAULTS if contents else NO_RUNS
        return Section(name="headline", title="Headline", lead=tuple(lead), nothing=why)
    lead += [_sentence(row, name(row)) for row in found] + [MEANING]
    return Section(
        name="headline",
        title="Headline",
        lead=tuple(lead),
        charts=tuple(
            _chart(words, ink, [(name(row), rate(row)) for row in found])
            for words, ink, rate in (
                ("handled", "honest_fail", handled),
                ("recovered", "recovered", recovered),
                ("silently wrong", "silent_wrong", silent),
            )
        ),
        tables=(_table(found, name),),
        notes=_notes(contents),
    )


def handled(row: Row) -> Figure:
    """Of all that struck and whose outcome is known: absorbed, recovered, masked, honest."""
    return figure(row, "handled_rate", n="settled", reason="nothing_judged")


def recovered(row: Row) -> Figure:
    """Of what reached the agent and could be judged: noticed, and ended right."""
    return figure(row, "recovery_rate", n="judged", reason="nothing_judged")


def silent(row: Row) -> Figure:
    """Of what reached the agent and could be judged: wrong, and never noticed."""
    return figure(row, "silent_rate", n="judged", reason="nothing_judged")


def _what(contents: Sequence[Row]) -> str:
    runs, struck = total(contents, "runs"), [r for r in contents if r["condition"] == "fault"]
    models = len({row["model"] for row in contents})
    said = f"{runs:,} run{'' if runs == 1 else 's'} of {models} model{'' if models == 1 else 's'}"
    shams = sum(whole(row, "runs") for row in contents if row["condition"] == "sham")
    return f"{said}: {total(struck, 'runs'):,} with a fault, {shams:,} with a sham."


def _sentence(row: Row, who: str) -> str:
    fired, reached = whole(row, "fired"), whole(row, "consumed")
    return (
        f"{who}: {fired:,} fault{'' if fired == 1 else 's'} struck, {reached:,} reached the agent. "
        f"Handled: {handled(row).text}. Delivered wrong without a word: {silent(row).text}."
    )


def _chart(words: str, ink: str, figures: Sequence[tuple[str, Figure]]) -> Chart:
    return Chart(
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


def _table(found: Sequence[Row], name: Callable[[Row], str]) -> Table:
    return Table(
        caption="What each agent did with a fault, all operators pooled: compare only like mixes",
        columns=(
            "agent",
            "struck",
            "reached",
            "traces",
            "handled",
            "recovered",
            "silently wrong",
        ),
        rows=tuple(
            (
                name(row),
                count(whole(row, "fired")),
                count(whole(row, "consumed")),
                count(whole(row, "traces")),
                handled(row),
                recovered(row),
                silent(row),
            )
            for row in found
        ),
    )


def _notes(contents: Sequence[Row]) -> tuple[str, ...]:
    broken = sum(
        whole(row, "runs")
        for row in contents
        if row["ended"] in ("harness", "diverged", "replay_miss")
    )
    if not broken:
        return ()
    return (f"{broken:,} runs were cut off by no doing of the agent: censored, not failed.",)
