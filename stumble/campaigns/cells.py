"""The runs that a recording gives: where each fault strikes, its controls, and their addresses.

A fault that says where it strikes, strikes there. One that does not is placed: the calls of the
recording that fit it are put in an order by the seed, the same for all faults, and the first that
it can strike is taken. So each fault meets each of its calls with the same chance, and faults
share a call, and with it the clean twins and the shams, wherever they can.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from faults.address import address, share
from faults.aim import fits
from faults.binding import bind
from faults.side import side
from faults.site import followed, trace
from stumble.campaigns.asked import Campaign
from stumble.forks import Branch, branch
from stumble.prices import price
from traces.conversation import Watch
from traces.model import Condition, Fault, Injection
from traces.story import Story, ToolUse, events, over
from traces.tape import Tape


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run that is wanted, known by its recording and its address."""

    address: str
    """`get_order#1@http/digit(field=amount),once/seed 1/rep 0`, or `get_order#1@http/clean/0`."""
    call: str
    """The id of the call that is struck first: the runs of one call are judged together."""
    condition: Condition
    fault: Fault
    """What strikes; of a control, the fault whose site it shares."""
    seed: int
    rep: int = 0
    controls: tuple[str, ...] = ()
    """The addresses of its clean twins: a plan that grows later leaves a verdict its controls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one run of a recording should take, by what the recording took."""

    calls: int
    """Model calls that go live, at the site that leaves most."""
    usd: float | None
    """US dollars; None where the price of the model is not known."""
    seconds: float
    unpriced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All runs of a recording, and what cannot be."""

    cells: tuple[Cell, ...]
    no_site: tuple[str, ...]
    """Faults that strike no call of it, and why."""
    estimate: Estimate


def layout(campaign: Campaign, recording: Tape, told: Story, *, world: bool) -> Layout:
    """The runs that a campaign wants of a recording: call after call, of each controls first."""
    faulted: list[Cell] = []
    no_site: dict[str, None] = {}
    for seed in campaign.seeds:
        for fault in campaign.faults:
            try:
                placed = place(recording, told, fault, seed=seed, world=world)
            except (LookupError, ValueError) as error:
                no_site[f"{_said(fault)}: {error.args[0]}"] = None
                continue
            faulted += _repeated(campaign, placed, told, seed)
    cells = {cell.address: cell for cell in (*_controls(campaign, faulted), *faulted)}.values()
    calls = list(dict.fromkeys(cell.call for cell in cells))
    return Layout(
        cells=tuple(sorted(cells, key=lambda cell: calls.index(cell.call))),
        no_site=tuple(no_site),
        estimate=estimate(recording, told, set(calls)),
    )


def _repeated(
    campaign: Campaign, placed: tuple[Fault, Branch], told: Story, seed: int
) -> Iterator[Cell]:
    fault, found = placed
    site = _site(found, told)
    for rep in range(campaign.reps):
        yield Cell(
            address=f"{site}/{_said(fault)}/seed {seed}/rep {rep}",
            call=found.site.call_id,
            condition="fault",
            fault=fault,
            seed=seed,
            rep=rep,
            controls=_addresses(site, "clean", campaign.twins),
        )


def _addresses(site: str, condition: Condition, count: int) -> tuple[str, ...]:
    return tuple(f"{site}/{condition}/{rep}" for rep in range(count))


def _controls(campaign: Campaign, faulted: Sequence[Cell]) -> Iterator[Cell]:
    """Clean twins and shams of each site, once for all faults that strike there."""
    sites = {cell.address.partition("/")[0]: cell for cell in reversed(faulted)}
    for site, cell in reversed(sites.items()):
        wanted: tuple[tuple[Condition, int], ...] = (
            ("clean", campaign.twins),
            ("sham", campaign.shams),
        )
        for condition, count in wanted:
            for rep, at in enumerate(_addresses(site, condition, count)):
                yield replace(cell, address=at, condition=condition, rep=rep)


def place(
    recording: Tape, told: Story, fault: Fault, *, seed: int, world: bool
) -> tuple[Fault, Branch]:
    """The fault with the call that it strikes, and the branch there; LookupError for no such."""
    if fault.at == "model" and fault.nth is None and not fault.when:
        fault = replace(fault, when={"position": "uniform"})
    if fault.nth is not None or fault.when:
        return fault, branch(recording, fault, told, seed=seed)
    bind(fault)
    fitting = [use for use in told.uses if fits(fault, use)]
    why = ""
    for use in shuffled([use for use in fitting if followed(told, use)], told, seed):
        placed = replace(fault, nth=fitting.index(use) + 1)
        try:
            found = branch(recording, placed, told, seed=seed)
        except LookupError as error:
            why = why or str(error.args[0])
            continue
        no = refused(found, seed=seed, world=world)
        if no is None:
            return placed, found
        why = why or no
    if why:
        raise LookupError(why)
    found = branch(recording, fault, told, seed=seed)  # which says what is lacking
    return fault, found


def shuffled(uses: Sequence[ToolUse], told: Story, seed: int) -> list[ToolUse]:
    """The calls in an order by chance, the same for every fault."""

    def draw(use: ToolUse) -> float:
        at = address(
            seed=seed,
            trace=trace(told),
            rep=0,
            fault="site",
            tool=use.tool,
            arguments=use.call_id,
            occurrence=use.ordinal,
        )
        return share(at)

    return sorted(uses, key=draw)


def refused(found: Branch, *, seed: int, world: bool) -> str | None:
    """Why a fault cannot bend its call as it was recorded; None where it can, or nobody knows."""
    if "write" in bind(found.fault).needs and side(found.site.tool) == "read":
        return f"{found.fault.name} needs a call that writes"
    recording, told = found.recording, list[Injection]()
    watch = Watch(recording.trajectory.tools)
    nemesis = found.strike.nemesis(
        watch, told.append, run="rehearsal", seed=seed, rep=0, world=world
    )
    by_seq = {exchange.seq: exchange for exchange in recording.exchanges}
    for _, ended, seq in sorted(events(recording.exchanges)):
        exchange = by_seq[seq]
        if not ended:
            nemesis.request(watch.request(replace(exchange, response=None, error=None, edits=())))
        else:
            if nemesis.holds(exchange):
                nemesis.response(exchange)
            watch.done(exchange)
        if told or nemesis.no_site:
            break
    return None if told else next(iter(nemesis.no_site), None)


def estimate(recording: Tape, told: Story, calls: set[str]) -> Estimate:
    """What goes live after the earliest of these calls."""
    results = [use.result_seq for use in told.uses if use.call_id in calls]
    first = min((seq for seq in results if seq is not None), default=None)
    began = next((x.started for x in recording.exchanges if x.seq == first), 0.0)
    live = [
        told.answers[x.seq]
        for x in recording.exchanges
        if x.seq in told.answers and x.started >= began
    ]
    prices, unpriced = list[float](), dict[str, None]()
    for answer in live:
        usd = price(answer.model, answer.usage) if answer.model and answer.usage else None
        if usd is None:
            unpriced[answer.model or "a model without a name"] = None
        else:
            prices.append(usd)
    last = max((over(x) for x in recording.exchanges), default=began)
    return Estimate(
        calls=len(live),
        usd=None if unpriced else sum(prices),
        seconds=last - began,
        unpriced=tuple(unpriced),
    )


def _site(found: Branch, told: Story) -> str:
    """`get_order#1@http`: the first call of that tool, struck at http; `turn 3 of lane 0@model`."""
    if found.site.turn is not None:
        return f"{found.site.turn.arguments}@model"
    alike = [use for use in told.uses if use.tool == found.site.tool]
    number = next(
        n
        for n, use in enumerate(alike, start=1)
        if use.call_id == found.site.call_id and use.ordinal == found.site.ordinal
    )
    return f"{found.site.tool}#{number}@{found.site.place}"


def _said(fault: Fault) -> str:
    """The fault in words that no other fault has: `digit(field=amount),once`."""
    chosen = bind(fault).effective(fault.params)
    params = ",".join(f"{key}={value}" for key, value in chosen.items() if value != "")
    others = {k: v for k, v in fault.where.items() if k != "tool"} | dict(fault.when)
    more = "".join(f",{key}={value}" for key, value in sorted(others.items()))
    most = f",at most {fault.max_injections}" if fault.max_injections is not None else ""
    return f"{fault.name}({params}),{fault.persist}{more}{most}"
