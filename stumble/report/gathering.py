"""Everything a report says, asked of a store once."""

from collections.abc import Callable
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from stumble.report.effort import cost, recovery_time
from stumble.report.exclusions import exclusions
from stumble.report.headline import headline
from stumble.report.notice import notice
from stumble.report.outcomes import outcomes
from stumble.report.pairs import pairs
from stumble.report.survival import survival
from stumble.report.values import Row, Section
from stumble.selection import Selection, naming, rows, view

if TYPE_CHECKING:
    import duckdb

type Asks = Callable[["duckdb.DuckDBPyConnection", Callable[[Row], str]], Section]

SECTIONS: tuple[Asks, ...] = (
    headline,
    outcomes,
    survival,
    pairs,
    notice,
    recovery_time,
    cost,
    exclusions,
)
"""The sections in their order."""


def names(connection: "duckdb.DuckDBPyConnection") -> Callable[[Row], str]:
    """What agents are called, the same in every section."""
    return naming((*rows(connection, "recovery_by_model"), *view(connection, "km")))


def gathered(connection: "duckdb.DuckDBPyConnection") -> tuple[Section, ...]:
    """All sections of a report."""
    name = names(connection)
    return tuple(section(connection, name) for section in SECTIONS)


def about(connection: "duckdb.DuckDBPyConnection", selection: Selection) -> tuple[str, ...]:
    """What the page is of: which part of the store, from when, and by which version."""
    contents = rows(connection, "contents")
    days = sorted(
        when.date().isoformat()
        for row in contents
        for when in (row["first_at"], row["last_at"])
        if isinstance(when, datetime)
    )
    when = "no runs" if not days else f"runs of {' to '.join(dict.fromkeys((days[0], days[-1])))}"
    part = f"Only {selection.words}. " if selection.words else ""
    return (f"{part}By stumble {version('stumble')} from {when}.",)


def struck(connection: "duckdb.DuckDBPyConnection") -> int:
    """How many injections there are to show."""
    asked = "SELECT count(*) FROM strikes WHERE NOT sham AND state != 'unfired'"
    [(count,)] = connection.execute(asked).fetchall()
    return int(count)
