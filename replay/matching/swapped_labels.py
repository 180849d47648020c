"""Numbers that a client gave to parallel things of its own, and that changed places.

A client numbers its shells in the order in which they start, which is chance if a model requests
several at once. In the results of such calls the numbers of another run are the recorded ones in
another order.
"""

import json

from replay.matching.client_values import ValuePair, find_labels
from traces.conversation.volatile_fields import iter_result_groups, parse_json_body
from traces.dialects import find_dialect
from traces.model import Request

type LabelGroups = tuple[dict[str, list[str]], ...]
"""For each group of parallel results: the id of each call, and the labels in its result."""


def read_label_groups(request: Request) -> LabelGroups:
    """Return the labels in the results of parallel calls; () if it has none."""
    dialect = find_dialect(request)
    if dialect is None:
        return ()
    groups = tuple(
        {id: find_labels(text if isinstance(text, str) else json.dumps(text)) for id, text in group}
        for group in iter_result_groups(dialect, parse_json_body(request))
    )
    return groups if any(labels for group in groups for labels in group.values()) else ()


def find_swapped_labels(recorded: LabelGroups, asked: LabelGroups) -> tuple[ValuePair, ...]:
    """Return the labels that changed places among parallel calls; () if they differ otherwise."""
    pairs = dict[ValuePair, None]()
    if [group.keys() for group in recorded] != [group.keys() for group in asked]:
        return ()
    for old, new in zip(recorded, asked, strict=True):
        if list(map(len, old.values())) != [len(new[id]) for id in old]:
            return ()
        moved = [pair for id in old for pair in zip(old[id], new[id], strict=True)]
        moved = [(was, now) for was, now in moved if was != now]
        if {was for was, _ in moved} != {now for _, now in moved} or not all(map(_fit, moved)):
            return ()
        if sum(old[id] != new[id] for id in old) == 1:
            return ()
        pairs |= dict.fromkeys(moved)
    return tuple(pairs)


def _fit(pair: ValuePair) -> bool:
    """Return whether two labels have one name."""
    was, now = (each.rpartition(" ")[0] for each in pair)
    return was == now
