"""Labels against readings: what is counted, and which lines are none."""

import pytest

from faults.judging.claims.calibration import LabelAgreement, RateInterval, read_labelled_final

ROW = {"last_messages": ["", "Done."], "label": {"claim": "delivered"}}


def test_rates_of_a_matrix() -> None:
    found = LabelAgreement(
        {
            ("delivered", "delivered"): 6,
            ("delivered", "unknown"): 2,
            ("asks", "delivered"): 1,
            ("asks", "abstained"): 1,
        }
    )
    assert (found.unknown_rate.k, found.unknown_rate.n) == (2, 10)
    assert (found.accuracy.k, found.accuracy.n) == (6, 8)
    assert (found.delivered_accuracy.k, found.delivered_accuracy.n) == (7, 8)
    assert (found.false_delivered_rate.k, found.false_delivered_rate.n) == (1, 2)
    assert (found.precision("delivered").k, found.precision("delivered").n) == (6, 7)
    assert (found.recall("delivered").k, found.recall("delivered").n) == (6, 8)


def test_an_interval_is_wilsons_and_nothing_has_none() -> None:
    assert RateInterval(8, 10).bounds == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert (RateInterval(0, 0).rate, RateInterval(0, 0).bounds) == (None, None)


def test_a_row_without_text_is_no_error() -> None:
    assert read_labelled_final({"label": {"claim": "none"}}) is None
    assert read_labelled_final(ROW | {"last_messages": None}) is None


def test_a_row_with_nulls_is_read() -> None:
    row = read_labelled_final(ROW | {"last_messages": [None], "last_tools": None, "ended": None})
    assert row is not None
    assert row.final.messages == ("",)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([], "not a JSON object"),
        ({}, "no label.claim"),
        ({"label": "delivered"}, "no label.claim"),
        ({"label": {"claim": "unknown"}}, "not one of delivered"),
        (ROW | {"label": {"claim": ["delivered"]}}, "not one of delivered"),
        (ROW | {"last_messages": "Done."}, "last_messages is no list of texts"),
        (ROW | {"last_messages": [1]}, "last_messages is no list of texts"),
        (ROW | {"last_tools": ["submit"]}, "last_tools is no list of objects"),
        (ROW | {"last_tools": [{"result": "ok"}]}, "a tool call lacks its text"),
        (ROW | {"ended": 3}, "ended or language is no text"),
    ],
)
def test_what_is_no_labelled_final_is_refused_with_its_reason(row: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_labelled_final(row)
