"""The runs that a recording gives: the site of each fault, its controls, and their addresses.

A fault with `nth` or `when` is injected there. Any other fault is placed: the calls of the
recording that match it are shuffled by the seed, in the same order for all faults, and the first
that it can change is taken. So each fault gets each of its calls with the same probability, and
faults share a call, with its clean twins and shams, if they can.
"""

from collections.abc import Iterator, Sequence
from copy import replace
from itertools import product
from typing import TYPE_CHECKING

from msgspec import Struct

from faults.seeded_random import make_draw_address, to_unit_interval
from faults.specs.spec_check import bind_operator
from faults.targeting.read_or_write import classify_tool_side
from faults.targeting.selector import is_matching_call
from faults.targeting.site import find_recording_address, is_call_followed
from stumble.llm.model_choice import ModelChoice
from stumble.llm.prices import compute_token_cost
from stumble.runs.fork import ForkPoint, check_other_model, find_fork_point
from traces.conversation.derived_steps import (
    DerivedSteps,
    ToolUse,
    find_answer_end,
    iter_exchange_events,
)
from traces.conversation.tracker import ConversationTap
from traces.model import Condition, Fault, Injection
from traces.tape.reader import Tape

if TYPE_CHECKING:  # a fork asks for a place, and needs no practice world
    from stumble.campaigns.spec import Campaign


class RunCell(Struct, frozen=True, kw_only=True):
    """One run to make, identified by its recording and its address."""

    address: str
    """`get_order#1@http/digit(field=amount),once/seed 1/rep 0`, or `get_order#1@http/clean/0`; with
    another model, `/model NAME` follows."""
    call: str
    """The id of the first faulted call: the runs of one call are judged together."""
    condition: Condition
    fault: Fault
    """The fault to inject; of a control, a fault that shares its site."""
    seed: int
    rep: int = 0
    controls: tuple[str, ...] = ()
    """The addresses of its clean twins, fixed even if the plan grows later."""
    model: ModelChoice | None = None
    """The model that goes on after the injection; None for the recorded one."""


class RunEstimate(Struct, frozen=True, kw_only=True):
    """Expected cost and time of one run of a recording, from those of the recording."""

    calls: int
    """Live model calls, at the earliest site."""
    usd: float | None
    """US dollars; None if the price of the model is unknown."""
    seconds: float
    unpriced: tuple[str, ...] = ()


class RunMatrix(Struct, frozen=True, kw_only=True):
    """All runs of a recording, and the faults that have no site."""

    cells: tuple[RunCell, ...]
    no_site: tuple[str, ...]
    """Faults that match or change no call of it, each with the reason."""
    estimate: RunEstimate


def build_run_matrix(
    campaign: "Campaign", recording: Tape, derived_steps: DerivedSteps, *, world: bool
) -> RunMatrix:
    """Build the runs of a recording, grouped by call, controls first."""
    faulted: list[RunCell] = []
    no_site: dict[str, None] = {}
    models = _find_usable_models(campaign, recording, no_site)
    if campaign.models and not models:
        estimate = RunEstimate(calls=0, usd=0.0, seconds=0.0)
        return RunMatrix(cells=(), no_site=tuple(no_site), estimate=estimate)
    campaign = replace(campaign, models=models)
    for seed in campaign.seeds:
        for fault in campaign.faults:
            try:
                placed = place_fault(recording, derived_steps, fault, seed=seed, world=world)
            except (LookupError, ValueError) as error:
                no_site[f"{_format_cell_fault(fault)}: {error.args[0]}"] = None
                continue
            faulted += _repeat_fault_cells(campaign, placed, derived_steps, seed)
    cells = {
        cell.address: cell for cell in (*_list_control_cells(campaign, faulted), *faulted)
    }.values()
    calls = list(dict.fromkeys(cell.call for cell in cells))
    return RunMatrix(
        cells=tuple(sorted(cells, key=lambda cell: calls.index(cell.call))),
        no_site=tuple(no_site),
        estimate=estimate_run(recording, derived_steps, set(calls), campaign.models),
    )


def _find_usable_models(
    campaign: "Campaign", recording: Tape, no_site: dict[str, None]
) -> tuple[ModelChoice, ...]:
    """Return the models that can go on with a recording; `no_site` gets the reasons of others."""
    usable = list[ModelChoice]()
    for model in campaign.models:
        try:
            check_other_model(recording, model)
        except ValueError as error:
            no_site[str(error)] = None
        else:
            usable.append(model)
    return tuple(usable)


def _repeat_fault_cells(
    campaign: "Campaign", placed: tuple[Fault, ForkPoint], derived_steps: DerivedSteps, seed: int
) -> Iterator[RunCell]:
    fault, point = placed
    site = _format_call_site(point, derived_steps)
    for model, rep in product(campaign.models or (None,), range(campaign.reps)):
        address = f"{site}/{_format_cell_fault(fault)}/seed {seed}/rep {rep}"
        yield RunCell(
            address=address + _format_cell_model(model),
            call=point.site.call_id,
            condition="fault",
            fault=fault,
            seed=seed,
            rep=rep,
            controls=_list_control_addresses(site, model, "clean", campaign.twins),
            model=model,
        )


def _list_control_addresses(
    site: str, model: ModelChoice | None, condition: Condition, count: int
) -> tuple[str, ...]:
    return tuple(f"{site}/{condition}/{rep}{_format_cell_model(model)}" for rep in range(count))


def _list_control_cells(campaign: "Campaign", faulted: Sequence[RunCell]) -> Iterator[RunCell]:
    """Yield the clean twins and shams of each site, shared by all faults there."""
    sites = {(cell.address.partition("/")[0], cell.model): cell for cell in reversed(faulted)}
    for (site, model), cell in reversed(sites.items()):
        counts: tuple[tuple[Condition, int], ...] = (
            ("clean", campaign.twins),
            ("sham", campaign.shams),
        )
        for condition, count in counts:
            for rep, at in enumerate(_list_control_addresses(site, model, condition, count)):
                yield replace(cell, address=at, condition=condition, rep=rep)


def place_fault(
    recording: Tape, derived_steps: DerivedSteps, fault: Fault, *, seed: int, world: bool
) -> tuple[Fault, ForkPoint]:
    """Return the fault with its call chosen, and the fork point there.

    Raises LookupError if there is no such call.
    """
    if fault.at == "model" and fault.nth is None and not fault.when:
        fault = replace(fault, when={"position": "uniform"})
    if fault.nth is not None or fault.when:
        return fault, find_fork_point(recording, fault, derived_steps, seed=seed)
    bind_operator(fault)
    matching = [use for use in derived_steps.tool_uses if is_matching_call(fault, use)]
    shuffled = shuffle_calls(
        [use for use in matching if is_call_followed(derived_steps, use)], derived_steps, seed
    )
    return _place_at_first_change(
        recording,
        derived_steps,
        fault,
        [matching.index(use) + 1 for use in shuffled],
        seed=seed,
        world=world,
    )


def place_in_stage(
    recording: Tape, derived_steps: DerivedSteps, fault: Fault, *, seed: int, world: bool
) -> Fault:
    """Return the fault at the first call of its stage that it can change; a fault without a stage,
    or with a call of its own, is returned unchanged.

    Raises LookupError if it can change no call of the stage.
    """
    stage, chosen = fault.where.get("stage"), fault.nth is not None or fault.when
    if stage is None or chosen or fault.at == "model":
        return fault
    bind_operator(fault)
    matching = [use for use in derived_steps.tool_uses if is_matching_call(fault, use)]
    numbers = [n for n, use in enumerate(matching, 1) if is_call_followed(derived_steps, use)]
    try:
        return _place_at_first_change(
            recording, derived_steps, fault, numbers, seed=seed, world=world
        )[0]
    except LookupError as error:
        if not numbers:
            raise
        raise LookupError(
            f"{fault.name} changes none of the {len(numbers)} calls of stage {stage}: "
            f"{error.args[0]}"
        ) from None


def _place_at_first_change(
    recording: Tape,
    derived_steps: DerivedSteps,
    fault: Fault,
    numbers: Sequence[int],
    *,
    seed: int,
    world: bool,
) -> tuple[Fault, ForkPoint]:
    """Place a fault at the first of these of its calls that it can change."""
    reason = ""
    for number in numbers:
        placed = replace(fault, nth=number)
        try:
            point = find_fork_point(recording, placed, derived_steps, seed=seed)
        except LookupError as error:
            reason = reason or str(error.args[0])
            continue
        refusal = find_refusal_reason(point, seed=seed, world=world)
        if refusal is None:
            return placed, point
        reason = reason or refusal
    if reason:
        raise LookupError(reason)
    return fault, find_fork_point(recording, fault, derived_steps, seed=seed)  # raises the error


def shuffle_calls(uses: Sequence[ToolUse], derived_steps: DerivedSteps, seed: int) -> list[ToolUse]:
    """Return the calls in a seeded random order, the same for every fault."""

    def draw(use: ToolUse) -> float:
        at = make_draw_address(
            seed=seed,
            trace=find_recording_address(derived_steps),
            rep=0,
            fault="site",
            tool=use.tool,
            arguments=use.call_id,
            occurrence=use.ordinal,
        )
        return to_unit_interval(at)

    return sorted(uses, key=draw)


def find_refusal_reason(found: ForkPoint, *, seed: int, world: bool) -> str | None:
    """Return why a fault cannot change its recorded call; None if it can, or if unknown."""
    if (
        "write" in bind_operator(found.fault).needs
        and classify_tool_side(found.site.tool) == "read"
    ):
        return f"{found.fault.name} needs a call that writes"
    recording, injections = found.recording, list[Injection]()
    tap = ConversationTap(recording.trajectory.tools, recording.exchanges)
    injector = found.injection_plan.make_injector(
        tap, injections.append, run="rehearsal", seed=seed, rep=0, world=world
    )
    by_seq = {exchange.seq: exchange for exchange in recording.exchanges}
    for _, ended, seq in sorted(iter_exchange_events(recording.exchanges)):
        exchange = by_seq[seq]
        if not ended:
            injector.request(tap.request(replace(exchange, response=None, error=None, edits=())))
        else:
            if injector.holds(exchange):
                injector.response(exchange)
            tap.done(exchange)
        if injections or injector.no_site:
            break
    return None if injections else next(iter(injector.no_site), None)


def estimate_run(
    recording: Tape,
    derived_steps: DerivedSteps,
    calls: set[str],
    models: Sequence[ModelChoice] = (),
) -> RunEstimate:
    """Estimate a run whose fork point is the earliest of these calls.

    Other models are taken to use the recorded numbers of tokens; the price is the mean over them.
    """
    results = [use.result_seq for use in derived_steps.tool_uses if use.call_id in calls]
    first = min((seq for seq in results if seq is not None), default=None)
    start = next((x.started for x in recording.exchanges if x.seq == first), 0.0)
    live = [
        derived_steps.answers[x.seq]
        for x in recording.exchanges
        if x.seq in derived_steps.answers and x.started >= start
    ]
    prices, unpriced = list[float](), dict[str, None]()
    for answer, other in product(live, models or (None,)):
        model = other.name if other else answer.model
        usd = compute_token_cost(model, answer.usage) if model and answer.usage else None
        if usd is None:
            unpriced[model or "a model without a name"] = None
        else:
            prices.append(usd / len(models or (None,)))
    last = max((find_answer_end(x) for x in recording.exchanges), default=start)
    return RunEstimate(
        calls=len(live),
        usd=None if unpriced else sum(prices),
        seconds=last - start,
        unpriced=tuple(unpriced),
    )


def _format_call_site(found: ForkPoint, derived_steps: DerivedSteps) -> str:
    """Format a site: `get_order#1@http` is the first call at `http`; `turn 3 of lane 0@model`."""
    if found.site.turn is not None:
        return f"{found.site.turn.arguments}@model"
    same_tool = [use for use in derived_steps.tool_uses if use.tool == found.site.tool]
    number = next(
        n
        for n, use in enumerate(same_tool, start=1)
        if use.call_id == found.site.call_id and use.ordinal == found.site.ordinal
    )
    tool = found.site.tool.replace("/", ":")  # a slash ends this part of the address
    return f"{tool}#{number}@{found.site.place}"


def _format_cell_model(model: ModelChoice | None) -> str:
    """Format the end of an address, which `campaign_injections` cuts off to pair models."""
    return "" if model is None else f"/model {model}"


def _format_cell_fault(fault: Fault) -> str:
    """Format a fault as a unique text: `digit(field=amount),once`.

    It is kept by stores and seals, so a parameter that an operator gets later has an empty default.
    """
    chosen = bind_operator(fault).with_defaults(fault.params)
    params = ",".join(f"{key}={value}" for key, value in chosen.items() if value != "")
    conditions = {k: v for k, v in fault.where.items() if k != "tool"} | dict(fault.when)
    conditions_text = "".join(f",{key}={value}" for key, value in sorted(conditions.items()))
    limit_text = f",at most {fault.max_injections}" if fault.max_injections is not None else ""
    return f"{fault.name}({params}),{fault.persist}{conditions_text}{limit_text}"
