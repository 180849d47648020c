"""S: omission and structure. Part of the response is missing, or its structure is changed."""

from faults.operators.omission import drop_rows, empty, garble, schema_drift, truncate

__all__ = ["schema_drift", "empty", "garble", "drop_rows", "truncate"]
