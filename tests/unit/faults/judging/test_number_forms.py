"""One number has one atom, however it is written."""

import pytest

from faults.judging.number_forms import normalize_numbers
from faults.judging.taint.similarity import parse_text_numbers
from faults.judging.value_tokens import extract_tokens


@pytest.mark.parametrize(
    "written",
    [
        "1284.37 GBP", "1,284.37", "1.284,37 Pfund", "1 284,37", "1\u00a0284,37", "1'284.37 CHF",
        "1284,37 EUR", "GBP1284.37"[3:], "١٢٨٤٫٣٧ جنيه", "१२८४.३७ है", "１２８４．３７",
        "已退款1284.37英镑", "一千二百八十四点三七英镑",
    ],
)  # fmt: skip
def test_an_amount_in_any_form_is_the_same_amount(written: str) -> None:
    assert "n:1284.37" in extract_tokens(written)
    assert [str(each) for each in parse_text_numbers(written)] == ["1284.37"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("three hundred forty-nine a month", "349"),
        ("three dozen seats", "36"),
        ("a dozen", "12"),
        ("dreihundertneunundvierzig Euro", "349"),
        ("ein Dutzend", "12"),
        ("zwölf Stück", "12"),
        ("trescientos cuarenta y nueve", "349"),
        ("trois cent quarante-neuf", "349"),
        ("三百四十九元", "349"),
        ("two thousand and twelve", "2012"),
        ("twenty-one", "21"),
    ],
)
def test_numbers_in_words_are_numbers(written: str, value: str) -> None:
    assert f"n:{value}" in extract_tokens(written)


@pytest.mark.parametrize(
    "text",
    [
        "one of them, a one-off", "v1.2.3 at 10.0.0.1", "1.284", "2026-12-03", "万一 十分",
        "100, 200, 300", "order 12 345 x", "Hundred of them", "cent per cent",
    ],
)  # fmt: skip
def test_what_is_no_number_in_words_or_cannot_be_told_stays(text: str) -> None:
    assert normalize_numbers(text) == text


def test_an_id_without_blanks_around_it_is_found() -> None:
    assert extract_tokens("订单ord-7314已退款") == {"i:ord-7314"}
