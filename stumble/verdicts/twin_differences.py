"""Clean twins with equal actions and different end states, a sign of a shared world.

An agent that varies may end in several ways. If it made the same calls with the same arguments in
each twin, another run used its world, or the end state contains volatile values.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from faults.judging.end_state import describe_state_difference
from faults.judging.judge import RunEvidence, is_complete_run
from faults.judging.taint.sinks import make_call_key
from traces.model import RunEnding

SHARED_WORLD_HINT = "another run may use this world, or --state prints what varies by itself"


def find_differing_twin_ends(twins: Sequence[RunEvidence]) -> str | None:
    """Describe the difference in a line; None if twins with equal actions have equal ends."""
    by_calls: dict[tuple[object, ...], list[RunEnding]] = defaultdict(list)
    for twin in twins:
        if is_complete_run(twin) and twin.tape.ending is not None:
            calls = tuple(make_call_key(use) for use in twin.story.tool_uses)
            by_calls[calls].append(twin.tape.ending)
    differences = (_describe_end_difference(endings) for endings in by_calls.values())
    difference = next((each for each in differences if each is not None), None)
    if difference is None:
        return None
    return f"clean twins did the same and end differently: {difference}; {SHARED_WORLD_HINT}"


def _describe_end_difference(endings: Sequence[RunEnding]) -> str | None:
    states = [each for each in endings if each.state is not None]
    if len({(each.state_of, each.state) for each in states}) > len({e.state_of for e in states}):
        usual = Counter(each.state for each in states).most_common(1)[0][0]
        first = next(each for each in states if each.state == usual)
        other = next(each for each in states if each.state != usual)
        return describe_state_difference(first.state_text, other.state_text)
    passes = [each.passed for each in endings if each.passed is not None]
    return f"{passes.count(True)} of {len(passes)} right" if len(set(passes)) > 1 else None
