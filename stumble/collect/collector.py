"""What is kept of the requests of exporters, and when traces become runs."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
from msgspec import Struct, field

from stumble.collect.otlp_request import RejectedRecords
from stumble.collect.span_spool import SpanSpool, iter_left_folders
from stumble.imports.import_files import ImportedFile, import_recordings
from stumble.user_data.known_secrets import find_known_secrets
from traces.importers.shared.json_values import to_object, to_objects
from traces.otlp.messages import LOGS, TRACES, Message
from traces.otlp.protobuf import Table
from traces.store.trace_store import TraceStore

IDLE_SECONDS = 5.0
"""Seconds without a span after which a trace is imported, to be asked about meanwhile."""
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
NO_CONTENT = "none of its"
"""The beginning of the refusal of a trace without a model or a tool."""


class OtlpSignal(Struct, frozen=True):
    """A kind of record: its message, and the names of its parts."""

    message: Message
    resources: str
    scopes: str
    records: str
    rejected: str


SIGNALS = {
    "traces": OtlpSignal(TRACES, "resourceSpans", "scopeSpans", "spans", "Spans"),
    "logs": OtlpSignal(LOGS, "resourceLogs", "scopeLogs", "logRecords", "LogRecords"),
}


class CollectedCounts(Struct):
    """What a collector took and made of it."""

    spans: int = 0
    rejected: int = 0
    runs: int = 0
    without_content: int = 0
    refused: list[str] = field(default_factory=list)


class SpanCollector:
    """Takes requests of exporters from any thread; one is handled at a time."""

    def __init__(self, store: TraceStore, warn: Callable[[str], None]) -> None:
        self._store, self._warn, self._lock = store, warn, threading.Lock()
        self._root = store.root / "collect"
        self._spool = SpanSpool(self._root, find_known_secrets())
        self._changed: dict[str, float] = {}
        self._reasons: set[str] = set()
        self.counts = CollectedCounts()

    def import_left(self) -> None:
        """Import what a collector that was killed left."""
        for folder in iter_left_folders(self._root):
            self._import_files(sorted(folder.glob("*.jsonl")))

    def take(self, document: Table, signal: OtlpSignal) -> RejectedRecords:
        """Write the records of a request; return what was not kept."""
        with self._lock:
            rejected, why = 0, ""
            for trace, n, line in _split_by_trace(document, signal):
                reason = self._spool.append(trace, line) if trace else "a record has no trace id"
                if reason is None:
                    self._changed[trace] = time.monotonic()
                    self.counts.spans += n
                    continue
                rejected, why = rejected + n, reason
                if reason not in self._reasons and len(self._reasons) < 100:
                    self._reasons.add(reason)
                    self._warn(f"not kept: {reason}")
            self.counts.rejected += rejected
            return RejectedRecords(count=rejected, why=why)

    def import_idle(self, *, seconds: float = IDLE_SECONDS) -> None:
        """Import the traces that have had no span for some time."""
        with self._lock:
            before = time.monotonic() - seconds
            traces = [trace for trace, at in self._changed.items() if at <= before]
            for trace in traces:
                del self._changed[trace]
            self._import_files([self._spool.path(trace) for trace in traces])

    def finish(self) -> CollectedCounts:
        """Import all that was not, and remove the files."""
        self.import_idle(seconds=0.0)
        self._spool.close()
        return self.counts

    def _import_files(self, paths: list[Path]) -> None:
        for each in import_recordings(self._store, paths):
            self._count(each)

    def _count(self, done: ImportedFile) -> None:
        if done.state == "new":
            updated = sum(done.runs.get(name, 0) for name in ("grown", "updated"))
            self.counts.runs += max(done.counts.get("trajectories", 0) - updated, 0)
        elif done.state == "refused" and (done.why or "").startswith(NO_CONTENT):
            self.counts.without_content += 1
        elif done.state == "refused":
            self.counts.refused.append(f"{done.path.stem}: {done.why}")


def _split_by_trace(document: Table, signal: OtlpSignal) -> Iterator[tuple[str, int, bytes]]:
    """Yield the id of each trace, the number of its records, and a document with these alone.

    The id is empty if the records have none that is valid.
    """
    for resource in to_objects(document.get(signal.resources)):
        traces: dict[str, list[Table]] = {}
        for scope in to_objects(resource.get(signal.scopes)):
            for record in to_objects(scope.get(signal.records)):
                id = str(record.get("traceId", "")).lower()
                traces.setdefault(id if _TRACE_ID.fullmatch(id) else "", []).append(record)
        shared = {"resource": to_object(resource.get("resource"))}
        for id, records in traces.items():
            part: Table = {
                signal.resources: [shared | {signal.scopes: [{signal.records: records}]}]
            }
            yield id, len(records), _dump_records(part)


def _dump_records(part: Table) -> bytes:
    try:
        return orjson.dumps(part)
    except orjson.JSONEncodeError as error:
        raise ValueError(f"a record cannot be kept: {error}") from None
