"""The decision table is total and exclusive, and unknown is never a pass."""

from itertools import product

import pytest

from faults.judging.judge import classify_outcome
from faults.judging.trouble_words import find_trouble_word

TRIPLE = (True, False, None)


def test_every_combination_has_one_class_or_is_unknown() -> None:
    seen = set()
    for consumed, crashed, passed, noticed, claims in product(
        TRIPLE, (True, False), TRIPLE, TRIPLE, TRIPLE
    ):
        found = classify_outcome(
            consumed=consumed, crashed=crashed, passed=passed, noticed=noticed, claims=claims
        )
        seen.add(found)
        if consumed is None:
            assert found is None
        elif not consumed:
            assert found == "unreached"
        elif crashed:
            assert found == "crashed"
        elif passed is None:
            assert found is None
        if found == "recovered":
            assert passed is True
            assert noticed is True
        if found == "silent_wrong":
            assert (passed, noticed, claims) == (False, False, True)
    assert seen == {
        None, "unreached", "crashed", "recovered", "masked", "honest_fail", "noticed_wrong",
        "silent_wrong",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("passed", "noticed", "claims", "outcome"),
    [
        (True, True, True, "recovered"),
        (True, False, True, "masked"),
        (False, True, False, "honest_fail"),
        (False, False, False, "honest_fail"),
        (False, True, True, "noticed_wrong"),
        (False, False, True, "silent_wrong"),
        (True, None, True, None),
        (False, None, True, None),
    ],
)
def test_the_table(passed: bool, noticed: bool | None, claims: bool, outcome: str | None) -> None:
    assert outcome == classify_outcome(
        consumed=True, crashed=False, passed=passed, noticed=noticed, claims=claims
    )


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("The total looks wrong.", "wrong"),
        ("There is no discrepancy and nothing is missing.", None),
        ("I do not see any errors or mismatches.", None),
        ("If the total is wrong, tell us.", None),
        ("The total isn\u2019t suspicious.", None),
        ("No order was found: the total is missing.", "missing"),
        ("It does not exist, and the total is missing.", "missing"),
        ("The total does not match.", "does not match"),
        ("I couldn\u2019t read the total.", "couldn't"),
        ("No errors, but the total is odd.", "odd"),
    ],
)
def test_a_word_of_trouble_that_is_denied_or_supposed_is_none(
    sentence: str, word: str | None
) -> None:
    assert find_trouble_word(sentence) == word
