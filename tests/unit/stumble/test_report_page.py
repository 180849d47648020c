"""A report's page and figures, made of values alone."""

import pytest

from stumble.report.html import ReportPage, render_report_html
from stumble.report.model import ReportSection, ReportTable, make_figure, read_row_number

MARKUP = "<center><h1>502 Bad Gateway</h1></center>"


def test_what_tools_answer_is_text_and_never_markup() -> None:
    table = ReportTable(caption=MARKUP, columns=(MARKUP,), rows=((MARKUP,),))
    section = ReportSection(name="tools", title=MARKUP, lead=(MARKUP,), tables=(table,))
    text = render_report_html(ReportPage(title=MARKUP, about=(MARKUP,), sections=(section,)))
    assert "&lt;center&gt;" in text
    assert "<center>" not in text


@pytest.mark.parametrize("value", [None, True, "0.5"])
def test_what_is_no_number_is_unknown(value: object) -> None:
    assert read_row_number({"rate": value}, "rate") is None
    assert read_row_number({}, "rate") is None


def test_a_rate_without_a_value_is_not_known_and_has_a_reason() -> None:
    row = {"rate": None, "reason": "nothing_judged"}
    assert make_figure(row, "rate").point == "not known (no verdict could be given)"
