"""T: timing. The answer is right, but late."""

from random import Random
from typing import Annotated

from faults.operator import Between, operator
from traces.model import Exchange


@operator("T1", places=("http",))
def delay(
    exchange: Exchange,
    rng: Random,
    *,
    ms: Annotated[float, Between(0, 3_600_000)] = 1000.0,
    jitter_ms: Annotated[float, Between(0, 3_600_000)] = 0.0,
) -> Exchange:
    """Hold the whole answer back by `ms`, give or take `jitter_ms`.

    Incident: a cold start, a garbage collection pause, a queue that filled up.
    """
    return exchange.later(max(0.0, ms + rng.uniform(-jitter_ms, jitter_ms)) / 1000)
