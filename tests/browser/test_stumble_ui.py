"""`stumble ui` in a real browser: a real server over a real store."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import httpx
import pytest

from tests.support.headless_browser import Tab
from tests.support.stores.report_stores import FAULTS, JOBS, fill
from tests.support.ui_server import UiServer, click, go, opened, press, ui_server, until
from traces.store.trace_store import TraceStore
from traces.tape import TapeWriter, read_tape

DIGIT = tuple(fault for fault in FAULTS if fault.name == "digit")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TraceStore:
    """One agent that repeats calls: recorded, forked with a wrong digit, beside clean twins."""
    return fill(tmp_path_factory.mktemp("ui") / ".stumble", jobs=JOBS[:1], faults=DIGIT)


@pytest.fixture(scope="module")
def server(store: TraceStore) -> Iterator[UiServer]:
    with ui_server(store.root) as running:
        yield running


@pytest.fixture(scope="module")
def wrong(store: TraceStore) -> tuple[str, str]:
    """The silently wrong injection and its run."""
    with store.open_locked() as connection:
        [(injection, run)] = connection.execute(
            "select injection_id, trajectory_id from injections join verdicts using (injection_id)"
            " where class = 'silent_wrong'"
        ).fetchall()
    return injection, run


def see(
    server: UiServer, do: Callable[[Tab], Awaitable[None]], path: str = "", width: int = 1440
) -> None:
    """Do something in a browser that opened a page; the console stays empty."""

    async def run() -> None:
        async with opened(server, path, width=width) as page:
            await do(page)
            assert page.complaints == []

    anyio.run(run)


async def text(page: Tab) -> str:
    """Return the visible text of the page."""
    words = await page.ask("document.body.innerText")
    assert isinstance(words, str)
    return words


def test_two_clicks_lead_from_the_runs_to_why_one_was_silently_wrong(server: UiServer) -> None:
    async def do(page: Tab) -> None:
        assert "token" not in await page.ask("location.href")
        await click(page, ".chips a[href*=silent_wrong]")
        await until(page, "document.querySelectorAll('table.list tbody tr').length === 1")
        await click(page, "td.result a")
        await until(page, "document.querySelector('.verdict h1')?.textContent === 'Silently wrong'")
        words = await text(page)
        assert "The agent noticed" in words
        assert "What would have changed it" in words
        assert await page.ask("document.querySelectorAll('.turn.struck mark.lie a').length") == 1

    see(server, do)


def test_an_injection_shows_both_runs_and_links_what_came_of_it(
    server: UiServer, wrong: tuple[str, str]
) -> None:
    async def do(page: Tab) -> None:
        uses = await page.ask("[...document.querySelectorAll('.uses a')].map(a => a.textContent)")
        assert uses[0].endswith("injected")
        assert len(uses) > 1
        links = "[...document.querySelectorAll('.uses a, mark a')]"
        assert await page.ask(f"{links}.every(a => document.querySelector(a.getAttribute('href')))")

    see(server, do, f"/injections/{wrong[0]}")


def test_a_run_is_walked_by_keys_alone(server: UiServer, wrong: tuple[str, str]) -> None:
    async def do(page: Tab) -> None:
        assert "get_order" in await page.ask("document.querySelector('.detail h2').textContent")
        await press(page, "j")
        await until(page, "!document.querySelector('.detail h2').textContent.includes('get_order')")
        before = await page.ask("document.querySelector('.detail h2').textContent")
        await press(page, "k")
        await until(page, f"document.querySelector('.detail h2').textContent !== {before!r}")
        await press(page, "/")
        assert await page.ask("document.activeElement.name") == "q"
        await page.call("Input.insertText", text="refund")
        await press(page, "Enter")
        await until(page, "location.search.includes('q=refund')")
        await until(page, "document.querySelectorAll('.step').length > 0")
        steps = "[...document.querySelectorAll('.step')].every(s => /refund/i.test(s.textContent))"
        assert await page.ask(steps)

    see(server, do, f"/runs/{wrong[1]}")


@pytest.mark.parametrize("tab", ["request", "answer", "next", "context", "raw"])
def test_each_view_of_a_step_has_content(
    server: UiServer, wrong: tuple[str, str], tab: str
) -> None:
    answer = httpx.get(
        f"{server.origin}/runs/{wrong[1]}", params={"at": "5.1", "show": tab}, headers=server.cookie
    )
    assert answer.status_code == 200
    detail = answer.text.partition('class="detail-body"')[2]
    assert {"request": "ord-", "answer": "ord-", "next": "tool", "context": "system",
            "raw": "ord-"}[tab] in detail  # fmt: skip


@pytest.mark.parametrize(
    "headers",
    [
        {"cookie": ""},
        {"host": "evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/events", "/static/ui.css"])
def test_nobody_else_is_served(server: UiServer, headers: dict[str, str], path: str) -> None:
    answer = httpx.get(server.origin + path, headers=server.cookie | headers)
    assert answer.status_code == 403


def test_an_unknown_run_or_injection_is_not_found(server: UiServer) -> None:
    for path in ("/runs/none", "/injections/none", "/runs/..%2F..%2Fetc%2Fpasswd"):
        assert httpx.get(server.origin + path, headers=server.cookie).status_code == 404


def test_a_new_tape_appears_without_a_reload(store: TraceStore, tmp_path: Path) -> None:
    """The copy of a run under another id, written while the list is open."""
    live = TraceStore(tmp_path / ".stumble")
    with store.open_locked() as connection:
        [(id,)] = connection.execute(
            "select trajectory_id from trajectories where source = 'record'"
        ).fetchall()
    recording = read_tape(store.tapes / f"{id}.tape")

    with ui_server(live.root) as server:

        async def do(page: Tab) -> None:
            assert "No runs yet" in await text(page)
            head = replace(recording.trajectory, id="growing", recorded_at=1.8e9)
            with TapeWriter(live.tapes / "growing.tape", head) as tape:
                for exchange in recording.exchanges[:5]:
                    tape.write_exchange(exchange)
                await until(page, "document.querySelector('.tag.live') !== null")
                await go(page, f"{server.origin}/runs/growing")
                count = "document.querySelectorAll('.step').length"
                before = await page.ask(count)
                for exchange in recording.exchanges[5:]:
                    tape.write_exchange(exchange)
                await until(page, f"{count} > {before}")
                assert recording.ending is not None
                tape.write_ending(recording.ending)
            await until(page, "!document.querySelector('.tag.live')")

        see(server, do)


def test_no_page_holds_the_token(server: UiServer) -> None:
    assert server.token not in httpx.get(server.origin, headers=server.cookie).text
