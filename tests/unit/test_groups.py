"""What two processors leave to other days, of the groups of tests and of the mutants."""

from tests import groups
from tests.mutation.mutant import read_mutants
from tests.mutation.run import ROOT, select_due


def test_three_days_run_each_slow_file_once() -> None:
    files = [file for share in groups.SHARES for file in share]
    assert [file for file in files if not (groups.ROOT / file).is_file()] == []
    left_out = [set(groups.ignore_shares(day)) for day in range(3)]
    for file in files:
        assert sum(f"--ignore={file}" in options for options in left_out) == 2


def test_three_days_run_each_mutant_once() -> None:
    mutants = read_mutants(ROOT, [])
    due = [each.name for day in range(3) for each in select_due(mutants, 3, day)]
    assert sorted(due) == [each.name for each in mutants]
