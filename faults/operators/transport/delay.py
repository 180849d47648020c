"""T1 delay: the response arrives later."""

from collections.abc import Mapping
from math import log
from random import Random
from typing import Annotated, Literal

from faults.operator import FaultVisibility, NumberRange, operator
from traces.model import Exchange, Place

_LATE: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("none", "the same answer, later"),
    "mcp": FaultVisibility("none", "the same result, later", True, "none"),
    "model": FaultVisibility("none", "the same answer, with its first byte later"),
}


@operator("T1", shows=_LATE)
def delay(
    exchange: Exchange,
    rng: Random,
    *,
    ms: Annotated[float, NumberRange(0, 3_600_000)] = 1000.0,
    jitter_ms: Annotated[float, NumberRange(0, 3_600_000)] = 0.0,
    dist: Literal["uniform", "normal", "exponential"] = "uniform",
) -> Exchange:
    """Delay the complete response by `ms`, plus or minus `jitter_ms`.

    Incident: a cold start, a garbage collection pause, a filled queue. `dist` is the distribution
    of the jitter: `uniform` within its bounds, `normal` with it as standard deviation,
    `exponential` with it as mean and always positive.
    """
    match dist:
        case "normal":
            jitter = rng.gauss(0, jitter_ms)
        case "exponential":
            jitter = -jitter_ms * log(1 - rng.random())
        case _:
            jitter = rng.uniform(-jitter_ms, jitter_ms)
    return exchange.with_delay(max(0.0, ms + jitter) / 1000)
