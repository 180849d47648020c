"""A report's page and figures, made of values alone."""

import pytest

from stumble.report.page import Page, html
from stumble.report.values import Section, Table, figure, number

MARKUP = "<center><h1>502 Bad Gateway</h1></center>"


def test_what_tools_answer_is_text_and_never_markup() -> None:
    table = Table(caption=MARKUP, columns=(MARKUP,), rows=((MARKUP,),))
    section = Section(name="tools", title=MARKUP, lead=(MARKUP,), tables=(table,))
    text = html(Page(title=MARKUP, about=(MARKUP,), sections=(section,)))
    assert "&lt;center&gt;" in text
    assert "<center>" not in text


@pytest.mark.parametrize("value", [None, True, "0.5"])
def test_what_is_no_number_is_unknown(value: object) -> None:
    assert number({"rate": value}, "rate") is None
    assert number({}, "rate") is None


def test_a_rate_without_a_value_is_not_known_and_has_a_reason() -> None:
    row = {"rate": None, "reason": "nothing_judged"}
    assert figure(row, "rate").point == "not known (no verdict could be given)"
