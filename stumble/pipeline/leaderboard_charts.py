"""Charts of a leaderboard: cost against score, pass rates along the stages, causes."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from stumble.report.charting.fault_charts import (
    CHART_WIDTH,
    PLOT_WIDTH,
    ChartDrawer,
    ChartSpec,
    draw_text_above,
    make_layer,
    make_name,
    make_number,
    make_rank,
    make_row_axis,
    make_share_axis,
)
from stumble.report.charting.palette import Palette
from stumble.report.model import read_row_number
from stumble.store.filter import ReportRow

_SCORE_HEIGHT = PLOT_WIDTH - 30
LABEL_HEIGHT, LETTER_WIDTH, DOT = 12, 7, 10
"""Pixels of a dot's number and of the dot."""
_OFFSETS = tuple(
    (x * far, y * far)
    for far in (1, 2, 3)
    for x, y in ((9, -8), (9, 9), (-20, -8), (-20, 9), (-4, -13), (-4, 14))
)
"""Where a number may begin, from its dot: pixels to the right and down, the nearest first."""
STAGE_NAMES = ("T0", "T1", "T2", "T3", "T4", "T5")


def draw_cost_score(rows: Sequence[ReportRow], inks: Palette) -> ChartSpec:
    """Draw score over cost, one numbered dot each, and a line through the Pareto front."""
    costs = [cost for row in rows if (cost := read_row_number(row, "cost"))]
    x = make_number(
        "cost",
        title="dollars per run",
        scale={"type": "log", "domain": [min(costs) / 2, max(costs) * 2], "nice": False},
        axis={"format": "$~g", "tickCount": 4, "grid": False},
    )
    y = make_number(
        "score", title="mean reward (MR)", scale={"domain": [0, 100]}, axis={"tickCount": 5}
    )
    at = {"x": x, "y": y}
    best = [row for row in rows if row["best"]]
    front = {"interpolate": "step-after", "strokeWidth": 2, "opacity": 0.6}
    with_interval = [row for row in rows if row["lo"] is not None]
    interval = {"x": x, "y": make_number("lo"), "y2": {"field": "hi"}}
    layers = [
        make_layer(best, "line", at, **front, color=inks["honest_fail"]),
        make_layer(
            with_interval, "rule", interval, strokeWidth=2, opacity=0.6, color=inks["faulted"]
        ),
    ]
    names = {**at, "text": make_name("label")}
    text = {"align": "left", "baseline": "middle", "fontSize": 11.5, "color": inks["ink"]}
    for published, shape, ink in ((True, "circle", "naive"), (False, "diamond", "faulted")):
        points = [row for row in rows if row["published"] is published]
        dot = {"filled": True, "size": 100, "opacity": 1, "shape": shape, "color": inks[ink]}
        layers.append(make_layer(points, "point", at, **dot))
    for (right, down), labelled in place_labels(rows).items():
        layers.append(make_layer(labelled, "text", names, dx=right, dy=down, **text))
    return {"layer": layers, "width": PLOT_WIDTH, "height": _SCORE_HEIGHT}


def place_labels(rows: Sequence[ReportRow]) -> Mapping[tuple[int, int], Sequence[ReportRow]]:
    """Group dots by the offset of their numbers, so that none covers a dot or another number."""
    dots = [locate_dot(row, rows) for row in rows]
    taken: list[Box] = [(x - DOT / 2, y - DOT / 2, DOT, DOT) for x, y in dots]
    groups: dict[tuple[int, int], list[ReportRow]] = {}
    for row, dot in zip(rows, dots, strict=True):
        boxes = {offset: make_label_box(row, dot, offset) for offset in _OFFSETS}
        free = (each for each in _OFFSETS if not any(overlap(boxes[each], box) for box in taken))
        chosen = next(free, _OFFSETS[0])
        taken.append(boxes[chosen])
        groups.setdefault(chosen, []).append(row)
    return groups


type Box = tuple[float, float, float, float]
"""Left, top, width and height in pixels."""


def locate_dot(row: ReportRow, rows: Sequence[ReportRow]) -> tuple[float, float]:
    """Return the place of a dot in the plot, in pixels from its upper left corner."""
    logs = [math.log(read_row_number(each, "cost") or 1) for each in rows]
    minimum, most = min(logs) - math.log(2), max(logs) + math.log(2)
    share = (math.log(read_row_number(row, "cost") or 1) - minimum) / (most - minimum)
    score = read_row_number(row, "score") or 0
    return share * PLOT_WIDTH, (1 - score / 100) * _SCORE_HEIGHT


def make_label_box(row: ReportRow, dot: tuple[float, float], offset: tuple[int, int]) -> Box:
    """Return what a dot's number covers."""
    x, y = dot[0] + offset[0], dot[1] + offset[1] - LABEL_HEIGHT / 2
    return x, y, LETTER_WIDTH * len(str(row["label"])), LABEL_HEIGHT


def overlap(one: Box, other: Box) -> bool:
    """Return whether two boxes have a point in common."""
    return all(
        one[at] < other[at] + other[at + 2] and other[at] < one[at] + one[at + 2] for at in (0, 1)
    )


def draw_collapse(rows: Sequence[ReportRow], inks: Palette) -> ChartSpec:
    """Draw the share of runs that pass each stage, and of those that passed all up to it."""
    x = make_rank("stage", sort=list(STAGE_NAMES), title=None, axis={"labelAngle": 0})

    def y(field: str) -> ChartSpec:
        return make_share_axis(field, "runs that pass", grid=True)

    with_rate = [row for row in rows if row["rate"] is not None]
    band = {"x": x, "y": y("lo"), "y2": {"field": "hi"}}
    serial = {"x": x, "y": y("serial")}
    rate = {"x": x, "y": y("rate")}
    dashed = {"strokeDash": [6, 4], "strokeWidth": 2, "color": inks["constant"]}
    ink = inks["observed"]
    texts = {**rate, "text": make_name("text")}
    return {
        "layer": [
            make_layer(with_rate, "area", band, opacity=0.14, color=ink),
            make_layer(rows, "line", serial, **dashed),
            make_layer(with_rate, "line", rate, strokeWidth=3, color=ink),
            make_layer(with_rate, "point", rate, filled=True, size=70, opacity=1, color=ink),
            make_layer(with_rate, "text", texts, dy=-12, fontSize=12, color=inks["ink"]),
        ],
        "width": PLOT_WIDTH,
        "height": 210,
    }


def draw_causes(rows: Sequence[ReportRow], inks: Palette) -> ChartSpec:
    """Draw a bar for each cause: the share of runs with a stage that failed because of it."""
    y = make_row_axis("cause", [str(row["cause"]) for row in rows], outer=0.3)
    colours = {"domain": list(inks), "range": list(inks.values())}
    bars = {
        "y": y,
        "x": make_share_axis("share", "share of runs"),
        "color": make_name("ink", legend=None, scale=colours),
    }
    return {
        "layer": [
            make_layer(rows, "bar", bars),
            draw_text_above(rows, y, "cause", "left", inks["ink"]),
            draw_text_above(rows, y, "text", "right", inks["soft"]),
        ],
        "width": CHART_WIDTH,
        "height": {"step": 42},
    }


LEADERBOARD_CHARTS: Mapping[str, ChartDrawer] = MappingProxyType(
    {"bargains": draw_cost_score, "collapse": draw_collapse, "causes": draw_causes}
)
"""Draw function of each of them, by its name in `ReportChart.drawing`."""
