"""Which times of day in a later text may come from a clock's answer."""

from hypothesis import given
from hypothesis import strategies as st

from stumble.runs.prefix_uses import is_same_time_of_day

HOURS, ZONES = st.integers(0, 23), st.integers(-12, 14)
MINUTES = st.integers(0, 59)


@given(HOURS, MINUTES, ZONES)
def test_the_clock_as_it_is_and_as_local_time_counts(hour: int, minute: int, zone: int) -> None:
    assert is_same_time_of_day((hour, minute), (hour, minute), zone)
    assert is_same_time_of_day((hour, minute), ((hour + zone) % 24, minute), zone)
    assert is_same_time_of_day((hour, minute), (hour % 12 or 12, minute), zone), "of a.m. and p.m."


@given(HOURS, HOURS, MINUTES, MINUTES, ZONES)
def test_another_minute_never_counts(hour: int, told: int, one: int, other: int, zone: int) -> None:
    assert one == other or not is_same_time_of_day((hour, one), (told, other), zone)


@given(HOURS, HOURS, MINUTES.filter(lambda minute: minute % 5), ZONES)
def test_an_odd_minute_counts_in_any_time_zone(
    hour: int, told: int, minute: int, zone: int
) -> None:
    assert is_same_time_of_day((hour, minute), (told, minute), zone)


def test_a_planned_time_is_a_clock_by_chance_in_few_recordings() -> None:
    clocks = [(hour, minute) for hour in range(24) for minute in range(60)]
    assert sum(is_same_time_of_day(clock, (10, 30), 0) for clock in clocks) == 2
    assert sum(is_same_time_of_day(clock, (10, 30), 9) for clock in clocks) == 4
