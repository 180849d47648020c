"""The table of docs/clients.md is what the rows of the clients' test run give."""

from copy import replace
from pathlib import Path

import pytest

from tests.support.agents.client_rows import (
    PAGE,
    ClientRow,
    name_changes,
    read_rows,
    replace_table,
    to_table,
    write_row,
)
from tests.support.agents.client_versions import NPM, OF_THE_MACHINE, PIP
from tests.support.agents.daily_agents import DAILY
from tests.support.agents.form_rows import (
    FormRow,
    read_form_rows,
    replace_form_table,
    write_form_row,
)
from tests.support.agents.form_trial import FORMS
from tests.support.agents.third_party_agents import AGENTS

ROW = ClientRow(
    client="b", version="b 1.0", tried="2026-01-02", api="openai_chat", record="7 model calls",
    show="7 answers, 6 calls", replay="7 answered", later="7 answered", fork="reached the model",
    live_fault="429, asked again",
)  # fmt: skip


def test_the_page_has_the_table_that_the_rows_give() -> None:
    page = PAGE.read_text()
    assert page == replace_table(page, read_rows().values())


def test_the_page_has_the_table_of_forms_that_the_rows_give() -> None:
    page = PAGE.read_text()
    assert page == replace_form_table(page, read_form_rows().values())


def test_rows_are_of_forms_that_an_agent_has() -> None:
    expected = {(name, f) for name, agent in DAILY.items() for f in FORMS if f not in agent.lacks}
    assert set(read_form_rows()) <= expected


def test_a_row_replaces_that_of_its_agent_and_form_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    cells = dict.fromkeys(("record", "zone", "later", "loud", "quiet"), "x")
    one = FormRow(client="a", version="a 1", tried="2026-01-02", form="pipe", **cells)
    rows = (one, replace(one, form="terminal"), replace(one, tried="2026-03-04"))
    for row in rows:
        write_form_row(row, path)
    assert list(read_form_rows(path).values()) == [rows[2], rows[1]]


def test_each_client_has_a_row_and_a_package_with_a_version() -> None:
    assert set(read_rows()) == set(AGENTS)
    assert set(PIP) | set(NPM) | set(OF_THE_MACHINE) == set(AGENTS)


def test_a_row_replaces_that_of_its_client_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    other = replace(ROW, client="a")
    for row in (ROW, other, replace(ROW, tried="2026-03-04")):
        write_row(row, path)
    assert read_rows(path) == {"a": other, "b": replace(ROW, tried="2026-03-04")}


def test_changes_are_named_by_field_and_another_day_is_none() -> None:
    newer = replace(ROW, version="b 2.0", tried="2026-03-04", fork="FAILED: exit code 2")
    assert name_changes(replace(ROW, tried="2026-03-04"), ROW) == []
    assert name_changes(newer, ROW) == [
        "b: version: b 1.0 -> b 2.0",
        "b: fork: reached the model -> FAILED: exit code 2",
    ]


def test_rows_are_sorted_and_a_page_without_marks_is_refused() -> None:
    lines = to_table([ROW, replace(ROW, client="a")]).splitlines()
    assert [line.split(" | ")[0] for line in lines] == ["| client", "| ---", "| a", "| b"]
    with pytest.raises(ValueError, match="no table"):
        replace_table("# Clients\n", [ROW])
