"""A fault is written the same way in a file and on a command line."""

import tomllib
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import OPERATORS, bind_operator
from faults.operator import operator
from faults.specs.spec_parser import parse_fault
from faults.specs.spec_syntax import (
    parse_fault_table,
    parse_spec_text,
    split_spec_text,
    write_spec_text,
)
from stumble.cli.options import parse_fault_options
from traces.model import Exchange, Fault

TOML = """
fault = "truncate:keep=0.3"
where = { tool = "search*", args = "@.page == 2" }
when = { every = 3 }
persist = "burst:n=2"
max_injections = 4
at = "http"
"""


def test_a_file_and_a_command_line_say_the_same_fault() -> None:
    by_line = parse_fault_options(
        "truncate:keep=0.3",
        ("tool=search*", "args=@.page == 2"),
        None,
        ("every=3",),
        "burst:n=2",
        4,
        "http",
    )
    assert parse_fault_table(tomllib.loads(TOML)) == by_line
    assert by_line == Fault(
        name="truncate",
        params={"keep": 0.3},
        where={"tool": "search*", "args": "@.page == 2"},
        at="http",
        when={"every": 3},
        persist="burst:n=2",
        max_injections=4,
    )


def test_a_text_may_stand_in_a_table_of_its_own() -> None:
    table = {"fault": "digit:min_digits=2", "params": {"field": "a,b=c"}}
    found = parse_fault_table(table)
    bind_operator(found)
    assert found.params == {"min_digits": 2, "field": "a,b=c"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("digit", ("digit", {})),
        ("digit:", ("digit", {})),
        ("delay:ms=1e3,jitter_ms=2", ("delay", {"ms": 1000.0, "jitter_ms": 2})),
        ("empty:path=$.a[0,2],how=null", ("empty", {"path": "$.a[0,2]", "how": "null"})),
        (" delay : ms = 5 ", ("delay", {"ms": 5})),
        ("x:a=true,b=no,c==", ("x", {"a": True, "b": "no", "c": "="})),
    ],
)
def test_a_text_is_a_name_and_parameters(text: str, what: object) -> None:
    assert parse_spec_text(text) == what


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"falt": "digit"}, "falt: no such key; did you mean fault?"),
        ({}, "fault: None is not NAME:KEY=VALUE"),
        ({"fault": 3}, "fault: 3 is not NAME:KEY=VALUE"),
        ({"fault": "digit:x"}, "'x' is not key=value"),
        ({"fault": "digit:a=1,a=2"}, "says 'a' twice"),
        ({"fault": "digit:field=a", "params": {"field": "b"}}, "params: 'field' is in fault too"),
        ({"fault": "digit", "where": "tool=x"}, "where: 'tool=x' is not a table"),
        ({"fault": "digit", "where": {"tool": ["x"]}}, "where.tool: ['x'] is not a number"),
        ({"fault": "digit", "nth": 1.5}, "nth: 1.5 is not a whole number"),
        ({"fault": "digit", "nth": True}, "nth: True is not a whole number"),
        ({"fault": "digit", "persist": 3}, "persist: 3 is not a text"),
        ({"fault": "digit", "at": "htp"}, "at: no place is called 'htp'; did you mean http?"),
    ],
)
def test_an_error_begins_with_the_key(table: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=".") as error:
        parse_fault_table(table)
    assert says in str(error.value)


@pytest.fixture
def named_by_number() -> Iterator[None]:
    """An operator of somebody else, with a text that looks like a number."""

    @operator("E98")
    def ticket(exchange: Exchange, rng: Random, *, number: str = "0") -> Exchange:
        """Say a number."""
        return exchange

    yield
    del OPERATORS["ticket"]


@pytest.mark.usefixtures("named_by_number")
def test_a_number_is_a_text_where_the_operator_wants_one() -> None:
    assert parse_fault({"fault": "ticket:number=0042"}).params == {"number": "0042"}
    assert parse_fault({"fault": "ticket", "params": {"number": "7"}}).params == {"number": "7"}
    with pytest.raises(ValueError, match="number is 7, not a text"):
        parse_fault({"fault": "ticket", "params": {"number": 7}})


@given(st.dictionaries(st.text("abc_", min_size=1), st.text()))
def test_a_written_fault_is_read_back(params: dict[str, str]) -> None:
    assert split_spec_text(write_spec_text("replace", params)) == ("replace", params)


def test_a_quoted_value_may_hold_commas_and_quotes() -> None:
    name, params = split_spec_text(r'replace:value="a, \"b\"",path=$["c,d"]')
    assert (name, params) == ("replace", {"value": 'a, "b"', "path": '$["c,d"]'})
