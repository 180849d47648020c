"""Charts as SVG or PNG: vl-convert renders Vega-Lite without a browser."""

from collections.abc import Mapping, Sequence

from stumble.report.charting.fault_charts import FAULT_CHARTS, ChartDrawer, ChartSpec
from stumble.report.charting.palette import LIGHT_PALETTE, PAGE_PALETTE, Palette
from stumble.report.model import ReportChart

CHART_FONT = "system-ui, 'DejaVu Sans', sans-serif"


def render_svg(chart: ReportChart, drawers: Mapping[str, ChartDrawer]) -> str:
    """Render one chart as SVG for the page, hidden from screen readers: the page has its text."""
    import vl_convert

    plot = drawers[chart.drawing](chart.rows, PAGE_PALETTE)
    svg = vl_convert.vegalite_to_svg(_add_config(plot, PAGE_PALETTE))
    return svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def render_picture(charts: Sequence[ReportChart], form: str) -> bytes:
    """Render charts of one kind as PNG or SVG, three in a row on white, each with its title."""
    import vl_convert

    titled = [
        {
            **FAULT_CHARTS[chart.drawing](chart.rows, LIGHT_PALETTE),
            "title": {"text": chart.of, "anchor": "start", "fontSize": 13},
        }
        for chart in charts
    ]
    plot: ChartSpec = {"concat": titled, "columns": 3, "spacing": 32}
    spec = _add_config(plot, LIGHT_PALETTE)
    spec |= {"background": LIGHT_PALETTE["paper"], "padding": 12}
    if form == "svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    return vl_convert.vegalite_to_png(spec, scale=2)


def _add_config(plot: ChartSpec, inks: Palette) -> dict[str, object]:
    config = {
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
    return {**plot, "config": config}
