"""Confirm taint by forks: a slot is tainted if it changes with the value alone.

The same prefix is continued k times with the true result, k times with the wrong one, and k times
with a second wrong one. If all true runs agree in a slot, and all wrong runs have a text there that
no true run has, the value is the cause: no function has to be known, and booleans, paraphrases and
omissions are detected too. A slot that the second wrong value also changes is more certain.
"""

from collections.abc import Sequence

from msgspec import Struct

from faults.judging.judge import RunEvidence, is_complete_run
from faults.judging.post_injection import RunContinuation, find_continuation
from faults.judging.taint.sinks import SinkSlot, TaintSink
from traces.model import Injection

MIN_RUNS = 3
"""Runs of each kind for screening; use five for published results."""


class CounterfactualSlot(Struct, frozen=True, kw_only=True):
    """One slot in which runs can differ, and their texts in it."""

    where: SinkSlot
    true: tuple[str | None, ...]
    """The text of each run with the true result; None if the run has no such slot."""
    wrong: tuple[str | None, ...]
    second: tuple[str | None, ...] = ()
    tainted: bool | None = None
    """None if runs with the same result differ, so that nothing follows."""
    moved_again: bool | None = None
    """Whether the second wrong value changes it too; None without one."""


class CounterfactualResult(Struct, frozen=True, kw_only=True):
    """The result of the forks for one injection."""

    tainted: bool | None
    slots: tuple[CounterfactualSlot, ...] = ()
    """The tainted and the undecided ones."""
    reason: str | None = None
    """Why `tainted` is None."""


def confirm_by_forks(
    true: Sequence[RunEvidence],
    wrong: Sequence[RunEvidence],
    second: Sequence[RunEvidence] = (),
    *,
    k: int = MIN_RUNS,
) -> CounterfactualResult:
    """Return whether the agent's actions depend on the injected value.

    `true` are the clean twins; `wrong` are runs with the same wrong value, and `second` with
    another one at the same place. The slots are the calls that may write, and the numbers, ids and
    dates of the final answer: other words vary from run to run.
    """
    injection = next((i for run in wrong for i in run.tape.injections), None)
    if injection is None:
        return CounterfactualResult(tainted=None, reason="nothing was struck")
    groups = [
        _collect_slots(true, injection, struck=False),
        _collect_slots(wrong, injection, struck=True),
    ]
    groups.append(_collect_slots(second, injection, struck=True))
    if min(len(groups[0]), len(groups[1])) < k:
        reason = f"{len(groups[0])} true and {len(groups[1])} wrong runs came there; it takes {k}"
        return CounterfactualResult(tainted=None, reason=reason)
    places = dict.fromkeys(where for group in groups for run in group for where in run)
    slots = tuple(_compare_slot(where, groups) for where in places)
    relevant = tuple(slot for slot in slots if slot.tainted is not False)
    if any(slot.tainted for slot in relevant):
        return CounterfactualResult(tainted=True, slots=relevant)
    if relevant:
        return CounterfactualResult(
            tainted=None, slots=relevant, reason="runs that were told the same differ"
        )
    return CounterfactualResult(tainted=False)


def _compare_slot(
    where: SinkSlot, groups: Sequence[Sequence[dict[SinkSlot, str]]]
) -> CounterfactualSlot:
    true, wrong, second = (tuple(run.get(where) for run in group) for group in groups)
    return CounterfactualSlot(
        where=where,
        true=true,
        wrong=wrong,
        second=second,
        tainted=_is_moved_slot(true, wrong),
        moved_again=_is_moved_slot(true, second) if second else None,
    )


def _is_moved_slot(true: tuple[str | None, ...], other: tuple[str | None, ...]) -> bool | None:
    """Return whether all others differ from every true run; None if neither that nor equal."""
    if len(set(true)) == 1 and not set(true) & set(other):
        return True
    return False if set(other) <= set(true) else None


def _collect_slots(
    runs: Sequence[RunEvidence], injection: Injection, *, struck: bool
) -> list[dict[SinkSlot, str]]:
    """Return each run's text in each slot, without incomplete runs and unconsumed injections."""
    texts_by_run = []
    for run in runs:
        own = (
            _find_run_continuation(run, injection, struck=struck) if is_complete_run(run) else None
        )
        if own is not None:
            texts_by_run.append(
                {
                    sink.slot: _to_comparable_text(sink)
                    for sink in own.sinks
                    if _is_compared_sink(sink)
                }
            )
    return texts_by_run


def _find_run_continuation(
    run: RunEvidence, injection: Injection, *, struck: bool
) -> RunContinuation | None:
    if not struck:
        return run.find_twin_continuation(injection, run.story.find_use(injection.call_id or ""))
    own = next(iter(run.tape.injections), None)
    if own is None:
        return None
    consumption = run.find_consumption(own)
    return (
        find_continuation(run.story, run.story.find_use(own.call_id or ""), consumption.seq)
        if consumption.consumed
        else None
    )


def _is_compared_sink(sink: TaintSink) -> bool:
    return sink.is_final or (sink.is_call and sink.side != "read")


def _to_comparable_text(sink: TaintSink) -> str:
    """Return the compared text: verifiable tokens of a final answer, all arguments of a call."""
    if sink.key is not None:
        return sink.key[1]
    return " ".join(sorted(atom for atom in sink.tokens if atom[0] != "s"))
