"""From a tool result to a verdict by the pages of `stumble ui`, with a real agent and world."""

import html
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx
import pytest

from faults.specs.spec_parser import parse_fault
from tests.support.practice_shop import Shop, shop
from tests.support.ui_server import UiServer, click, opened, ui_server, until
from traces.store.trace_store import TraceStore


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop with one recorded run."""
    folder = tmp_path_factory.mktemp("inject")
    with shop(folder) as served:
        assert served.record().code == 0
        yield served


@pytest.fixture(scope="module")
def store(served: Shop) -> TraceStore:
    return TraceStore(served.folder / ".stumble")


@pytest.fixture(scope="module")
def recording(store: TraceStore) -> str:
    [path] = store.tapes.glob("*.tape")
    return path.stem


def count_forks(store: TraceStore) -> int:
    with store.open_locked() as connection:
        rows = "select count(*) from trajectories where source = 'fork'"
        [(count,)] = connection.execute(rows).fetchall()
    return int(count)


def test_a_click_on_a_result_leads_to_a_verdict(
    served: Shop, store: TraceStore, recording: str
) -> None:
    more = shlex.join((*served.world(), *served.host_options()))
    before = count_forks(store)

    async def run(server: UiServer) -> None:
        async with opened(server, f"/runs/{recording}") as page:
            key = await page.ask(
                "[...document.querySelectorAll('.tool .step')].find(s =>"
                " s.textContent.includes('get_order')).dataset.key"
            )
            await click(page, f'.step[data-key="{key}"]')
            await until(page, "document.querySelector('.detail h2').textContent.endsWith('_order')")
            await click(page, "#inject")
            await until(page, "document.getElementById('command') !== null")
            await click(page, "input[value=digit]")
            await page.ask(
                "(() => { const f = document.getElementById('inject-form');"
                f" f.elements['more'].value = {more!r};"
                " f.elements['param.field'].value = 'amount';"
                " f.elements['more'].dispatchEvent(new Event('change', {bubbles: true})); })()"
            )
            await until(
                page,
                "document.getElementById('command').textContent.includes('digit:field=amount')",
            )
            await until(page, "document.querySelector('#example-part mark.lie') !== null")
            await click(page, "button.main")
            await until(page, "location.pathname.startsWith('/injections/')")
            await until(page, "document.querySelector('.verdict h1') !== null")
            verdict = await page.ask("document.querySelector('.verdict h1').textContent")
            assert verdict in ("Silently wrong", "Recovered"), verdict
            assert page.complaints == []

    with ui_server(
        store.root, "--allow-runs", env=served.environment(), cwd=served.folder
    ) as server:
        anyio.run(run, server)
    assert count_forks(store) - before == 4


def test_without_allow_runs_nothing_starts(served: Shop, store: TraceStore, recording: str) -> None:
    before = set(store.tapes.iterdir())
    with ui_server(store.root, env=served.environment(), cwd=served.folder) as server:
        headers = server.cookie | {"origin": server.origin}
        for path in (f"/inject/{recording}", "/jobs/1/stop", "/campaigns/x/resume"):
            answer = httpx.post(
                server.origin + path, data={"at": "5.1", "fault": "sham"}, headers=headers
            )
            assert answer.status_code == 403
        page = httpx.get(f"{server.origin}/inject/{recording}?at=5.1", headers=server.cookie).text
        assert "stumble fork" in page
        assert "Run it" not in page
    assert set(store.tapes.iterdir()) == before


def test_the_end_of_the_server_ends_its_runs(
    served: Shop, store: TraceStore, recording: str
) -> None:
    """The agent would wait an hour."""
    sleeper = "sleep 3600.25"
    with ui_server(
        store.root, "--allow-runs", env=served.environment(), cwd=served.folder
    ) as server:
        answer = httpx.post(
            f"{server.origin}/inject/{recording}",
            data={"at": "5.1", "fault": "sham", "more": f"--twins 0 --in-place -- {sleeper}"},
            headers=server.cookie | {"origin": server.origin},
            timeout=60,
        )
        assert answer.status_code == 303, answer.text
        anyio.run(_wait_for, sleeper)
    assert _count(sleeper) == 0


async def _wait_for(words: str) -> None:
    with anyio.fail_after(60):
        while not _count(words):
            await anyio.sleep(0.05)


def _count(words: str) -> int:
    """Return how many processes have this command line."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += path.read_bytes().replace(b"\0", b" ").strip() == words.encode()
        except OSError:
            continue  # it has ended
    return count


@pytest.mark.thorough
def test_a_result_is_edited_by_hand(served: Shop, store: TraceStore, recording: str) -> None:
    """The field begins with the result; the command holds the edit."""
    with ui_server(store.root, env=served.environment(), cwd=served.folder) as server:

        def show(**more: str) -> str:
            given = {"at": "5.1", "fault": "replace"} | more
            address = f"{server.origin}/inject/{recording}"
            return httpx.get(address, params=given, headers=server.cookie, timeout=60).text

        first = html.unescape(show())
        field = first.partition("<textarea")[2].partition(">")[2].partition("</textarea>")[0]
        assert json.loads(field)["order_id"]
        edited = field.replace("ord-", "no,\r\n-", 1)
        page = html.unescape(show(**{"param.value": edited}))
    command = page.partition('id="command">')[2].partition("</code>")[0]
    [fault] = [word for word in shlex.split(command) if word.startswith("replace:")]
    assert parse_fault({"fault": fault}).params == {"value": edited.replace("\r\n", "\n")}
    assert "nothing to change" in first
    assert "nothing to change" not in page


@pytest.mark.thorough
def test_the_form_changes_prompt_and_model(store: TraceStore, recording: str) -> None:
    with ui_server(store.root) as server:

        def shown(**fields: str) -> str:
            answer = httpx.get(
                f"{server.origin}/inject/{recording}",
                params=fields,
                headers=server.cookie,
                timeout=60,
            )
            assert answer.status_code == 200, answer.text
            return html.unescape(answer.text)

        # A message of the user is edited where the model answers it, without a fault.
        first = shown(at="1")
        assert "--fault sham --at model --nth 1" in first
        text = first.partition('name="prompt.0"')[2].partition('data-was="')[2].partition('"')[0]
        assert "customer service" in text
        edited = {"prompt.0": text.replace("customer service", "fire brigade")}
        command = shown(at="5.1", model="other/model", **edited).partition('id="command">')[2]
        command = command.partition("</code>")[0]
        words = shlex.split(command)
        assert words[words.index("--model") + 1] == "other/model"
        old, new = words[words.index("--edit-prompt") + 1 :][:2]
        assert old in text
        assert text.replace(old, new) == edited["prompt.0"]
        assert "--edit-prompt" not in shown(at="5.1", **{"prompt.0": text})
