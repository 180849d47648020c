"""How each kind of chart looks, in Altair: one function from rows and inks to a picture."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from stumble.report.inks import Inks
from stumble.report.outcomes import OUTCOMES
from stumble.report.values import Row, number

if TYPE_CHECKING:
    import altair as alt

type Draws = Callable[[Sequence[Row], Inks], "alt.LayerChart"]

WIDTH = 340
"""Pixels: a picture fits a phone, and a wide page has several beside one another."""
PLOT = WIDTH - 55
"""Pixels beside an axis with its labels."""
QUARTERS = (0, 0.25, 0.5, 0.75, 1)


def rates(rows: Sequence[Row], inks: Inks) -> "alt.LayerChart":
    """One rate of every agent: a dot, and its interval as a line."""
    import altair as alt

    order = [str(row["who"]) for row in rows]
    y = alt.Y("who:N", sort=order, axis=None, scale=alt.Scale(paddingInner=0.5, paddingOuter=0.4))
    every = alt.Chart(data(rows)).encode(y=y)
    known = alt.Chart(data([row for row in rows if row["lo"] is not None])).encode(y=y)
    ink = inks[str(rows[0]["ink"])]
    intervals = known.mark_rule(strokeWidth=3, opacity=0.55, color=ink)
    dots = every.mark_point(filled=True, size=90, opacity=1, color=ink)
    return alt.LayerChart(
        layer=[
            intervals.encode(x=alt.X("lo:Q", title="share"), x2="hi:Q"),
            dots.encode(x=_share("value:Q", "share")),
            above(every, "who", "left", inks["ink"]),
            above(every, "text", "right", inks["soft"]),
        ],
        width=WIDTH,
        height=alt.Step(46),
    )


def outcomes(rows: Sequence[Row], inks: Inks) -> "alt.LayerChart":
    """A bar for each kind of fault, cut into outcomes, its name above it."""
    import altair as alt

    firsts = {str(row["fault"]): row for row in reversed(rows)}
    order = list(reversed(firsts))
    labels = [{"fault": name, "counted": f"n = {firsts[name]['fired']}"} for name in order]
    y = alt.Y("fault:N", sort=order, axis=None, scale=alt.Scale(paddingInner=0.5, paddingOuter=0.3))
    keys = [key for key, _ in OUTCOMES]
    colours = alt.Scale(domain=keys, range=[inks[key] for key in keys])
    bars = alt.Chart(data(rows)).mark_bar(stroke=inks["paper"], strokeWidth=1)
    names = alt.Chart(data(labels)).encode(y=y)
    return alt.LayerChart(
        layer=[
            bars.encode(
                y=y,
                x=_share("sum(share):Q", "share of strikes"),
                color=alt.Color("outcome:N", legend=None, scale=colours),
                order=alt.Order("at:Q"),
            ),
            above(names, "fault", "left", inks["ink"]),
            above(names, "counted", "right", inks["soft"]),
        ],
        width=WIDTH,
        height=alt.Step(44),
    )


def survival(rows: Sequence[Row], inks: Inks) -> "alt.LayerChart":
    """The observed curve in steps with its band, and two models of it."""
    import altair as alt

    last = max(number(row, "step") or 0 for row in rows)
    x = alt.X(
        "step:Q",
        title="steps",
        scale=alt.Scale(domain=[0, last], nice=False),
        axis=alt.Axis(tickCount=5, tickMinStep=1, grid=False),
    )
    axis = alt.Axis(format="%", values=QUARTERS)
    y = alt.Y("survival:Q", title="share not failed", scale=alt.Scale(domain=[0, 1]), axis=axis)
    layers = []
    for kind, shape in (("constant", "linear"), ("observed", "step-after")):
        known = [row for row in rows if row["kind"] == kind and row["lo"] is not None]
        band = alt.Chart(data(known)).mark_area(
            interpolate="step-after" if shape == "step-after" else "linear",
            opacity=0.16,
            color=inks[kind],
        )
        layers.append(band.encode(x=x, y=alt.Y("lo:Q", title="share not failed"), y2="hi:Q"))
    for kind, dash in (("constant", [7, 4]), ("naive", [2, 3]), ("observed", [1, 0])):
        mine = alt.Chart(data([row for row in rows if row["kind"] == kind]))
        line = mine.mark_line(
            interpolate="step-after" if kind == "observed" else "linear",
            strokeDash=dash,
            strokeWidth=3 if kind == "observed" else 2,
            color=inks[kind],
        )
        layers.append(line.encode(x=x, y=y))
    return alt.LayerChart(layer=layers, width=PLOT, height=210)


def pairs(rows: Sequence[Row], inks: Inks) -> "alt.LayerChart":
    """For each kind of fault a line from the clean pass rate to the faulted one."""
    import altair as alt

    order = [str(row["fault"]) for row in rows]
    y = alt.Y("fault:N", sort=order, axis=None, scale=alt.Scale(paddingInner=0.5, paddingOuter=0.4))
    every = alt.Chart(data(rows)).encode(y=y)
    between = every.mark_rule(strokeWidth=2, color=inks["soft"])
    clean = every.mark_point(filled=True, size=110, opacity=1, color=inks["clean"])
    faulted = every.mark_point(
        shape="diamond", filled=True, size=110, opacity=1, color=inks["faulted"]
    )
    return alt.LayerChart(
        layer=[
            between.encode(x=_share("clean:Q", "runs that ended right"), x2="faulted:Q"),
            clean.encode(x=_share("clean:Q", "runs that ended right")),
            faulted.encode(x=_share("faulted:Q", "runs that ended right")),
            above(every, "fault", "left", inks["ink"]),
            above(every, "text", "right", inks["soft"]),
        ],
        width=WIDTH,
        height=alt.Step(46),
    )


def notice(rows: Sequence[Row], inks: Inks) -> "alt.LayerChart":
    """The share of noticed faults over that of noticed shams, the pooled point with its cross."""
    import altair as alt

    scale = alt.Scale(domain=[0, 1])
    axis = alt.Axis(format="%", values=QUARTERS)
    sides: dict[str, str] = {"alarm": "shams \u201cnoticed\u201d", "hit": "faults noticed"}

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=sides["alarm"], scale=scale, axis=axis)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=sides["hit"], scale=scale, axis=axis)

    main = [row for row in rows if row["main"]]
    crossed = alt.Chart(data([row for row in main if row["hit_lo"] is not None]))
    beside = alt.Chart(data([row for row in main if row["alarm_lo"] is not None]))
    parts = alt.Chart(data([row for row in rows if not row["main"]]))
    chance = alt.Chart(data([{"at": 0}, {"at": 1}]))
    return alt.LayerChart(
        layer=[
            chance.mark_line(strokeDash=[4, 4], color=inks["soft"]).encode(x=x("at"), y=y("at")),
            crossed.mark_rule(strokeWidth=3, opacity=0.55, color=inks["recovered"]).encode(
                x=x("alarm"), y=y("hit_lo"), y2="hit_hi:Q"
            ),
            beside.mark_rule(strokeWidth=3, opacity=0.55, color=inks["recovered"]).encode(
                x=x("alarm_lo"), x2="alarm_hi:Q", y=y("hit")
            ),
            parts.mark_point(size=60, opacity=1, color=inks["soft"]).encode(
                x=x("alarm"), y=y("hit")
            ),
            *(
                alt.Chart(data([row for row in rows if not row["main"] and half(row)]))
                .mark_text(align="left", dx=9, dy=dy, fontSize=11, color=inks["soft"])
                .encode(x=x("alarm"), y=y("hit"), text="label:N")
                for half, dy in ((_upper, 13), (_lower, -10))
            ),
            alt.Chart(data(main))
            .mark_point(filled=True, size=110, opacity=1, color=inks["recovered"])
            .encode(x=x("alarm"), y=y("hit")),
        ],
        width=PLOT - 30,
        height=PLOT - 30,
    )


def _upper(row: Row) -> bool:
    return (number(row, "hit") or 0) > 0.5


def _lower(row: Row) -> bool:
    return not _upper(row)


def recovery_time(rows: Sequence[Row], inks: Inks) -> "alt.LayerChart":
    """How many injections were noticed after how many steps."""
    import altair as alt

    axis = alt.Axis(tickMinStep=1, tickCount=4)
    base = alt.Chart(data(rows)).encode(
        x=alt.X("steps:O", title="steps to notice", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("recovered:Q", title="injections", axis=axis),
    )
    bars = base.mark_bar(color=inks["recovered"], size=22)
    counts = base.mark_text(dy=-7, fontSize=12, color=inks["ink"]).encode(text="recovered:Q")
    return alt.LayerChart(layer=[bars, counts], width=PLOT, height=150)


def data(rows: Sequence[Row]) -> "alt.InlineData":
    """The rows as a chart holds them."""
    import altair as alt

    return alt.InlineData(values=[dict(row) for row in rows])


def _share(field: str, title: str) -> "alt.X":
    import altair as alt

    axis = alt.Axis(format="%", values=QUARTERS, grid=False)
    return alt.X(field, title=title, scale=alt.Scale(domain=[0, 1]), axis=axis)


def above(
    base: "alt.Chart", field: str, side: Literal["left", "right"], colour: str
) -> "alt.Chart":
    """A text above a row, at one end of it."""
    import altair as alt

    named: alt.Chart = base.mark_text(
        align=side, baseline="bottom", dy=-11, fontSize=12.5, color=colour
    ).encode(text=f"{field}:N", x=alt.value(0 if side == "left" else WIDTH))
    return named


DRAWN: Mapping[str, Draws] = MappingProxyType(
    {
        "rates": rates,
        "outcomes": outcomes,
        "survival": survival,
        "pairs": pairs,
        "notice": notice,
        "recovery_time": recovery_time,
    }
)
"""How each kind of chart is drawn, by the name it has in `Chart.drawing`."""
