"""`stumble ui` in a real browser: a real server over a real store."""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from copy import replace
from pathlib import Path

import anyio
import httpx
import pytest

from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.left_files import LeftFiles, save_left_files
from scenarios.workspace.manifest import ManifestEntry, SnapshotManifest
from tests.support.headless_browser import Tab, tab
from tests.support.stores.report_stores import FAULTS, JOBS, fill
from tests.support.ui_server import (
    UiServer,
    click,
    go,
    opened,
    press,
    resize,
    ui_server,
    until,
    violations,
)
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

DIGIT = tuple(fault for fault in FAULTS if fault.name == "digit")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TraceStore:
    """One agent that repeats calls: recorded, forked with a wrong digit, beside clean twins."""
    filled = fill(tmp_path_factory.mktemp("ui") / ".stumble", jobs=JOBS[:1], faults=DIGIT)
    with filled.open_locked() as connection:
        forks = connection.execute(
            "select trajectory_id, condition from trajectories where source = 'fork'"
        ).fetchall()
    for run, condition in forks:
        _leave_files(filled, run, "wrong" if condition == "fault" else "true")
    return filled


def _leave_files(store: TraceStore, run: str, word: str) -> None:
    """Keep the files of a workspace as those that a run left."""
    blobs = BlobStore(store.root / "snapshots")

    def entry(path: str, content: str) -> ManifestEntry:
        data = content.encode()
        return ManifestEntry(path=path, kind="file", target=blobs.put_bytes(data), size=len(data))

    start = SnapshotManifest(entries=(entry("ledger.csv", "day,sum\n1,2\n"),))
    changed = (
        entry("ledger.csv", f"day,sum\n1,2\n2,{word}\n"),
        entry("<b>same</b>\u202e.txt", HOSTILE),
    )
    left = LeftFiles(run=run, start=blobs.save_manifest(start), changed=changed)
    save_left_files(blobs, left)


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


@pytest.fixture(scope="module")
def recording(store: TraceStore) -> str:
    """The run that was recorded, and forked."""
    with store.open_locked() as connection:
        [(id,)] = connection.execute(
            "select trajectory_id from trajectories where source = 'record'"
        ).fetchall()
    return str(id)


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

    see(server, do, "/runs")


def test_an_injection_shows_both_runs_and_links_what_came_of_it(
    server: UiServer, wrong: tuple[str, str]
) -> None:
    async def do(page: Tab) -> None:
        uses = await page.ask("[...document.querySelectorAll('.uses a')].map(a => a.textContent)")
        assert uses[0].endswith("injected")
        assert len(uses) > 1
        assert uses[-1] == "file ledger.csv"
        files = "[...document.querySelectorAll('.file-row summary')].map(f => f.textContent)"
        assert await page.ask(files) == [
            "ledger.csv",
            "<b>same</b>\ufffd.txt alike in both runs",
        ]
        added = "[...document.querySelectorAll('.faulted .file-line.added')].map(l => l.innerText)"
        assert (await page.ask(added))[0] == "+2,wrong"
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


def test_a_new_tape_appears_and_grows_without_a_reload(
    store: TraceStore, recording: str, tmp_path: Path
) -> None:
    """The copy of a run under another id, written while the list is open."""
    live, source = TraceStore(tmp_path / ".stumble"), read_tape(store.tapes / f"{recording}.tape")

    with ui_server(live.root) as server:

        async def do(page: Tab) -> None:
            assert "No runs yet" in await text(page)
            head = replace(source.trajectory, id="growing", recorded_at=1.8e9)
            with TapeWriter(live.tapes / "growing.tape", head) as tape:
                for exchange in source.exchanges[:5]:
                    tape.write_exchange(exchange)
                await until(page, "document.querySelector('.tag.live') !== null")
                await go(page, f"{server.origin}/runs/growing")
                count = "document.querySelectorAll('.step').length"
                before = await page.ask(count)
                for exchange in source.exchanges[5:]:
                    tape.write_exchange(exchange)
                await until(page, f"{count} > {before}")
                assert source.ending is not None
                tape.write_ending(source.ending)
            await until(page, "!document.querySelector('.tag.live')")

        see(server, do, "/runs")


PAGES = (
    "/",
    "/?agent=nobody",
    "/runs",
    "/runs?agent=nobody",
    "/runs?controls=1",
    "/runs/{run}",
    "/runs/{run}?at=5.1&show=context",
    "/runs/{run}?at=5&show=raw",
    "/injections/{injection}",
    "/inject/{recording}?at=5.1",
    "/campaigns",
    "/compare?a={run}&b={recording}",
    "/sql",
    "/sql?question=recovery_by_op",
    "/sql?q=select+op%2C+count(*)+as+n+from+injections+group+by+1&as=chart",
    "/nothing",
)


def test_no_page_has_a_barrier_or_scrolls_sideways(
    server: UiServer, wrong: tuple[str, str], recording: str
) -> None:
    """By axe-core, in light at 1,440 px and in dark at 400 px."""

    async def run() -> None:
        async with opened(server) as page:
            for path in PAGES:
                address = path.format(injection=wrong[0], run=wrong[1], recording=recording)
                for width, dark in ((1440, False), (400, True)):
                    await resize(page, width, dark=dark)
                    await go(page, server.origin + address)
                    assert await violations(page) == [], (path, width)
                    wide = await page.ask("document.documentElement.scrollWidth - innerWidth")
                    assert wide <= 0, (path, width)
            assert [each for each in page.complaints if "404" not in each] == []

    anyio.run(run)


@pytest.mark.parametrize(
    "statement",
    [
        "copy (select 1) to '{out}'",
        "attach '{out}' as other",
        "create table kept as select 1",
        "install httpfs",
        "load httpfs",
        "select * from read_text('/etc/passwd')",
        "select * from '/etc/passwd'",
        "export database '{out}'",
        "set enable_external_access = true",
        "select 1; drop view recovery",
    ],
)
def test_sql_neither_writes_nor_reads_outside_the_store(
    server: UiServer, tmp_path: Path, statement: str
) -> None:
    out = tmp_path / "out"
    answer = httpx.get(
        f"{server.origin}/sql",
        params={"q": statement.format(out=out)},
        headers=server.cookie,
        timeout=60,
    )
    assert 'role="alert"' in answer.text
    assert "root:" not in answer.text
    assert not out.exists()


def test_a_question_gives_a_table_and_csv(server: UiServer) -> None:
    asked = {"question": "recovery_by_op", "p.model": "practice/retries"}
    page = httpx.get(f"{server.origin}/sql", params=asked, headers=server.cookie, timeout=60)
    assert "<td>digit</td>" in page.text
    answer = httpx.get(f"{server.origin}/sql.csv", params=asked, headers=server.cookie, timeout=60)
    head, row = answer.text.splitlines()
    assert dict(zip(head.split(","), row.split(","), strict=False))["op"] == "digit"


def test_an_exported_run_opens_from_disk_without_a_network(
    store: TraceStore, wrong: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "run.html"
    done = _export(store, wrong[0], path)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_mode & 0o777 == 0o600

    async def run() -> None:
        async with tab() as page:
            await page.show(path, width=1440)
            words = await text(page)
            assert "Silently wrong" in words
            assert await violations(page) == []
            await page.ask("document.getElementById('s5.1').open = true")
            assert "ord-" in await page.ask("document.getElementById('s5.1').innerText")
            assert page.complaints == []
            assert {each.partition(":")[0] for each in page.asked} == {"file"}

    anyio.run(run)


def test_a_run_with_a_secret_is_not_exported(
    store: TraceStore, recording: str, tmp_path: Path
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    source, unsafe = read_tape(store.tapes / f"{recording}.tape"), TraceStore(tmp_path / ".stumble")
    first = source.exchanges[0]
    body = first.request.body.replace(b"customer service", secret.encode(), 1)
    assert body != first.request.body
    with TapeWriter(unsafe.tapes / f"{recording}.tape", source.trajectory, redact=False) as tape:
        tape.write_exchange(replace(first, request=replace(first.request, body=body)))
        assert source.ending is not None
        tape.write_ending(source.ending)
    path = tmp_path / "run.html"
    subprocess.run(
        [sys.executable, "-m", "stumble", "sql", "select 1"],
        env=os.environ | {"STUMBLE_STORE": str(unsafe.root)},
        check=True,
        capture_output=True,
    )
    done = _export(unsafe, recording, path)
    assert (done.returncode, path.exists()) == (2, False), done.stdout
    assert b"secrets" in done.stderr
    assert secret.encode() not in done.stderr


def _export(store: TraceStore, id: str, path: Path) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-m", "stumble", "ui", "--export", id, "-o", str(path)],
        env=os.environ | {"STUMBLE_STORE": str(store.root)},
        capture_output=True,
        timeout=120,
    )


HOSTILE = (
    "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</pre></code><svg onload=\"document.title='owned'\"> {{ 7*7 }} \u202eevil\u2066 "
    "\x1b[2J\x1b]0;owned\x07 javascript:alert(1) \x00 ' \" &amp; "
)


def test_hostile_output_of_a_tool_is_text(
    store: TraceStore, recording: str, tmp_path: Path
) -> None:
    hostile, source = (
        TraceStore(tmp_path / ".stumble"),
        read_tape(store.tapes / f"{recording}.tape"),
    )
    words = json.dumps(HOSTILE * 2 + "x" * 3_000_000)[1:-1].encode()
    head = replace(source.trajectory, task=HOSTILE, agent=HOSTILE)
    with TapeWriter(hostile.tapes / f"{recording}.tape", head) as tape:
        for exchange in source.exchanges:
            body = exchange.request.body.replace(b"cus-2047", words, 1)
            tape.write_exchange(
                replace(exchange, request=replace(exchange.request, body=body))
                if exchange is source.exchanges[4] or exchange is source.exchanges[6]
                else exchange
            )
        assert source.ending is not None
        tape.write_ending(source.ending)

    with ui_server(hostile.root) as server:

        async def run() -> None:
            async with opened(server) as page:
                for path in (
                    "/",
                    "/runs",
                    f"/runs/{recording}",
                    *_list_views(recording),
                    "/compare",
                ):
                    await go(page, server.origin + path)
                    assert await page.ask("document.title") != "owned"
                    assert (
                        await page.ask(
                            "document.querySelectorAll('main img, main [onload], main [onerror],"
                            " main script').length"
                        )
                        == 0
                    )
                    words = await page.ask("document.body.textContent")
                    assert not set(words) & set("\u202e\u2066\x1b\x07\x00")
                    assert len(words) < 2_500_000
                await go(page, f"{server.origin}/runs")
                assert "<script>" in await text(page)
                assert page.complaints == []

        anyio.run(run)


def _list_views(run: str) -> list[str]:
    return [
        f"/runs/{run}?at={at}&show={tab}"
        for at in ("4", "4.1", "5")
        for tab in ("read", "request", "answer", "raw")
    ] + [f"/runs/{run}?at=5&show={tab}" for tab in ("next", "context")]


def test_no_page_holds_the_token(server: UiServer) -> None:
    assert server.token not in httpx.get(server.origin, headers=server.cookie).text
