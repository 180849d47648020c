"""Which clean runs are the control of a run, by nothing but what their tapes hold.

A control belongs to an experiment (one fork, one campaign): what others run later, at the same call
of the same recording, is a control of their own runs. A tape of an older version names no
experiment; it is grouped with those that name none either, by all else that they have in common.
"""

import json
from collections.abc import Callable, Iterable
from hashlib import blake2b

from traces.model import Ending, Trajectory

type Pair = tuple[Trajectory, Ending | None]


def control_group(run: Trajectory, ending: Ending | None) -> str | None:
    """A digest of what a run has in common with its controls; None for a run that is no fork."""
    if run.forked_at is None:
        return None
    common = (
        run.experiment,
        run.parent,
        run.forked_at,
        run.world,
        run.campaign,
        run.agent,
        run.command,
        run.model,
        ending.verifier if ending else None,
        ending.verifier_of if ending else None,
    )
    return blake2b(json.dumps(common).encode(), digest_size=16).hexdigest()


def find_controls[T](of: T, among: Iterable[T], pair: Callable[[T], Pair]) -> tuple[T, ...]:
    """The controls of a run, in the order of their ids; `pair` gives the facts of a run.

    Those that its plan named, where it named any.
    """
    run, ending = pair(of)
    group = control_group(run, ending)
    if group is None:
        return ()
    found: dict[str, T] = {}
    for each in among:
        other, end = pair(each)
        planned = not run.controls or other.cell in run.controls
        if other.condition == "clean" and planned and control_group(other, end) == group:
            found[other.id] = each
    return tuple(found[id] for id in sorted(found))
