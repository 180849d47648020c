"""The runner of all tests: groups, second tries, mutants of the gate, examples that were found."""

from pathlib import Path

import pytest

from tests.mutation.mutant import Mutant
from tests.mutation.run import ROOT
from tests.mutation.selection import FIXED, MOST_CHANGED, select_for_gate
from tests.runner import second_try
from tests.runner.__main__ import count_tests, decide, find_last_line
from tests.runner.fuzz import find_examples
from tests.runner.groups import GROUPS, SHARDED, STAGES, choose_groups
from tests.runner.results import GroupResult, TestCase, read_cases, sum_files
from tests.runner.second_try import NO_SECOND_TRY, UnsteadyTest, allows_second_try, find_unsteady

STEADY = "tests/unit/test_steady.py::test_it"


def make_result(*failed: str, code: int = 1, last: str = "") -> GroupResult:
    cases = [TestCase(node=node, seconds=2, cpu_seconds=1, failed=True) for node in failed]
    return GroupResult(name="unit", seconds=3, code=code, last=last, cases=tuple(cases))


def make_unsteady(test: str) -> UnsteadyTest:
    return UnsteadyTest(test=test, seed="0", time="2026-01-01T00:00:00", load=1.0)


def test_every_group_has_one_place_in_the_stages() -> None:
    placed = [name for stage in STAGES for lane in stage for name in lane]
    assert sorted(placed) == sorted(GROUPS)


def test_an_unknown_group_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match="no group slow; there are test, gate, all, lint"):
        choose_groups(["slow"], first_shard=True)


def test_two_shards_run_what_one_run_does() -> None:
    whole = choose_groups(["all"], first_shard=True)
    assert set(choose_groups(["all"], first_shard=False)) == set(whole) & set(SHARDED)


def test_attacks_matching_judging_and_redaction_get_no_second_try() -> None:
    for folder in NO_SECOND_TRY:
        assert any((ROOT / folder).rglob("test_*.py")), folder
        assert not allows_second_try(f"{folder}test_it.py::test_it")
    assert allows_second_try(STEADY)
    assert not allows_second_try("")


def test_a_run_whose_only_failures_passed_alone_is_green() -> None:
    result = make_result(STEADY, last="1 failed, 8 passed in 2 s")
    assert decide([result], [make_unsteady(STEADY)], failed=1)
    assert count_tests([result], unsteady=1) == {"passed": 9, "failed": 0, "skipped": 0}


def test_a_run_with_a_failure_that_stays_is_red() -> None:
    result = make_result(STEADY, "tests/unit/test_other.py::test_it")
    assert not decide([result], [make_unsteady(STEADY)], failed=2)


def test_an_unsteady_test_excuses_no_other_group() -> None:
    lint = GroupResult(name="lint", seconds=1, code=1, last="Found 1 error.")
    assert not decide([make_result(STEADY), lint], [make_unsteady(STEADY)], failed=1)


def test_a_group_that_was_ended_is_red_though_its_failure_passed_alone() -> None:
    assert not decide([make_result(STEADY, code=2)], [make_unsteady(STEADY)], failed=1)


def test_nothing_is_tried_again_after_four_failures() -> None:
    assert find_unsteady([f"{STEADY}{number}" for number in range(4)], {}) == []


@pytest.mark.gate
@pytest.mark.parametrize("passes", [True, False])
def test_a_failure_is_tried_again_in_a_process_of_its_own(tmp_path: Path, passes: bool) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(f"def test_it():\n    assert {passes}\n")
    found = find_unsteady([f"{file}::test_it"], {"PYTHONHASHSEED": "7"})
    assert [each.seed for each in found] == (["7"] if passes else [])


def test_counts_are_read_before_what_a_library_prints_at_the_end() -> None:
    lines = ["1 failed, 8 passed in 2.31s\n", "nanobind: leaked 27 instances!\n", "\n"]
    assert find_last_line(lines) == "1 failed, 8 passed in 2.31s"
    assert find_last_line(["mutants killed 2/2 (3 s, CPU 4 s)\n"]).startswith("mutants killed")
    assert find_last_line([]) == ""


def test_unsteady_tests_are_counted_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUMBLE_UNSTEADY", str(tmp_path / "unsteady.jsonl"))
    for _ in range(2):
        second_try.keep_record([make_unsteady(STEADY)])
    assert (tmp_path / "unsteady.jsonl").read_text().count(STEADY) == 2


def test_a_report_of_pytest_is_read_with_processor_seconds(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    properties = '<property name="node" value="a.py::b"/><property name="cpu" value="1.5"/>'
    junit.write_text(
        f'<testsuites><testsuite><testcase time="2.0"><properties>{properties}</properties>'
        '<failure message="no"/></testcase><testcase time="1.0"/></testsuite></testsuites>'
    )
    cases = list(read_cases(junit))
    assert cases[0] == TestCase(node="a.py::b", seconds=2.0, cpu_seconds=1.5, failed=True)
    assert cases[1] == TestCase(node="", seconds=1.0, cpu_seconds=0, failed=False)
    assert sum_files(cases)[0] == ("a.py", 1.5, 2.0)


def make_mutant(number: int) -> Mutant:
    return Mutant(
        name=f"mutant_{number}", file=f"traces/file_{number}.py", was="a", becomes="b",
        tests=(f"tests/unit/test_{number}.py::test_it",), why="",
    )  # fmt: skip


def test_a_gate_plants_fixed_mutants_and_those_of_changed_files() -> None:
    mutants = tuple(map(make_mutant, range(200)))
    fixed = select_for_gate(mutants, ()).mutants
    assert len(fixed) == FIXED
    changed = ("traces/file_3.py", "tests/unit/test_5.py")
    chosen = select_for_gate(mutants, changed).mutants
    assert set(chosen) == {*fixed, mutants[3], mutants[5]}


def test_a_rename_of_everything_plants_no_more_than_the_gate_can_afford() -> None:
    mutants = tuple(map(make_mutant, range(200)))
    selection = select_for_gate(mutants, [each.file for each in mutants])
    assert len(selection.mutants) == FIXED + MOST_CHANGED
    assert selection.left_out == 200 - FIXED - MOST_CHANGED


FAILURE = """\
E   AssertionError: assert 'TRUE' in known
E   Falsifying example: test_a_flip_makes_up_nothing(
E       self=<tests.Flip object at 0x7f>,
E       body='{"id": "FALSE"}',
E       at='',
E   )
Falsifying example: test_other(
    n=0,
)
"""


def test_a_found_example_is_printed_as_the_decorator_to_paste() -> None:
    found = dict(find_examples(FAILURE.splitlines(keepends=True)))
    assert found == {
        "test_a_flip_makes_up_nothing": """@example(\n    body='{"id": "FALSE"}',\n    at='',\n)""",
        "test_other": "@example(\n    n=0,\n)",
    }
