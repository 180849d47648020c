"""The faults worth trying on a recording: each with a site, the worst and most frequent first.

Worth is how bad the consequence is times how often the fault is met: a write that is made twice
before an error that everybody sees, and a server that is down before an answer that is cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from faults.judging.value_tokens import extract_tokens
from faults.specs.spec_parser import parse_fault
from faults.targeting.read_or_write import classify_call_side
from stumble.campaigns.run_matrix import place_fault
from traces.conversation.derived_steps import DerivedSteps, ToolUse
from traces.tape.reader import Tape

WRITE_FAULTS: tuple[tuple[str, int], ...] = (("lost_ack", 10), ("silent_noop", 6))
"""Faults of tools that may write, each with its worth."""
ANY_FAULTS: tuple[tuple[str, int], ...] = (
    ("http_status:code=503", 8),
    ("tool_error:how=transient", 8),
    ("digit", 5),
    ("truncate", 3),
    ("empty", 2),
)
"""Faults of any tool; an HTTP status and a tool's own error say the same, and one is enough."""
SAME_FAULT = ("http_status:code=503", "tool_error:how=transient")
NOT_TRIED = "hang: a run with it takes its whole time limit; `stumble fork --fault hang` tries it"


class FaultChoice(Struct, frozen=True, kw_only=True):
    """The faults of one recording as tables of a campaign, and why others are left out."""

    tables: tuple[Mapping[str, object], ...]
    left_out: tuple[str, ...]


def choose_faults(recording: Tape, steps: DerivedSteps, *, live: bool) -> FaultChoice:
    """Choose the faults of each tool that have a site in this recording.

    `live` is whether tools are reached after the fault: without it no effect can be left out.
    """
    tools = {use.tool: use for use in reversed(steps.tool_uses)}
    found, left_out = list[tuple[int, Mapping[str, object]]](), list[str]()
    for tool, use in reversed(tools.items()):
        taken = set[str]()
        for text, worth in _list_candidates(use):
            if text in SAME_FAULT and taken.intersection(SAME_FAULT):
                continue
            table = {"fault": text, "where": {"tool": tool}}
            why = _explain_no_site(recording, steps, table, use, live=live)
            if why is None:
                taken.add(text)
                found.append((worth * (2 if classify_call_side(use) == "write" else 1), table))
            else:
                left_out.append(f"{text.partition(':')[0]} at {tool}: {why}")
    ordered = sorted(found, key=lambda pair: -pair[0])
    return FaultChoice(tables=tuple(table for _, table in ordered), left_out=(*left_out, NOT_TRIED))


def _list_candidates(use: ToolUse) -> Iterator[tuple[str, int]]:
    writes = () if classify_call_side(use) == "read" else WRITE_FAULTS
    # A local tool has no status: its own words come first.
    errors = sorted(ANY_FAULTS, key=lambda pair: pair[0] == SAME_FAULT[0] and use.place != "http")
    return chain(writes, errors)


def _explain_no_site(
    recording: Tape, steps: DerivedSteps, table: Mapping[str, object], use: ToolUse, *, live: bool
) -> str | None:
    """Return why a fault is not worth a run; None if it is."""
    if table["fault"] == "silent_noop" and not live:
        return "the tools answer from the recording, in which the write was made"
    if table["fault"] == "silent_noop" and not is_read_back(steps, use):
        return "the agent never reads back what it writes, so nothing could show it"
    try:
        place_fault(recording, steps, parse_fault(table), seed=0, world=True)
    except (LookupError, ValueError) as error:
        return str(error.args[0])
    return None


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
    tables: Sequence[Mapping[str, object]],
    runs: int,
    made: Mapping[tuple[str, str], int],
    *,
    repeats: int,
    controls: int,
) -> tuple[Mapping[str, object], ...]:
    """Return the first faults, which are worth most, that a number of runs pays for.

    `made` are the runs that exist, by tool and fault; the first fault of a tool needs its controls
    too. At least one fault is returned, if there is any.
    """
    chosen, reached = list[Mapping[str, object]](), {tool for tool, _ in made}
    for table in tables:
        tool, fault = get_fault_key(table)
        runs -= max(0, repeats - made.get((tool, fault), 0)) + (0 if tool in reached else controls)
        if runs < 0 and chosen:
            break
        reached.add(tool)
        chosen.append(table)
    return tuple(chosen)


def get_fault_key(table: Mapping[str, object]) -> tuple[str, str]:
    """Return the tool and the operator of a fault's table."""
    where = table["where"]
    assert isinstance(where, Mapping)
    return str(where["tool"]), str(table["fault"]).partition(":")[0]
