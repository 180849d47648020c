"""S: omission and structure. Part of the response is missing, or its structure is changed."""

from faults.operators.omission import (
    drop_rows,
    empty,
    garble,
    instruction,
    schema_drift,
    truncate,
)

__all__ = ["drop_rows", "empty", "garble", "instruction", "schema_drift", "truncate"]
