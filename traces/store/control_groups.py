"""Control groups: the clean runs that are controls of a run, derived from their tapes alone.

A control belongs to an experiment (one fork, one campaign): later runs of others at the same call
of the same recording are controls of their own runs. A tape of an older version names no
experiment; it is grouped with others that name none, by all other common properties.
"""

import json
from collections.abc import Callable, Iterable
from hashlib import blake2b

from traces.model import RunEnding, Trajectory

type RunAndEnding = tuple[Trajectory, RunEnding | None]


def digest_control_group(run: Trajectory, ending: RunEnding | None) -> str | None:
    """Digest the properties that a run shares with its controls; None for a run that is not a
    fork."""
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


def find_control_runs[T](
    of: T, among: Iterable[T], pair: Callable[[T], RunAndEnding]
) -> tuple[T, ...]:
    """Return the controls of a run, sorted by id; `pair` gives the facts of a run.

    If the run's plan names controls, only those count.
    """
    run, ending = pair(of)
    group = digest_control_group(run, ending)
    if group is None:
        return ()
    controls: dict[str, T] = {}
    for each in among:
        other, end = pair(each)
        planned = not run.controls or other.cell in run.controls
        if other.condition == "clean" and planned and digest_control_group(other, end) == group:
            controls[other.id] = each
    return tuple(controls[id] for id in sorted(controls))
