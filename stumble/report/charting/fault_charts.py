"""Charts of faults in Altair: one function per kind, from rows and a palette to a chart."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from stumble.report.charting.palette import Palette
from stumble.report.model import read_row_number
from stumble.report.outcomes import OUTCOME_LABELS
from stumble.store.filter import ReportRow

if TYPE_CHECKING:
    import altair as alt

type ChartDrawer = Callable[[Sequence[ReportRow], Palette], "alt.LayerChart"]

CHART_WIDTH = 340
"""Pixels: a chart fits a phone, and a wide page has several in a row."""
PLOT_WIDTH = CHART_WIDTH - 55
"""Pixels of a plot without its axis and labels."""
QUARTERS = (0, 0.25, 0.5, 0.75, 1)


def draw_rates(rows: Sequence[ReportRow], inks: Palette) -> "alt.LayerChart":
    """Draw one rate of every agent: a dot, and its interval as a line."""
    import altair as alt

    order = [str(row["who"]) for row in rows]
    y = alt.Y("who:N", sort=order, axis=None, scale=alt.Scale(paddingInner=0.5, paddingOuter=0.4))
    all_rows = alt.Chart(to_inline_data(rows)).encode(y=y)
    with_interval = alt.Chart(
        to_inline_data([row for row in rows if row["lo"] is not None])
    ).encode(y=y)
    ink = inks[str(rows[0]["ink"])]
    intervals = with_interval.mark_rule(strokeWidth=3, opacity=0.55, color=ink)
    dots = all_rows.mark_point(filled=True, size=90, opacity=1, color=ink)
    return alt.LayerChart(
        layer=[
            intervals.encode(x=alt.X("lo:Q", title="share"), x2="hi:Q"),
            dots.encode(x=_make_share_axis("value:Q", "share")),
            draw_text_above(all_rows, "who", "left", inks["ink"]),
            draw_text_above(all_rows, "text", "right", inks["soft"]),
        ],
        width=CHART_WIDTH,
        height=alt.Step(46),
    )


def draw_outcomes(rows: Sequence[ReportRow], inks: Palette) -> "alt.LayerChart":
    """Draw a bar for each kind of fault, divided into outcomes, with its name above."""
    import altair as alt

    firsts = {str(row["fault"]): row for row in reversed(rows)}
    order = list(reversed(firsts))
    labels = [{"fault": name, "counted": f"n = {firsts[name]['fired']}"} for name in order]
    y = alt.Y("fault:N", sort=order, axis=None, scale=alt.Scale(paddingInner=0.5, paddingOuter=0.3))
    keys = [key for key, _ in OUTCOME_LABELS]
    colours = alt.Scale(domain=keys, range=[inks[key] for key in keys])
    bars = alt.Chart(to_inline_data(rows)).mark_bar(stroke=inks["paper"], strokeWidth=1)
    names = alt.Chart(to_inline_data(labels)).encode(y=y)
    return alt.LayerChart(
        layer=[
            bars.encode(
                y=y,
                x=_make_share_axis("sum(share):Q", "share of injections"),
                color=alt.Color("outcome:N", legend=None, scale=colours),
                order=alt.Order("at:Q"),
            ),
            draw_text_above(names, "fault", "left", inks["ink"]),
            draw_text_above(names, "counted", "right", inks["soft"]),
        ],
        width=CHART_WIDTH,
        height=alt.Step(44),
    )


def draw_survival(rows: Sequence[ReportRow], inks: Palette) -> "alt.LayerChart":
    """Draw the observed curve in steps with its band, and two models of it."""
    import altair as alt

    last = max(read_row_number(row, "step") or 0 for row in rows)
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
        with_band = [row for row in rows if row["kind"] == kind and row["lo"] is not None]
        band = alt.Chart(to_inline_data(with_band)).mark_area(
            interpolate="step-after" if shape == "step-after" else "linear",
            opacity=0.16,
            color=inks[kind],
        )
        layers.append(band.encode(x=x, y=alt.Y("lo:Q", title="share not failed"), y2="hi:Q"))
    for kind, dash in (("constant", [7, 4]), ("naive", [2, 3]), ("observed", [1, 0])):
        of_kind = alt.Chart(to_inline_data([row for row in rows if row["kind"] == kind]))
        line = of_kind.mark_line(
            interpolate="step-after" if kind == "observed" else "linear",
            strokeDash=dash,
            strokeWidth=3 if kind == "observed" else 2,
            color=inks[kind],
        )
        layers.append(line.encode(x=x, y=y))
    return alt.LayerChart(layer=layers, width=PLOT_WIDTH, height=210)


def draw_pairs(rows: Sequence[ReportRow], inks: Palette) -> "alt.LayerChart":
    """Draw a line from the clean to the faulted pass rate for each kind of fault."""
    import altair as alt

    order = [str(row["fault"]) for row in rows]
    y = alt.Y("fault:N", sort=order, axis=None, scale=alt.Scale(paddingInner=0.5, paddingOuter=0.4))
    every = alt.Chart(to_inline_data(rows)).encode(y=y)
    between = every.mark_rule(strokeWidth=2, color=inks["soft"])
    clean = every.mark_point(filled=True, size=110, opacity=1, color=inks["clean"])
    faulted = every.mark_point(
        shape="diamond", filled=True, size=110, opacity=1, color=inks["faulted"]
    )
    return alt.LayerChart(
        layer=[
            between.encode(x=_make_share_axis("clean:Q", "runs that ended right"), x2="faulted:Q"),
            clean.encode(x=_make_share_axis("clean:Q", "runs that ended right")),
            faulted.encode(x=_make_share_axis("faulted:Q", "runs that ended right")),
            draw_text_above(every, "fault", "left", inks["ink"]),
            draw_text_above(every, "text", "right", inks["soft"]),
        ],
        width=CHART_WIDTH,
        height=alt.Step(46),
    )


def draw_notice(rows: Sequence[ReportRow], inks: Palette) -> "alt.LayerChart":
    """Draw the share of noticed faults over that of noticed shams, with intervals for the pool."""
    import altair as alt

    scale = alt.Scale(domain=[0, 1])
    axis = alt.Axis(format="%", values=QUARTERS)
    sides: dict[str, str] = {"alarm": "shams \u201cnoticed\u201d", "hit": "faults noticed"}

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=sides["alarm"], scale=scale, axis=axis)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=sides["hit"], scale=scale, axis=axis)

    main = [row for row in rows if row["main"]]
    hit_intervals = alt.Chart(to_inline_data([row for row in main if row["hit_lo"] is not None]))
    alarm_intervals = alt.Chart(
        to_inline_data([row for row in main if row["alarm_lo"] is not None])
    )
    groups = alt.Chart(to_inline_data([row for row in rows if not row["main"]]))
    chance = alt.Chart(to_inline_data([{"at": 0}, {"at": 1}]))
    return alt.LayerChart(
        layer=[
            chance.mark_line(strokeDash=[4, 4], color=inks["soft"]).encode(x=x("at"), y=y("at")),
            hit_intervals.mark_rule(strokeWidth=3, opacity=0.55, color=inks["recovered"]).encode(
                x=x("alarm"), y=y("hit_lo"), y2="hit_hi:Q"
            ),
            alarm_intervals.mark_rule(strokeWidth=3, opacity=0.55, color=inks["recovered"]).encode(
                x=x("alarm_lo"), x2="alarm_hi:Q", y=y("hit")
            ),
            groups.mark_point(size=60, opacity=1, color=inks["soft"]).encode(
                x=x("alarm"), y=y("hit")
            ),
            *(
                alt.Chart(to_inline_data([row for row in rows if not row["main"] and half(row)]))
                .mark_text(align="left", dx=9, dy=dy, fontSize=11, color=inks["soft"])
                .encode(x=x("alarm"), y=y("hit"), text="label:N")
                for half, dy in ((_is_upper_point, 13), (_is_lower_point, -10))
            ),
            alt.Chart(to_inline_data(main))
            .mark_point(filled=True, size=110, opacity=1, color=inks["recovered"])
            .encode(x=x("alarm"), y=y("hit")),
        ],
        width=PLOT_WIDTH - 30,
        height=PLOT_WIDTH - 30,
    )


def _is_upper_point(row: ReportRow) -> bool:
    return (read_row_number(row, "hit") or 0) > 0.5


def _is_lower_point(row: ReportRow) -> bool:
    return not _is_upper_point(row)


def draw_recovery_time(rows: Sequence[ReportRow], inks: Palette) -> "alt.LayerChart":
    """Draw the number of injections noticed after each number of steps."""
    import altair as alt

    axis = alt.Axis(tickMinStep=1, tickCount=4)
    base = alt.Chart(to_inline_data(rows)).encode(
        x=alt.X("steps:O", title="steps to notice", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("recovered:Q", title="injections", axis=axis),
    )
    bars = base.mark_bar(color=inks["recovered"], size=22)
    counts = base.mark_text(dy=-7, fontSize=12, color=inks["ink"]).encode(text="recovered:Q")
    return alt.LayerChart(layer=[bars, counts], width=PLOT_WIDTH, height=150)


def to_inline_data(rows: Sequence[ReportRow]) -> "alt.InlineData":
    """Convert rows to inline data of a chart."""
    import altair as alt

    return alt.InlineData(values=[dict(row) for row in rows])


def _make_share_axis(field: str, title: str) -> "alt.X":
    import altair as alt

    axis = alt.Axis(format="%", values=QUARTERS, grid=False)
    return alt.X(field, title=title, scale=alt.Scale(domain=[0, 1]), axis=axis)


def draw_text_above(
    base: "alt.Chart", field: str, side: Literal["left", "right"], colour: str
) -> "alt.Chart":
    """Draw a text above a row, at one end of it."""
    import altair as alt

    text: alt.Chart = base.mark_text(
        align=side, baseline="bottom", dy=-11, fontSize=12.5, color=colour
    ).encode(text=f"{field}:N", x=alt.value(0 if side == "left" else CHART_WIDTH))
    return text


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
