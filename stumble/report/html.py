"""The report as one HTML file, readable without network and without scripts."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from stumble.report.charting.fault_charts import FAULT_CHARTS, ChartDrawer
from stumble.report.charting.palette import DARK_PALETTE, LIGHT_PALETTE, Palette
from stumble.report.charting.render import render_svg
from stumble.report.examples import InjectionExample
from stumble.report.model import ReportChart, ReportFigure, ReportSection
from stumble.report.outcomes import DETECTABILITY_LABELS

_TEMPLATE_FOLDER = Path(__file__).parent
REPORT_TERMS = (
    ("injected", "the fault fired: an exchange was changed"),
    ("reached (consumed)", "what the fault did is in the tool result that the agent's model saw"),
    ("absorbed", "a retry of the client hid the fault before the agent could see it"),
    ("recovered", "noticed, and the end state is right"),
    ("masked", "never noticed, and the end state is right all the same"),
    ("honestly failed", "the end state is wrong, and the agent said that it was not done"),
    ("noticed, yet wrong", "the agent saw it and still delivered something wrong as right"),
    ("silently wrong", "delivered wrong as right, without a sign that anything was noticed"),
    ("crashed", "no final answer: an exception, a loop, no end"),
    ("no verdict", "what decides it is not known: never a pass, never a failure"),
    ("handled", "absorbed, recovered, masked or honestly failed"),
    ("detectability", "what it would have taken to notice, rated for each injection:"),
    *((key, words.partition(", ")[2]) for key, words in DETECTABILITY_LABELS.items()),
    ("sham", "an injection that changes nothing: it shows how often notice is false"),
    ("clean twins", "runs from the same fork point without the fault: the controls"),
    ("trace", "a recording, or a task, with all its repeats: what intervals are clustered by"),
)


class ReportPage(Struct, frozen=True, kw_only=True):
    """The contents of the page."""

    title: str
    about: tuple[str, ...]
    """Dates, version and selected part of the store."""
    sections: tuple[ReportSection, ...]
    examples: tuple[InjectionExample, ...] = ()
    injections: int | None = None
    """Number of all injections; None if the page is not about them."""
    terms: tuple[tuple[str, str], ...] = REPORT_TERMS
    drawers: Mapping[str, ChartDrawer] = FAULT_CHARTS
    """Draw function of each chart, by its name in `ReportChart.drawing`."""


def render_report_html(page: ReportPage) -> str:
    """Render the page, with its charts inline."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATE_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (_TEMPLATE_FOLDER / "page.js").read_text(encoding="utf-8")
    return environment.get_template("page.html.jinja").render(
        page=page,
        style=(_TEMPLATE_FOLDER / "page.css").read_text(encoding="utf-8"),
        light=_format_css_variables(LIGHT_PALETTE),
        dark=_format_css_variables(DARK_PALETTE),
        script=script,
        script_hash=_hash_script(f"\n{script}"),
        draw=partial(_draw_page_charts, page.drawers),
        is_figure=_is_figure,
    )


def _draw_page_charts(
    drawers: Mapping[str, ChartDrawer], charts: Sequence[ReportChart]
) -> list[tuple[ReportChart, str]]:
    return [(chart, render_svg(chart, drawers)) for chart in charts]


def _is_figure(cell: object) -> bool:
    return isinstance(cell, ReportFigure)


def _format_css_variables(inks: Palette) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in inks.items())


def _hash_script(script: str) -> str:
    """Return the Content-Security-Policy hash of a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
