"""Exporters of runs. Data that a format cannot hold is refused, or listed as an omission.

run_model  a run as steps, calls and results, from a tape or from rows
atif       one JSON document per run: Harbor's trajectories
otel       OpenTelemetry spans, as OTLP in JSON or protobuf
har        HTTP traffic, with the times of chunks
vcr        HTTP traffic, as a cassette that vcrpy replays
parquet    the relations of the store, as a folder
"""

from msgspec import Struct


class ExportOmission(Struct, frozen=True, kw_only=True):
    """A part of a run that was not exported, and the reason."""

    what: str
    why: str
