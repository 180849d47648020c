"""One run: its chart, its steps, and the chosen exchange."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import anyio.to_thread
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from stumble.ui.reading.run_cache import RunState
from stumble.ui.serving.app import UiState, state_of
from stumble.ui.values.exchange_view import (
    ContextMessage,
    ShownChunk,
    ShownMessage,
    find_next_request,
    list_chunks,
    list_context,
    pretty_json,
    show_request,
    show_response,
)
from stumble.ui.values.run_rows import Row, RunRows, read_run_rows
from stumble.ui.values.run_view import (
    MEASURES,
    Measure,
    RunItem,
    RunView,
    build_lanes,
    build_run_view,
    filter_items,
    list_legend,
)
from traces.model import Exchange

type Tab = Literal["read", "request", "answer", "next", "context", "raw"]

TABS: tuple[tuple[Tab, str], ...] = (
    ("read", "Read"),
    ("request", "Request"),
    ("answer", "Answer"),
    ("next", "Seen next"),
    ("context", "Context"),
    ("raw", "Raw"),
)

EDITED_NOTE = (
    "The request as the agent sent it; it was changed on its way, by a fault, or by another model "
    "or prompt of the fork."
)
LOCAL_TOOL_NOTE = (
    "The agent ran this tool itself: there was no request. Its result is in the next request to "
    "the model."
)


class ItemDetail(Struct, frozen=True, kw_only=True):
    """The chosen line of a run, as one tab shows it."""

    item: RunItem
    tab: Tab
    message: str = ""
    arguments: str = ""
    result: str | None = None
    request: ShownMessage | None = None
    answer: ShownMessage | None = None
    chunks: tuple[ShownChunk, ...] = ()
    context: tuple[ContextMessage, ...] = ()
    problem: str | None = None
    """Why the exchange cannot be shown."""
    note: str | None = None


async def load_run(state: UiState, id: str) -> RunRows:
    """Return the rows of a run. Raises HTTPException 404."""
    tapes = state.store.tapes
    now = RunState(state.index.version, await anyio.to_thread.run_sync(_find_size, tapes, id))
    if (cached := state.cache.find_run(id, now)) is not None:
        return cached
    rows = await state.query(lambda connection: read_run_rows(connection, id, tapes))
    if rows is None:
        raise HTTPException(404, f"The store has no run {id}.")
    state.cache.keep_run(rows, now)
    return rows


def _find_size(tapes: Path, id: str) -> int:
    """Return the bytes of a tape; 0 without one."""
    try:
        return (tapes / f"{id}.tape").stat().st_size
    except (OSError, ValueError):
        return 0


async def show_run(request: Request) -> Response:
    """Show a run, with the step that the address names."""
    state, given = state_of(request), request.query_params
    rows = await load_run(state, request.path_params["id"])
    view = build_run_view(rows)
    item = view.select(given.get("at"))
    tab: Tab = next((key for key, _ in TABS if key == given.get("show")), "read")
    measure: Measure = next((each for each in MEASURES if each == given.get("by")), "time")
    part = given.get("part", "1")
    detail = None
    if item is not None:
        chosen = item
        number = int(part) if part.isascii() and part.isdigit() else 1
        detail = await anyio.to_thread.run_sync(
            lambda: build_detail(state, rows, view, chosen, tab, number)
        )
    lanes = build_lanes(view, measure)
    return state.render(
        "run.html.jinja",
        page="runs",
        run=view,
        items=filter_items(view.items, given.get("q", "")),
        lanes=lanes,
        legend=list_legend(lanes),
        measure=measure,
        measures=MEASURES,
        tabs=TABS,
        detail=detail,
        q=given.get("q", ""),
    )


def build_detail(
    state: UiState, source: RunRows, view: RunView, item: RunItem, tab: Tab, part: int
) -> ItemDetail:
    """Read what one tab shows of an item."""
    rows = source.rows
    if tab == "read":
        return _read_item(rows["steps"], rows["tool_calls"], item)
    if tab in ("next", "context"):
        return _read_context(source, view, item, tab)
    if item.seq is None:
        return ItemDetail(item=item, tab=tab, problem=LOCAL_TOOL_NOTE)
    try:
        exchange = state.cache.open_tape(state.store.tapes, view.id).read_exchange(item.seq)
    except (OSError, ValueError, KeyError) as error:
        return ItemDetail(item=item, tab=tab, problem=f"The tape cannot be read: {error}")
    return _show_exchange(exchange, item, tab, part)


def _show_exchange(exchange: Exchange, item: RunItem, tab: Tab, part: int) -> ItemDetail:
    raw = tab == "raw"
    shows_answer = tab == "answer" or (raw and item.kind in ("agent", "tool"))
    return ItemDetail(
        item=item,
        tab=tab,
        request=show_request(exchange, part, raw=raw) if tab in ("request", "raw") else None,
        answer=show_response(exchange, part, raw=raw) if shows_answer else None,
        chunks=list_chunks(exchange) if tab == "answer" else (),
        problem=f"No answer: {exchange.error}" if shows_answer and not exchange.response else None,
        note=EDITED_NOTE if exchange.edits else None,
    )


def _read_item(steps: Sequence[Row], calls: Sequence[Row], item: RunItem) -> ItemDetail:
    if item.kind == "tool":
        call = next(row for row in calls if row["call_id"] == item.call_id)
        result = call["result"]
        return ItemDetail(
            item=item,
            tab="read",
            arguments=pretty_json(str(call["arguments"] or "")),
            result=None if result is None else pretty_json(str(result)),
        )
    step = next(row for row in steps if row["step"] == item.step)
    return ItemDetail(item=item, tab="read", message=str(step["message"] or ""))


def _read_context(source: RunRows, view: RunView, item: RunItem, tab: Tab) -> ItemDetail:
    """Show the messages of the request of an item, or of the one that follows it."""
    exchanges, messages = source.rows["exchanges"], source.rows["messages"]
    step = view.keys[str(item.step)]
    own = next((x for x in exchanges if x["seq"] == step.seq), None)
    if own is None:
        return ItemDetail(item=item, tab=tab, problem="No request to a model belongs to it.")
    lane, seq = own["lane"], step.seq
    if tab == "next":
        end = step.start + (step.seconds or 0.0)
        seq = find_next_request(exchanges, lane, end) if item.kind in ("agent", "tool") else seq
    if seq is None:
        return ItemDetail(item=item, tab=tab, problem="The model was not asked again after this.")
    seen = list_context(messages, lane, seq)
    if tab == "next":
        seen = tuple(each for each in seen if each.is_new)
    return ItemDetail(
        item=item,
        tab=tab,
        context=seen,
        note=f"Request {seq}: " + ("what is new in it" if tab == "next" else "all that it holds"),
    )
