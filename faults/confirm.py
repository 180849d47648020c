"""What rules cannot settle, settled by forks: a slot is tainted if it moves with the value alone.

The same prefix goes on k times with the true result, k times with the wrong one, and k times with
a second wrong one. Where all true runs agree in a slot, and all wrong runs say something none of
them says, the value is the cause: no function has to be known, and truth values, paraphrase and
what was left out are seen as well. A slot that the second wrong value moves too is surer still.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from faults.after import After, after
from faults.consumption import consumption
from faults.judge import Run, whole
from faults.sinks import Sink, Where
from traces.model import Injection

RUNS = 3
"""How many runs of each kind it takes to screen; five for what is to be quoted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One place in which runs can differ, and what they said there."""

    where: Where
    true: tuple[str | None, ...]
    """What each run with the true result said; None where it did not come there."""
    wrong: tuple[str | None, ...]
    second: tuple[str | None, ...] = ()
    tainted: bool | None = None
    """None where runs that were told the same differ, so that nothing follows."""
    moved_again: bool | None = None
    """Whether the second wrong value moves it too; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """What forks say of one injection."""

    tainted: bool | None
    slots: tuple[Slot, ...] = ()
    """Those that are tainted or cannot be told."""
    reason: str | None = None
    """Why `tainted` is None."""


def confirm(
    true: Sequence[Run], wrong: Sequence[Run], second: Sequence[Run] = (), *, k: int = RUNS
) -> Confirmation:
    """Whether what the agent did depends on the struck value.

    `true` are the clean twins; `wrong` are runs struck by the same value, and `second` by another
    one at the same place. Calls that may write, and the numbers, ids and days of the final
    answer, are the slots: other words vary from run to run.
    """
    injection = next((i for run in wrong for i in run.tape.injections), None)
    if injection is None:
        return Confirmation(tainted=None, reason="nothing was struck")
    groups = [_slots(true, injection, struck=False), _slots(wrong, injection, struck=True)]
    groups.append(_slots(second, injection, struck=True))
    if min(len(groups[0]), len(groups[1])) < k:
        said = f"{len(groups[0])} true and {len(groups[1])} wrong runs came there; it takes {k}"
        return Confirmation(tainted=None, reason=said)
    places = dict.fromkeys(where for group in groups for run in group for where in run)
    slots = tuple(_slot(where, groups) for where in places)
    told = tuple(slot for slot in slots if slot.tainted is not False)
    if any(slot.tainted for slot in told):
        return Confirmation(tainted=True, slots=told)
    if told:
        return Confirmation(tainted=None, slots=told, reason="runs that were told the same differ")
    return Confirmation(tainted=False)


def _slot(where: Where, groups: Sequence[Sequence[dict[Where, str]]]) -> Slot:
    true, wrong, second = (tuple(run.get(where) for run in group) for group in groups)
    return Slot(
        where=where,
        true=true,
        wrong=wrong,
        second=second,
        tainted=_moved(true, wrong),
        moved_again=_moved(true, second) if second else None,
    )


def _moved(true: tuple[str | None, ...], other: tuple[str | None, ...]) -> bool | None:
    """Whether all others say what no true run says; None where it is neither that nor the same."""
    if len(set(true)) == 1 and not set(true) & set(other):
        return True
    return False if set(other) <= set(true) else None


def _slots(runs: Sequence[Run], injection: Injection, *, struck: bool) -> list[dict[Where, str]]:
    """What each run said in each slot; runs that were cut off, or not told, are left out."""
    found = []
    for run in runs:
        own = _after(run, injection, struck=struck) if whole(run) else None
        if own is not None:
            found.append({sink.where: _form(sink) for sink in own.sinks if _counts(sink)})
    return found


def _after(run: Run, injection: Injection, *, struck: bool) -> After | None:
    if not struck:
        return run.mate(injection, run.story.use(injection.call_id or ""))
    own = next(iter(run.tape.injections), None)
    if own is None:
        return None
    heard = consumption(own, run.story, run.tape.exchanges)
    return after(run.story, run.story.use(own.call_id or ""), heard.seq) if heard.consumed else None


def _counts(sink: Sink) -> bool:
    return sink.final or (sink.called and sink.side != "read")


def _form(sink: Sink) -> str:
    """What is compared: of the final answer what can be checked, of a call all that it says."""
    if sink.key is not None:
        return sink.key[1]
    return " ".join(sorted(atom for atom in sink.atoms if atom[0] != "s"))
