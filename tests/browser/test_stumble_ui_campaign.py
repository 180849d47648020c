"""A campaign watched in a browser: begun in a terminal, gone on with, paused, and ended."""

import signal
from pathlib import Path

import anyio
import pytest

from tests.support.campaign_folder import Bench, practising
from tests.support.headless_browser import Tab
from tests.support.ui_server import UiServer, click, opened, ui_server, until, violations

NAME = "nightly"
CAMPAIGN_SECONDS = 240
PAUSED_AFTER = 12_000
"""Milliseconds from a start to the click that pauses the campaign, at most."""
RUNS = 1 + 3 + 3 + 1
"""A recording, its twins, the faults, and a sham."""
LONG_RUN = f"""
[[faults]]
fault = "delay:ms={PAUSED_AFTER}"
"""
"""A run that goes on until somebody has clicked on Pause."""


@pytest.mark.thorough
def test_a_campaign_is_watched_to_its_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write(
        "c.toml", practising(("refund-1",), ("practice/retries",), f'name = "{NAME}"') + LONG_RUN
    )

    async def follow(page: Tab) -> None:
        """Go on with it, pause it once, and watch it to its end."""
        await click(page, "button.main")
        await until(page, "document.querySelector('h1 .tag.live') !== null")
        await click(page, ".actions button:not(.main)")
        await until(page, "location.pathname.startsWith('/jobs/')")
        await until(page, "document.querySelector('#job').dataset.state === 'stopped'")
        kept = await page.ask("document.querySelector('#job h1').textContent")
        assert "Stopped" in kept
        await page.ask(f"location.assign('/campaigns/{NAME}')")
        await until(page, "document.querySelector('button.main') !== null")
        await click(page, "button.main")
        done = "[...document.querySelectorAll('dd')].some(d => /(\\d+) of \\1 planned/"
        with anyio.fail_after(CAMPAIGN_SECONDS):
            while not await page.ask(f"{done}.test(d.textContent))"):
                await anyio.sleep(0.2)
        await until(page, "!document.querySelector('h1 .tag.live')")
        await until(page, "document.querySelector('button.main') === null")
        await until(page, "document.querySelectorAll('#grid a.cell').length === 3")
        await until(page, "document.querySelectorAll('#rates .rate').length > 0")
        assert await violations(page) == []
        await click(page, "#grid a.cell")
        await until(page, "document.querySelector('.verdict h1') !== null")
        assert page.complaints == []

    async def watch(server: UiServer) -> None:
        async with opened(server, f"/campaigns/{NAME}") as page:
            await follow(page)

    running = bench.start("campaign", "c.toml")
    try:
        anyio.run(_wait_for_runs, bench)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=CAMPAIGN_SECONDS)
    finally:
        running.kill()
        running.communicate()
    with ui_server(
        bench.store.root, "--allow-runs", env=bench.environment(), cwd=tmp_path
    ) as server:
        anyio.run(watch, server)
    assert len(bench.runs()) == RUNS


async def _wait_for_runs(bench: Bench) -> None:
    with anyio.fail_after(CAMPAIGN_SECONDS):
        while len(list(bench.store.tapes.glob("*.tape"))) < 2:
            await anyio.sleep(0.05)
