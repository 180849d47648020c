"""What came of a campaign: how far it came, and what its verdicts say, with intervals."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from faults.judge import run
from stumble.campaigns.asked import Campaign
from stumble.campaigns.conduct import Standing
from stumble.exits import Exits, interrupted
from stumble.report.values import Row
from stumble.selection import Selection, named, selected
from stumble.unlike_twins import find_unlike_ends
from traces.store import Store
from traces.tape import read

SHOWN = 3
"""Divergences and missing sites that are told at length."""

_RECOVERY = "FROM recovery ORDER BY agent, model, family, op"
_EXCLUDED = """
    SELECT
        CASE WHEN excluded = 'cut_off' THEN ended ELSE excluded END AS reason,
        count(*) AS injections
    FROM strikes JOIN trajectories USING (trajectory_id)
    WHERE NOT sham AND excluded IS NOT NULL
    GROUP BY reason ORDER BY injections DESC, reason
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How far it came, and what the store says of it."""

    campaign: Campaign
    standing: Standing
    stopped: int | None
    """The signal that ended it early; None where none did."""
    recovery: Sequence[Row]
    """The view `recovery`, of this campaign."""
    shams: Sequence[Row]
    excluded: Sequence[Row]
    """Injections that no rate counts, by reason."""
    unlike_twins: Sequence[str] = ()
    """Clean twins of one call that did the same and end differently, each with the difference."""

    @property
    def code(self) -> int:
        """What the command ends with."""
        if self.stopped is not None:
            return interrupted(self.stopped)
        if self.standing.capped:
            return Exits.BUDGET
        if not sum(_count(row, "fired") for row in self.recovery):
            return Exits.DIVERGED if self.standing.diverged else Exits.NOTHING_FIRED
        # Of all rates the silent one has the most cases: where it has no interval, none has.
        if any(row["silent_rate_lo"] is None for row in self.recovery):
            return Exits.NOT_ENOUGH
        return Exits.OK

    @property
    def finished(self) -> bool:
        """Whether all that was wanted is done."""
        return self.stopped is None and not self.standing.capped and not self.standing.left

    def said(self) -> dict[str, object]:
        """The outcome as plain data."""
        now = self.standing
        return {
            "campaign": self.campaign.name,
            "finished": self.finished,
            "wanted": now.wanted,
            "done": now.before + now.done,
            "done_now": now.done,
            "recorded_now": now.recorded,
            "runs": dict(now.conditions),
            "ended_now": dict(now.ended),
            "cost_usd": now.cost,
            "unpriced_runs": now.unpriced,
            "seconds": round(now.seconds, 3),
            "cpu_seconds": round(now.cpu, 3),
            "diverged": now.diverged,
            "no_site": now.no_site,
            "recovery": [dict(row) for row in self.recovery],
            "shams": [dict(row) for row in self.shams],
            "unlike_twins": list(self.unlike_twins),
            "excluded": {str(row["reason"]): row["injections"] for row in self.excluded},
        }

    def lines(self) -> Iterator[str]:
        """The outcome in words."""
        now, name = self.standing, self.campaign.name
        done = now.before + now.done
        spent = f", ${now.cost:.4f}" if now.cost else ""
        yield (
            f"campaign {name}: {done} of {now.wanted} runs are done, {now.done} of them now in "
            f"{now.seconds:.0f} s ({now.cpu:.0f} s of processor time){spent}"
        )
        yield from _listed("warning", self.unlike_twins)
        yield from _listed("diverged", now.diverged)
        yield from _listed("no site", now.no_site)
        yield from self._table()
        for row in self.shams:
            yield (
                f"false notice, {row['model'] or row['agent'] or 'agent'}: {row['noticed']} of "
                f"{row['judged']} shams"
            )
        if self.excluded:
            parts = (f"{row['injections']} {row['reason']}" for row in self.excluded)
            yield f"excluded: {', '.join(parts)}"
        yield from self._next()

    def _table(self) -> Iterator[str]:
        if not self.recovery:
            yield "nothing fired, so nothing can be said about recovery"
            return
        head = ("model", "fault", "fired", "consumed", "recovered", "silently wrong", "handled")
        rows = [
            (
                str(row["model"] or row["agent"] or ""),
                str(row["op"]),
                str(row["fired"]),
                str(row["consumed"]),
                interval(row, "recovery_rate"),
                interval(row, "silent_rate"),
                interval(row, "handled_rate"),
            )
            for row in self.recovery
        ]
        wide = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
        for row in (head, *rows):
            yield "  ".join(
                cell.ljust(width) for cell, width in zip(row, wide, strict=True)
            ).rstrip()

    def _next(self) -> Iterator[str]:
        now, name = self.standing, self.campaign.name
        if now.capped:
            yield f"stopped by max_cost {self.campaign.max_cost:g}: {now.left} runs are left"
            if now.laid < now.sources:
                yield f"and {now.sources - now.laid} traces are not recorded yet"
        if not self.finished:
            more = " --max-cost USD" if now.capped else ""
            yield f"go on with: stumble campaign {shlex.quote(name)}{more}"
        if any(row["silent_rate_reason"] == "few_traces" for row in self.recovery):
            yield "fewer than 5 traces: rates without intervals; add traces rather than repetitions"
        yield f"ask more: stumble sql \"select * from trajectories where campaign = '{name}'\""


def _listed(what: str, lines: Sequence[str]) -> Iterator[str]:
    yield from (f"{what}: {line}" for line in lines[:SHOWN])
    if len(lines) > SHOWN:
        yield f"and {len(lines) - SHOWN} more; --json has all"


def interval(row: Row, name: str) -> str:
    """`40% (31%-50%)`; without an interval where there is none."""
    value, lo, hi = row[name], row[f"{name}_lo"], row[f"{name}_hi"]
    if not isinstance(value, float):
        return "unknown"
    if not isinstance(lo, float) or not isinstance(hi, float):
        return f"{value:.0%}"
    return f"{value:.0%} ({lo:.0%}-{hi:.0%})"


def _count(row: Row, name: str) -> int:
    value = row[name]
    return value if isinstance(value, int) else 0


def outcome(
    campaign: Campaign, store: Store, standing: Standing, *, stopped: int | None
) -> Outcome:
    """What the store says of a campaign."""
    with selected(store, Selection(campaign=campaign.name)) as connection:
        return Outcome(
            campaign=campaign,
            standing=standing,
            stopped=stopped,
            recovery=named(connection.execute(_RECOVERY)),
            shams=named(connection.execute("FROM sham ORDER BY agent, model")),
            excluded=named(connection.execute(_EXCLUDED)),
            unlike_twins=tuple(_unlike_twins(store, connection.execute(_UNLIKE).fetchall())),
        )


_UNLIKE = """
    SELECT regexp_extract(any_value(cell), '^[^/]*'), list(trajectory_id ORDER BY trajectory_id)
    FROM trajectories
    WHERE condition = 'clean' AND control_group IS NOT NULL AND ended IN ('final', 'crash')
    GROUP BY control_group
    HAVING count(DISTINCT state) > 1 OR count(DISTINCT passed) > 1
    ORDER BY 1
"""


def _unlike_twins(store: Store, groups: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    """A line for each call whose twins did the same and end differently."""
    for site, ids in groups:
        paths = [store.tapes / f"{id}.tape" for id in ids]
        unlike = find_unlike_ends([run(read(path)) for path in paths if path.exists()])
        if unlike is not None:
            yield f"{site}: {unlike}"
