"""S: part of the answer is missing, or its structure is not what it was."""

from faults.omission import drift, emptied, garbled, rows, truncated

__all__ = ["drift", "emptied", "garbled", "rows", "truncated"]
