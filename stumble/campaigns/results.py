"""Result of a campaign: its progress, and rates with intervals."""

import shlex
from collections.abc import Iterator, Sequence
from statistics import median

from msgspec import Struct

from faults.judging.judge import to_run_evidence
from stumble.campaigns.scheduler import CampaignProgress
from stumble.campaigns.spec import Campaign
from stumble.errors import ExitCode, signal_to_exit_code
from stumble.store.filter import (
    ReportRow,
    StoreFilter,
    fetch_named_rows,
    make_measure_namer,
    open_filtered_store,
)
from stumble.verdicts.twin_differences import find_differing_twin_ends
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape

MIN_TRACES = 5
"""Fewest traces of a rate with an interval."""
PRINTED_RATES = ("recovery_rate", "silent_rate", "ends_right_rate", "handled_rate")
SHOWN_LINES = 3
"""Divergences, missing sites and warnings that are printed in full."""

_RECOVERY_SQL = "FROM recovery ORDER BY agent, model, family, op"
_EXCLUDED_SQL = """
    SELECT
        CASE WHEN excluded = 'cut_off' THEN ended ELSE excluded END AS reason,
        count(*) AS injections
    FROM judged_injections JOIN trajectories USING (trajectory_id)
    WHERE NOT sham AND excluded IS NOT NULL
    GROUP BY reason ORDER BY injections DESC, reason
"""


class CampaignResult(Struct, frozen=True, kw_only=True):
    """The progress of a campaign and its rates from the store."""

    campaign: Campaign
    standing: CampaignProgress
    stopped: int | None
    """The signal that ended it early, or None."""
    recovery: Sequence[ReportRow]
    """Rows of the view `recovery`, for this campaign."""
    shams: Sequence[ReportRow]
    excluded: Sequence[ReportRow]
    """Injections excluded from the rates, by reason."""
    unlike_twins: Sequence[str] = ()
    """Lines about clean twins of one call with the same actions and different end states."""

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        if self.stopped is not None:
            return signal_to_exit_code(self.stopped)
        if self.standing.capped:
            return ExitCode.BUDGET
        if not sum(_read_outcome_count(row, "fired") for row in self.recovery):
            return ExitCode.DIVERGED if self.standing.diverged else ExitCode.NOTHING_FIRED
        # Ends-right has the most cases of all rates: if it has no interval, none has.
        if any(row["ends_right_rate_lo"] is None for row in self.recovery):
            return ExitCode.NOT_ENOUGH
        return ExitCode.OK

    @property
    def is_finished(self) -> bool:
        """Whether all runs are done."""
        return self.stopped is None and not self.standing.capped and not self.standing.runs_left

    def to_dict(self) -> dict[str, object]:
        """Return the result as plain data."""
        now = self.standing
        return {
            "campaign": self.campaign.name,
            "finished": self.is_finished,
            "wanted": now.wanted,
            "done": now.before + now.done,
            "done_now": now.done,
            "recorded_now": now.recorded,
            "runs": dict(now.conditions),
            "ended_now": dict(now.ended),
            "cost_usd": now.cost,
            "unpriced_runs": now.unpriced,
            "retried_now": now.retried,
            "seconds": round(now.seconds, 3),
            "cpu_seconds": round(now.cpu, 3),
            "diverged": now.diverged,
            "no_site": now.no_site,
            "recovery": [dict(row) for row in self.recovery],
            "shams": [dict(row) for row in self.shams],
            "unlike_twins": list(self.unlike_twins),
            "excluded": {str(row["reason"]): row["injections"] for row in self.excluded},
        }

    def to_lines(self) -> Iterator[str]:
        """Format the result as lines."""
        now, name = self.standing, self.campaign.name
        done = now.before + now.done
        spent = f", ${now.cost:.4f}" if now.cost else ""
        yield (
            f"campaign {name}: {done} of {now.wanted} runs are done, {now.done} of them now in "
            f"{now.seconds:.0f} s ({now.cpu:.0f} s of processor time){spent}"
        )
        if now.retried:
            yield f"{now.retried} tasks were lost with their worker, and made again"
        if self.campaign.shard is not None:
            yield (
                f"this is shard {self.campaign.shard}; `stumble campaign merge` joins it with the "
                "others"
            )
        yield from _list_first_lines("warning", self.unlike_twins)
        yield from _list_first_lines("diverged", now.diverged)
        yield from _list_first_lines("no site", now.no_site)
        yield from self._list_recovery_lines()
        name_agent = make_measure_namer(
            self.shams, lambda row: str(row["model"] or row["agent"] or "agent")
        )
        for row in self.shams:
            unknown = _read_outcome_count(row, "consumed") - _read_outcome_count(row, "judged")
            yield (
                f"false notice, {name_agent(row)}: {row['noticed']} of {row['judged']} shams"
                + (f", {unknown} unknown" if unknown else "")
            )
        if self.excluded:
            parts = (f"{row['injections']} {row['reason']}" for row in self.excluded)
            yield f"excluded: {', '.join(parts)}"
        yield from self._list_next_steps()

    def _list_recovery_lines(self) -> Iterator[str]:
        if not self.recovery:
            yield "nothing fired, so nothing can be said about recovery"
            return
        head = (
            "model",
            "fault",
            "fired",
            "consumed",
            "recovered",
            "silently wrong",
            "ends right",
            "handled",
        )
        rows = [
            (
                str(row["model"] or row["agent"] or ""),
                str(row["op"]),
                str(row["fired"]),
                str(row["consumed"]),
                format_rate_interval(row, "recovery_rate"),
                format_rate_interval(row, "silent_rate"),
                format_rate_interval(row, "ends_right_rate"),
                format_rate_interval(row, "handled_rate"),
            )
            for row in self.recovery
        ]
        widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
        for row in (head, *rows):
            yield "  ".join(
                cell.ljust(width) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
        if bound_widths := [
            most - minimum
            for row in self.recovery
            for rate in PRINTED_RATES
            if isinstance(most := row[f"{rate}_most"], float)
            and isinstance(minimum := row[f"{rate}_least"], float)
        ]:
            yield f"bounds by unknown runs: median width {median(bound_widths):.2f}"

    def _list_next_steps(self) -> Iterator[str]:
        now, name = self.standing, self.campaign.name
        if now.capped:
            limit = (
                ("max_time", self.campaign.max_time)
                if now.timed_out
                else ("max_cost", self.campaign.max_cost)
            )
            yield f"stopped by {limit[0]} {limit[1]:g}: {now.runs_left} runs are left"
            if now.laid < now.sources:
                yield f"and {now.sources - now.laid} traces are not recorded yet"
        if not self.is_finished:
            more = " --max-time SECONDS" if now.timed_out else " --max-cost USD"
            yield f"go on with: stumble campaign {shlex.quote(name)}{more if now.capped else ''}"
        if any(row["silent_rate_reason"] == "few_traces" for row in self.recovery):
            yield f"rates without intervals: {self._explain_few_traces()}"
        yield f"ask more: stumble sql \"select * from trajectories where campaign = '{name}'\""

    def _explain_few_traces(self) -> str:
        """Return why fewer than 5 traces count: there are no more, or their runs do not count."""
        now, traces = self.standing, len(self.campaign.sources)
        if traces < MIN_TRACES:
            few = f"{traces} of the {MIN_TRACES} traces that they need"
            return f"{few}; add traces rather than repetitions"
        if now.diverged:
            return f"{len(now.diverged)} of {now.before + now.done} runs left their recording"
        left_out = sum(_read_outcome_count(row, "injections") for row in self.excluded)
        return f"{left_out} faulted runs are in no rate, for the reasons above"


def _list_first_lines(what: str, lines: Sequence[str]) -> Iterator[str]:
    yield from (f"{what}: {line}" for line in lines[:SHOWN_LINES])
    if len(lines) > SHOWN_LINES:
        yield f"and {len(lines) - SHOWN_LINES} more; --json has all"


def format_rate_interval(row: ReportRow, name: str) -> str:
    """Format a rate as `40% (31%-50%)` or, without an interval, `2 of 5`, with its unknown cases.

    Bounds stand first if they are wider than the interval: `17%-58% by 5 unknown, known 2 of 7`.
    """
    value, lo, hi = row[name], row[f"{name}_lo"], row[f"{name}_hi"]
    of, unknown = (_read_outcome_count(row, f"{name}{part}") for part in ("_of", "_unknown"))
    minimum, most = row.get(f"{name}_least"), row.get(f"{name}_most")
    known, width = "unknown", 0.0
    if isinstance(value, float):
        known = f"{value:.0%}" if not of else f"{round(value * of)} of {of}"
    if isinstance(value, float) and isinstance(lo, float) and isinstance(hi, float):
        known, width = f"{value:.0%} ({lo:.0%}-{hi:.0%})", hi - lo
    if not unknown or not isinstance(minimum, float) or not isinstance(most, float):
        return known
    bounds = f"{minimum:.0%}-{most:.0%} by {unknown} unknown"
    return f"{bounds}, known {known}" if most - minimum > width else f"{known}, {bounds}"


def _read_outcome_count(row: ReportRow, name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else 0


def summarize_campaign(
    campaign: Campaign, store: TraceStore, standing: CampaignProgress, *, stopped: int | None
) -> CampaignResult:
    """Read the rates of a campaign from the store."""
    with open_filtered_store(store, StoreFilter(campaign=campaign.name)) as connection:
        return CampaignResult(
            campaign=campaign,
            standing=standing,
            stopped=stopped,
            recovery=fetch_named_rows(connection.execute(_RECOVERY_SQL)),
            shams=fetch_named_rows(
                connection.execute("FROM sham ORDER BY agent, model, measured_by")
            ),
            excluded=fetch_named_rows(connection.execute(_EXCLUDED_SQL)),
            unlike_twins=tuple(
                _find_unlike_twins(store, connection.execute(_UNLIKE_TWINS_SQL).fetchall())
            ),
        )


_UNLIKE_TWINS_SQL = """
    SELECT regexp_extract(any_value(cell), '^[^/]*'), list(trajectory_id ORDER BY trajectory_id)
    FROM trajectories
    WHERE condition = 'clean' AND control_group IS NOT NULL AND ended IN ('final', 'crash')
    GROUP BY control_group
    HAVING count(DISTINCT state) > 1 OR count(DISTINCT passed) > 1
    ORDER BY 1
"""


def _find_unlike_twins(store: TraceStore, groups: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    """Yield a line for each call whose twins have the same actions and different end states."""
    for site, ids in groups:
        paths = [store.tapes / f"{id}.tape" for id in ids]
        unlike = find_differing_twin_ends(
            [to_run_evidence(read_tape(path)) for path in paths if path.exists()]
        )
        if unlike is not None:
            yield f"{site}: {unlike}"
