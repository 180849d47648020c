"""The table of runs: addresses and rows."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stumble.ui.shown_text import show_text
from stumble.ui.values.runs_table import (
    FACETS,
    ORDERS,
    PAGE_ROWS,
    RunsQuery,
    RunsTable,
    count_store,
    read_runs_table,
)
from tests.support.stores.in_memory_relations import Sql, empty, fill

NEWEST = datetime(2026, 11, 24, 6)  # noqa: DTZ001 - times of the store are naive and UTC


@pytest.fixture(scope="module")
def store() -> Iterator[Sql]:
    """120 runs of two agents; every tenth has a fault that went wrong unnoticed."""
    connection = empty()
    runs, injections, outcomes = [], [], []
    for at in range(120):
        struck = at % 10 == 0
        runs.append(
            {
                "trajectory_id": f"r{at:03}",
                "agent": ("one", "two")[at % 2],
                "condition": "fault" if struck else "clean",
                "task": f"task-{at}",
                "recorded_at": (NEWEST - timedelta(minutes=at)).timestamp(),
                "source": "fork" if struck else "record",
                "ended": None if at == 1 else "final",
                "n_steps": at,
            }
        )
        if struck:
            injections.append({"injection_id": f"i{at}", "trajectory_id": f"r{at:03}", "op": "d"})
            outcomes.append({"injection_id": f"i{at}", "judge_version": 1, "class": "silent_wrong"})
            outcomes.append({"injection_id": f"i{at}", "judge_version": 2, "class": "recovered"})
    outcomes.append({"injection_id": "i0", "judge_version": 3, "class": "silent_wrong"})
    fill(connection, "trajectories", runs)
    fill(connection, "injections", injections)
    fill(connection, "outcomes", outcomes)
    yield connection
    connection.close()


def read(connection: Sql, query: RunsQuery) -> RunsTable:
    return read_runs_table(connection, query, count_store(connection))


def test_runs_are_listed_newest_first_and_by_page(store: Sql) -> None:
    table = read(store, RunsQuery(page=3))
    assert (table.total, table.pages, len(table.rows)) == (120, 3, 120 - 2 * PAGE_ROWS)
    assert [row.id for row in table.rows][:2] == ["r100", "r101"]


def test_a_run_without_an_end_is_live(store: Sql) -> None:
    rows = read(store, RunsQuery()).rows
    assert [row.id for row in rows if row.is_live] == ["r001"]


def test_an_outcome_is_of_the_newest_judge(store: Sql) -> None:
    table = read(store, RunsQuery(outcome="silent_wrong"))
    assert [row.id for row in table.rows] == ["r000"]
    assert [each.injection for each in table.rows[0].verdicts] == ["i0"]
    assert {key: n for key, _, n in table.outcomes} == {"silent_wrong": 1, "recovered": 11}


def test_filters_and_text_narrow_each_other(store: Sql) -> None:
    query = RunsQuery(chosen={"agent": "two"}, text="TASK-1")
    assert {row.agent for row in read(store, query).rows} == {"two"}
    assert read(store, query).total == len([1, *range(11, 20, 2), *range(101, 120, 2)])


def test_controls_are_listed_with_their_injection_unless_one_is_asked_for() -> None:
    row = {"source": "fork", "ended": "final", "recorded_at": NEWEST.timestamp()}
    runs = (("rec", "clean", "record"), ("twin", "clean", "fork"), ("sham", "sham", "fork"))
    connection = empty()
    fill(
        connection,
        "trajectories",
        [
            row | {"trajectory_id": id, "condition": condition, "source": source}
            for id, condition, source in (*runs, ("hit", "fault", "fork"))
        ],
    )
    fill(connection, "injections", [
        {"injection_id": "i", "trajectory_id": "hit", "op": "digit", "tool": "get_order"}
    ])  # fmt: skip
    fill(connection, "outcomes", [{"injection_id": "i", "twins": ["a", "b", "c"]}])

    def list_ids(**given: str) -> set[str]:
        table = read(connection, RunsQuery.from_address(given))
        assert table.total == len(table.rows)
        return {row.id for row in table.rows}

    assert list_ids() == {"rec", "hit"}
    assert list_ids(sort="when") == {"rec", "hit"}
    assert list_ids(controls="1") == {"rec", "twin", "sham", "hit"}
    assert list_ids(condition="sham") == {"sham"}
    assert list_ids(q="twin") == {"twin"}
    [hit] = [each for each in read(connection, RunsQuery()).rows if each.verdicts]
    assert (hit.title, hit.verdicts[0].twins) == ("\u2013, get_order", 3)
    connection.close()


def test_a_value_with_a_quote_selects_nothing(store: Sql) -> None:
    assert read(store, RunsQuery(chosen={"agent": "' or 1=1 --"})).total == 0


@given(
    chosen=st.dictionaries(st.sampled_from(FACETS), st.text(min_size=1)),
    text=st.text().map(str.strip),
    order=st.sampled_from(tuple(ORDERS)),
    ascending=st.booleans(),
    controls=st.booleans(),
)
def test_an_address_leads_back_to_its_query(
    chosen: dict[str, str], text: str, order: str, ascending: bool, controls: bool
) -> None:
    from urllib.parse import parse_qsl, urlsplit

    query = RunsQuery(chosen=chosen, text=text, order=order, ascending=ascending, controls=controls)
    given = dict(parse_qsl(urlsplit(query.to_address()).query, keep_blank_values=True))
    assert RunsQuery.from_address(given) == query


@pytest.mark.parametrize(
    "address",
    [{"page": "0"}, {"page": "-1"}, {"page": "\u0663"}, {"sort": "id;drop"}, {"outcome": "x"}],
)
def test_an_invalid_address_selects_all(address: dict[str, str]) -> None:
    assert RunsQuery.from_address(address) == RunsQuery()


@given(st.text())
def test_shown_text_holds_no_character_that_acts(text: str) -> None:
    shown = show_text(text)
    assert not set(shown) & set("\x00\x1b\r\x7f\u202e\u2066\u200b\ufeff\U000e0041")
    assert show_text(shown) == shown


def test_hostile_characters_are_named() -> None:
    assert show_text("a\u202eb\x1b[31m\u200bc\n\td") == "a<U+202E>b\u241b[31m<U+200B>c\n\td"


@pytest.mark.gate
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("chosen", [{}, {"agent": "one"}])
@pytest.mark.parametrize("order", ["when", "agent", "cost"])
def test_the_pages_hold_each_run_once_in_order(
    store: Sql, order: str, chosen: dict[str, str], ascending: bool
) -> None:
    """The last pages are read from the end."""
    listed: list[str] = []
    pages = read(store, RunsQuery(chosen=chosen)).pages
    for page in range(1, pages + 1):
        query = RunsQuery(chosen=chosen, order=order, ascending=ascending, page=page)
        listed += [row.id for row in read(store, query).rows]
    direction = "asc" if ascending else "desc"
    where = " and ".join(["true", *(f"{name} = '{value}'" for name, value in chosen.items())])
    rows = store.execute(
        f"select trajectory_id from trajectories where {where} order by {ORDERS[order]}"
        f" {direction} nulls last, trajectory_id"
    ).fetchall()
    assert listed == [id for (id,) in rows]
    assert read(store, RunsQuery(chosen=chosen, page=pages + 1)).rows == ()
