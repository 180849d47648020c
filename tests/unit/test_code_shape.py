"""Names, imports and prose come no further from those of the field than they are."""

import pytest

from tests.support.code_shape import PartShape, measure_shape

MOST = {
    "late_imports_per_1000_lines": 5.2,
    "old_words_product": 0.025,
    "old_words_tests": 0.062,
    "old_prose_per_1000_words_product": 2.0,
    "old_prose_per_1000_words_tests": 9.8,
    "one_word_classes_tests": 0.78,
    "reused_classes_tests": 0.40,
    "one_word_helpers_tests": 0.79,
}
"""Today's figures; whoever brings one down writes the lower one here."""


@pytest.mark.gate
def test_no_figure_is_above_what_it_was() -> None:
    found = measure_shape()
    assert found.keys() == MOST.keys()
    assert {name: value for name, value in found.items() if value > MOST[name]} == {}


def test_what_is_counted_in_a_file() -> None:
    part = PartShape()
    part.add_file("class Shop: ...\ndef desk(asked):\n    import os\n    own = asked\n# it says\n")
    assert part.classes == {"Shop": 1}
    assert part.helpers == ["desk"]
    assert (part.bindings, part.old_bindings, part.late_imports, part.old_prose) == (2, 2, 1, 1)
