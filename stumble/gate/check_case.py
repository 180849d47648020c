"""A check as CI services show it."""

from msgspec import Struct

from stumble.gate.limits import GateVerdict


class CheckCase(Struct, frozen=True, kw_only=True):
    """One check; its message is written only if it does not pass."""

    name: str
    verdict: GateVerdict
    message: str
    classname: str = "stumble"
