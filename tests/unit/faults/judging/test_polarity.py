"""Answers that say yes or no."""

import pytest

from faults.judging.claims.polarity import detect_polarity, is_about_speaker, is_polar


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Yes, we have it.", True),
        ("No, it is sold out.", False),
        ("**Ja**, es ist da.", True),
        ("Nein.", False),
        ("没有,已售完。", False),
        ("はい、あります。", True),
        ("لا، غير متوفر.", False),
        ("Nothing is there.", None),
        ("Notes: no.", None),
        ("", None),
    ],
)
def test_an_answer_that_begins_with_yes_or_no_is_one(text: str, said: bool | None) -> None:
    assert detect_polarity(text) is said


def test_only_where_all_answers_are_yes_or_no_it_is_the_answer() -> None:
    assert is_polar("No, it is gone.", ["Yes, it is there.", "Yes."])
    assert not is_polar("No, I could not look.", ["It is there.", "Yes."])
    assert not is_polar("No.", [])


def test_who_speaks_of_itself_does_not_tell_what_a_tool_said() -> None:
    assert is_about_speaker("I cannot tell.")
    assert not is_about_speaker("It is sold out.")
