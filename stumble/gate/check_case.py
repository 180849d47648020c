"""A check as CI services show it."""

from stumble.gate.limits import GateVerdict
from traces.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCase:
    """One check; its message is written only if it does not pass."""

    name: str
    verdict: GateVerdict
    message: str
    classname: str = "stumble"
