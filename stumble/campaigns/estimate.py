"""Estimate of a campaign before it starts: runs, sites, cost, time and sample size."""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from stumble.campaigns.completed_runs import CompletedRuns
from stumble.campaigns.run_matrix import build_run_matrix
from stumble.campaigns.sample_size import (
    PlanTerms,
    SampleSize,
    compute_sample_size,
    count_recordings_to_pass,
)
from stumble.campaigns.spec import Campaign
from stumble.verdicts.exclusions import NO_TWINS_NOTE
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import read_tape

MIN_MEASURED_RUNS = 5
"""Completed runs from which on their own time is taken for that of the rest."""


class CampaignEstimate(Struct, frozen=True, kw_only=True):
    """The runs of a campaign, their cost and time, and the sample size needed."""

    campaign: Campaign
    jobs: int
    runs: Counter[str]
    """Runs of existing recordings, by condition."""
    done: int
    unknown: int
    """Traces that have to be recorded first."""
    most: int
    """Upper bound of the runs of these traces."""
    no_site: tuple[str, ...]
    usd: float | None
    """Cost of the runs left; None if a price is unknown."""
    unpriced: tuple[str, ...]
    seconds: float
    measured: int
    """Runs of this campaign that the time is taken from; 0 if it is that of the recordings."""
    need: SampleSize
    max_silent: float | None = None
    """The limit of `gate --max-silent` to plan for."""

    @property
    def runs_left(self) -> int:
        """Runs of existing recordings that are not completed."""
        return self.runs.total() - self.done

    def to_dict(self) -> dict[str, object]:
        """Return the estimate as plain data."""
        return {
            "campaign": self.campaign.name,
            "traces": len(self.campaign.sources),
            "to_record": self.unknown,
            "runs": dict(self.runs),
            "done": self.done,
            "left": self.runs_left,
            "at_most_more": self.most,
            "no_site": list(self.no_site),
            "usd": None if self.unknown else self.usd,
            "unpriced": list(self.unpriced),
            "minutes": None if self.unknown else round(self.seconds / 60 / self.jobs, 2),
            "measured_runs": self.measured,
            "jobs": self.jobs,
            "injections": self.injections,
            "max_silent": self.max_silent,
            "recordings_to_pass": self.recordings_to_pass,
            "need": {
                "rate": self.need.rate,
                "other": self.need.other,
                "power": self.need.power,
                "icc": self.need.icc,
                "injections_per_trace": round(self.need.per_trace, 2),
                "independent": self.need.independent,
                "injections": self.need.injections,
                "traces": self.need.traces,
            },
        }

    @property
    def recordings_to_pass(self) -> int | None:
        """The fewest recordings to pass `gate --max-silent`; None if not asked, or if none can."""
        return None if self.max_silent is None else count_recordings_to_pass(self.max_silent)

    def _describe_gate(self) -> str:
        """Describe what passes `gate --max-silent`."""
        gate, needed = f"gate --max-silent {self.max_silent:g}", self.recordings_to_pass
        if needed is None:
            return f"no number of recordings passes {gate}: no finite number excludes every failure"
        traces = len(self.campaign.sources)
        short = "" if traces >= needed else f", {needed - traces} more than planned"
        return (
            f"to pass {gate}: at least {needed} recordings{short}, if no run of any is silently "
            "wrong or unknown; more faults in the same recordings do not replace them"
        )

    def _describe_time_source(self) -> str:
        if self.measured:
            return f"as its first {self.measured} runs took, without reset and verify"
        return "what the recordings took, without the start of the agent, reset and verify"

    @property
    def injections(self) -> int:
        """Faulted runs, including the most that new recordings can give."""
        count = len(self.campaign.faults) * self.campaign.reps * len(self.campaign.seeds)
        return self.runs["fault"] + self.unknown * count

    def to_lines(self) -> Iterator[str]:
        """Format the estimate as lines."""
        traces = len(self.campaign.sources)
        yield f"campaign {self.campaign.name}: {traces} trace{'' if traces == 1 else 's'}"
        if self.runs:
            parts = ", ".join(f"{n} {condition}" for condition, n in self.runs.items())
            yield f"  {self.runs.total()} runs ({parts}), of which {self.done} are done"
        if self.unknown:
            yield f"  {self.unknown} to be recorded first, and at most {self.most} runs of them"
        if not self.campaign.twins:
            yield f"  {NO_TWINS_NOTE}"
        yield from (f"  no site: {why}" for why in self.no_site[:5])
        if len(self.no_site) > 5:
            yield f"  and {len(self.no_site) - 5} more that have no site; --json has all"
        if self.runs_left:
            money = (
                f"${self.usd:.4f}"
                if self.usd is not None
                else f"cost unknown (no price for {', '.join(self.unpriced)})"
            )
            minimum = format_least_duration(self.seconds / self.jobs)
            yield (
                f"  left: {self.runs_left} runs, {money}, at least {minimum} on {self.jobs} "
                f"processes: {self._describe_time_source()}"
            )
        need, planned = self.need, self.injections
        yield (
            f"to tell {need.rate:g} from {need.other:g} with power {need.power:g}: "
            f"{need.independent} injections on each side were they independent; with "
            f"{need.per_trace:.1f} in each trace and ICC {need.icc:g}, {need.injections} in "
            f"{need.traces} traces"
        )
        enough = planned >= need.injections and traces >= need.traces
        yield f"  planned: {planned} in {traces} traces, " + (
            "enough" if enough else "not enough: more traces help more than more repetitions"
        )
        if self.max_silent is not None:
            yield self._describe_gate()


def format_least_duration(seconds: float) -> str:
    """Format a duration, at least one second."""
    if seconds >= 60:
        return f"{seconds / 60:.1f} minutes"
    count = max(1, round(seconds))
    return f"{count} second{'' if count == 1 else 's'}"


def estimate_campaign(
    campaign: Campaign,
    done: CompletedRuns,
    jobs: int,
    terms: PlanTerms,
) -> CampaignEstimate:
    """Estimate the rest of a campaign. Raises ValueError if no rate is `detect` from `rate`."""
    runs, no_site, unpriced = Counter[str](), list[str](), dict[str, None]()
    completed, unknown, seconds, usd = 0, 0, 0.0, 0.0
    measured = len(done.runs) if len(done.runs) >= MIN_MEASURED_RUNS and done.seconds else 0
    for source in campaign.sources:
        path = source.tape or done.recordings.get(source.key)
        if path is None:
            unknown += 1
            continue
        tape = read_tape(path)
        steps = derive_tape_steps(tape)
        world = campaign.reset is not None or campaign.observed or source.practice is not None
        matrix = build_run_matrix(campaign, tape, steps, world=world)
        runs.update(cell.condition for cell in matrix.cells)
        done_here = sum((tape.trajectory.id, cell.address) in done.runs for cell in matrix.cells)
        completed += done_here
        runs_left = len(matrix.cells) - done_here
        each = done.seconds / measured if measured else matrix.estimate.seconds
        seconds += runs_left * each
        usd += runs_left * (matrix.estimate.usd or 0.0)
        unpriced |= dict.fromkeys(matrix.estimate.unpriced if runs_left else ())
        no_site += [f"{source.name}: {why}" for why in matrix.no_site]
    per_trace = len(campaign.faults) * campaign.reps * len(campaign.seeds)
    per_trace *= len(campaign.models) or 1
    controls = (campaign.twins + campaign.shams) * per_trace
    recorded = len(campaign.sources) - unknown
    return CampaignEstimate(
        campaign=campaign,
        jobs=jobs,
        runs=runs,
        done=completed,
        unknown=unknown,
        most=unknown * (per_trace + controls),
        no_site=tuple(no_site),
        usd=None if unpriced else usd,
        unpriced=tuple(unpriced),
        seconds=seconds,
        measured=measured,
        max_silent=terms.max_silent,
        need=compute_sample_size(
            terms.rate,
            terms.detect,
            power=terms.power,
            icc=terms.icc,
            per_trace=runs["fault"] / recorded if recorded else per_trace,
        ),
    )
