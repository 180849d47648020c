"""Charts as SVG or PNG: vl-convert draws what Altair describes, without a browser."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stumble.report import charts, races
from stumble.report.inks import LIGHT, PAGE, Inks
from stumble.report.values import Chart

if TYPE_CHECKING:
    import altair as alt

DRAWN = {**charts.DRAWN, **races.DRAWN}
FONT = "system-ui, 'DejaVu Sans', sans-serif"


def svg(chart: Chart) -> str:
    """One chart as SVG for the page; what it shows is said beside it, so it says nothing itself."""
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(_spec(DRAWN[chart.drawing](chart.rows, PAGE), PAGE))
    return drawn.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def picture(charts: Sequence[Chart], form: str) -> bytes:
    """Charts of one kind as a PNG or SVG file, three in a row on white, each with its title."""
    import altair as alt
    import vl_convert

    titled = [
        DRAWN[chart.drawing](chart.rows, LIGHT).properties(
            title=alt.Title(chart.of, anchor="start", fontSize=13)
        )
        for chart in charts
    ]
    spec = _spec(alt.concat(*titled, columns=3, spacing=32), LIGHT)
    spec |= {"background": LIGHT["paper"], "padding": 12}
    if form == "svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    return vl_convert.vegalite_to_png(spec, scale=2)


def _spec(plot: "alt.LayerChart | alt.ConcatChart", inks: Inks) -> dict[str, object]:
    spec: dict[str, object] = json.loads(plot.to_json())
    spec["config"] = {
        "background": None,
        "font": FONT,
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
