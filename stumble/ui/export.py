"""One run as one HTML file that opens without a server and without a network."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from stumble.ui.rendering import STATIC, build_palette_css, render_page
from stumble.ui.sql import read_page_sql
from stumble.ui.values.exchange_view import pretty_json
from stumble.ui.values.injection_view import InjectionView, read_injection_view
from stumble.ui.values.run_rows import Row, RunRows, read_run_rows
from stumble.ui.values.run_view import (
    ChartLane,
    RunItem,
    RunView,
    build_lanes,
    build_run_view,
    list_legend,
)
from traces.store.trace_store import TraceStore

MOST_CHARACTERS = 100_000
"""Characters of a text in the file."""


class ExportedItem(Struct, frozen=True, kw_only=True):
    """A step with its texts: what it says, or arguments and result."""

    item: RunItem
    texts: tuple[tuple[str, str], ...]


class RunPageExport(Struct, frozen=True, kw_only=True):
    """All that the file shows."""

    run: RunView
    lanes: tuple[ChartLane, ...]
    legend: tuple[tuple[str, str], ...]
    items: tuple[ExportedItem, ...]
    injections: tuple[InjectionView, ...]

    @property
    def shown_runs(self) -> tuple[str, ...]:
        """The runs with texts in the file."""
        twins = (each.twin for each in self.injections if each.twin)
        return (self.run.id, *dict.fromkeys(twins))


def find_exported_run(store: TraceStore, id: str) -> str:
    """Return the run of an id: of a run, an injection, or a unique prefix. Raises LookupError."""
    with store.open_locked() as connection:
        rows = connection.execute(read_page_sql("exported_run"), {"id": id}).fetchall()
    found = sorted(str(run) for (run,) in rows)
    if id in found or len(found) == 1:
        return id if id in found else found[0]
    if found:
        raise LookupError(f"{id!r} is a prefix of several runs: {', '.join(found)}")
    raise LookupError(f"the store has no run and no injection {id!r}")


def collect_export(store: TraceStore, id: str) -> RunPageExport:
    """Collect a run with its injections. Raises ValueError or OSError if a tape is unreadable."""
    with store.open_locked() as connection:
        rows = read_run_rows(connection, id, store.tapes)
    assert rows is not None, id
    view = build_run_view(rows)
    judged = rows.run["source"] == "fork" and rows.run["condition"] != "clean"
    ids = [injection for injection, _ in view.injections] if judged else []
    lanes = build_lanes(view, "time")
    return RunPageExport(
        run=view,
        lanes=lanes,
        legend=list_legend(lanes),
        items=_list_exported_items(rows, view.items),
        injections=tuple(read_injection_view(store, each, id) for each in ids),
    )


def render_export(exported: RunPageExport) -> str:
    """Render the file; its policy allows its own style and script alone."""
    style = build_palette_css() + (STATIC / "ui.css").read_text(encoding="utf-8")
    script = (STATIC / "export.js").read_text(encoding="utf-8")
    return render_page(
        "export.html.jinja",
        {
            "it": exported,
            "style": style,
            "script": script,
            "style_hash": _hash_source(f"\n{style}"),
            "script_hash": _hash_source(f"\n{script}"),
        },
    )


def write_export(exported: RunPageExport, path: Path) -> None:
    """Write the file, readable for its owner alone: it holds what the agent read."""
    path.touch(mode=0o600, exist_ok=True)
    path.write_text(render_export(exported), encoding="utf-8")


def _list_exported_items(source: RunRows, items: Sequence[RunItem]) -> tuple[ExportedItem, ...]:
    steps = {row["step"]: row for row in source.rows["steps"]}
    calls = {row["call_id"]: row for row in source.rows["tool_calls"]}
    return tuple(ExportedItem(item=item, texts=_list_texts(item, steps, calls)) for item in items)


def _list_texts(
    item: RunItem, steps: Mapping[object, Row], calls: Mapping[object, Row]
) -> tuple[tuple[str, str], ...]:
    if item.kind == "tool":
        call = calls[item.call_id]
        result = "no result was ever sent" if call["result"] is None else str(call["result"])
        texts = [("arguments", str(call["arguments"] or "")), ("result", result)]
        return tuple((name, _clip(pretty_json(text))) for name, text in texts)
    message = str(steps[item.step]["message"] or "")
    return (("message", _clip(message)),) if message else ()


def _clip(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]} [{len(text) - MOST_CHARACTERS:,} more characters]"


def _hash_source(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
