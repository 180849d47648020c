"""What makes the bench of the gate fail."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.ratios import (
    BenchRow,
    check_same_rows,
    find_rows_over,
    format_row,
    measure_again,
    measure_ratios,
)

positive = st.floats(min_value=1e-6, max_value=1e6)


def make_measure(*figures: float) -> Callable[[], float]:
    """Return a measurement with these figures, one after the other."""
    return iter(figures).__next__


def make_row(name: str, figures: tuple[float, ...], peers: tuple[float, ...]) -> BenchRow:
    return BenchRow(
        name=name,
        peer="the peer",
        measure=make_measure(*figures),
        measure_peer=make_measure(*peers),
    )


@given(ratio=positive, factor=st.floats(min_value=0.01, max_value=100))
def test_a_row_is_over_above_twice_the_ratio_of_its_file(ratio: float, factor: float) -> None:
    measured = ratio * factor
    over = find_rows_over({"show": measured}, {"show": ratio})
    assert over == (["show"] if measured > 2 * ratio else [])
    assert format_row("show", "python", measured, ratio).endswith("over") == bool(over)


def test_a_regression_of_four_times_is_over() -> None:
    ratios = {"show": 3.0, "sql": 2.0}
    assert find_rows_over({"show": 12.0, "sql": 2.1}, ratios) == ["show"]


def test_a_row_at_its_limit_is_not_over() -> None:
    assert find_rows_over({"show": 6.0}, {"show": 3.0}) == []


def test_a_ratio_that_is_no_number_is_over() -> None:
    assert find_rows_over({"show": float("nan")}, {"show": 3.0}) == ["show"]


def test_a_row_below_half_of_its_file_asks_for_a_lower_limit() -> None:
    assert format_row("show", "python", 1.4, 3.0).endswith("ok, --write would lower the limit")
    assert format_row("show", "python", 1.6, 3.0).endswith("ok")


def test_a_ratio_is_of_the_least_figures_of_all_rounds() -> None:
    rows = [make_row("show", (9.0, 6.0, 8.0), (2.0, 3.0, 4.0))]
    assert measure_ratios(rows, 3) == {"show": 3.0}


def test_rounds_measure_each_row_beside_its_peer() -> None:
    order = list[str]()

    def make_measure_of(name: str) -> Callable[[], float]:
        def measure() -> float:
            order.append(name)
            return 1.0

        return measure

    rows = [
        BenchRow(
            name=name,
            peer="the peer",
            measure=make_measure_of(name),
            measure_peer=make_measure_of(f"peer of {name}"),
        )
        for name in ("show", "sql")
    ]
    measure_ratios(rows, 2)
    assert order == ["peer of show", "show", "peer of sql", "sql"] * 2


def test_a_row_that_is_over_once_is_measured_again(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [make_row("show", (3.0,), (1.0,)), make_row("sql", (), ())]
    ratios = measure_again(rows, {"show": 7.0, "sql": 2.0}, {"show": 3.0, "sql": 2.0}, 1)
    assert ratios == {"show": 3.0, "sql": 2.0}
    assert capsys.readouterr().out == "show: 7.000 is over, measured again\n"


def test_a_row_that_is_over_twice_stays_over() -> None:
    rows = [make_row("show", (12.0,), (1.0,))]
    ratios = measure_again(rows, {"show": 13.0}, {"show": 3.0}, 1)
    assert find_rows_over(ratios, {"show": 3.0}) == ["show"]


@pytest.mark.parametrize("file", [{}, {"show": 3.0, "sql": 2.0}, {"sql": 2.0}])
def test_a_row_without_a_ratio_or_a_ratio_without_a_row_is_refused(file: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="different rows"):
        check_same_rows(["show"], file)
