"""DuckDB's SQL in Spark's dialect. Answers of Spark: `python -m tests.bench.spark`."""

import re

import pytest

from stumble.spark.translate import SparkTranslator
from traces.store.sql import bind_question, read_view


@pytest.fixture(scope="module")
def translator() -> SparkTranslator:
    return SparkTranslator()


def test_a_view_and_what_it_reads_are_named(translator: SparkTranslator) -> None:
    assert {"injection_rates", "excess"} <= translator.translate(read_view("recovery")).tables
    assert "outcomes" in translator.translate(read_view("verdicts")).tables


@pytest.mark.gate
@pytest.mark.parametrize("name", ["compare", "standardised", "flips", "zero_events"])
def test_a_question_has_a_translation(translator: SparkTranslator, name: str) -> None:
    query = translator.translate(*bind_question(name)).text
    assert not set("$[") & set(query)
    assert "QUALIFY" not in query
    assert "FROM SELECT" not in query
    defined = re.findall(r"(?:WITH|,) `(\w+)` AS \(SELECT", query)
    assert len(defined) == len(set(defined))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select [x + 1 for x in [1, 2] if x > 1]", "TRANSFORM(FILTER("),
        ("select list(op order by step) from injections", "ARRAY_SORT(COLLECT_LIST("),
        ("select 1 / n from (select 0 as n)", "CAST('Infinity' AS DOUBLE)"),
        ("select 0.1", "CAST('0.1' AS DOUBLE)"),
        ("select list_transform([5], lambda x, n: n)", " + 1)"),
        ("select * exclude (op) from injections", "EXCEPT (`op`)"),
        ("select seqs[1] from steps", "TRY_ELEMENT_AT(`seqs`"),
        ("select op from injections qualify row_number() over (order by op) = 1", "is_qualified"),
        ("from injections", "SELECT * FROM `injections`"),
    ],
)
def test_a_clause_is_written_as_spark_has_it(
    translator: SparkTranslator, query: str, said: str
) -> None:
    assert said in translator.translate(query).text


def test_lists_apart_stay_in_their_columns(translator: SparkTranslator) -> None:
    query = translator.translate(
        "select 1 as a, unnest([2, 3]) as b, null, unnest([4, 5]) as d union all select 1, 2, 3, 4"
    ).text
    order = "SELECT `item_0` AS `a`, `item_1` AS `b`, `item_2` AS `NULL`, `item_3` AS `d` FROM ("
    assert query.startswith(order), query
    assert "INLINE(ARRAYS_ZIP(ARRAY(2, 3), ARRAY(4, 5))) AS (`item_1`, `item_3`)" in query


def test_no_argument_of_a_macro_is_captured_by_its_variables(translator: SparkTranslator) -> None:
    query = translator.translate("select norm_sf(x) from (select 2.0 as x)").text
    assert query.count("`x`") == 2  # bound once, and the column itself


def test_a_variable_that_is_the_whole_value_of_a_field_is_bound(
    translator: SparkTranslator,
) -> None:
    query = translator.translate("select list_mode(list(op)) from injections").text
    assert re.search(r"`v\d+` AS `x`", query), query
    assert "`x` AS" not in query


@pytest.mark.parametrize(
    "query",
    ["pivot injections on op using count(*)", "select list(op order by op desc) from injections"],
)
def test_a_clause_without_a_translation_is_named(translator: SparkTranslator, query: str) -> None:
    with pytest.raises(ValueError, match="no translation"):
        translator.translate(query)


def test_text_that_is_no_sql_is_refused(translator: SparkTranslator) -> None:
    with pytest.raises(ValueError, match="cannot read"):
        translator.translate("select from where (")
