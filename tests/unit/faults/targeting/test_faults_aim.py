"""A trigger says where a fault begins, and what persists says which later calls are struck."""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.targeting.read_or_write import classify_call_side, classify_tool_side
from faults.targeting.selector import CallSelector, is_matching_call
from traces.model import Fault, Scalar


@dataclass(frozen=True)
class Call:
    """A call as an aim sees it."""

    tool: str = "search"
    arguments: str = "{}"
    ordinal: int = 0
    step: int = 1
    place: Literal["http", "mcp", "local", "provider"] = "http"
    server: str | None = "shop.example"
    read_only: bool | None = None
    stage: str | None = None


TEN = tuple(Call(arguments=f'{{"page": {n}}}', step=2 * n) for n in range(1, 11))


def struck(fault: Fault, calls: Iterable[Call] = TEN, *, seed: int = 0) -> list[int]:
    """Which of the calls are struck, counted from 1."""
    aim = CallSelector(fault, seed=seed, trace="t")
    return [n for n, call in enumerate(calls, start=1) if aim.take(call)]


def digit(**said) -> Fault:
    return Fault(name="digit", **said)


def test_what_its_server_says_of_a_tool_counts_more_than_its_name() -> None:
    assert classify_call_side(Call(tool="get_order")) == "read"
    assert classify_call_side(Call(tool="get_order", read_only=False)) == "write"
    assert classify_call_side(Call(tool="delete_everything", read_only=True)) == "read"
    assert struck(digit(when={"first_write": True}), [Call(), Call(read_only=False)]) == [2]
    assert struck(digit(where={"side": "read"}), [Call(read_only=False), Call()]) == [2]


@pytest.mark.parametrize(
    ("when", "first"),
    [
        ({}, [1]),
        ({"nth": 4}, [4]),
        ({"after_calls": 4}, [5]),
        ({"after_calls": 0}, [1]),
        ({"every": 3}, [3, 6, 9]),
        ({"probability": 1.0}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        ({"step_range": "7-11"}, [4]),
        ({"step_range": 8}, [4]),
        ({"step_range": "7-7"}, []),
        ({"first_write": True}, []),
        ({"when_arg_matches": "@.page >= 6"}, [6]),
        ({"nth": 11}, []),
    ],
)
def test_a_trigger_says_where_it_begins(when: Mapping[str, Scalar], first: list[int]) -> None:
    assert struck(digit(when=when)) == first


@pytest.mark.parametrize(
    ("persist", "later"),
    [
        ("once", [3]),
        ("burst:n=4", [3, 4, 5, 6]),
        ("until_step:step=12", [3, 4, 5, 6]),
        ("same_args", [3]),
        ("permanent", [3, 4, 5, 6, 7, 8, 9, 10]),
        ("flapping:on=2,off=3", [3, 4, 8, 9]),
        ("quota:n=5", [8, 9, 10]),
    ],
)
def test_what_persists_strikes_later_calls(persist: str, later: list[int]) -> None:
    assert struck(digit(nth=3, persist=persist)) == later


def test_the_same_arguments_are_struck_again_and_no_others() -> None:
    one, two = Call(arguments='{"a": 1, "b": 2}'), Call(arguments='{"a": 2}')
    again = Call(arguments='{ "b":2,"a":1}', ordinal=1)
    assert struck(digit(persist="same_args"), (one, two, again, two, one)) == [1, 3, 5]
    each_second = digit(when={"every": 2}, persist="same_args")
    assert struck(each_second, (one, two, one, two, one)) == [2, 4]
    assert struck(digit(when={"every": 2}, persist="burst:n=2")) == [2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_only_calls_that_fit_are_counted_but_for_after_calls() -> None:
    other, wanted = Call(tool="get_order"), Call(tool="search_orders")
    calls = (other, wanted, other, wanted, wanted)
    where = {"tool": "search*"}
    assert struck(digit(where=where, nth=2), calls) == [4]
    assert struck(digit(where=where, when={"after_calls": 3}), calls) == [4]
    assert struck(digit(where=where, persist="permanent"), calls) == [2, 4, 5]


@pytest.mark.parametrize(
    ("where", "yes"),
    [
        ({"tool": "sea*"}, True),
        ({"tool": "fetch"}, False),
        ({"server": "shop.*"}, True),
        ({"server": "files"}, False),
        ({"args": "@.page > 2 && @.sort == 'up'"}, True),
        ({"args": "@.page > 3"}, False),
        ({"args": "$.tags[?@ == 'new']"}, True),
        ({"args": "$.tags[?@ == 'old']"}, False),
        ({"side": "read"}, True),
        ({"side": "write"}, False),
        ({"side": "any"}, True),
        ({"transport": "http"}, True),
        ({"transport": "mcp"}, False),
        ({"tool": "search", "args": "$.none"}, False),
    ],
)
def test_all_selectors_have_to_fit(where: Mapping[str, str], yes: bool) -> None:
    call = Call(arguments='{"page": 3, "sort": "up", "tags": ["new"]}')
    assert is_matching_call(digit(where=where), call) is yes


def test_arguments_that_are_no_json_fit_no_question() -> None:
    assert not is_matching_call(digit(where={"args": "$"}), Call(arguments="{broken"))
    assert is_matching_call(digit(where={"args": "$"}), Call(arguments=""))


@pytest.mark.parametrize(
    ("tool", "what"),
    [
        ("get_order", "read"),
        ("getOrder", "read"),
        ("mcp__orders__list_refunds", "read"),
        ("issue_refund", "write"),
        ("shop.orders.delete", "write"),
        ("HTTPPost", "write"),
        ("bash", None),
        ("", None),
    ],
)
def test_a_name_says_whether_a_tool_writes(tool: str, what: str | None) -> None:
    assert classify_tool_side(tool) == what


def test_the_first_write_is_the_first_that_its_name_says() -> None:
    calls = [Call(tool=tool) for tool in ("get_order", "bash", "issue_refund", "add_note")]
    assert struck(digit(when={"first_write": True}), calls) == [3]


SOME = tuple(
    Call(arguments=f'{{"page": {n % 7}}}', ordinal=n // 7, tool=f"tool{n % 3}") for n in range(60)
)
CHANCE = digit(when={"probability": 0.25})


def drawn(calls: Iterable[Call], seed: int = 0) -> set[Call]:
    aim = CallSelector(CHANCE, seed=seed, trace="t")
    return {call for call in calls if aim.take(call)}


@given(st.permutations(SOME))
def test_chance_strikes_the_same_calls_in_whatever_order_they_come(calls: list[Call]) -> None:
    assert drawn(calls) == drawn(SOME)


def test_chance_depends_on_the_seed_and_strikes_about_as_often_as_it_says() -> None:
    by_seed = [frozenset(drawn(SOME, seed)) for seed in range(200)]
    assert len(set(by_seed)) == 200
    assert 0.22 < sum(map(len, by_seed)) / (200 * len(SOME)) < 0.28


@pytest.mark.gate
def test_chance_is_the_same_in_another_process_whatever_its_hash_seed() -> None:
    program = (
        "from tests.unit.faults.targeting.test_faults_aim import SOME, drawn\n"
        "from faults.seeded_random import make_rng\n"
        "print(sorted(SOME.index(call) for call in drawn(SOME, 7)), make_rng('a1', 3).random())"
    )
    result = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": number, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for number in ("0", "1", "77")
    }
    here = [0, 2, 8, 12, 14, 15, 17, 19, 21, 27, 29, 33, 34, 46, 47, 57]
    assert result == {f"{here} 0.21930702889332454\n"}
    assert drawn(SOME, 7) == {SOME[n] for n in here}


def told(fault: Fault) -> str:
    from faults import bind_operator

    with pytest.raises(ValueError, match=".") as error:
        bind_operator(fault)
    return str(error.value)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (digit(when={"evry": 3}), "no trigger is called 'evry'; did you mean every?"),
        (digit(when={"every": 0}), "every is 0, not a whole number from 1"),
        (digit(when={"every": True}), "every is True, not a whole number from 1"),
        (digit(when={"probability": 1.5}), "probability is 1.5, not a number above 0 and up to 1"),
        (digit(when={"probability": 0}), "probability is 0, not a number above 0 and up to 1"),
        (digit(when={"first_write": 2}), "first_write is 2; it takes no value but true"),
        (digit(when={"step_range": "9-3"}), "step_range is '9-3', not FROM-TO, as in 3-8"),
        (digit(when={"step_range": "soon"}), "step_range is 'soon', not FROM-TO"),
        (digit(when={"position": "eraly"}), "position is 'eraly'; did you mean early?"),
        (digit(when={"when_arg_matches": "@.a >"}), "'@.a >' is no JSONPath"),
        (digit(persist="brust:n=3"), "nothing is called 'brust'; did you mean burst?"),
        (digit(persist="burst"), "burst needs n, as in burst:n=3"),
        (digit(persist="flapping:on=1"), "flapping needs off, as in flapping:on=3,off=3"),
        (digit(persist="burst:m=3"), "burst has no parameter 'm'; there is n"),
        (digit(persist="once:n=3"), "once has no parameter 'n'; it takes none"),
        (digit(persist="burst:n=0"), "burst: n is 0, not a whole number from 1"),
        (digit(where={"toll": "x"}), "no selector is called 'toll'; did you mean tool?"),
        (digit(where={"args": "amount["}), "'amount[' is no JSONPath"),
        (digit(where={"path": "$.a"}), "parameter of the fault: digit:path=$.a"),
        (digit(params={"path": "$.a["}), "digit: path '$.a[' is no JSONPath"),
        (digit(where={"side": "wirte"}), "side is 'wirte'; did you mean write?"),
        (digit(where={"transport": "mpc"}), "transport is 'mpc'; did you mean mcp?"),
        (digit(max_injections=0), "max_injections is 0, not a whole number from 1"),
    ],
)
def test_what_can_not_be_is_said_with_the_nearest_name(fault: Fault, says: str) -> None:
    assert says in told(fault)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (digit(nth=2, when={"every": 3}), "every and nth contradict each other"),
        (digit(nth=2, when={"nth": 3}), "nth is said twice"),
        (digit(when={"every": 2}, persist="permanent"), "every and persist=permanent contradict"),
        (
            digit(when={"probability": 0.5}, persist="flapping:on=1,off=1"),
            "probability and persist=flapping contradict",
        ),
        (digit(when={"first_write": True}, where={"side": "read"}), "side=read contradict"),
        (
            digit(when={"step_range": "8-9"}, persist="until_step:step=7"),
            "step_range=8-9 begins after until_step:step=7 is over",
        ),
        (digit(max_injections=2), "max_injections=2 contradicts persist=once"),
        (digit(where={"transport": "mcp"}, at="http"), "at=http and transport=mcp contradict"),
        (
            Fault(name="http_status", where={"path": "$.a"}),
            "http_status bends no part of a result, so path says nothing",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_before_anything_runs(fault: Fault, says: str) -> None:
    assert says in told(fault)


def test_what_is_nested_too_deep_fits_no_question_and_stops_no_run() -> None:
    for depth in (200, 200_000):
        deep = Call(arguments="[" * depth + "1" + "]" * depth)
        assert not is_matching_call(digit(where={"args": "$..page"}), deep)
