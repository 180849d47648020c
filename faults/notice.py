"""Signals that an agent noticed: read from what it did, never from what was planned.

    N1  the same call again                             hard
    N2  the call again, with other arguments for the    hard, but soft after a wrong value
        same thing
    N3  another tool that says the same: declared       hard
        equivalent, or it said again what was replaced
    N4  a look at the same thing with a reading tool    hard after a write, soft after a read
    N5  a word of trouble, in a sentence that names     hard, and soft where it names none
        tool, field or value
    N6  the wrong value and the true one together       hard
    N7  the final answer says not done or unverified    hard where it names tool or field
    N8  the wrong value was not used where the clean    soft
        twins used the true one

A signal counts only if it is in the faulted run and in none of the clean twins, so an agent that
always asks twice is not said to have noticed. Repeats are counted, in the window and in the whole
rest of the run: a careless agent, which skips calls, brings later ones nearer. So are the looks of
N4: a second reading back that no twin makes is absent from the twins, whose first is not. Another
source (N3) is there or not.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from faults.after import After, final
from faults.change import Change, change
from faults.lexicon import not_done, opens_not_done
from faults.signs import Equivalent, Sighting, acts, remarks, report
from faults.sinks import key
from traces.model import Injection, Signal
from traces.story import Story


def signals(
    change: Change,
    after: After,
    twins: tuple[After, ...],
    *,
    enough: bool = True,
    equivalent: Equivalent | None = None,
) -> tuple[Signal, ...]:
    """N1 to N7; `enough` twins to tell make them hard or soft, too few leave that unknown."""
    declared = equivalent or {}
    found = [*_acts(change, after, twins, declared), *_said(change, after, twins)]
    return tuple(
        Signal(
            code=each.code,
            step=each.step,
            quote=each.quote,
            hard=each.hard if enough else None,
        )
        for each in found
    )


def _acts(
    change: Change, after: After, twins: tuple[After, ...], declared: Equivalent
) -> Iterator[Sighting]:
    """What was asked more often than in any twin: in the window, and in the whole rest."""
    here = list(acts(change, after, after.reacted, declared))
    if not here:
        return
    near = [_counted(acts(change, twin, twin.reacted, declared)) for twin in twins]
    rest = [_counted(acts(change, twin, twin.calls, declared)) for twin in twins]
    in_all = _counted(acts(change, after, after.calls, declared))
    looks = _Looks(after, twins)
    seen: Counter[tuple[str, object]] = Counter()
    for each in here:
        name = each.code, each.key
        seen[name] += 1
        if each.code == "N3":
            if looks.absent(each.key) and seen[name] == 1:
                yield each
        elif each.code == "N4":
            if looks.first_more(each.key, seen[name]):
                yield each
        elif in_all[name] > _most(rest, name) and seen[name] > _most(near, name):
            yield each


class _Looks:
    """How often each call is made: whatever sign it is in a twin, there it is made anyway."""

    def __init__(self, after: After, twins: tuple[After, ...]) -> None:
        self._own = Counter[object](after.keys)
        self._rest = [Counter[object](twin.keys) for twin in twins]
        self._near = [Counter[object](map(key, twin.reacted)) for twin in twins]

    def absent(self, call: object) -> bool:
        """Whether no twin makes this call."""
        return not any(twin[call] for twin in self._rest)

    def first_more(self, call: object, nth: int) -> bool:
        """Whether the `nth` in the window is the first that no twin makes, there or later."""
        most = max((twin[call] for twin in self._rest), default=0)
        near = max((twin[call] for twin in self._near), default=0)
        return self._own[call] > most and nth == near + 1


def _most(twins: list[Counter[tuple[str, object]]], name: tuple[str, object]) -> int:
    return max((twin[name] for twin in twins), default=0)


def _said(change: Change, after: After, twins: tuple[After, ...]) -> Iterator[Sighting]:
    """What was said more often than in any twin; of N7, what no twin says."""
    said = [*remarks(change, after), *report(change, after)]
    if not said:
        return
    others = [_counted((*remarks(change, twin), *report(change, twin))) for twin in twins]
    seen: Counter[tuple[str, object]] = Counter()
    for each in said:
        name = each.code, each.key
        seen[name] += 1
        if seen[name] > _most(others, name):
            yield each


def _counted(found: Iterable[Sighting]) -> Counter[tuple[str, object]]:
    return Counter((each.code, each.key) for each in found)


def claims_success(injection: Injection, story: Story) -> bool | None:
    """Whether the final answer claims the task was done; None where there is no final answer."""
    last = final(story)
    if last is None:
        return None
    bent = change(injection)
    regret = not_done(last.message, bent.anchors, bent.quotes)
    return not opens_not_done(last.message) and regret is None
