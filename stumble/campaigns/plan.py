"""What a campaign would do, before anything runs: how many runs, what for, and for how much."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from stumble.campaigns.asked import Campaign
from stumble.campaigns.cells import layout
from stumble.campaigns.ledger import Ledger
from stumble.campaigns.power import Need, need
from stumble.exclusions import WITHOUT_TWINS
from traces.story import tell
from traces.tape import read


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What would be run."""

    campaign: Campaign
    jobs: int
    runs: Counter[str]
    """Of recordings that are there, by condition."""
    done: int
    unknown: int
    """Traces that have to be recorded first."""
    most: int
    """Runs that these can give at most."""
    no_site: tuple[str, ...]
    usd: float | None
    """Of the runs that are left; None where a price is not known."""
    unpriced: tuple[str, ...]
    seconds: float
    need: Need

    @property
    def left(self) -> int:
        """Runs of recordings that are there, and not done."""
        return self.runs.total() - self.done

    def said(self) -> dict[str, object]:
        """The plan as plain data."""
        return {
            "campaign": self.campaign.name,
            "traces": len(self.campaign.sources),
            "to_record": self.unknown,
            "runs": dict(self.runs),
            "done": self.done,
            "left": self.left,
            "at_most_more": self.most,
            "no_site": list(self.no_site),
            "usd": None if self.unknown else self.usd,
            "unpriced": list(self.unpriced),
            "minutes": None if self.unknown else round(self.seconds / 60 / self.jobs, 2),
            "jobs": self.jobs,
            "injections": self.injections,
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
    def injections(self) -> int:
        """Faulted runs, with those that new recordings can give."""
        count = len(self.campaign.faults) * self.campaign.reps * len(self.campaign.seeds)
        return self.runs["fault"] + self.unknown * count

    def lines(self) -> Iterator[str]:
        """The plan in words."""
        traces = len(self.campaign.sources)
        yield f"campaign {self.campaign.name}: {traces} trace{'' if traces == 1 else 's'}"
        if self.runs:
            parts = ", ".join(f"{n} {condition}" for condition, n in self.runs.items())
            yield f"  {self.runs.total()} runs ({parts}), of which {self.done} are done"
        if self.unknown:
            yield f"  {self.unknown} to be recorded first, and at most {self.most} runs of them"
        if not self.campaign.twins:
            yield f"  {WITHOUT_TWINS}"
        yield from (f"  no site: {why}" for why in self.no_site[:5])
        if len(self.no_site) > 5:
            yield f"  and {len(self.no_site) - 5} more that strike nothing; --json has all"
        if self.left:
            money = (
                f"${self.usd:.4f}"
                if self.usd is not None
                else (f"dollars unknown (no price of {', '.join(self.unpriced)})")
            )
            minutes = self.seconds / 60 / self.jobs
            yield (
                f"  left: {self.left} runs, {money}, {minutes:.1f} minutes on {self.jobs} "
                "processes, by what the recordings took"
            )
        wanted, have = self.need, self.injections
        yield (
            f"to tell {wanted.rate:g} from {wanted.other:g} with power {wanted.power:g}: "
            f"{wanted.independent} injections on each side were they independent; with "
            f"{wanted.per_trace:.1f} in each trace and ICC {wanted.icc:g}, {wanted.injections} in "
            f"{wanted.traces} traces"
        )
        enough = have >= wanted.injections and traces >= wanted.traces
        yield f"  planned: {have} in {traces} traces, " + (
            "enough" if enough else "not enough: more traces help more than more repetitions"
        )


def planned(
    campaign: Campaign,
    done: Ledger,
    jobs: int,
    *,
    detect: float,
    rate: float,
    power: float,
    icc: float,
) -> Planned:
    """What is left to do of a campaign; ValueError where no rate is that far from that one."""
    runs, no_site, unpriced = Counter[str](), list[str](), dict[str, None]()
    over, unknown, seconds, usd = 0, 0, 0.0, 0.0
    for source in campaign.sources:
        path = source.tape or done.recordings.get(source.key)
        if path is None:
            unknown += 1
            continue
        tape = read(path)
        told = tell(tape)
        world = campaign.reset is not None or source.practice is not None
        laid = layout(campaign, tape, told, world=world)
        runs.update(cell.condition for cell in laid.cells)
        here = sum((tape.trajectory.id, cell.address) in done.runs for cell in laid.cells)
        over += here
        left = len(laid.cells) - here
        seconds += left * laid.estimate.seconds
        usd += left * (laid.estimate.usd or 0.0)
        unpriced |= dict.fromkeys(laid.estimate.unpriced if left else ())
        no_site += [f"{source.name}: {why}" for why in laid.no_site]
    per_trace = len(campaign.faults) * campaign.reps * len(campaign.seeds)
    controls = (campaign.twins + campaign.shams) * per_trace
    laid_out = len(campaign.sources) - unknown
    return Planned(
        campaign=campaign,
        jobs=jobs,
        runs=runs,
        done=over,
        unknown=unknown,
        most=unknown * (per_trace + controls),
        no_site=tuple(no_site),
        usd=None if unpriced else usd,
        unpriced=tuple(unpriced),
        seconds=seconds,
        need=need(
            rate,
            detect,
            power=power,
            icc=icc,
            per_trace=runs["fault"] / laid_out if laid_out else per_trace,
        ),
    )
