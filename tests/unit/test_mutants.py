"""Each mutant can still be planted, and its tests are still found."""

from pathlib import Path

from tests.mutation.mutant import read_mutants


def test_each_mutant_can_be_planted() -> None:
    mutants = read_mutants(Path(__file__).resolve().parents[2], [])
    assert len({mutant.name for mutant in mutants}) > 200
