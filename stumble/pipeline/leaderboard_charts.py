"""Charts of a leaderboard: cost against score, pass rates along the stages, causes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from stumble.report.charting.fault_charts import (
    CHART_WIDTH,
    PLOT_WIDTH,
    QUARTERS,
    ChartDrawer,
    draw_text_above,
    to_inline_data,
)
from stumble.report.charting.palette import Palette
from stumble.report.model import read_row_number
from stumble.store.filter import ReportRow

if TYPE_CHECKING:
    import altair as alt

STAGE_NAMES = ("T0", "T1", "T2", "T3", "T4", "T5")


def draw_cost_score(rows: Sequence[ReportRow], inks: Palette) -> "alt.LayerChart":
    """Draw score over cost, one numbered dot each, and a line through the Pareto front."""
    import altair as alt

    costs = [cost for row in rows if (cost := read_row_number(row, "cost"))]
    domain = [min(costs) / 2, max(costs) * 2]
    x = alt.X(
        "cost:Q",
        title="dollars per run",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(format="$~g", tickCount=4, grid=False),
    )
    y = alt.Y(
        "score:Q",
        title="mean reward (MR)",
        scale=alt.Scale(domain=[0, 100]),
        axis=alt.Axis(tickCount=5),
    )
    best = alt.Chart(to_inline_data([row for row in rows if row["best"]])).mark_line(
        interpolate="step-after", strokeWidth=2, opacity=0.6, color=inks["honest_fail"]
    )
    with_interval = alt.Chart(to_inline_data([row for row in rows if row["lo"] is not None]))
    layers: list[alt.Chart] = [
        best.encode(x=x, y=y),
        with_interval.mark_rule(strokeWidth=2, opacity=0.6, color=inks["faulted"]).encode(
            x=x, y=alt.Y("lo:Q"), y2="hi:Q"
        ),
    ]
    for published, shape, ink in ((True, "circle", "naive"), (False, "diamond", "faulted")):
        points = alt.Chart(to_inline_data([row for row in rows if row["published"] is published]))
        dots = points.mark_point(filled=True, size=100, opacity=1, shape=shape, color=inks[ink])
        names = points.mark_text(dx=9, dy=-7, fontSize=11.5, color=inks["ink"])
        layers += [dots.encode(x=x, y=y), names.encode(x=x, y=y, text="label:N")]
    return alt.LayerChart(layer=layers, width=PLOT_WIDTH, height=PLOT_WIDTH - 30)


def draw_collapse(rows: Sequence[ReportRow], inks: Palette) -> "alt.LayerChart":
    """Draw the share of runs that pass each stage, and of those that passed all up to it."""
    import altair as alt

    x = alt.X("stage:O", sort=list(STAGE_NAMES), title=None, axis=alt.Axis(labelAngle=0))
    axis = alt.Axis(format="%", values=QUARTERS)

    def y(field: str) -> alt.Y:
        return alt.Y(field, title="runs that pass", scale=alt.Scale(domain=[0, 1]), axis=axis)

    all_rows = alt.Chart(to_inline_data(rows)).encode(x=x)
    with_rate = alt.Chart(to_inline_data([row for row in rows if row["rate"] is not None])).encode(
        x=x
    )
    return alt.LayerChart(
        layer=[
            with_rate.mark_area(opacity=0.14, color=inks["observed"]).encode(
                y=y("lo:Q"), y2="hi:Q"
            ),
            all_rows.mark_line(strokeDash=[6, 4], strokeWidth=2, color=inks["constant"]).encode(
                y=y("serial:Q")
            ),
            with_rate.mark_line(strokeWidth=3, color=inks["observed"]).encode(y=y("rate:Q")),
            with_rate.mark_point(filled=True, size=70, opacity=1, color=inks["observed"]).encode(
                y=y("rate:Q")
            ),
            with_rate.mark_text(dy=-12, fontSize=12, color=inks["ink"]).encode(
                y=y("rate:Q"), text="text:N"
            ),
        ],
        width=PLOT_WIDTH,
        height=210,
    )


def draw_causes(rows: Sequence[ReportRow], inks: Palette) -> "alt.LayerChart":
    """Draw a bar for each cause: the share of runs with a stage that failed because of it."""
    import altair as alt

    order = [str(row["cause"]) for row in rows]
    y = alt.Y("cause:N", sort=order, axis=None, scale=alt.Scale(paddingInner=0.5, paddingOuter=0.3))
    every = alt.Chart(to_inline_data(rows)).encode(y=y)
    axis = alt.Axis(format="%", values=QUARTERS, grid=False)
    share = alt.X("share:Q", title="share of runs", scale=alt.Scale(domain=[0, 1]), axis=axis)
    colour = alt.Color(
        "ink:N", legend=None, scale=alt.Scale(domain=list(inks), range=list(inks.values()))
    )
    return alt.LayerChart(
        layer=[
            every.mark_bar().encode(x=share, color=colour),
            draw_text_above(every, "cause", "left", inks["ink"]),
            draw_text_above(every, "text", "right", inks["soft"]),
        ],
        width=CHART_WIDTH,
        height=alt.Step(42),
    )


LEADERBOARD_CHARTS: Mapping[str, ChartDrawer] = MappingProxyType(
    {"bargains": draw_cost_score, "collapse": draw_collapse, "causes": draw_causes}
)
"""Draw function of each of them, by its name in `ReportChart.drawing`."""
