"""The rows that `stumble atlas build` derived from all sources, beside other implementations.

`tests/data/atlas` holds them: no text of any run. `stumble atlas build --from CLONES --atlas
tests/data/atlas` writes them again.
"""

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from click.testing import CliRunner

from stumble.atlas.conclusions import CONCLUSIONS, find_conclusion_row, list_conclusions
from stumble.atlas.page import build_atlas_page, recompute_number
from stumble.atlas.published import PUBLISHED
from stumble.atlas.query import connect_atlas
from stumble.atlas.query import run_atlas_question as ask
from stumble.atlas.sources import SOURCES
from stumble.cli.app import cli

if TYPE_CHECKING:
    import polars as pl

ATLAS = Path(__file__).resolve().parents[2] / "data" / "atlas"


@pytest.fixture(scope="module")
def runs() -> "pl.DataFrame":
    import polars as pl

    return pl.read_parquet(ATLAS / "run" / "*.parquet")


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return connect_atlas(ATLAS)


def test_the_published_numbers_come_out(connection: duckdb.DuckDBPyConnection) -> None:
    found = [recompute_number(connection, number) for number in PUBLISHED]
    assert [round(100 * (value or -1), 2) for value in found] == [
        58.75, 60.1, 52.5, 54.69, 42.0, 20.0, 74.2, 100.0,
    ]  # fmt: skip
    sources = {row["source"]: row for row in ask(connection, "atlas_sources")}
    tau, gemini = sources["tau-airline"], sources["mini-swe-gemini"]
    assert (tau["runs"], tau["calls"], tau["errors"]) == (200, 1164, 73)
    assert (gemini["runs"], gemini["passed"]) == (500, 371)
    mistakes = {row["suite"]: row for row in ask(connection, "decisive_mistakes")}
    assert mistakes["all"]["median_position"] == pytest.approx(0.40, abs=1e-9)
    assert mistakes["who-and-when-algorithm-generated"]["median_step"] == 2
    assert mistakes["who-and-when-hand-crafted"]["median_step"] == 12


def test_there_are_many_runs_of_many_models(runs: "pl.DataFrame") -> None:
    import polars as pl

    assert set(runs["source"]) == {source.RECIPE.name for source in SOURCES}
    assert runs.height >= 4500
    assert runs["model"].drop_nulls().n_unique() >= 15
    calls = pl.read_parquet(ATLAS / "call" / "*.parquet")
    failed = calls.filter(pl.col("is_error")).join(runs, on="run_id")
    assert failed.filter(pl.col("source") == "tau-airline")["run_id"].n_unique() == 36


@pytest.mark.gate
def test_five_numbers_of_the_page_agree_with_polars(
    connection: duckdb.DuckDBPyConnection, runs: "pl.DataFrame"
) -> None:
    import polars as pl

    rows = [find_conclusion_row(connection, each) or {} for each in CONCLUSIONS]
    by_question = {each.question: row for each, row in zip(CONCLUSIONS, rows, strict=True)}
    opus = runs.filter(agent="droid", model="claude-opus-4-1")
    trials = (
        opus.drop_nulls("passed")
        .group_by("task")
        .agg(pl.len(), pl.col("passed").sum())
        .filter(pl.col("len") == 5)
    )
    gemini = runs.filter(source="mini-swe-gemini")
    steps = gemini.select(pl.col("steps").sum(), (~pl.col("passed")).sum().alias("deaths"))
    p = 1 - steps["deaths"][0] / steps["steps"][0]
    mistakes = runs.drop_nulls("mistake_step")
    folder = (mistakes["mistake_step"] + 1) / mistakes["steps"]
    agreed = {
        ("pass_rates", "rate"): opus["passed"].mean(),
        ("pass_power", "unbiased"): (trials["passed"] == 5).mean(),
        ("pass_power", "flaky"): trials["passed"].is_between(1, 4).mean(),
        ("implied_steps", "implied"): p**50,
        ("decisive_mistakes", "median_position"): folder.median(),
        ("decisive_mistakes", "first_third"): (folder <= 1 / 3).mean(),
    }
    for (question, column), value in agreed.items():
        assert by_question[question][column] == pytest.approx(value, abs=1e-9), (question, column)


@pytest.mark.gate
def test_survival_agrees_with_lifelines(
    connection: duckdb.DuckDBPyConnection, runs: "pl.DataFrame"
) -> None:
    """At the last step, up to which every failure is dated."""
    import polars as pl
    from lifelines import KaplanMeierFitter

    curves = [r for r in ask(connection, "survival_curve") if r["curve"] == "ends_right"]
    last = {(row["agent"], row["model"]): row for row in curves}
    known = runs.filter(pl.col("mistake_step").is_null()).drop_nulls(["passed", "steps"])
    groups = known.group_by("agent", "suite", "model")
    compared = 0
    for (agent, suite, model), alike in groups:
        row = last[f"{agent} on {suite}", model]
        if row["deaths"] is None or row["at_least"] is None:
            continue
        fitted = KaplanMeierFitter().fit(alike["steps"].to_list(), (~alike["passed"]).to_list())
        at = float(fitted.predict(float(str(row["step"]))))
        assert row["at_least"] == pytest.approx(at, abs=1e-9), (agent, suite, model)
        compared += 1
    assert compared >= 15


@pytest.mark.gate
def test_every_sentence_names_a_question_that_gives_its_figures(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    page = build_atlas_page(connection, [source.RECIPE.name for source in SOURCES])
    [section] = [each for each in page.sections if each.name == "conclusions"]
    shown = [tuple(map(str, row)) for row in section.tables[0].rows]
    assert shown == list_conclusions(connection)
    assert len(shown) == len(CONCLUSIONS)
    for conclusion, (sentence, command) in zip(CONCLUSIONS, shown, strict=True):
        words = shlex.split(command)[1:]
        answer = CliRunner().invoke(cli, (*words, "--atlas", str(ATLAS), "--json"))
        rows = [
            row
            for row in json.loads(answer.stdout)
            if all(row[key] == value for key, value in conclusion.row.items())
        ]
        values = [v for v in rows[0].values() if isinstance(v, int | float)]
        filled = re.sub(r"\{[^}]*\}", "\0", conclusion.text)
        figures = re.fullmatch(re.escape(filled).replace("\0", "(.+?)"), sentence)
        assert figures is not None
        for figure in figures.groups():
            digits = len(figure.rstrip("%").partition(".")[2])
            scale = 100 if figure.endswith("%") else 1
            given = float(figure.rstrip("%"))
            assert any(abs(given - scale * v) <= 0.5001 * 10**-digits for v in values), sentence
