"""What is suggested for a name that is not known."""

from traces.did_you_mean import suggest_nearest_name


def test_the_nearest_name_is_suggested_or_all_are_listed() -> None:
    assert suggest_nearest_name("recovry", ["survival", "recovery"]) == "; did you mean recovery?"
    assert suggest_nearest_name("x", ["survival", "recovery"]) == "; there is recovery, survival"
    assert suggest_nearest_name("x", []) == "; there is none"
