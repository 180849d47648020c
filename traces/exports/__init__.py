"""Runs in the formats of others. What a format cannot hold is refused or left out, by name.

told      a run as steps, calls and results, out of a tape or of rows
atif      one JSON document for a run: Harbor's trajectories
otel      spans of OpenTelemetry, as JSON lines
har       what crossed the wire, with the times of chunks
cassette  what crossed the wire, for vcrpy to play
parquet   the relations of the store, as a folder
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What of a run is not in what was written, and why."""

    what: str
    why: str
