"""The faults worth trying on a recording: each with a site, the worst and most frequent first.

Worth is how bad the consequence is times how often the fault is met: a write that is made twice
before an error that everybody sees, and a server that is down before an answer that is cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from faults.judging.command_names import list_commands
from faults.judging.value_tokens import extract_tokens
from faults.specs.spec_parser import parse_fault
from faults.targeting.read_or_write import classify_call_side
from stumble.campaigns.run_matrix import find_refusal_reason, place_fault
from stumble.check.call_names import count_call, group_calls, has_write
from traces.conversation.derived_steps import DerivedSteps, ToolUse
from traces.dialects import mcp
from traces.tape.reader import Tape

WRITE_FAULTS: tuple[tuple[str, int], ...] = (("lost_ack", 10), ("silent_noop", 6))
"""Faults of tools that may write, each with its worth."""
ANY_FAULTS: tuple[tuple[str, int], ...] = (
    ("http_status:code=503", 8),
    ("tool_error:how=transient", 8),
    ("digit", 5),
    ("session_lost", 4),
    ("truncate", 3),
    ("empty", 2),
    ("instruction", 1),
)
"""Faults of any tool; an HTTP status and a tool's own error say the same, and one is enough."""
SAME_FAULT = ("http_status:code=503", "tool_error:how=transient")
NOT_TRIED = "hang: a run with it takes its whole time limit; `stumble fork --fault hang` tries it"


MAX_GROUPS = 3
"""Most kinds of command of one tool that are tried."""


class ChosenFault(Struct, frozen=True, kw_only=True):
    """A fault as a table of a campaign, and its cell of the page."""

    key: tuple[str, str]
    """The name of the call and the operator."""
    table: Mapping[str, object]


class FaultChoice(Struct, frozen=True, kw_only=True):
    """The faults of one recording, and why others are left out."""

    faults: tuple[ChosenFault, ...]
    left_out: tuple[str, ...]


def choose_faults(recording: Tape, steps: DerivedSteps, *, live: bool) -> FaultChoice:
    """Choose the faults of each kind of call that have a site in this recording.

    `live` is whether tools are reached after the fault: without it no effect can be left out.
    """
    found, left_out = list[tuple[int, ChosenFault]](), list[str]()
    groups = group_calls(steps, recording)
    kept = _list_kept_groups(recording, groups)
    for name, uses in groups.items():
        if name not in kept:
            left_out.append(f"{name}: {MAX_GROUPS} kinds of command of {uses[0].tool} are tried")
            continue
        is_alone = sum(uses[0].tool == others[0].tool for others in groups.values()) == 1
        taken = set[str]()
        for text, worth in _list_candidates(recording, uses[0]):
            if text in SAME_FAULT and taken.intersection(SAME_FAULT):
                continue
            operator = text.partition(":")[0]
            tables = _list_tables(text, uses, None if is_alone else steps)
            reasons = [_explain_no_site(recording, steps, t, uses[-1], live=live) for t in tables]
            if None not in reasons:
                left_out.append(f"{operator} at {name}: {reasons[-1]}")
                continue
            taken.add(text)
            fault = ChosenFault(key=(name, operator), table=tables[reasons.index(None)])
            found.append((worth * (2 if _may_write(recording, uses[0]) else 1), fault))
    ordered = sorted(found, key=lambda pair: -pair[0])
    return FaultChoice(faults=tuple(each for _, each in ordered), left_out=(*left_out, NOT_TRIED))


def _list_kept_groups(recording: Tape, groups: Mapping[str, tuple[ToolUse, ...]]) -> frozenset[str]:
    """Return the kinds of call that are tried: of each tool writes, the first and the last."""
    by_tool = dict[str, list[str]]()
    for name, uses in groups.items():
        by_tool.setdefault(uses[0].tool, []).append(name)
    kept = set[str]()
    for names in by_tool.values():
        writes = [name for name in names if _may_write(recording, groups[name][0])]
        kept.update([*dict.fromkeys([*writes, names[0], *reversed(names)])][:MAX_GROUPS])
    return frozenset(kept)


def _may_write(recording: Tape, use: ToolUse) -> bool:
    side = classify_call_side(use)
    is_shell = side is None and bool(list_commands(use.arguments))
    return side == "write" or (is_shell and has_write(use, recording))


def _list_tables(
    text: str, uses: Sequence[ToolUse], steps: DerivedSteps | None
) -> list[Mapping[str, object]]:
    """Return a fault's tables: of a tool, or of each of these of its calls."""
    table: Mapping[str, object] = {"fault": text, "where": {"tool": uses[0].tool}}
    if steps is None:
        return [table]
    return [{**table, "nth": count_call(steps, use)} for use in reversed(uses)]


def _list_candidates(recording: Tape, use: ToolUse) -> Iterator[tuple[str, int]]:
    only_reads = use.place == "http" and not has_write(use, recording)
    writes = () if only_reads or classify_call_side(use) == "read" else WRITE_FAULTS
    # A local tool has no status: its own words come first.
    errors = sorted(ANY_FAULTS, key=lambda pair: pair[0] == SAME_FAULT[0] and use.place != "http")
    sent = (each.request for each in recording.exchanges if each.seq in use.seqs)
    without = set[str]() if any(map(mcp.find_session, sent)) else {"session_lost"}
    if use.is_of_program:  # nothing in it reads instructions
        without.add("instruction")
    return chain(writes, (pair for pair in errors if pair[0] not in without))


def _explain_no_site(
    recording: Tape, steps: DerivedSteps, table: Mapping[str, object], use: ToolUse, *, live: bool
) -> str | None:
    """Return why a fault is not worth a run; None if it is."""
    if table["fault"] == "silent_noop" and not live:
        return "the tools answer from the recording, in which the write was made"
    if table["fault"] == "silent_noop" and not is_read_back(steps, use):
        return "the agent never reads back what it writes, so nothing could show it"
    try:
        _, point = place_fault(recording, steps, parse_fault(table), seed=0, world=True)
    except (LookupError, ValueError) as error:
        return str(error.args[0])
    return find_refusal_reason(point, seed=0, world=True) if "nth" in table else None


def is_read_back(steps: DerivedSteps, use: ToolUse) -> bool:
    """Return whether a later read has an id that came with the answer of this call."""
    before = list[str]()
    for other in steps.tool_uses:
        if other.call_id == use.call_id:
            break
        before += [other.arguments, other.result or ""]
    known = frozenset(chain.from_iterable(map(extract_tokens, [*before, use.arguments])))
    new = {each for each in extract_tokens(use.result or "") - known if each.startswith("i:")}
    later = steps.tool_uses[steps.tool_uses.index(use) + 1 :]
    reads = (other for other in later if classify_call_side(other) != "write")
    return any(new & extract_tokens(other.result or "") for other in reads)


def afford_faults(
    faults: Sequence[ChosenFault],
    runs: int,
    made: Mapping[tuple[str, str], int],
    *,
    repeats: int,
    controls: int,
) -> tuple[ChosenFault, ...]:
    """Return the first faults, which are worth most, that a number of runs pays for.

    `made` are the runs that exist, by tool and fault; the first fault of a tool needs its controls
    too. At least one fault is returned, if there is any.
    """
    chosen, reached = list[ChosenFault](), {tool for tool, _ in made}
    for fault in faults:
        tool = fault.key[0]
        runs -= max(0, repeats - made.get(fault.key, 0)) + (0 if tool in reached else controls)
        if runs < 0 and chosen:
            break
        reached.add(tool)
        chosen.append(fault)
    return tuple(chosen)
