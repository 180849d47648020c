"""Tables from rows."""

from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from traces.store.schema import (
    MAX_TEXT_BYTES,
    SCHEMAS,
    RelationRowMaker,
    clip_stored_text,
    make_relation_row,
    make_relation_table,
)


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_rows_are_a_table_of_the_relation(name: str) -> None:
    assert make_relation_table(name, ()).schema == SCHEMAS[name]
    assert make_relation_table(name, [make_relation_row(name, {})]).schema == SCHEMAS[name]


def test_the_columns_of_a_row_are_those_of_the_schema() -> None:
    [found] = make_relation_table(
        "usage", [("t", 3, "m", 10, None, 5, None, 0.5, None)]
    ).to_pylist()
    assert found["trajectory_id"] == "t"
    assert (found["completion_tokens"], found["cost_usd"]) == (5, 0.5)


def test_a_wall_clock_is_given_in_seconds_and_kept_in_utc() -> None:
    noon = datetime(2026, 11, 21, 12, 0, 0, 250_000)
    rows = [
        make_relation_row("trajectories", {"recorded_at": noon.replace(tzinfo=UTC).timestamp()}),
        make_relation_row("trajectories", {"recorded_at": None}),
    ]
    assert make_relation_table("trajectories", rows)["recorded_at"].to_pylist() == [noon, None]


def test_lists_are_lists() -> None:
    steps = make_relation_table(
        "steps", [make_relation_row("steps", {"seqs": (1, 4)}), make_relation_row("steps", {})]
    )
    assert steps["seqs"].to_pylist() == [[1, 4], None]


def test_half_a_surrogate_pair_is_kept_as_a_question_mark() -> None:
    rows = [make_relation_row("messages", {"content": text}) for text in ("a\ud83db", "é", None)]
    assert make_relation_table("messages", rows)["content"].to_pylist() == ["a?b", "é", None]


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="usage has 9 columns, these rows have 2"):
        make_relation_table("usage", [("t", 1)])
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        make_relation_table("usage", [("t", 1), ("t",)])


def test_a_value_of_another_kind_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        make_relation_table("usage", [make_relation_row("usage", {"seq": "three"})])


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(ValueError, match="usage has no column tokens; it has trajectory_id, seq"):
        make_relation_row("usage", {"tokens": 3})


@given(st.text(max_size=20), st.integers(0, 3000))
def test_a_text_is_clipped_where_a_character_ends(start: str, size: int) -> None:
    text = start + "é€😀" * size
    kept = clip_stored_text(text)
    assert text.startswith(kept)
    assert len(kept.encode()) <= MAX_TEXT_BYTES
    assert kept == text or len(kept.encode()) > MAX_TEXT_BYTES - 4


class SampleCase(Struct, frozen=True):
    stage: str
    program: str
    result: str
    score: float
    reached: bool
    why: str | None
    note: str = ""


GIVEN = ("trajectory_id",)


def test_a_row_is_made_by_the_names_of_the_fields() -> None:
    make = RelationRowMaker(
        "stage_cases", SampleCase, {"why": repr}, given=GIVEN, left_out=("note",)
    )
    case = SampleCase(stage="T1", program="a", result="pass", score=1.0, reached=True, why=None)
    assert make(case, trajectory_id="t") == ("t", "T1", "a", "pass", 1.0, True, repr(case))
    with pytest.raises(TypeError, match="given are stage, not trajectory_id"):
        make(case, stage="T1")


@pytest.mark.parametrize(
    ("computed", "given", "left_out", "wrong"),
    [
        ({}, (), ("note",), "trajectory_id"),
        ({}, GIVEN, (), "note"),
        ({"other": str}, GIVEN, ("note",), "other"),
        ({"trajectory_id": str}, GIVEN, ("note",), "trajectory_id"),
        ({}, (*GIVEN, "why"), ("note",), "why"),
        ({}, GIVEN, ("note", "nonesuch"), "nonesuch"),
    ],
)
def test_a_field_too_many_or_too_few_is_an_error_when_a_module_loads(
    computed: dict[str, Callable[[SampleCase], object]],
    given: tuple[str, ...],
    left_out: tuple[str, ...],
    wrong: str,
) -> None:
    with pytest.raises(TypeError, match=f"rows of stage_cases and its columns differ in {wrong}$"):
        RelationRowMaker("stage_cases", SampleCase, computed, given=given, left_out=left_out)
