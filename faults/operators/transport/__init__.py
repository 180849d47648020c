"""T: timing and transport. The response is late, missing or cut off."""

from faults.operators.transport import cut, delay, hang

__all__ = ["cut", "delay", "hang"]
