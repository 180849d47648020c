"""Charts as SVG or PNG: vl-convert renders Altair charts without a browser.

The charts of a page are not checked against the schema of Vega-Lite here, which would add a sixth
to the time of a page. A test checks them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stumble.report.charting.fault_charts import FAULT_CHARTS, ChartDrawer
from stumble.report.charting.palette import LIGHT_PALETTE, PAGE_PALETTE, Palette
from stumble.report.model import ReportChart

if TYPE_CHECKING:
    import altair as alt

CHART_FONT = "system-ui, 'DejaVu Sans', sans-serif"


def render_svg(chart: ReportChart, drawers: Mapping[str, ChartDrawer]) -> str:
    """Render one chart as SVG for the page, hidden from screen readers: the page has its text."""
    import vl_convert
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        plot = drawers[chart.drawing](chart.rows, PAGE_PALETTE)
        spec = _build_chart_spec(plot, PAGE_PALETTE)
    svg = vl_convert.vegalite_to_svg(spec)
    return svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def render_picture(charts: Sequence[ReportChart], form: str) -> bytes:
    """Render charts of one kind as PNG or SVG, three in a row on white, each with its title."""
    import altair as alt
    import vl_convert

    titled = [
        FAULT_CHARTS[chart.drawing](chart.rows, LIGHT_PALETTE).properties(
            title=alt.Title(chart.of, anchor="start", fontSize=13)
        )
        for chart in charts
    ]
    spec = _build_chart_spec(alt.concat(*titled, columns=3, spacing=32), LIGHT_PALETTE)
    spec |= {"background": LIGHT_PALETTE["paper"], "padding": 12}
    if form == "svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    return vl_convert.vegalite_to_png(spec, scale=2)


def _build_chart_spec(plot: "alt.LayerChart | alt.ConcatChart", inks: Palette) -> dict[str, object]:
    spec: dict[str, object] = plot.to_dict(validate=False)
    spec["config"] = {
        "background": None,
        "font": CHART_FONT,
        "axis": {
            "labelColor": inks["soft"],
            "titleColor": inks["ink"],
            "domainColor": inks["soft"],
            "gridColor": inks["line"],
            "tickColor": inks["soft"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        "view": {"stroke": None},
        "title": {"color": inks["ink"], "fontWeight": 600},
        "aria": False,
    }
    return spec
