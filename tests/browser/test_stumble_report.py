"""`stumble report`: pages that a real browser opens from disk, without a network."""

import json
import os
import re
import resource
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import altair
import anyio
import pytest
from click.testing import CliRunner

from stumble.cli.app import cli
from stumble.cli.numbers.report import CHART_NAMES
from stumble.demo.runner import DemoJob
from stumble.report.charting.fault_charts import FAULT_CHARTS
from stumble.report.charting.palette import PAGE_PALETTE
from stumble.report.collect import collect_sections, make_agent_naming
from stumble.store.filter import StoreFilter, open_filtered_store
from tests.support.headless_browser import tab
from tests.support.practice_shop import Said
from tests.support.stores.report_stores import (
    FAULTS,
    JOBS,
    fill,
    multiplied,
)
from traces.store.sql import run_question
from traces.store.trace_store import TraceStore

SECTIONS = (
    "headline",
    "outcomes",
    "survival",
    "pairs",
    "effects",
    "notice",
    "recovery_time",
    "cost",
    "exclusions",
    "injections",
    "terms",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TraceStore:
    """Two agents, recorded once each and struck four times, beside clean twins and a sham."""
    return fill(tmp_path_factory.mktemp("struck") / ".stumble")


def report(store: Path, *arguments: str) -> Said:
    """What `stumble report` says of a store."""
    done = CliRunner().invoke(cli, ["report", *arguments], env={"STUMBLE_STORE": str(store)})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Said(code=done.exit_code, out=done.stdout, err=done.stderr)


def page(store: Path, path: Path, *arguments: str) -> str:
    """What a page written of a store says, its tags left out."""
    said = report(store, "-o", str(path), *arguments)
    assert said.code == 0, said.err
    return words(path.read_text())


def words(page: str) -> str:
    """What a page says, without its tags, styles and scripts."""
    reader = _Reader()
    reader.feed(page)
    return re.sub(r"\s+", " ", " ".join(reader.said))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._silent = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent = tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.said.append(data)


def test_a_page_opens_from_disk_without_a_network(store: TraceStore, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    page(store.root, path)

    async def look() -> None:
        async with tab() as opened:
            await opened.show(path, width=1280)
            ids = await opened.ask("[...document.querySelectorAll('main > section')].map(s=>s.id)")
            assert ids == list(SECTIONS)
            assert await opened.ask("document.querySelectorAll('figure svg path').length") > 20
            count = await opened.ask("document.querySelectorAll('.example').length")
            assert count == len(FAULTS) * len(JOBS)
            light = await opened.ask("getComputedStyle(document.body).backgroundColor")

            await opened.show(path, width=400, dark=True)
            await opened.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert await opened.ask("document.documentElement.scrollWidth") == 400
            dark = await opened.ask("getComputedStyle(document.body).backgroundColor")
            assert (light, dark) == ("rgb(255, 255, 255)", "rgb(18, 22, 28)")

            assert opened.complaints == []
            assert {url.partition(":")[0] for url in opened.asked} == {"file"}

    anyio.run(look)


@pytest.mark.thorough
def test_tables_sort_and_injections_are_found(store: TraceStore, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    page(store.root, path)

    async def look() -> None:
        async with tab() as opened:
            await opened.show(path, width=1280)
            await opened.ask("document.querySelector('#cost th button').click()")
            first = "document.querySelector('#cost th').getAttribute('aria-sort')"
            assert await opened.ask(first) == "ascending"
            await opened.ask(
                "(() => { const find = document.getElementById('find');"
                " find.value = 'digit verifies'; find.dispatchEvent(new Event('input')) })()"
            )
            assert await opened.ask("document.getElementById('found').textContent") == "1 of 8"
            assert opened.complaints == []

    anyio.run(look)


def test_what_tools_say_is_text_and_never_markup(store: TraceStore, tmp_path: Path) -> None:
    """One of the faults answers with a page of a proxy."""
    path = tmp_path / "report.html"
    said = page(store.root, path, "--title", "<i>mine</i>")
    assert "<center><h1>502 Bad Gateway</h1></center>" in said
    assert "<i>mine</i>" in said
    assert "<center>" not in path.read_text()
    assert "<i>" not in path.read_text()


def test_a_struck_value_is_marked_beside_the_true_one(store: TraceStore, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    page(store.root, path, "--op", "digit", "--model", "practice/retries")
    with store.connect() as sql:
        asked = (
            "SELECT original, mutated FROM judged_injections"
            " WHERE op = 'digit' AND model LIKE '%retries'"
        )
        [(original, mutated)] = sql.execute(asked).fetchall()
    text = path.read_text()
    true, wrong_value = (str(json.loads(value)["amount"]) for value in (original, mutated))
    assert f'<mark class="truth">{true}</mark>' in text
    assert f'<mark class="lie">{wrong_value}</mark>' in text
    assert f"{true} became {wrong_value}" in text


def test_the_figures_are_those_of_the_store(store: TraceStore) -> None:
    said = report(store.root, "--json").json
    [table] = said["headline"]["tables"]
    with store.connect() as sql:
        rates = {row[1]: row for row in run_question(sql, "recovery_by_model").fetchall()}
    assert {row["agent"] for row in table["rows"]} == rates.keys()
    for row in table["rows"]:
        assert row["injected"] == len(FAULTS)
        assert row["handled"]["n"] == len(FAULTS)
        assert row["handled"]["value"] == rates[row["agent"]][7]
        assert row["handled"]["reason"] == "few_traces"
    assert said["injections"] == len(FAULTS) * len(JOBS)


@pytest.mark.thorough
def test_a_part_is_selected_by_model_and_operator(store: TraceStore) -> None:
    said = report(store.root, "--json", "--model", "practice/verifies", "--op", "digit").json
    [row] = said["headline"]["tables"][0]["rows"]
    assert (row["agent"], row["injected"]) == ("practice/verifies", 1)
    wrong = report(store.root, "--op", "digi")
    assert (wrong.code, wrong.err) == (
        2,
        "stumble: the store has no op 'digi'; did you mean digit?\n",
    )
    assert "no campaign 'may' and no other" in report(store.root, "--campaign", "may").err


@pytest.mark.many(2)
@pytest.mark.parametrize("chart", CHART_NAMES)
def test_a_chart_is_a_picture_of_its_own(store: TraceStore, tmp_path: Path, chart: str) -> None:
    drawn = tmp_path / "a.svg"
    said = report(store.root, "--chart", chart, "-o", str(drawn))
    assert said.code == 0, said.err
    text = "".join(ElementTree.fromstring(drawn.read_text()).itertext())
    assert "practice/retries" in text
    assert "var(" not in drawn.read_text()


@pytest.mark.thorough
def test_a_chart_is_painted_too(store: TraceStore, tmp_path: Path) -> None:
    """One of them: the same program paints what it draws, whatever that is."""
    painted = tmp_path / "a.png"
    said = report(store.root, "--chart", CHART_NAMES[0], "-o", str(painted))
    assert said.code == 0, said.err
    assert painted.read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_each_chart_of_a_page_is_valid_vega_lite(store: TraceStore) -> None:
    with open_filtered_store(store, StoreFilter()) as connection:
        sections = collect_sections(connection, make_agent_naming(connection))
    charts = [chart for section in sections for chart in section.charts]
    assert {chart.drawing for chart in charts} == set(CHART_NAMES)
    for chart in charts:
        altair.LayerChart.from_dict(dict(FAULT_CHARTS[chart.drawing](chart.rows, PAGE_PALETTE)))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--chart", "survival"), "need -o FILE"),
        (("--chart", "survival", "-o", "a.html"), "png or svg, not 'html'"),
        (("-o", "a.png"), "needs --chart"),
        (("-o", "a"), "a page is written as html"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    store: TraceStore, options: tuple[str, ...], why: str
) -> None:
    said = report(store.root, *options)
    assert said.code == 2
    assert why in said.err


@pytest.mark.thorough
def test_an_empty_store_has_a_page_that_says_so(tmp_path: Path) -> None:
    said = page(TraceStore(tmp_path / "empty").root, tmp_path / "a.html")
    assert "There are no runs in what was selected." in said
    assert "No fault fired in what was selected." in said
    assert "0 %" not in said
    refused = report(tmp_path / "empty", "--chart", "outcomes", "-o", str(tmp_path / "a.svg"))
    assert refused.code == 2
    assert "No fault fired, so there are no outcomes" in refused.err


@pytest.mark.thorough
def test_clean_runs_alone_show_survival_and_no_rate(tmp_path: Path) -> None:
    said = page(fill(tmp_path / "clean", faults=()).root, tmp_path / "a.html")
    assert "nothing can be said about recovery" in said
    assert "practice/retries, 1 run" in said
    assert "no faults were injected" in said


@pytest.mark.thorough
def test_one_injection_without_a_verdict_is_no_rate(tmp_path: Path) -> None:
    store = fill(
        tmp_path / "one", jobs=(DemoJob("refund-1", "naive"),), faults=FAULTS[:1], verified=False
    )
    said = page(store.root, tmp_path / "a.html")
    assert "not known (no verdict could be given)" in said
    assert "practice/naive: 1 fault injected, 1 reached the agent." in said
    assert "nobody knows whether the clean twins end right" in said
    [row] = report(store.root, "--json").json["headline"]["tables"][0]["rows"]
    assert row["handled"]["value"] is None


@pytest.mark.thorough
def test_thousands_of_injections_make_a_page_for_people(store: TraceStore, tmp_path: Path) -> None:
    """Within ten seconds, of which the machine's other work takes none."""
    large = multiplied(store, tmp_path / "large", 5000)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "stumble", "report", "-o", tmp_path / "a.html"],
        check=True,
        env=os.environ | {"STUMBLE_STORE": str(large.root)},
        timeout=90,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = words((tmp_path / "a.html").read_text())
    assert "200 of 5,000 injections" in said
    assert "2,500 faults injected, 2,500 reached the agent" in said
    assert "is gone or cannot be read" in said
    assert (tmp_path / "a.html").stat().st_size < 2_000_000
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 40
