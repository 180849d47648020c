"""The form that injects a fault: the catalogue on one result, the command, its cost."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from copy import replace
from pathlib import Path

from msgspec import Struct, field

from faults.operator import Operator
from faults.operator_examples import render_example_answer
from faults.operator_parameters import describe_parameter_values
from faults.plugins import list_operators
from faults.response_body import NoInjectionSite, decode_response_text
from faults.seeded_random import make_rng
from faults.specs.spec_syntax import write_spec_text
from faults.targeting.observations import CleanObservations, observe_recording
from replay.model_substitution import find_model_name
from stumble.report.text_diff import TextPiece, mark_differences
from stumble.ui.reading.tape_access import TapeAccess
from stumble.ui.values.exchange_view import pretty_json
from stumble.ui.values.formats import format_count, format_dollars
from stumble.ui.values.prompt_fields import PromptField, list_prompt_edits, list_prompt_fields
from stumble.ui.values.run_rows import RunRows
from stumble.ui.values.run_view import RunItem
from stumble.verdicts.exclusions import check_twins
from traces.conversation.derived_steps import DerivedSteps, ToolUse, derive_tape_steps
from traces.conversation.tracker import canonicalize_arguments
from traces.model import Chunk, Exchange, Request, Response, Scalar
from traces.tape.reader import Tape, read_tape

LARGEST_TAPE = 1 << 27
"""Bytes of a tape whose results the form shows changed; of others it shows the command alone."""
LONGEST_EDIT = 12_000
"""Characters of a result that the form offers for an edit as a whole; of others, give `path`."""
FAMILIES: Mapping[str, str] = {
    "T": "Time and transport",
    "E": "Errors",
    "S": "Missing and damaged",
    "V": "Wrong values",
    "X": "Effects",
    "sham": "Control",
}
DEFAULT_OPERATOR = "digit"
NO_MODEL = "Requests of this run name no model in their body, so that none can be put in its place."
EDITED_BY_HAND = ("replace", "value")
"""The fault and its parameter that begin with the result as it is."""
TWINS = 3


class FaultChoice(Struct, frozen=True, kw_only=True):
    """A fault of the catalogue."""

    name: str
    code: str
    help: str


class ParameterField(Struct, frozen=True, kw_only=True):
    """A parameter of the chosen fault."""

    name: str
    value: str
    default: str
    allowed: str
    is_long: bool = False
    """Whether it holds a complete result."""


class InjectRequest(Struct, frozen=True, kw_only=True):
    """What the form asks for; `params` without those at their defaults."""

    operator: str
    params: Mapping[str, str]
    place: str = ""
    persist: str = ""
    seed: str = "0"
    times: str = "1"
    twins: str = str(TWINS)
    more: str = ""
    """Further options of `stumble fork`, as typed."""
    model: str = ""
    """The model that goes on; empty for the recorded one."""
    prompt: Mapping[str, str] = field(default_factory=dict)
    """The texts of the prompt by their fields."""

    @classmethod
    def from_form(cls, given: Mapping[str, str]) -> "InjectRequest":
        """Read the fields of the form."""
        prefix = "param."
        return cls(
            operator=given.get("fault", "") or DEFAULT_OPERATOR,
            params={name.removeprefix(prefix): _read_value(value) for name, value in given.items()
                    if name.startswith(prefix) and value.strip()},
            place=given.get("place", ""),
            persist=given.get("persist", "").strip(),
            seed=_read_whole(given.get("seed"), "0"),
            times=_read_whole(given.get("times"), "1"),
            twins=_read_whole(given.get("twins"), str(TWINS)),
            more=given.get("more", "").strip(),
            model=given.get("model", "").strip(),
            prompt={name: text for name, text in given.items() if name.startswith("prompt.")},
        )  # fmt: skip


class InjectForm(Struct, frozen=True, kw_only=True):
    """The form for one call or answer of a run."""

    run: str
    item: RunItem
    asked: InjectRequest
    catalogue: Mapping[str, tuple[FaultChoice, ...]]
    """Family to its faults."""
    help: str
    fields: tuple[ParameterField, ...]
    places: tuple[str, ...]
    before: tuple[TextPiece, ...]
    after: tuple[TextPiece, ...]
    no_example: str | None
    """Why there is no example."""
    command: str
    arguments: tuple[str, ...]
    """The arguments of stumble, as a child gets them."""
    cost: str
    model: str
    """The recorded model."""
    prompts: tuple[PromptField, ...] = ()
    no_model: str | None = None
    """Why no other model can go on."""
    problem: str | None = None
    """Why the command cannot be run."""


def build_inject_form(
    source: RunRows, item: RunItem, items: Sequence[RunItem], tape: Path, asked: InjectRequest
) -> InjectForm:
    """Build the form. Raises ValueError for an unknown fault or an unreadable tape."""
    at_model = item.kind == "agent"
    fitting = [each for each in list_operators() if "model" in each.places or not at_model]
    operator = next((each for each in fitting if asked.operator in (each.name, each.code)), None)
    if operator is None:
        operator = next(each for each in fitting if each.name == "http_status")
        asked = replace(asked, operator=operator.name, params={})
    known = operator.accepted_params
    asked = replace(asked, params={k: v for k, v in asked.params.items() if k in known})
    if operator.name == EDITED_BY_HAND[0] and not asked.params:
        asked = replace(asked, params={EDITED_BY_HAND[1]: _read_editable(tape, item)})
    request = _find_model_request(tape, item, items)
    prompts = tuple(list_prompt_fields(request, asked.prompt))
    names_model = request is not None and find_model_name(request.request) is not None
    asked = asked if names_model else replace(asked, model="")
    arguments, problem = _build_arguments(tape, item, items, operator, asked, prompts)
    example = _try_example(tape, item, operator, asked)
    return InjectForm(
        run=source.id,
        item=item,
        asked=asked,
        catalogue={
            words: tuple(_list_choices(fitting, family)) for family, words in FAMILIES.items()
        },
        help=operator.help.partition("\n\n")[0],
        fields=tuple(_list_fields(operator, asked)),
        places=tuple(place for place in operator.places if (place == "model") == at_model),
        before=example.before,
        after=example.after,
        no_example=example.missing,
        command=shlex.join(("stumble", *arguments)),
        arguments=arguments,
        cost=_estimate_cost(source, item, asked),
        model=str(source.run["model"] or ""),
        prompts=prompts,
        no_model=None if names_model else NO_MODEL,
        problem=problem,
    )


def _list_choices(operators: Sequence[Operator], family: str) -> Iterator[FaultChoice]:
    for each in operators:
        if each.family == family:
            yield FaultChoice(name=each.name, code=each.code, help=each.help.partition("\n")[0])


def _list_fields(operator: Operator, request: InjectRequest) -> Iterator[ParameterField]:
    for name, parameter in operator.accepted_params.items():
        default = parameter.default
        yield ParameterField(
            name=name,
            value=request.params.get(name, ""),
            is_long=(operator.name, name) == EDITED_BY_HAND,
            default="none" if default == "" else str(default),
            allowed=describe_parameter_values(parameter) or "",
        )


def _build_arguments(
    tape: Path,
    item: RunItem,
    items: Sequence[RunItem],
    operator: Operator,
    request: InjectRequest,
    prompts: Sequence[PromptField],
) -> tuple[tuple[str, ...], str | None]:
    """Return the arguments of stumble, and why they cannot be run."""
    fault = write_spec_text(operator.name, request.params)
    words = ["fork", str(tape), "--fault", fault]
    same = [each.key for each in items if each.kind == item.kind
            and (item.kind == "agent" or each.title == item.title)]  # fmt: skip
    nth = same.index(item.key) + 1
    if item.kind == "agent":
        words += ["--at", "model", "--nth", str(nth)]
    else:
        words += ["--where", f"tool={item.title}", "--nth", str(nth)]
        words += ["--at", request.place] if request.place in operator.places else []
    words += ["--persist", request.persist] if request.persist not in ("", "once") else []
    words += ["--model", request.model] if request.model else []
    for edit in list_prompt_edits(prompts):
        words += ["--edit-prompt", edit.old, edit.new]
    words += ["--seed", request.seed, "--times", request.times, "--twins", request.twins]
    try:
        words += shlex.split(request.more)
    except ValueError as error:
        return tuple(words), f"Further options: {error}."
    try:
        check_twins(int(request.twins))
    except ValueError as error:
        return tuple(words), f"Clean twins: {error}."
    return tuple(words), None


class TriedFault(Struct, frozen=True, kw_only=True):
    """A fault on one result: before and after, or why there is neither."""

    before: tuple[TextPiece, ...] = ()
    after: tuple[TextPiece, ...] = ()
    missing: str | None = None


def _find_model_request(tape: Path, item: RunItem, items: Sequence[RunItem]) -> Exchange | None:
    """Return the model request of an item's step, whose prompt can be edited."""
    step = next((each for each in items if each.kind == "agent" and each.step == item.step), None)
    if step is None or step.seq is None:
        return None
    try:
        return TapeAccess(tape).read_exchange(step.seq)
    except KeyError:
        return None


def _try_example(
    tape: Path, item: RunItem, operator: Operator, request: InjectRequest
) -> TriedFault:
    """Apply the fault to this very result."""
    if tape.stat().st_size > LARGEST_TAPE:
        return TriedFault(missing="The tape is too large to try it here.")
    recording = read_tape(tape)
    exchange, seen = _find_result(recording, derive_tape_steps(recording), item)
    if exchange is None:
        return TriedFault(missing="The run holds no result to change.")
    try:
        params = _parse_params(operator, request)
        changed = operator(exchange, make_rng(f"example/{request.seed}"), params, seen)
    except NoInjectionSite as error:
        return TriedFault(missing=f"It finds nothing to change in this result: {error}.")
    except (ValueError, TypeError) as error:
        return TriedFault(missing=f"{error}")
    was, now = (pretty_json(render_example_answer(each)) for each in (exchange, changed))
    before, after = mark_differences(was, now, ("truth", "lie"))
    return TriedFault(before=before, after=after)


def _read_editable(tape: Path, item: RunItem) -> str:
    """Return the result for a field; empty if there is none, or too long for an address."""
    if tape.stat().st_size > LARGEST_TAPE:
        return ""
    recording = read_tape(tape)
    exchange, _ = _find_result(recording, derive_tape_steps(recording), item)
    try:
        text = "" if exchange is None else decode_response_text(exchange)
    except NoInjectionSite:
        return ""
    return text if len(text) <= LONGEST_EDIT else ""


def _parse_params(operator: Operator, request: InjectRequest) -> dict[str, Scalar]:
    """Return the parameters as the command line would parse them, without `copy`."""
    from faults.specs.spec_parser import parse_fault

    fault = parse_fault({"fault": write_spec_text(operator.name, request.params)})
    return {name: value for name, value in fault.params.items() if name in operator.params}


def _find_result(
    recording: Tape, derived_steps: DerivedSteps, item: RunItem
) -> tuple[Exchange | None, CleanObservations]:
    """Return the exchange that a fault would change, and what it may know of the recording."""
    by_seq = {exchange.seq: exchange for exchange in recording.exchanges}
    seen = observe_recording(derived_steps, recording.exchanges)
    if item.kind == "agent":
        return by_seq.get(item.seq if item.seq is not None else -1), seen
    uses = list(derived_steps.tool_uses)
    at = next((at for at, each in enumerate(uses) if each.call_id == item.call_id), None)
    if at is None:
        return None, seen
    use = uses[at]
    seen = replace(
        seen,
        tool=use.tool,
        arguments=canonicalize_arguments(use.arguments),
        own_index=at,
        writes=None if use.read_only is None else not use.read_only,
        world=True,
    )
    own = by_seq.get(use.seqs[-1]) if use.seqs and use.place == "http" else None
    return own or _to_bare_exchange(use), seen


def _to_bare_exchange(use: ToolUse) -> Exchange | None:
    """Return the result as the model got it, as an exchange of its own."""
    if use.result is None:
        return None
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=use.result.encode()),), ended=0.0)
    request = Request(method="CALL", url=f"tool:{use.tool}", body=use.arguments.encode())
    return Exchange(seq=0, request=request, response=answer)


def _estimate_cost(source: RunRows, item: RunItem, request: InjectRequest) -> str:
    """Describe what the live calls after the injection used in the recording, for all runs."""
    starts = {x["seq"]: x["started"] for x in source.rows["exchanges"]}
    after = [
        row for row in source.rows["usage"]
        if isinstance(start := starts.get(row["seq"]), float) and start >= item.start
    ]  # fmt: skip
    runs = int(request.times) + int(request.twins)
    tokens = sum(
        count for row in after for name in ("prompt_tokens", "completion_tokens")
        if isinstance(count := row[name], int)
    )  # fmt: skip
    costs = [cost for row in after if isinstance(cost := row["cost_usd"], float)]
    price = (
        f"about {format_dollars(sum(costs) * runs)}"
        if after and len(costs) == len(after)
        else "cost unknown: the price list has no price for this model"
    )
    if request.model:
        price = "cost unknown: another model goes on"
    calls = len(after) * runs
    return (
        f"{runs} runs, {format_count(calls)} model calls and {format_count(tokens * runs)} tokens "
        f"as in the recording; {price}"
    )


def _read_value(text: str) -> str:
    """Return the text of a field; browsers send the end of a line as CR LF."""
    text = text.replace("\r\n", "\n")
    return text if "\n" in text else text.strip()


def _read_whole(text: str | None, default: str) -> str:
    return (
        str(int(text)) if text and text.isascii() and text.isdigit() and len(text) < 7 else default
    )
