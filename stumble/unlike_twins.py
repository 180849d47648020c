"""Clean twins whose agent did the same and that end differently: their world was not their own.

An agent that varies may end in several ways. One that made the same calls with the same arguments
in each twin can not: another run was in its world, or the state holds what varies by itself.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from faults.endstate import difference
from faults.judge import Run, whole
from faults.sinks import key
from traces.model import Ending

MEANING = "another run may use this world, or --state prints what varies by itself"


def find_unlike_ends(twins: Sequence[Run]) -> str | None:
    """What differs, in a line; None if all twins that did the same ended alike."""
    alike: dict[tuple[object, ...], list[Ending]] = defaultdict(list)
    for twin in twins:
        if whole(twin) and twin.tape.ending is not None:
            calls = tuple(key(use) for use in twin.story.uses)
            alike[calls].append(twin.tape.ending)
    found = (_difference(endings) for endings in alike.values())
    what = next((each for each in found if each is not None), None)
    if what is None:
        return None
    return f"clean twins did the same and end differently: {what}; {MEANING}"


def _difference(endings: Sequence[Ending]) -> str | None:
    states = [each for each in endings if each.state is not None]
    if len({(each.state_of, each.state) for each in states}) > len({e.state_of for e in states}):
        usual = Counter(each.state for each in states).most_common(1)[0][0]
        first = next(each for each in states if each.state == usual)
        other = next(each for each in states if each.state != usual)
        return difference(first.state_text, other.state_text)
    passes = [each.passed for each in endings if each.passed is not None]
    return f"{passes.count(True)} of {len(passes)} right" if len(set(passes)) > 1 else None
