"""The atlas over real published runs, beside second implementations of its numbers."""

import gzip
import hashlib
import json
import statistics
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from stumble.atlas.build import build_source
from stumble.atlas.page import build_atlas_page, recompute_number
from stumble.atlas.published import PUBLISHED
from stumble.atlas.query import connect_atlas, list_atlas_questions, own_question_names
from stumble.atlas.query import run_atlas_question as ask
from stumble.atlas.rows import to_tables
from stumble.atlas.source_files import SourceFile, compute_blob_id, compute_files_digest
from stumble.atlas.sources import tau_airline, terminal_bench, who_and_when
from stumble.atlas.weights import resolve_rates, weigh_faults
from stumble.cli.app import cli
from stumble.report.html import render_report_html

pytestmark = pytest.mark.gate

TAU_PATH = "historical_trajectories/gpt-4o-airline.json"


@pytest.fixture(scope="module")
def tau_file(shared: Path) -> SourceFile:
    data = gzip.decompress((shared / "tau/gpt-4o-airline.json.gz").read_bytes())
    return SourceFile(path=TAU_PATH, data=data)


def write_atlas(folder: Path, tau_files: Sequence[SourceFile]) -> Path:
    """Trials and annotated failures of known numbers, beside files of tau-bench."""
    trials = [summary(n) for n in range(max(map(len, ENDS.values())))]
    failures = [failure(n, turns, step) for n, (turns, step) in enumerate(MISTAKES)]
    for source, files in (
        (tau_airline, tau_files),
        (terminal_bench, trials),
        (who_and_when, failures),
    ):
        tables = to_tables(source.read_runs(files), source.RECIPE.name)
        for relation, table in zip(("run", "call"), tables, strict=True):
            (folder / relation).mkdir(exist_ok=True)
            pq.write_table(table, folder / relation / f"{source.RECIPE.name}.parquet")
    return folder


@pytest.fixture(scope="module")
def atlas(tau_file: SourceFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With tau-bench as published."""
    folder = tmp_path_factory.mktemp("store") / "atlas"
    folder.mkdir()
    return write_atlas(folder, [tau_file])


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without it."""
    return write_atlas(tmp_path_factory.mktemp("small"), [])


ENDS = {
    "a": (True, True, True, None),
    "b": (True, False, True, False),
    "c": (False, False, False, False),
    "d": (None, None, True, True),
    "e": (True, True, True, True),
}
MISTAKES = ((10, 1), (8, 3), (30, 12), (5, 4))


def summary(n: int) -> SourceFile:
    """The n-th trial of each task."""
    name = f"results/terminal-bench-core@0.1.1/20250101_robot_claude-4-sonnet/r{n}"
    results = [trial(task, n, ends[n]) for task, ends in ENDS.items()]
    data = json.dumps({"results": results}).encode()
    return SourceFile(path=f"{name}/results.json", data=data)


def trial(task: str, n: int, passed: bool | None) -> dict[str, object]:
    return {
        "task_id": task,
        "is_resolved": passed,
        "failure_mode": "unset" if passed is not None else "test_timeout",
        "agent_started_at": "2025-01-01T00:00:00+00:00",
        "agent_ended_at": f"2025-01-01T00:0{n + 1}:00+00:00",
    }


def failure(n: int, turns: int, step: int) -> SourceFile:
    run = {"question_ID": f"q{n}", "history": [{}] * turns, "mistake_step": str(step)}
    return SourceFile(path=f"Who&When/Hand-Crafted/{n}.json", data=json.dumps(run).encode())


def test_the_published_file_is_the_one_of_the_recipe(tau_file: SourceFile) -> None:
    digest = compute_files_digest({TAU_PATH: compute_blob_id(tau_file.data)})
    assert digest == tau_airline.RECIPE.files_sha256


def test_published_numbers_come_out_to_the_digit(atlas: Path) -> None:
    with connect_atlas(atlas) as connection:
        found = {
            number.name: recompute_number(connection, number)
            for number in PUBLISHED
            if "tau-bench" in number.name
        }
    assert {name: round(value or 0, 10) for name, value in found.items()} == {
        "gpt-4o on tau-bench airline, pass^1": 0.42,
        "gpt-4o on tau-bench airline, pass^4": 0.2,
    }


def test_counts_are_those_of_the_source(atlas: Path, tau_file: SourceFile) -> None:
    runs = json.loads(tau_file.data)
    calls = sum(len(m.get("tool_calls") or ()) for run in runs for m in run["traj"])
    failed = sum(
        m["role"] == "tool" and m["content"].startswith("Error") for r in runs for m in r["traj"]
    )
    with connect_atlas(atlas) as connection:
        rows = {row["source"]: row for row in ask(connection, "atlas_sources")}
    assert rows["tau-airline"]["runs"] == len(runs) == 200
    assert rows["tau-airline"]["calls"] == calls == 1164
    assert rows["tau-airline"]["errors"] == failed == 73


def test_pass_rates_agree_with_polars(small: Path) -> None:
    import polars as pl

    runs = pl.read_parquet(small / "run" / "*.parquet").filter(pl.col("mistake_step").is_null())
    expected = {
        (row["suite"], row["agent"]): (row["published"], row["known"])
        for row in runs.group_by("suite", "agent")
        .agg(
            (pl.col("passed").fill_null(value=False)).mean().alias("published"),
            pl.col("passed").mean().alias("known"),
        )
        .to_dicts()
    }
    with connect_atlas(small) as connection:
        rows = ask(connection, "pass_rates")
    assert {(r["suite"], r["agent"]): (r["published_rate"], r["rate"]) for r in rows} == {
        key: (pytest.approx(a, abs=1e-9), pytest.approx(b, abs=1e-9))
        for key, (a, b) in expected.items()
    }


def test_pass_power_counts_all_sets_of_trials(small: Path) -> None:
    known = [[end for end in ends if end is not None] for ends in ENDS.values()]
    with connect_atlas(small) as connection:
        rows = [r for r in ask(connection, "pass_power", k=3) if r["agent"] == "robot"]
    for row in rows:
        k = row["k"]
        assert isinstance(k, int)
        enough = [ends for ends in known if len(ends) >= k]
        shares = [statistics.mean(all(s) for s in combinations(ends, k)) for ends in enough]
        plain = [statistics.mean(ends) ** k for ends in enough]
        assert row["tasks"] == len(enough)
        assert row["unbiased"] == pytest.approx(statistics.mean(shares), abs=1e-12)
        assert row["plug_in"] == pytest.approx(statistics.mean(plain), abs=1e-12)


def test_recovery_agrees_with_a_loop_over_calls(atlas: Path) -> None:
    import polars as pl

    calls = pl.read_parquet(atlas / "call" / "tau-airline.parquet").sort("run_id", "call")
    episodes = ended = 0
    for _, run in calls.group_by("run_id", maintain_order=True):
        errors = run["is_error"].to_list()
        starts = [n for n, error in enumerate(errors) if error and (n == 0 or not errors[n - 1])]
        episodes += len(starts)
        ended += sum(not all(errors[n:]) for n in starts)
    with connect_atlas(atlas) as connection:
        rows = [row for row in ask(connection, "error_recovery_by_end") if row["episodes"]]
        [plain] = ask(connection, "error_episodes")
    assert sum(int(str(row["episodes"])) for row in rows) == episodes == plain["episodes"]
    assert plain["local_rate"] == pytest.approx(ended / episodes, abs=1e-9)


def test_the_half_life_in_minutes_is_that_of_an_exponential_life(small: Path) -> None:
    import lifelines
    import polars as pl

    runs = pl.read_parquet(small / "run" / "terminal-bench.parquet").filter(
        pl.col("passed").is_not_null()
    )
    fitted = lifelines.ExponentialFitter().fit(
        (runs["seconds"] / 60).to_list(), (~runs["passed"]).to_list()
    )
    with connect_atlas(small) as connection:
        [row] = [r for r in ask(connection, "time_half_life") if r["agent"] == "robot"]
    assert row["half_life_minutes"] == pytest.approx(fitted.median_survival_time_, rel=1e-6)


def test_mistakes_are_placed_by_turn(small: Path) -> None:
    positions = [(step + 1) / turns for turns, step in MISTAKES]
    with connect_atlas(small) as connection:
        rows = {row["suite"]: row for row in ask(connection, "decisive_mistakes")}
    assert rows["all"]["median_step"] == statistics.median(step for _, step in MISTAKES)
    assert rows["all"]["median_position"] == pytest.approx(statistics.median(positions))


def test_runs_that_were_chosen_for_failing_enter_no_rate(small: Path) -> None:
    with connect_atlas(small) as connection:
        for question in ("pass_rates", "half_life", "implied_steps"):
            assert not any("magentic" in str(row["agent"]) for row in ask(connection, question))


def test_every_question_of_the_atlas_and_of_a_store_answers(atlas: Path) -> None:
    with connect_atlas(atlas) as connection:
        for name, question in list_atlas_questions().items():
            needed = [key for key, value in question.defaults.items() if value is None]
            if name in own_question_names() or not needed:
                ask(connection, name)


def test_the_page_names_the_question_of_each_table(atlas: Path) -> None:
    with connect_atlas(atlas) as connection:
        page = build_atlas_page(connection, ("tau-airline", "terminal-bench"))
    html = render_report_html(page)
    for section in page.sections[2:-1]:
        for table in section.tables:
            assert "(stumble atlas sql " in table.caption
    assert "gpt-4o on tau-bench airline, pass^4" in html
    assert "sierra-research/tau-bench @59a200c6" in html


def test_a_user_builds_asks_and_draws(
    tau_file: SourceFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = tmp_path / "clones" / "tau-bench"
    (unpacked / TAU_PATH).parent.mkdir(parents=True)
    (unpacked / TAU_PATH).write_bytes(tau_file.data)
    (unpacked / "LICENSE").write_text("another licence\n")
    monkeypatch.chdir(tmp_path)
    invoke = CliRunner().invoke
    answer = invoke(cli, ("atlas", "build", "tau-airline", "--from", "clones"))
    assert answer.exit_code == 1
    assert "refused: tau-airline: LICENSE is not the MIT text of the recipe" in answer.stderr
    assert invoke(cli, ("atlas", "build", "tau-airlin")).exit_code == 2
    assert "stumble atlas build --from" in invoke(cli, ("atlas", "sql", "pass_rates")).stderr


def test_sql_over_an_atlas_only_reads(atlas: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim.csv"
    for statement in (
        f"copy run to '{victim}'",
        "drop table run",
        "update run set passed = true",
        "select * from read_csv('/etc/passwd')",
        "set enable_external_access = true",
    ):
        answer = CliRunner().invoke(cli, ("atlas", "sql", statement, "--atlas", str(atlas)))
        assert answer.exit_code == 2, statement
    assert not victim.exists()
    answer = CliRunner().invoke(
        cli, ("atlas", "sql", "select count(*) as n from run", "--atlas", str(atlas), "--json")
    )
    assert json.loads(answer.stdout) == [{"n": 224}]


def test_a_rate_of_the_atlas_serves_as_an_assumption(atlas: Path) -> None:
    import polars as pl

    given = {"e": "atlas:tau-airline", "model": "gpt-5"}
    calls = pl.read_parquet(atlas / "call" / "tau-airline.parquet")
    runs = pl.read_parquet(atlas / "run" / "tau-airline.parquet")
    steps = runs.filter(pl.col("run_id").is_in(calls["run_id"].to_list()))["steps"].sum()
    failed = calls.filter(pl.col("is_error")).select("run_id", "step").n_unique()
    resolved = resolve_rates(given, atlas.parent)
    assert resolved["model"] == "gpt-5"
    assert float(resolved["e"]) == pytest.approx(failed / steps, abs=1e-9)
    assert resolve_rates({"e": "0.02"}, atlas / "absent") == {"e": "0.02"}
    with pytest.raises(ValueError, match="no error rate of 'tau-airlin'; did you mean tau-airline"):
        resolve_rates({"e": "atlas:tau-airlin"}, atlas.parent)
    with pytest.raises(ValueError, match="no error rate of 'terminal-bench'"):
        resolve_rates({"e": "atlas:terminal-bench"}, atlas.parent)
    with pytest.raises(ValueError, match="stumble atlas build"):
        resolve_rates(given, atlas / "absent")
    with pytest.raises(ValueError, match="no source of an atlas shows how often"):
        resolve_rates({"e_quiet": "atlas:tau-airline"}, atlas.parent)


def test_errors_by_class_weigh_the_faults_of_a_store(atlas: Path) -> None:
    import polars as pl

    calls = pl.read_parquet(atlas / "call" / "tau-airline.parquet").filter(pl.col("is_error"))
    counted = dict(calls["error_class"].value_counts().iter_rows())
    takes = ("weights", "e", "e_lo", "e_hi", "model")
    resolved = resolve_rates({"weights": "atlas:tau-airline"}, atlas.parent, takes)
    assert json.loads(resolved["weights"]) == counted
    assert float(resolved["e_lo"]) < float(resolved["e"]) < float(resolved["e_hi"])
    given = {"weights": "atlas:tau-airline", "e": "0.5"}
    assert resolve_rates(given, atlas.parent, takes)["e"] == "0.5"
    assert list(resolve_rates({"weights": "atlas:tau-airline"}, atlas.parent)) == ["weights"]


def test_errors_in_the_wild_weigh_the_faults_of_a_bench(atlas: Path) -> None:
    import polars as pl

    declared = {"tool_error once": 3.0, "tool_error same_args": 1.0, "digit once": 5.0}
    calls = pl.read_parquet(atlas / "call" / "tau-airline.parquet").filter(pl.col("is_error"))
    failed = calls.filter(pl.col("error_class") == "tool_error").height
    wild = weigh_faults(declared, "atlas:tau-airline", atlas.parent)
    assert wild.weights == {"tool_error once": failed * 0.75, "tool_error same_args": failed * 0.25}
    assert (wild.errors, wild.covered) == (calls.height, failed)
    assert wild.left_out == ("digit once",)
    with pytest.raises(ValueError, match="no error of 'tau-airlin'; did you mean tau-airline"):
        weigh_faults(declared, "atlas:tau-airlin", atlas.parent)
    with pytest.raises(ValueError, match="not atlas:SOURCE"):
        weigh_faults(declared, "tau-airline", atlas.parent)
    with pytest.raises(ValueError, match="no fault makes an error of 'tau-airline'"):
        weigh_faults({"digit once": 1.0}, "atlas:tau-airline", atlas.parent)


def test_a_refused_source_keeps_the_rows_of_before(
    tau_file: SourceFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import copy

    clone = tmp_path / "tau-bench"
    (clone / TAU_PATH).parent.mkdir(parents=True)
    (clone / TAU_PATH).write_bytes(tau_file.data)
    (clone / "LICENSE").write_text("ours\n")
    known = copy.replace(tau_airline.RECIPE, licence_sha256=hashlib.sha256(b"ours\n").hexdigest())
    monkeypatch.setattr(tau_airline, "RECIPE", known)
    assert build_source(tau_airline, clone, tmp_path / "atlas").runs == 200
    before = (tmp_path / "atlas/run/tau-airline.parquet").read_bytes()
    (clone / TAU_PATH).write_bytes(tau_file.data + b"\n")
    with pytest.raises(ValueError, match="are not those of the recipe"):
        build_source(tau_airline, clone, tmp_path / "atlas")
    assert (tmp_path / "atlas/run/tau-airline.parquet").read_bytes() == before
