"""`stumble leaderboard`: scores, cost and recovery in one table, and as a page."""

from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from stumble.cli.app import cli
from tests.support.headless_browser import tab
from tests.support.practice_shop import Said
from tests.support.stores.pipeline_runs import stored

AGENTS = ("model-a (shop/agent)", "starter", "model-b (other)")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three agents' runs beside the published ones."""
    root = tmp_path_factory.mktemp("board") / ".stumble"
    stored(root)
    assert ask(root, "import", "--cohort", "paper").code == 0
    return root


def ask(store: Path, *arguments: str) -> Said:
    done = CliRunner().invoke(cli, [*arguments], env={"STUMBLE_STORE": str(store)})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Said(code=done.exit_code, out=done.stdout, err=done.stderr)


def test_the_table_has_intervals_and_says_why_a_figure_is_missing(store: Path) -> None:
    said = ask(store, "leaderboard")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    [mine] = [line for line in lines if ". model-a (shop/agent)" in line]
    assert "62.9 (26.4–99.4)" in mine
    assert "1 (1–2)" in mine
    [paper] = [line for line in lines if "gpt-5.5" in line]
    assert "81.6" in paper
    assert "no faults" in paper
    assert "AEI against paper (15 runs), whose most is: 3 tier, 93.39 MR" in said.out
    assert "MR 25.5 in 1 run with a fault." in said.out


def test_a_grader_that_failed_leaves_a_blank_and_not_a_zero(store: Path) -> None:
    rows = ask(store, "leaderboard", "--json").json["rows"]
    [row] = [each for each in rows if each["model"] == "model-b"]
    assert (row["mr"], row["mr_reason"], row["t2"]) == (None, "not_known", None)
    assert (row["cost_usd"], row["cost_usd_reason"]) == (None, "not_known")
    assert row["infrastructure_errors"] == 1


def test_json_has_all_that_the_page_is_drawn_from(store: Path) -> None:
    said = ask(store, "leaderboard", "--json", "--cohort", "paper").json
    assert len(said["rows"]) == 15 + len(AGENTS)
    assert {row["aei_cohort"] for row in said["rows"]} == {"paper"}
    [cohort] = said["cohorts"]
    assert (cohort["runs"], cohort["most"]["tokens"]) == (15, 218_860_749)
    [t2] = [
        row for row in said["completion"] if row["workload"] == "embedded" and row["stage"] == "T2"
    ]
    assert (t2["passed"], t2["rate"], t2["rate_all"]) == (3, 1, 0.75)
    causes = {row["cause"]: row["runs"] for row in said["attribution"] if not row["cohort"]}
    assert causes == {"context": 3, "reasoning": 2, "infrastructure": 1}


def test_a_cohort_that_is_not_there_is_named(store: Path) -> None:
    said = ask(store, "leaderboard", "--cohort", "papr")
    assert said.code == 2
    assert "no cohort 'papr'; did you mean paper?" in said.err


def test_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / ".stumble").mkdir()
    said = ask(tmp_path / ".stumble", "leaderboard")
    assert said.code == 0
    assert "`stumble pipeline run --agent COMMAND` makes one" in said.out


def test_a_page_opens_wide_and_narrow_light_and_dark_and_its_columns_sort(
    store: Path, tmp_path: Path
) -> None:
    path = tmp_path / "board.html"
    assert ask(store, "leaderboard", "--html", str(path)).code == 0

    async def look() -> None:
        async with tab() as opened:
            await opened.show(path, width=1280)
            ids = await opened.ask("[...document.querySelectorAll('main > section')].map(s=>s.id)")
            assert ids == ["board", "cost", "collapse", "causes", "details", "terms"]
            figures = "[...document.querySelectorAll('figure')].map(f => f.closest('section').id)"
            drawn = ["cost", "cost", "collapse", "collapse", "causes", "causes"]
            assert await opened.ask(figures) == drawn
            dots = "document.querySelectorAll('#cost figure svg .mark-symbol path').length"
            assert await opened.ask(dots) == 16

            await opened.show(path, width=400, dark=True)
            assert await opened.ask("document.documentElement.scrollWidth") == 400
            dark = await opened.ask("getComputedStyle(document.body).backgroundColor")
            assert dark == "rgb(18, 22, 28)"

            # Columns of each table sort.
            tables = "[...document.querySelectorAll('#board table')]"
            table = f"{tables}.sort((a, b) => b.rows.length - a.rows.length)[0]"
            column = f"[...{table}.tBodies[0].rows].map(row => row.cells[7].dataset.sort)"
            button = f"{table}.querySelectorAll('thead th button')[7]"
            await opened.ask(f"{button}.click()")
            costs = await opened.ask(column)
            assert [float(cost) for cost in costs[:2]] == [0.04689, 0.066782]
            await opened.ask(f"{button}.click()")
            costs = await opened.ask(column)
            assert float(costs[0]) == 126.24
            assert opened.complaints == []
            assert {url.partition(":")[0] for url in opened.asked} == {"file"}

    anyio.run(look)
