"""A run as shown: facts, steps, and bars in lanes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct, field

from stumble.ui.shown_text import shorten
from stumble.ui.values.formats import (
    UNKNOWN,
    format_count,
    format_dollars,
    format_seconds,
    format_when,
)
from stumble.ui.values.run_rows import Row, RunRows
from stumble.ui.values.runs_table import describe_ending
from traces.conversation.prefix_changes import describe_counts

type Measure = Literal["time", "tokens", "dollars"]

MEASURES: tuple[Measure, ...] = ("time", "tokens", "dollars")
SUMMARY_WIDTH = 160
CHART_WIDTH = 1000.0
"""Units of the width of all lanes."""
LEAST_BAR = 1.5
"""Units of the narrowest bar, so that it can be seen."""
MOST_LANES = 24
LEGEND: Mapping[str, str] = {
    "live": "live",
    "recorded": "recorded",
    "simulated": "simulated",
    "local": "local tool",
    "fault": "fault",
    "refused": "refused",
}
OTHER_LANE = "other traffic"


class RunItem(Struct, frozen=True, kw_only=True):
    """One line of the step list: a message, an answer of the model, or a tool call of it."""

    key: str
    """The step's number; of its calls, with theirs: `7.2`."""
    kind: Literal["system", "user", "agent", "tool"]
    title: str
    text: str
    seq: int | None
    """The exchange with its answer; None for a local tool."""
    step: int
    lane: str
    start: float
    seconds: float | None
    answered_by: str
    tokens: int | None = None
    dollars: float | None = None
    is_error: bool = False
    call_id: str | None = None
    injection: str | None = None
    """The injection into it."""

    @property
    def took(self) -> str:
        """Its duration as shown."""
        return "" if self.seconds is None else format_seconds(self.seconds)


class LaneBar(Struct, frozen=True, kw_only=True):
    """One bar, in units of CHART_WIDTH."""

    x: float
    width: float
    key: str
    by: str
    """Who answered: live, recorded, simulated, fault, refused, or local."""
    words: str


class ChartLane(Struct, frozen=True, kw_only=True):
    """The bars of one conversation, tool or MCP server."""

    label: str
    bars: tuple[LaneBar, ...]


class RunView(Struct, frozen=True, kw_only=True):
    """One run."""

    id: str
    title: str
    facts: tuple[tuple[str, str], ...]
    parent: str | None
    ending: str
    is_live: bool
    items: tuple[RunItem, ...]
    injections: tuple[tuple[str, str], ...]
    """(id, operator) of each."""
    end: float
    """Seconds to the last answer."""
    others: int = 0
    """Exchanges that belong to no step."""
    keys: Mapping[str, RunItem] = field(default_factory=dict)

    def select(self, key: str | None) -> RunItem | None:
        """Return the item with this key, else the first injection, else the first answer."""
        if key is not None and key in self.keys:
            return self.keys[key]
        for item in self.items:
            if item.injection:
                return item
        return next((item for item in self.items if item.kind == "agent"), None) or next(
            iter(self.items), None
        )


def build_run_view(source: RunRows) -> RunView:
    """Build the view of a run from its rows."""
    run, rows = source.run, source.rows
    items = tuple(_list_items(rows))
    shown = {item.seq for item in items}
    ends = [_real(x["started"]) + _real(x["duration"]) for x in rows["exchanges"]]
    return RunView(
        id=source.id,
        title=str(run["task"] or run["scenario"] or run["agent"] or "Run"),
        facts=tuple(_list_facts(run)),
        parent=None if run["parent_id"] is None else str(run["parent_id"]),
        ending=describe_ending(run["passed"], run["ended"], source.is_live),
        is_live=source.is_live,
        items=items,
        injections=tuple(
            (str(row["injection_id"]), str(row["op"]))
            for row in rows["injections"]
            if row["repeat_of"] is None
        ),
        end=max(ends, default=0.0),
        others=sum(x["seq"] not in shown and x["kind"] == "other" for x in rows["exchanges"]),
        keys={item.key: item for item in items},
    )


def list_legend(lanes: Sequence[ChartLane]) -> tuple[tuple[str, str], ...]:
    """Return the colours that the bars have, with their meanings."""
    used = {bar.by for lane in lanes for bar in lane.bars}
    return tuple((by, words) for by, words in LEGEND.items() if by in used)


def filter_items(items: Sequence[RunItem], text: str) -> tuple[RunItem, ...]:
    """Return the items with each of these words in their title or text."""
    words = text.lower().split()
    return tuple(
        item
        for item in items
        if all(word in f"{item.key} {item.title} {item.text} {item.answered_by}".lower()
               for word in words)
    )  # fmt: skip


def _list_facts(run: Row) -> Iterator[tuple[str, str]]:
    seconds, cost = run["seconds"], run["cost_usd"]
    when = run["recorded_at"]
    yield "agent", str(run["agent"] or UNKNOWN)
    yield "model", str(run["model"] or UNKNOWN)
    yield "condition", str(run["condition"] or UNKNOWN)
    if not isinstance(when, float | int):
        yield "recorded (UTC)", format_when(when)  # type: ignore[arg-type]
    yield "steps", format_count(_whole(run["n_steps"]))
    yield "time", format_seconds(seconds if isinstance(seconds, float) else None)
    yield "tokens", format_count(_whole(run["tokens"]))
    yield "cost", format_dollars(cost if isinstance(cost, float) else None)
    if run["campaign"]:
        yield "campaign", str(run["campaign"])
    changed = (_whole(run[name]) or 0 for name in ("substituted", "renamed", "remade"))
    if words := "; ".join(describe_counts(*changed)):
        yield "before the fork", words


def _list_items(rows: Mapping[str, Sequence[Row]]) -> Iterator[RunItem]:
    exchanges = {x["seq"]: x for x in rows["exchanges"]}
    usage = {row["seq"]: row for row in rows["usage"]}
    injected = {row["call_id"]: str(row["injection_id"]) for row in rows["injections"]
              if row["call_id"]}  # fmt: skip
    struck_seqs = {row["seq"]: str(row["injection_id"]) for row in rows["injections"]}
    calls: dict[object, list[Row]] = {}
    for call in rows["tool_calls"]:
        calls.setdefault(call["step"], []).append(call)
    starts = _list_request_starts(rows["exchanges"])
    for step in rows["steps"]:
        seqs = step["seqs"]
        seq = seqs[-1] if isinstance(seqs, list) and seqs else None
        exchange = exchanges.get(seq, {})
        item = _build_step_item(step, seq, exchange, usage.get(seq, {}), struck_seqs)
        yield item
        for number, call in enumerate(calls.get(step["step"], ()), 1):
            own = exchanges.get(call["seq"], {})
            after = _end_of(exchange)
            yield _build_call_item(
                call,
                f"{item.key}.{number}",
                own,
                after,
                starts.get(exchange.get("lane"), ()),
                injected,
            )


def _list_request_starts(exchanges: Sequence[Row]) -> dict[object, list[float]]:
    """Return the times of the model requests of each lane, in order."""
    starts: dict[object, list[float]] = {}
    for x in exchanges:
        if x["kind"] == "model":
            starts.setdefault(x["lane"], []).append(_real(x["started"]))
    return {lane: sorted(times) for lane, times in starts.items()}


def _build_step_item(
    step: Row, seq: int | None, exchange: Row, usage: Row, struck: Mapping[object, str]
) -> RunItem:
    source, is_agent = str(step["source"]), step["source"] == "agent"
    is_answer = is_agent and exchange.get("kind") != "tool"  # a program's step is a request
    tokens = [_whole(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    known = [count for count in tokens if count is not None]
    cost = usage.get("cost_usd")
    return RunItem(
        key=str(step["step"]),
        kind=source if source in ("system", "user") else "agent",  # type: ignore[arg-type]
        title=str(step["model"] or "model") if is_answer else "program" if is_agent else source,
        text=shorten(str(step["message"] or ""), SUMMARY_WIDTH),
        seq=seq,
        step=_whole(step["step"]) or 0,
        lane=_name_conversation(exchange.get("lane")),
        start=_real(exchange.get("started")),
        seconds=_real(exchange.get("duration")) if is_answer else None,
        answered_by=str(exchange.get("answered_by") or "") if is_answer else "",
        tokens=sum(known) if is_answer and known else None,
        dollars=cost if isinstance(cost, float) else None,
        is_error=is_answer and bool(exchange.get("error")),
        injection=struck.get(seq) if is_answer else None,
    )


def _build_call_item(
    call: Row,
    key: str,
    own: Row,
    after: float,
    starts: Sequence[float],
    struck: Mapping[object, str],
) -> RunItem:
    """A call that made no request lasts from the model's answer to the next request."""
    arguments, result = str(call["arguments"] or ""), call["result"]
    local_end = next((start for start in starts if start >= after), None)
    seconds = call["duration"] if own else None if local_end is None else local_end - after
    return RunItem(
        key=key,
        kind="tool",
        title=str(call["tool"]),
        text=shorten(f"{arguments} \u2192 {'no result' if result is None else result}",
                     SUMMARY_WIDTH),
        seq=_whole(call["seq"]) if own else None,
        step=_whole(call["step"]) or 0,
        lane=_name_tool_lane(call, own),
        start=_real(own["started"]) if own else after,
        seconds=seconds if isinstance(seconds, float) else None,
        answered_by=str(call["answered_by"] or own.get("answered_by") or "local"),
        is_error=bool(call["is_error"]),
        call_id=str(call["call_id"]),
        injection=struck.get(call["call_id"]),
    )  # fmt: skip


def _name_conversation(lane: object) -> str:
    return f"conversation {lane + 1}" if isinstance(lane, int) else "conversation"


def _name_tool_lane(call: Row, own: Row) -> str:
    if call["place"] == "mcp" and own:
        host = urlsplit(str(own["url"])).netloc or str(own["url"])
        return f"MCP {host}"
    return str(call["tool"])


def build_lanes(view: RunView, measure: Measure) -> tuple[ChartLane, ...]:
    """Return the lanes with their bars; tokens and dollars are laid end to end, in order."""
    bars: dict[str, list[LaneBar]] = {}
    begin = _find_begin(view) if measure == "time" else 0.0
    total = _measure_total(view, measure, begin)
    at = 0.0
    for item in view.items:
        if item.kind not in ("agent", "tool"):
            continue
        size = _measure_item(item, measure)
        if measure != "time" and not size:
            continue
        start = item.start - begin if measure == "time" else at
        at += size
        lane = item.lane if item.lane in bars or len(bars) < MOST_LANES else OTHER_LANE
        bars.setdefault(lane, []).append(
            LaneBar(
                x=round(CHART_WIDTH * start / total, 2),
                width=round(max(CHART_WIDTH * size / total, LEAST_BAR), 2),
                key=item.key,
                by="fault" if item.injection else item.answered_by or "live",
                words=f"{item.key} {item.title}: {_describe_size(item, measure)}, "
                f"{item.answered_by or 'live'}",
            )
        )
    return tuple(ChartLane(label=lane, bars=tuple(some)) for lane, some in bars.items())


def _find_begin(view: RunView) -> float:
    """Return the time of the first bar: the agent's own start is no part of the chart."""
    return min((item.start for item in view.items if item.kind in ("agent", "tool")), default=0.0)


def _measure_total(view: RunView, measure: Measure, begin: float) -> float:
    if measure == "time":
        return view.end - begin if view.end > begin else 1.0
    return sum(_measure_item(item, measure) for item in view.items) or 1.0


def _measure_item(item: RunItem, measure: Measure) -> float:
    amounts = {"time": item.seconds, "tokens": item.tokens, "dollars": item.dollars}
    return float(amounts[measure] or 0.0)


def _describe_size(item: RunItem, measure: Measure) -> str:
    if measure == "tokens":
        return f"{format_count(item.tokens)} tokens"
    return format_dollars(item.dollars) if measure == "dollars" else item.took or UNKNOWN


def _end_of(exchange: Row) -> float:
    return _real(exchange.get("started")) + _real(exchange.get("duration"))


def _real(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
