"""Charts of faults in Vega-Lite: one function per kind, from rows and a palette to a chart."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from stumble.report.charting.palette import Palette
from stumble.report.model import read_row_number
from stumble.report.outcomes import OUTCOME_LABELS
from stumble.store.filter import ReportRow

type ChartSpec = Mapping[str, object]
"""A specification of Vega-Lite, or a part of one."""
type ChartDrawer = Callable[[Sequence[ReportRow], Palette], ChartSpec]

CHART_WIDTH = 340
"""Pixels: a chart fits a phone, and a wide page has several in a row."""
PLOT_WIDTH = CHART_WIDTH - 55
"""Pixels of a plot without its axis and labels."""
QUARTERS = [0, 0.25, 0.5, 0.75, 1]


def draw_rates(rows: Sequence[ReportRow], inks: Palette) -> ChartSpec:
    """Draw one rate of every agent: a dot, and its interval as a line."""
    y = make_row_axis("who", [str(row["who"]) for row in rows])
    with_interval = [row for row in rows if row["lo"] is not None]
    ink = inks[str(rows[0]["ink"])]
    interval = {"y": y, "x": make_number("lo", title="share"), "x2": {"field": "hi"}}
    dots = {"y": y, "x": make_share_axis("value", "share")}
    return {
        "layer": [
            make_layer(with_interval, "rule", interval, strokeWidth=3, opacity=0.55, color=ink),
            make_layer(rows, "point", dots, filled=True, size=90, opacity=1, color=ink),
            draw_text_above(rows, y, "who", "left", inks["ink"]),
            draw_text_above(rows, y, "text", "right", inks["soft"]),
        ],
        "width": CHART_WIDTH,
        "height": {"step": 46},
    }


def draw_outcomes(rows: Sequence[ReportRow], inks: Palette) -> ChartSpec:
    """Draw a bar for each kind of fault, divided into outcomes, with its name above."""
    firsts = {str(row["fault"]): row for row in reversed(rows)}
    order = list(reversed(firsts))
    labels = [{"fault": name, "counted": f"n = {firsts[name]['fired']}"} for name in order]
    y = make_row_axis("fault", order, outer=0.3)
    keys = [key for key, _ in OUTCOME_LABELS]
    colours = {"domain": keys, "range": [inks[key] for key in keys]}
    bars = {
        "y": y,
        "x": {"aggregate": "sum", **make_share_axis("share", "share of injections")},
        "color": make_name("outcome", legend=None, scale=colours),
        "order": make_number("at"),
    }
    return {
        "layer": [
            make_layer(rows, "bar", bars, stroke=inks["paper"], strokeWidth=1),
            draw_text_above(labels, y, "fault", "left", inks["ink"]),
            draw_text_above(labels, y, "counted", "right", inks["soft"]),
        ],
        "width": CHART_WIDTH,
        "height": {"step": 44},
    }


def draw_survival(rows: Sequence[ReportRow], inks: Palette) -> ChartSpec:
    """Draw the observed curve in steps with its band, and two models of it."""
    last = max(read_row_number(row, "step") or 0 for row in rows)
    x = make_number(
        "step",
        title="steps",
        scale={"domain": [0, last], "nice": False},
        axis={"tickCount": 5, "tickMinStep": 1, "grid": False},
    )
    y = make_share_axis("survival", "share not failed", grid=True)
    layers = []
    for kind, shape in (("constant", "linear"), ("observed", "step-after")):
        with_band = [row for row in rows if row["kind"] == kind and row["lo"] is not None]
        band = {"x": x, "y": make_number("lo", title="share not failed"), "y2": {"field": "hi"}}
        style = {"interpolate": shape, "opacity": 0.16, "color": inks[kind]}
        layers.append(make_layer(with_band, "area", band, **style))
    for kind, dash in (("constant", [7, 4]), ("naive", [2, 3]), ("observed", [1, 0])):
        of_kind = [row for row in rows if row["kind"] == kind]
        is_observed = kind == "observed"
        style = {
            "interpolate": "step-after" if is_observed else "linear",
            "strokeDash": dash,
            "strokeWidth": 3 if is_observed else 2,
            "color": inks[kind],
        }
        layers.append(make_layer(of_kind, "line", {"x": x, "y": y}, **style))
    return {"layer": layers, "width": PLOT_WIDTH, "height": 210}


def draw_pairs(rows: Sequence[ReportRow], inks: Palette) -> ChartSpec:
    """Draw a line from the clean to the faulted pass rate for each kind of fault."""
    y = make_row_axis("fault", [str(row["fault"]) for row in rows])
    clean = {"y": y, "x": make_share_axis("clean", "runs that ended right")}
    faulted = {"y": y, "x": make_share_axis("faulted", "runs that ended right")}
    dot = {"filled": True, "size": 110, "opacity": 1}
    between = {**clean, "x2": {"field": "faulted"}}
    return {
        "layer": [
            make_layer(rows, "rule", between, strokeWidth=2, color=inks["soft"]),
            make_layer(rows, "point", clean, **dot, color=inks["clean"]),
            make_layer(rows, "point", faulted, **dot, shape="diamond", color=inks["faulted"]),
            draw_text_above(rows, y, "fault", "left", inks["ink"]),
            draw_text_above(rows, y, "text", "right", inks["soft"]),
        ],
        "width": CHART_WIDTH,
        "height": {"step": 46},
    }


def draw_notice(rows: Sequence[ReportRow], inks: Palette) -> ChartSpec:
    """Draw the share of noticed faults over that of noticed shams, with intervals for the pool."""

    def x(field: str) -> ChartSpec:
        return make_share_axis(field, "shams \u201cnoticed\u201d", grid=True)

    def y(field: str) -> ChartSpec:
        return make_share_axis(field, "faults noticed", grid=True)

    main = [row for row in rows if row["main"]]
    groups = [row for row in rows if not row["main"]]
    upper = [row for row in groups if (read_row_number(row, "hit") or 0) > 0.5]
    lower = [row for row in groups if row not in upper]
    point = {"x": x("alarm"), "y": y("hit")}
    interval = {"strokeWidth": 3, "opacity": 0.55, "color": inks["recovered"]}
    vertical = {"x": x("alarm"), "y": y("hit_lo"), "y2": {"field": "hit_hi"}}
    horizontal = {"x": x("alarm_lo"), "x2": {"field": "alarm_hi"}, "y": y("hit")}
    with_hits = [row for row in main if row["hit_lo"] is not None]
    with_alarms = [row for row in main if row["alarm_lo"] is not None]
    chance = {"x": x("at"), "y": y("at")}
    label = {"align": "left", "dx": 9, "fontSize": 11, "color": inks["soft"]}
    labelled = {**point, "text": make_name("label")}
    dot = {"filled": True, "size": 110, "opacity": 1, "color": inks["recovered"]}
    return {
        "layer": [
            make_layer(
                [{"at": 0}, {"at": 1}], "line", chance, strokeDash=[4, 4], color=inks["soft"]
            ),
            make_layer(with_hits, "rule", vertical, **interval),
            make_layer(with_alarms, "rule", horizontal, **interval),
            make_layer(groups, "point", point, size=60, opacity=1, color=inks["soft"]),
            make_layer(upper, "text", labelled, **label, dy=13),
            make_layer(lower, "text", labelled, **label, dy=-10),
            make_layer(main, "point", point, **dot),
        ],
        "width": PLOT_WIDTH - 30,
        "height": PLOT_WIDTH - 30,
    }


def draw_recovery_time(rows: Sequence[ReportRow], inks: Palette) -> ChartSpec:
    """Draw the number of injections noticed after each number of steps."""
    axis = {"tickMinStep": 1, "tickCount": 4}
    bars = {
        "x": make_rank("steps", title="steps to notice", axis={"labelAngle": 0}),
        "y": make_number("recovered", title="injections", axis=axis),
    }
    counts = {**bars, "text": make_number("recovered")}
    return {
        "layer": [
            make_layer(rows, "bar", bars, color=inks["recovered"], size=22),
            make_layer(rows, "text", counts, dy=-7, fontSize=12, color=inks["ink"]),
        ],
        "width": PLOT_WIDTH,
        "height": 150,
    }


def make_layer(
    rows: Sequence[ReportRow], mark: str, encoding: ChartSpec, **style: object
) -> ChartSpec:
    """Make a layer: a mark for each row."""
    return {
        "data": {"values": [dict(row) for row in rows]},
        "mark": {"type": mark, **style},
        "encoding": encoding,
    }


def make_number(field: str, **options: object) -> ChartSpec:
    """Encode a field of numbers."""
    return {"field": field, "type": "quantitative", **options}


def make_name(field: str, **options: object) -> ChartSpec:
    """Encode a field of names without an order."""
    return {"field": field, "type": "nominal", **options}


def make_rank(field: str, **options: object) -> ChartSpec:
    """Encode a field of ordered values."""
    return {"field": field, "type": "ordinal", **options}


def make_share_axis(field: str, title: str, *, grid: bool = False) -> ChartSpec:
    """Encode a field of shares, on an axis from 0 to 100 %."""
    axis: ChartSpec = {"format": "%", "values": QUARTERS} | ({} if grid else {"grid": False})
    return make_number(field, title=title, scale={"domain": [0, 1]}, axis=axis)


def make_row_axis(field: str, order: list[str], *, outer: float = 0.4) -> ChartSpec:
    """Encode a name by its row; the text above takes the place of an axis."""
    return make_name(
        field, sort=order, axis=None, scale={"paddingInner": 0.5, "paddingOuter": outer}
    )


def draw_text_above(
    rows: Sequence[ReportRow],
    y: ChartSpec,
    field: str,
    side: Literal["left", "right"],
    colour: str,
) -> ChartSpec:
    """Draw a text above a row, at one end of it."""
    x = {"value": 0 if side == "left" else CHART_WIDTH}
    encoding: ChartSpec = {"y": y, "text": make_name(field), "x": x}
    style = {"align": side, "baseline": "bottom", "dy": -11, "fontSize": 12.5, "color": colour}
    return make_layer(rows, "text", encoding, **style)


FAULT_CHARTS: Mapping[str, ChartDrawer] = MappingProxyType(
    {
        "rates": draw_rates,
        "outcomes": draw_outcomes,
        "survival": draw_survival,
        "pairs": draw_pairs,
        "notice": draw_notice,
        "recovery_time": draw_recovery_time,
    }
)
"""Draw function of each kind of chart, by its name in `ReportChart.drawing`."""
