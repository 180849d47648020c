"""What is left of faults that break a run: as few as do, as early as does, and once."""

import asyncio
import tomllib
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.specs.spec_parser import parse_fault as read_fault
from stumble.runs.shrink import (
    Faults,
    FaultShrinker,
    fault_to_options,
    faults_to_toml,
    rebuild_faults,
)
from tests.support.stores.scripted_runs import (
    ORDER,
    Telling,
)
from traces.conversation.derived_steps import derive_tape_steps
from traces.model import Fault, Injection

TWO = Telling().calls(ORDER).calls(ORDER).says("DONE").over().tape


def fault(name: str, nth: int = 1, persist: str = "once") -> Fault:
    return Fault(name=name, where={"tool": "get_order"}, nth=nth, persist=persist)


def shrunk(faults: Faults, broken: object, most: int = 1000) -> tuple[Faults, FaultShrinker]:
    assert callable(broken)

    async def breaks(some: Faults) -> bool:
        return bool(broken(some))

    shrinking = FaultShrinker(breaks, most)
    return asyncio.run(shrinking.shrink(faults)), shrinking


@given(st.integers(1, 9), st.data())
def test_what_is_left_breaks_and_without_any_of_it_does_not(n: int, data: st.DataObject) -> None:
    """Against any rule of which faults together break a run, more of them breaking it too."""
    names = [f"f{k}" for k in range(n)]
    needed = data.draw(st.lists(st.sets(st.sampled_from(names), min_size=1), min_size=1))

    def broken(some: Faults) -> bool:
        return any(each <= {one.name for one in some} for each in needed)

    all = tuple(fault(name) for name in names)
    if not broken(all):
        return
    left, _ = shrunk(all, broken)
    assert broken(left)
    assert not any(broken(fewer) for fewer in combinations(left, len(left) - 1) if fewer)


def test_a_fault_that_need_not_persist_strikes_once_and_as_early_as_it_can() -> None:
    def broken(some: Faults) -> bool:
        return any(each.name == "digit" and (each.nth or 1) >= 2 for each in some)

    left, _ = shrunk((fault("delay"), fault("digit", 4, "same_args")), broken)
    assert left == (fault("digit", 2),)


def test_a_fault_that_must_persist_goes_on_to() -> None:
    left, _ = shrunk((fault("digit", 2, "permanent"),), lambda some: some[0].persist == "permanent")
    assert left == (fault("digit", 1, "permanent"),)


def test_no_set_is_asked_for_twice_and_no_more_than_allowed() -> None:
    asked: list[Faults] = []

    def broken(some: Faults) -> bool:
        asked.append(some)
        return len(some) >= 3

    all = tuple(fault(f"f{k}", 3) for k in range(8))
    shrunk(all, broken)
    assert len(asked) == len({faults_to_toml(each) for each in asked})
    asked.clear()
    _, shrinking = shrunk(all, broken, most=4)
    assert len(asked) == 4
    assert shrinking.is_exhausted


def test_a_set_in_the_words_of_a_scenario_file_is_the_same_set() -> None:
    faults = (
        Fault(
            name="digit", params={"path": '$["a b"]', "min_digits": 3}, at="http",
            where={"tool": 'say "x"'}, nth=2, persist="burst:n=3",
        ),
        fault("sham"),
    )  # fmt: skip
    tables = tomllib.loads(faults_to_toml(faults))["faults"]
    assert tuple(read_fault(each) for each in tables) == faults


def test_options_for_a_shell() -> None:
    assert fault_to_options(fault("digit", 2, "same_args")) == (
        "--fault digit --where tool=get_order --nth 2 --persist same_args"
    )


def struck(**told: object) -> Injection:
    usual: dict[str, object] = {"id": "r/1", "seq": 3, "side": "response", "op": "digit"}
    usual |= {"place": "http", "address": "", "tool": "get_order", "call_id": "c2"}
    return Injection(**usual | told)  # type: ignore[arg-type]


def test_the_faults_of_a_run_are_aimed_at_the_calls_they_began_with() -> None:
    again = struck(id="r/2", repeat_of="r/1")
    [found] = rebuild_faults(
        [struck(persist="same_args", params={"how": "drop"}), again], derive_tape_steps(TWO)
    )
    assert (found.name, found.nth, found.persist, found.at) == ("digit", 2, "same_args", "http")
    assert found.params == {"how": "drop"}


@pytest.mark.parametrize("odd", [{"tool": None}, {"call_id": "c9"}])
def test_what_struck_no_call_of_a_tool_has_no_other_site(odd: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="call"):
        rebuild_faults([struck(**odd)], derive_tape_steps(TWO))
