"""The table of runs: filters, order and page from an address, rows from the store."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from msgspec import Struct, field

from stumble.report.outcomes import OUTCOME_LABELS
from stumble.ui.sql import read_page_sql
from stumble.ui.values.formats import (
    UNKNOWN,
    format_count,
    format_dollars,
    format_seconds,
    format_when,
)
from traces.model import IMPORT_SOURCES

if TYPE_CHECKING:
    import duckdb

PAGE_ROWS = 50
FACETS = ("agent", "model", "scenario", "condition", "campaign")
"""Columns with a choice of their values."""
TEXT_COLUMNS = ("trajectory_id", "agent", "model", "scenario", "task", "campaign")
FACET_VALUES = 100
"""Most values of one choice; others are found by text."""
ORDERS: Mapping[str, str] = {
    "when": "recorded_at",
    "agent": "agent",
    "model": "model",
    "task": "coalesce(task, scenario)",
    "steps": "n_steps",
    "seconds": "seconds",
    "tokens": "tokens",
    "cost": "cost_usd",
}
OUTCOMES = dict(OUTCOME_LABELS)
CONTROLS = "coalesce(t.source = 'fork' and t.condition in ('clean', 'sham'), false)"
"""Runs that are listed with the injection that they control."""


class RunsQuery(Struct, frozen=True, kw_only=True):
    """What the address asks for; empty text selects all."""

    chosen: Mapping[str, str] = field(default_factory=dict)
    """Facet to value, without empty ones."""
    outcome: str = ""
    text: str = ""
    order: str = "when"
    ascending: bool = False
    page: int = 1
    controls: bool = False
    """Whether clean twins and shams are listed too."""

    @classmethod
    def from_address(cls, given: Mapping[str, str]) -> "RunsQuery":
        """Read the parameters of an address; unknown ones and invalid values are ignored."""
        order = given.get("sort", "").lstrip("-")
        page = given.get("page", "")
        return cls(
            chosen={name: given[name] for name in FACETS if given.get(name)},
            outcome=given.get("outcome", "") if given.get("outcome") in OUTCOMES else "",
            text=given.get("q", "").strip(),
            order=order if order in ORDERS else "when",
            ascending=order in ORDERS and not given["sort"].startswith("-"),
            controls=bool(given.get("controls")),
            page=min(int(page), 10**9) if page.isascii() and page.isdigit() and int(page) else 1,
        )

    def to_address(self, **changes: str) -> str:
        """Return the path of this selection with changes; a change but of the page is page 1."""
        sort = self.order if self.ascending else f"-{self.order}"
        values = {
            **self.chosen,
            "outcome": self.outcome,
            "q": self.text,
            "sort": "" if sort == "-when" else sort,
            "controls": "1" if self.controls else "",
            **changes,
        }
        kept = {name: value for name, value in values.items() if value}
        return "/runs" + (f"?{urlencode(kept)}" if kept else "")

    @property
    def is_filtered(self) -> bool:
        """Whether anything is left out."""
        return bool(self.chosen or self.outcome or self.text)

    @property
    def is_folded(self) -> bool:
        """Whether controls are left out, as nothing names one."""
        return not (self.controls or self.text or "condition" in self.chosen)


class RunVerdict(Struct, frozen=True, kw_only=True):
    """The verdict on one injection of a run, and its key in the palette."""

    injection: str
    outcome: str
    words: str
    fault: str
    tool: str
    twins: int


class RunRow(Struct, frozen=True, kw_only=True):
    """One run as listed."""

    id: str
    when: str
    agent: str
    model: str
    task: str
    condition: str
    ending: str
    """`right`, `wrong`, `live`, or the reason of the end."""
    steps: str
    seconds: str
    tokens: str
    cost: str
    is_live: bool
    verdicts: tuple[RunVerdict, ...] = ()

    @property
    def title(self) -> str:
        """The task, and the tool of each fault."""
        return ", ".join(dict.fromkeys((self.task, *(each.tool for each in self.verdicts))))


class RunsTable(Struct, frozen=True, kw_only=True):
    """One page of runs with the choices for its filters."""

    query: RunsQuery
    rows: tuple[RunRow, ...]
    total: int
    facets: Mapping[str, tuple[str, ...]]
    outcomes: tuple[tuple[str, str, int], ...]
    """(key, label, number of injections) of the whole store."""
    controls: int
    """Clean twins and shams of the whole store."""

    @property
    def pages(self) -> int:
        """Number of pages, at least 1."""
        return max(1, -(-self.total // PAGE_ROWS))

    def sort_address(self, order: str) -> str:
        """The address of this table by a column; again for the other direction."""
        query = self.query
        down = query.ascending if query.order == order else order in ("when", "cost", "tokens")
        return query.to_address(sort=f"-{order}" if down else order)


class StoreCounts(Struct, frozen=True, kw_only=True):
    """What the list shows of the whole store, whatever is selected."""

    total: int
    controls: int
    facets: Mapping[str, tuple[str, ...]]
    outcomes: tuple[tuple[str, str, int], ...]


def count_store(connection: "duckdb.DuckDBPyConnection") -> StoreCounts:
    """Count the runs, the choices of each filter, and the outcomes."""
    [(total, controls)] = connection.execute(
        f"select count(*), count(*) filter ({CONTROLS}) from trajectories as t"
    ).fetchall()
    return StoreCounts(
        total=total,
        controls=controls,
        facets={name: tuple(_read_facet(connection, name)) for name in FACETS},
        outcomes=tuple(_count_outcomes(connection)),
    )


def read_runs_table(
    connection: "duckdb.DuckDBPyConnection", query: RunsQuery, counts: StoreCounts
) -> RunsTable:
    """Read one page of runs."""
    total, ids = _find_page(connection, query, counts)
    verdicts = _read_verdicts(connection, ids)
    answer = connection.execute(
        f"select {', '.join(_COLUMNS)} from trajectories"
        " where trajectory_id in (select unnest($ids))",
        {"ids": ids},
    )
    rows = {str(row[0]): dict(zip(_COLUMNS, row, strict=True)) for row in answer.fetchall()}
    return RunsTable(
        query=query,
        rows=tuple(_build_row(rows[id], verdicts) for id in ids),
        total=total,
        facets=counts.facets,
        outcomes=counts.outcomes,
        controls=counts.controls,
    )


def _find_page(
    connection: "duckdb.DuckDBPyConnection", query: RunsQuery, counts: StoreCounts
) -> tuple[int, list[str]]:
    """Return the number of selected runs, and the ids of the page in order.

    Only the key is sorted, and the last pages from the end: all columns of a million rows take
    seconds and half a gigabyte.
    """
    where, values = _build_condition(query)
    chosen, total = f"select trajectory_id, {ORDERS[query.order]} as key from trajectories as t", 0
    if query.is_filtered:
        connection.execute(f"create or replace temp table chosen as {chosen} {where}", values)
        chosen = "from chosen"
        [(total,)] = connection.execute("select count(*) from chosen").fetchall()
    else:
        total = counts.total - (counts.controls if query.is_folded else 0)
        chosen = f"{chosen} {where}"
    start = (query.page - 1) * PAGE_ROWS
    size = max(0, min(PAGE_ROWS, total - start))
    if not size:
        return total, []
    order = "key {} nulls {}, trajectory_id {}"
    direction = ("asc" if query.ascending else "desc", "last", "asc")
    is_late = start > total // 2
    if is_late:
        start = total - start - size
        direction = ("desc" if query.ascending else "asc", "first", "desc")
    rows = connection.execute(
        f"select trajectory_id from ({chosen}) order by {order.format(*direction)}"
        f" limit {size} offset {start}"
    ).fetchall()
    ids = [str(id) for (id,) in rows]
    return total, ids[::-1] if is_late else ids


_COLUMNS = (
    "trajectory_id", "recorded_at", "agent", "model", "scenario", "task", "condition", "source",
    "ended", "passed", "n_steps", "seconds", "tokens", "cost_usd",
)  # fmt: skip
_CLASS = (
    "coalesce(o.class, case i.unreached_reason when 'absorbed' then 'absorbed' end, 'unsettled')"
)


def _build_condition(query: RunsQuery) -> tuple[str, dict[str, str]]:
    """Return the WHERE clause and its values."""
    parts = [f"t.{name} = ${name}" for name in query.chosen]
    values = dict(query.chosen)
    if query.is_folded:
        parts.append(f"not {CONTROLS}")
    if query.text:
        # Each column by itself: a column with few values is then searched once a value.
        found = " or ".join(f"contains(lower(t.{name}), $text)" for name in TEXT_COLUMNS)
        parts.append(f"({found})")
        values["text"] = query.text.lower()
    if query.outcome:
        parts.append(
            "t.trajectory_id in (select i.trajectory_id from injections as i"
            " left join verdicts as o using (injection_id)"
            f" where i.repeat_of is null and not coalesce(i.sham, false) and {_CLASS} = $outcome)"
        )
        values["outcome"] = query.outcome
    return (f"where {' and '.join(parts)}" if parts else ""), values


def _read_verdicts(
    connection: "duckdb.DuckDBPyConnection", ids: list[str]
) -> dict[str, list[RunVerdict]]:
    found: dict[str, list[RunVerdict]] = {}
    rows = connection.execute(read_page_sql("run_verdicts"), {"ids": ids}).fetchall()
    for run, injection, outcome, op, sham, tool, twins in rows:
        words = "sham, no change" if sham else OUTCOMES.get(outcome, outcome)
        key = "unsettled" if sham else outcome
        found.setdefault(run, []).append(
            RunVerdict(
                injection=injection, outcome=key, words=words, fault=op, tool=tool, twins=twins
            )
        )
    return found


def _read_facet(connection: "duckdb.DuckDBPyConnection", name: str) -> Iterator[str]:
    rows = connection.execute(
        f"select {name} from trajectories where {name} is not null group by 1"
        f" order by count(*) desc, 1 limit {FACET_VALUES}"
    ).fetchall()
    yield from sorted(value for (value,) in rows)


def _count_outcomes(connection: "duckdb.DuckDBPyConnection") -> Iterator[tuple[str, str, int]]:
    counts = dict(connection.execute(read_page_sql("store_outcomes")).fetchall())
    for key, words in OUTCOME_LABELS:
        if counts.get(key):
            yield key, words, counts[key]


def _build_row(row: Mapping[str, object], verdicts: Mapping[str, list[RunVerdict]]) -> RunRow:
    id, when = str(row["trajectory_id"]), row["recorded_at"]
    is_live = row["ended"] is None and row["source"] not in IMPORT_SOURCES
    return RunRow(
        id=id,
        when=format_when(when if isinstance(when, datetime) else None),
        agent=_text(row["agent"]),
        model=_text(row["model"]),
        task=_text(row["task"] or row["scenario"]),
        condition=_text(row["condition"]),
        ending=describe_ending(row["passed"], row["ended"], is_live),
        steps=format_count(_whole(row["n_steps"])),
        seconds=format_seconds(_real(row["seconds"])),
        tokens=format_count(_whole(row["tokens"])),
        cost=format_dollars(_real(row["cost_usd"])),
        is_live=is_live,
        verdicts=tuple(verdicts.get(id, ())),
    )


def describe_ending(passed: object, ended: object, is_live: bool) -> str:
    """Return `right`, `wrong`, `open` for a run without an end, or why it ended."""
    if is_live:
        return "open"
    if isinstance(passed, bool):
        return "right" if passed else "wrong"
    return _text(ended)


def _text(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _real(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
