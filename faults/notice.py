"""Signals that an agent noticed: read from what it did, never from what was planned.

    N1  the same call again                             hard
    N2  the call again, with other arguments for the    hard, but soft after a wrong value
        same thing
    N3  another tool that says the same: declared       hard
        equivalent, or it said again what was replaced
    N4  a look at the same thing with a reading tool    hard after a write, soft after a read
    N5  a word of trouble, said or thought, in a        hard, and soft if it names none
        sentence that names tool, field or value
    N6  the wrong value and the true one together       hard
    N7  the last answer refuses, asks or says not done  hard if it names tool, field or value
    N8  the wrong value was not used where the clean    soft
        twins used the true one
    N9  a value that moved to another name or form was  hard
        used all the same

A sign counts only against the clean twins, and by rate. One that none of them shows is the
injection's; one that all of them show says nothing; one that some of them show is random, and
counts only if the faulted runs of the same fault show it more often (Fisher's exact test), else
nobody can tell. `Signal.error` is the probability of the signs under no difference.

Repeats are counted, in the window and in the whole rest of the run: a careless agent, which skips
calls, brings later ones nearer. So are the looks of N4: a second reading back that no twin makes
is absent from the twins, whose first is not. Another source (N3) is there or not.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from faults.after import After
from faults.change import Change
from faults.judging.claim_fact import ClaimFact
from faults.judging.exact_test import fisher_greater
from faults.signs import Equivalent, Sighting, acts, adapted, remarks, report
from faults.sinks import key
from traces.model import Signal

RANDOM = 0.05
"""The error at which a sign that some twins show as well is still taken for one."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Another run that was struck by the same fault at the same place."""

    change: Change
    after: After


def signals(
    change: Change,
    after: After,
    twins: tuple[After, ...],
    *,
    claim: ClaimFact,
    enough: bool = True,
    equivalent: Equivalent | None = None,
    peers: Callable[[], Sequence[Peer]] = lambda: (),
) -> tuple[Signal, ...]:
    """N1 to N7 and N9; `enough` twins make them hard or soft, too few leave that unknown."""
    declared = equivalent or {}
    own = _Signs(change, after, twins, declared)
    controls = [_Signs(change, twin, twins, declared) for twin in twins]

    @cache
    def others() -> Sequence[_Signs]:
        return [_Signs(peer.change, peer.after, twins, declared) for peer in peers()]

    found = [
        *_held(own.acts(), controls, others),
        *_held(own.remarks(), controls, others),
        *(Signal(code=s.code, step=s.step, quote=s.quote, hard=s.hard, error=_error(0, 0, twins))
          for s in (*report(change, after, claim), *adapted(change, after, twins))),
    ]  # fmt: skip
    return tuple(found if enough else (_open(each) for each in found))


def _open(signal: Signal) -> Signal:
    return Signal(code=signal.code, step=signal.step, quote=signal.quote, hard=None)


def _error(shown: int, more: int, twins: Sequence[object], peers: int = 0) -> float:
    return fisher_greater(1 + more, 1 + peers, shown, len(twins))


type Shows = Callable[["_Signs"], bool]
"""Whether a run shows a sign at least as often as the run that is judged."""


def _held(
    found: Iterable[tuple[Sighting, Shows]],
    controls: Sequence["_Signs"],
    others: Callable[[], Sequence["_Signs"]],
) -> Iterator[Signal]:
    """The signs that are more than what the twins show; open if chance may be all.

    Other runs are looked at only for a sign that comes and goes in the twins.
    """
    for sign, shows in found:
        shown = sum(map(shows, controls))
        if controls and shown == len(controls):
            continue
        peers = others() if shown else ()
        error = _error(shown, sum(map(shows, peers)), controls, len(peers))
        hard = sign.hard if not shown or error <= RANDOM else None if sign.hard else False
        yield Signal(
            code=sign.code, step=sign.step, quote=sign.quote, hard=hard, error=error, twins=shown
        )


class _Signs:
    """All that one run shows, and how often."""

    def __init__(
        self, change: Change, after: After, twins: tuple[After, ...], declared: Equivalent
    ) -> None:
        self._change, self._after = change, after
        self._twins, self._declared = twins, declared

    def acts(self) -> Iterator[tuple[Sighting, Shows]]:
        """What was asked in the window, each with what would be as much in another run."""
        seen: Counter[tuple[str, object]] = Counter()
        for each in acts(self._change, self._after, self._after.reacted, self._declared):
            name = each.code, each.key
            seen[name] += 1
            if each.code == "N3":
                if seen[name] == 1:
                    yield each, _calls(each.key)
            elif each.code == "N4":
                yield each, _looks(each.key, seen[name], self.called[each.key])
            else:
                yield each, _repeats(name, seen[name], self.rest[name])

    def remarks(self) -> Iterator[tuple[Sighting, Shows]]:
        """What was said, likewise."""
        seen: Counter[tuple[str, object]] = Counter()
        for each in remarks(self._change, self._after, self._twins):
            name = each.code, each.key
            seen[name] += 1
            yield each, _says(name, seen[name])

    @cached_property
    def near(self) -> Counter[tuple[str, object]]:
        after = self._after
        return _counted(acts(self._change, after, after.reacted, self._declared))

    @cached_property
    def rest(self) -> Counter[tuple[str, object]]:
        after = self._after
        return _counted(acts(self._change, after, after.calls, self._declared))

    @cached_property
    def called(self) -> Counter[object]:
        """How often each call is made: whatever sign it is, there it is made anyway."""
        return Counter(self._after.keys)

    @cached_property
    def called_near(self) -> Counter[object]:
        return Counter(map(key, self._after.reacted))

    @cached_property
    def said(self) -> Counter[tuple[str, object]]:
        """Counted without regard to the twins' sentences, of which a twin's own are."""
        return _counted(remarks(self._change, self._after, ()))


def _calls(call: object) -> Shows:
    return lambda run: run.called[call] > 0


def _looks(call: object, nth: int, total: int) -> Shows:
    return lambda run: run.called[call] >= total or run.called_near[call] >= nth


def _repeats(name: tuple[str, object], nth: int, total: int) -> Shows:
    return lambda run: run.rest[name] >= total or run.near[name] >= nth


def _says(name: tuple[str, object], nth: int) -> Shows:
    return lambda run: run.said[name] >= nth


def _counted(found: Iterable[Sighting]) -> Counter[tuple[str, object]]:
    return Counter((each.code, each.key) for each in found)
