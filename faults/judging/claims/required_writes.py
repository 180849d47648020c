"""Check whether a run made the writes that all of its clean twins make.

A write is known by its tool, and if that runs commands by those: `git checkout` is no `git commit`.
"""

from collections.abc import Sequence

from msgspec import Struct

from faults.judging.command_names import list_commands
from faults.judging.identifiers import is_specific_token
from faults.judging.post_injection import RunContinuation
from faults.judging.taint.sinks import make_call_key
from faults.judging.value_tokens import extract_tokens, mask_values
from faults.targeting.read_or_write import classify_tool_side
from traces.conversation.derived_steps import ToolUse


class WriteComparison(Struct, frozen=True, kw_only=True):
    """Counts of the writes that all twins make; tools of unknown side count as writes."""

    same: int = 0
    otherwise: int = 0
    """With other values."""
    reworded: int = 0
    """With another text."""
    failed: int = 0
    """Requested, and answered with an error that no twin got."""
    missing: int = 0
    unmade: tuple[str, ...] = ()
    """The arguments of the missing and failed ones, as the first twin has them."""
    extra: tuple[str, ...] = ()
    """Tools not known to be read-only that no twin uses."""

    @property
    def required(self) -> int:
        return self.same + self.otherwise + self.reworded + self.failed + self.missing

    @property
    def all_made(self) -> bool | None:
        """Whether all were made; None if there are none, or if only reworded ones were made."""
        if self.failed or self.missing:
            return False
        return True if self.required > self.reworded else None

    @property
    def some_made(self) -> bool:
        """Whether some of them were made."""
        return bool(self.same + self.otherwise) and not self.all_made

    def __str__(self) -> str:
        counts_by_outcome = {
            "as in clean runs": self.same,
            "with other values": self.otherwise,
            "with another text": self.reworded,
            "failed": self.failed,
            "not made": self.missing,
        }
        counts = ", ".join(f"{count} {how}" for how, count in counts_by_outcome.items() if count)
        return f"writes: {counts}" if counts else "clean runs write nothing"


def compare_writes(own: RunContinuation, twins: Sequence[RunContinuation]) -> WriteComparison:
    """Compare the writes after an injection, including the target call, with the twins'."""
    is_read = any(map(_uses_result, twins))
    others = [_list_writes(twin, is_read) for twin in twins]
    if not others:
        return WriteComparison()
    own_writes = _list_writes(own, is_read)
    used = {use.tool for other in others for use in other}
    extra = tuple(dict.fromkeys(use.tool for use in own_writes if use.tool not in used))
    errors = {use.tool for other in others for use in other if use.is_error}
    count = {"same": 0, "otherwise": 0, "reworded": 0, "failed": 0, "missing": 0}
    required = _find_required_writes(others)
    outcomes = _match_required_writes(required, own_writes, errors)
    for how in outcomes:
        count[how] += 1
    pairs = zip(required, outcomes, strict=True)
    unmade = tuple(use.arguments for use, how in pairs if how in ("missing", "failed"))
    return WriteComparison(**count, unmade=unmade, extra=extra)


def _uses_result(run: RunContinuation) -> bool:
    """Return whether the target call is of a tool of unknown side, and its values are used."""
    use = run.use
    if use is None or classify_tool_side(use.tool) is not None:
        return False
    values = extract_tokens(use.result or "") - run.prior_tokens - extract_tokens(use.arguments)
    used = frozenset().union(*(sink.tokens for sink in run.sinks))
    return any(map(is_specific_token, values & used))


def _list_writes(run: RunContinuation, target_is_read: bool) -> list[ToolUse]:
    target = [] if run.use is None or target_is_read else [run.use]
    return [use for use in (*target, *run.calls) if classify_tool_side(use.tool) != "read"]


def _find_required_writes(others: Sequence[list[ToolUse]]) -> list[ToolUse]:
    """Return the first twin's writes that every other twin makes at least as often."""
    required: list[ToolUse] = []
    for use in others[0]:
        nth = sum(_does_the_same(each, use) for each in required) + 1
        if all(sum(_does_the_same(each, use) for each in other) >= nth for other in others[1:]):
            required.append(use)
    return required


def _does_the_same(use: ToolUse, want: ToolUse) -> bool:
    """Return whether a call is of the tool, and runs the commands, of another."""
    return use.tool == want.tool and list_commands(want.arguments) <= list_commands(use.arguments)


def _match_required_writes(
    wanted: list[ToolUse], mine: list[ToolUse], errors: set[str]
) -> list[str]:
    """Classify each required write: the same call first, then calls of its tool in order."""
    remaining, outcomes = list(mine), dict[int, str]()
    for same in (True, False):
        for at, want in enumerate(wanted):
            if at in outcomes:
                continue
            fits = [
                use for use in remaining
                if _does_the_same(use, want)
                and (not same or make_call_key(use) == make_call_key(want))
            ]  # fmt: skip
            good = [use for use in fits if not use.is_error or use.tool in errors]
            if good:
                remaining.remove(good[0])
                outcomes[at] = _classify_likeness(good[0], want)
            elif fits and not same:
                remaining.remove(fits[0])
                outcomes[at] = "failed"
    return [outcomes.get(at, "missing") for at in range(len(wanted))]


def _classify_likeness(use: ToolUse, want: ToolUse) -> str:
    if make_call_key(use) == make_call_key(want):
        return "same"
    same_form = mask_values(use.arguments) == mask_values(want.arguments)
    return "otherwise" if same_form else "reworded"
