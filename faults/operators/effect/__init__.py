"""X: side effects. The tool's response and the tool's effect disagree."""

from faults.operators.effect import lost_ack, silent_noop

__all__ = ["lost_ack", "silent_noop"]
