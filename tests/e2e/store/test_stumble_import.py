"""Runs that others recorded stand beside ours, and one SQL reaches all of them."""

import gzip
from pathlib import Path

from tests.support.practice_shop import Shop


def here(folder: Path) -> Shop:
    """A folder to run `stumble` in; nothing is served."""
    return Shop(folder=folder, book=folder, log=folder, hosts=(), task="none")


def test_tau_bench_runs_come_in_with_the_counts_of_their_source(
    tmp_path: Path, shared: Path
) -> None:
    stumble = here(tmp_path).stumble
    source = str(shared / "tau" / "gpt-4o-airline.json.gz")

    result = stumble("import", source)
    assert result.code == 0, result.err
    assert "200 trajectories, 1,164 tool calls" in result.out
    assert stumble("import", source).code == 0

    runs = stumble(
        "sql", "--json",
        "select count(*) runs, avg(passed::int) pass_rate from trajectories",
    )  # fmt: skip
    calls = stumble(
        "sql", "--json",
        "select count(*) calls, count(*) filter (is_error) errors from tool_calls",
    )  # fmt: skip
    assert runs.json == [{"runs": 200, "pass_rate": 0.42}]
    assert calls.json == [{"calls": 1164, "errors": 73}]


def test_the_ramp_cohort_gives_its_published_index(tmp_path: Path, shared: Path) -> None:
    stumble = here(tmp_path).stumble
    assert stumble("import", str(shared / "ramp" / "engineer-500-score.json")).code == 0

    rows = stumble("sql", "--json", "select model, round(aei, 2) aei from leaderboard").json
    found = {row["model"]: row["aei"] for row in rows}
    assert found["gpt-5.5"] == 81.57
    assert [aei for model, aei in found.items() if "opus-4" in model.lower()] == [40.0]
    assert len(found) == 15


def test_the_published_runs_come_along(tmp_path: Path) -> None:
    stumble = here(tmp_path).stumble
    result = stumble("import", "--cohort", "paper")
    assert result.code == 0, result.err
    assert "15 trajectories, 90 stages" in result.out
    assert stumble("import", "--cohort", "paper").code == 0
    rows = stumble("sql", "--json", "select model, round(aei, 2) aei from leaderboard").json
    assert {"model": "gpt-5.5", "aei": 81.57} in rows
    assert len(rows) == 15
    assert "give files, --mine or --cohort paper" in stumble("import").err


def test_the_index_may_be_deleted(tmp_path: Path, shared: Path) -> None:
    import shutil

    stumble = here(tmp_path).stumble
    stumble("import", str(shared / "ramp" / "engineer-500-score.json"))
    ask = ("sql", "--json", "select model, mr, tier, aei from leaderboard order by model")
    before = stumble(*ask).json
    shutil.rmtree(tmp_path / ".stumble" / "index")
    assert stumble(*ask).json == before


def test_what_is_no_known_format_is_refused_and_the_rest_comes_in(tmp_path: Path) -> None:
    (tmp_path / "odd.json.gz").write_bytes(gzip.compress(b'{"hello": 1}'))
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(b'[{"task_id": 0}]' * 50)[:20])
    for name in ("odd.json.gz", "cut.json.gz"):
        result = here(tmp_path).stumble("import", name)
        assert result.code == 1
        assert f"refused {name}" in result.err
        assert "Traceback" not in result.err
