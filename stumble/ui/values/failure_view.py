"""How an agent fails: rates by fault and by tool, the worst runs, and what stays unknown."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from stumble.check.behaviour import BY_CLASS, WEAKNESSES, Behaviour, FaultedRun
from stumble.check.findings import (
    FAULT_WORDS,
    CheckFinding,
    FaultCell,
    build_cells,
    list_findings,
)
from stumble.ui.sql import read_page_sql
from stumble.verdicts.exclusions import describe_exclusion
from traces.store.sql import run_question

if TYPE_CHECKING:
    import duckdb

MOST_RUNS = 20_000
"""Most injections of a page; the newest are taken."""
MOST_WORST = 3
CHANGES = ("failed", "tool_errors", "recovery", "silent")
"""Measures of drift that the page shows."""


class FailureScope(Struct, frozen=True, kw_only=True):
    """Whose failures are shown: an agent and a campaign, None for all."""

    agent: str | None = None
    campaign: str | None = None


class RateBar(Struct, frozen=True, kw_only=True):
    """How often faults of one kind, or of one tool, were handled."""

    name: str
    words: str
    cell: FaultCell
    weaknesses: str
    """What the agent did instead, the most frequent first; empty if nothing."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Percent of good runs if none, and if all, of the unknown ones are good."""
        low, high = self.cell.bounds
        return 100 * low, 100 * high


class RateChange(Struct, frozen=True, kw_only=True):
    """A rate of the last days beside that of the days before, in percent."""

    measure: str
    recent: float
    recent_cases: int
    earlier: float
    earlier_cases: int
    p: float | None


class FailureView(Struct, frozen=True, kw_only=True):
    """The page."""

    scope: FailureScope
    agents: tuple[str, ...]
    campaigns: tuple[str, ...]
    is_checked: bool
    """Whether runs are described as `stumble check` does; else by their verdicts."""
    total: int
    """All injections of the scope, of which the newest are shown."""
    cells: tuple[FaultCell, ...]
    changes: tuple[RateChange, ...]

    @property
    def all(self) -> FaultCell:
        """All runs in one cell."""
        return FaultCell(tool="", fault="", runs=tuple(self._iter_runs()))

    @property
    def findings(self) -> tuple[CheckFinding, ...]:
        """The weaknesses, the worst first."""
        return list_findings(self.cells)

    @property
    def worst(self) -> tuple[CheckFinding, ...]:
        """The worst weaknesses, each of another cell if there are so many."""
        first = {(each.tool, each.fault): each for each in reversed(self.findings)}
        return tuple(each for each in self.findings if each in first.values())[:MOST_WORST]

    @property
    def by_fault(self) -> tuple[RateBar, ...]:
        """Rates by fault, the weakest first."""
        return _list_bars(self._iter_runs(), lambda run: run.fault, FAULT_WORDS)

    @property
    def by_tool(self) -> tuple[RateBar, ...]:
        """Rates by tool, the weakest first."""
        return _list_bars(self._iter_runs(), lambda run: run.tool, {})

    @property
    def unknown(self) -> tuple[tuple[str, int, str], ...]:
        """(reason, number of runs, injection of the first), the most frequent first."""
        runs = [run for run in self._iter_runs() if run.behaviour == "unknown"]
        first = {run.reason: run.injection for run in reversed(runs)}
        counts = Counter(run.reason for run in runs)
        return tuple((reason, n, first[reason]) for reason, n in counts.most_common())

    def _iter_runs(self) -> Iterator[FaultedRun]:
        return (run for cell in self.cells for run in cell.runs)


def _list_bars(
    runs: Iterable[FaultedRun], name_run: Callable[[FaultedRun], str], words: Mapping[str, str]
) -> tuple[RateBar, ...]:
    grouped = dict[str, list[FaultedRun]]()
    for run in runs:
        grouped.setdefault(name_run(run), []).append(run)
    bars = [
        RateBar(
            name=name,
            words=words.get(name, ""),
            cell=FaultCell(tool=name, fault=name, runs=tuple(some)),
            weaknesses=_describe_weaknesses(some),
        )
        for name, some in grouped.items()
    ]
    return tuple(sorted(bars, key=lambda bar: (bar.bounds[1], bar.bounds[0], -len(bar.cell.runs))))


def _describe_weaknesses(runs: Sequence[FaultedRun]) -> str:
    counts = Counter(run.behaviour for run in runs if run.behaviour in WEAKNESSES)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def read_faulted_runs(
    connection: "duckdb.DuckDBPyConnection", scope: FailureScope
) -> tuple[tuple[FaultedRun, ...], int]:
    """Read the runs of a scope by their verdicts, the oldest first, and how many there are."""
    values = {"agent": scope.agent, "campaign": scope.campaign, "most": MOST_RUNS}
    rows = connection.execute(read_page_sql("faulted_rows"), values).fetchall()
    return tuple(_read_run(*row[:-1]) for row in reversed(rows)), rows[0][-1] if rows else 0


def _read_run(
    injection: str,
    run: str,
    tool: str,
    fault: str,
    outcome: str | None,
    state: str,
    is_handled: bool | None,
    excluded: str,
    ended: str | None,
) -> FaultedRun:
    behaviour: Behaviour = "unknown"
    if ended == "budget" and is_handled is False:
        behaviour = "hangs"
    elif outcome == "crashed" or (state == "ended_before" and is_handled is False):
        behaviour = "crashes"
    elif is_handled is not None:
        behaviour = BY_CLASS.get(outcome or "", "handles" if is_handled else "misreports")
    return FaultedRun(
        injection=injection,
        run=run,
        tool=tool,
        fault=fault,
        behaviour=behaviour,
        reason=describe_exclusion(excluded) if behaviour == "unknown" else "",
    )


def build_failure_view(
    connection: "duckdb.DuckDBPyConnection",
    scope: FailureScope,
    runs: Sequence[FaultedRun],
    total: int,
    *,
    is_checked: bool,
) -> FailureView:
    """Build the page of these runs."""
    return FailureView(
        scope=scope,
        agents=_list_names(connection, "agent"),
        campaigns=_list_names(connection, "campaign"),
        is_checked=is_checked,
        total=total,
        cells=build_cells(runs),
        changes=tuple(_list_changes(connection, scope)),
    )


def find_newest_scope(connection: "duckdb.DuckDBPyConnection") -> FailureScope:
    """Return the campaign of the newest faulted run; without one, its agent."""
    rows = connection.execute(
        "select t.agent, t.campaign from injections join trajectories as t using (trajectory_id)"
        " where t.condition = 'fault' order by t.recorded_at desc limit 1"
    ).fetchall()
    agent, campaign = rows[0] if rows else (None, None)
    return FailureScope(campaign=campaign) if campaign else FailureScope(agent=agent)


def _list_names(connection: "duckdb.DuckDBPyConnection", column: str) -> tuple[str, ...]:
    """Return the agents or campaigns that have a faulted run, the newest first."""
    rows = connection.execute(
        f"select t.{column} from injections join trajectories as t using (trajectory_id)"
        f" where t.{column} is not null and t.condition = 'fault'"
        " group by 1 order by max(t.recorded_at) desc limit 100"
    ).fetchall()
    return tuple(name for (name,) in rows)


def _list_changes(
    connection: "duckdb.DuckDBPyConnection", scope: FailureScope
) -> Iterator[RateChange]:
    """Yield the rates that both the last week and the four weeks before have."""
    answer = run_question(connection, "drift", agent=scope.agent)
    columns = [column[0] for column in answer.description or ()]
    for values in answer.fetchall():
        row = dict(zip(columns, values, strict=True))
        if row["measure"] in CHANGES and None not in (row["recent"], row["earlier"]):
            yield RateChange(
                measure=str(row["measure"]).replace("_", " "),
                recent=100 * row["recent"],
                recent_cases=int(row["recent_cases"]),
                earlier=100 * row["earlier"],
                earlier_cases=int(row["earlier_cases"]),
                p=row["p_adjusted"],
            )
