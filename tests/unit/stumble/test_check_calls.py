"""Which calls of a recording a check tries: a shell is as many tools as it runs programs."""

from faults.judging.judge import RunEvidence
from stumble.check.call_names import count_call, find_call, group_calls
from stumble.check.fault_choice import MAX_GROUPS, choose_faults
from tests.support.stores.scripted_runs import Telling

COUNTED = "total 1284 of 4512"


def shelled(*commands: str) -> RunEvidence:
    told = Telling()
    for command in commands:
        if "curl" in command:
            told = told.asks("bash", COUNTED, command=command)
        else:
            told = told.runs(command, COUNTED)
    return told.says("Done.").over()


def test_commands_of_a_shell_are_named_by_their_programs_and_whether_they_write() -> None:
    run = shelled(
        "cat a.csv", "git push", "cat b.csv", "curl -d x http://shop/bash", "FOO=1 ls; cat c.csv"
    )
    groups = group_calls(run.story, run.tape)
    assert {name: len(uses) for name, uses in groups.items()} == {
        "bash (cat)": 2, "bash (git push)": 1, "bash (curl; writes)": 1, "bash (cat, ls)": 1,
    }  # fmt: skip


def test_each_kind_of_command_has_faults_at_a_call_of_its_own() -> None:
    run = shelled("cat a.csv", "git push", "cat b.csv", "curl -d x http://shop/bash")
    chosen = choose_faults(run.tape, run.story, live=True).faults
    assert chosen[0].key == ("bash (curl; writes)", "lost_ack")
    at = {each.key[0]: each.table["nth"] for each in chosen}
    assert at == {"bash (curl; writes)": 4, "bash (cat)": 3, "bash (git push)": 2}


def test_more_kinds_than_are_tried_are_named() -> None:
    run = shelled("cat a.csv", "ls", "head b.csv", "tail c.csv", "curl -d x http://shop/bash")
    choice = choose_faults(run.tape, run.story, live=True)
    tried = {each.key[0] for each in choice.faults}
    assert tried == {"bash (curl; writes)", "bash (cat)", "bash (tail)"}
    left = [each for each in choice.left_out if f"{MAX_GROUPS} kinds" in each]
    assert [each.partition(":")[0] for each in left] == ["bash (ls)", "bash (head)"]


def test_a_tool_that_runs_no_command_is_one_and_its_call_is_placed_by_the_campaign() -> None:
    told = Telling().asks("get_slots", COUNTED).asks("get_slots", COUNTED, day="2")
    run = told.says("Done.").over()
    chosen = choose_faults(run.tape, run.story, live=True).faults
    assert {each.key[0] for each in chosen} == {"get_slots"}
    assert not any("nth" in each.table for each in chosen)
    second = find_call(run.story, "c2")
    assert second is not None
    assert count_call(run.story, second) == 2
