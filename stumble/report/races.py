"""How the charts of a leaderboard look: cost against score, the way down the stages, causes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from stumble.report.charts import PLOT, QUARTERS, WIDTH, Draws, above, data
from stumble.report.inks import Inks
from stumble.report.values import Row, number

if TYPE_CHECKING:
    import altair as alt

STAGES = ("T0", "T1", "T2", "T3", "T4", "T5")


def bargains(rows: Sequence[Row], inks: Inks) -> "alt.LayerChart":
    """Score over cost, one numbered dot each, and a line through those that none beats in both."""
    import altair as alt

    costs = [cost for row in rows if (cost := number(row, "cost"))]
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
    best = alt.Chart(data([row for row in rows if row["best"]])).mark_line(
        interpolate="step-after", strokeWidth=2, opacity=0.6, color=inks["honest_fail"]
    )
    known = alt.Chart(data([row for row in rows if row["lo"] is not None]))
    layers: list[alt.Chart] = [
        best.encode(x=x, y=y),
        known.mark_rule(strokeWidth=2, opacity=0.6, color=inks["faulted"]).encode(
            x=x, y=alt.Y("lo:Q"), y2="hi:Q"
        ),
    ]
    for published, shape, ink in ((True, "circle", "naive"), (False, "diamond", "faulted")):
        mine = alt.Chart(data([row for row in rows if row["published"] is published]))
        dots = mine.mark_point(filled=True, size=100, opacity=1, shape=shape, color=inks[ink])
        names = mine.mark_text(dx=9, dy=-7, fontSize=11.5, color=inks["ink"])
        layers += [dots.encode(x=x, y=y), names.encode(x=x, y=y, text="label:N")]
    return alt.LayerChart(layer=layers, width=PLOT, height=PLOT - 30)


def collapse(rows: Sequence[Row], inks: Inks) -> "alt.LayerChart":
    """The share of runs that pass each stage, and of those that passed all up to it."""
    import altair as alt

    x = alt.X("stage:O", sort=list(STAGES), title=None, axis=alt.Axis(labelAngle=0))
    axis = alt.Axis(format="%", values=QUARTERS)

    def y(field: str) -> alt.Y:
        return alt.Y(field, title="runs that pass", scale=alt.Scale(domain=[0, 1]), axis=axis)

    every = alt.Chart(data(rows)).encode(x=x)
    known = alt.Chart(data([row for row in rows if row["rate"] is not None])).encode(x=x)
    return alt.LayerChart(
        layer=[
            known.mark_area(opacity=0.14, color=inks["observed"]).encode(y=y("lo:Q"), y2="hi:Q"),
            every.mark_line(strokeDash=[6, 4], strokeWidth=2, color=inks["constant"]).encode(
                y=y("serial:Q")
            ),
            known.mark_line(strokeWidth=3, color=inks["observed"]).encode(y=y("rate:Q")),
            known.mark_point(filled=True, size=70, opacity=1, color=inks["observed"]).encode(
                y=y("rate:Q")
            ),
            known.mark_text(dy=-12, fontSize=12, color=inks["ink"]).encode(
                y=y("rate:Q"), text="text:N"
            ),
        ],
        width=PLOT,
        height=210,
    )


def causes(rows: Sequence[Row], inks: Inks) -> "alt.LayerChart":
    """A bar for each cause: the share of runs in which a stage failed of it."""
    import altair as alt

    order = [str(row["cause"]) for row in rows]
    y = alt.Y("cause:N", sort=order, axis=None, scale=alt.Scale(paddingInner=0.5, paddingOuter=0.3))
    every = alt.Chart(data(rows)).encode(y=y)
    axis = alt.Axis(format="%", values=QUARTERS, grid=False)
    share = alt.X("share:Q", title="share of runs", scale=alt.Scale(domain=[0, 1]), axis=axis)
    colour = alt.Color(
        "ink:N", legend=None, scale=alt.Scale(domain=list(inks), range=list(inks.values()))
    )
    return alt.LayerChart(
        layer=[
            every.mark_bar().encode(x=share, color=colour),
            above(every, "cause", "left", inks["ink"]),
            above(every, "text", "right", inks["soft"]),
        ],
        width=WIDTH,
        height=alt.Step(42),
    )


DRAWN: Mapping[str, Draws] = MappingProxyType(
    {"bargains": bargains, "collapse": collapse, "causes": causes}
)
"""How each of them is drawn, by the name it has in `Chart.drawing`."""
