"""A real `stumble ui` over a real store, and a browser that has its token."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from tests.agents import npm_agent
from tests.support.headless_browser import PATIENCE, Tab, tab

ADDRESS = re.compile(rb"(http://127\.0\.0\.1:\d+)(/\S*)[?&]token=(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class UiServer:
    """A running server: its origin, the path of its first page, its token and process."""

    origin: str
    path: str
    token: str
    process: "subprocess.Popen[bytes]"

    @property
    def cookie(self) -> dict[str, str]:
        """The headers of a browser that opened the printed address."""
        port = self.origin.rpartition(":")[2]
        return {"cookie": f"stumble_ui_{port}={self.token}"}


@contextmanager
def ui_server(
    store: Path, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Iterator[UiServer]:
    """Serve a store; SIGTERM at the end, which leaves no child and no traceback."""
    process = subprocess.Popen(
        [sys.executable, "-m", "stumble", "ui", *arguments],
        env={**(os.environ if env is None else env), "STUMBLE_STORE": str(store)},
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = ADDRESS.search(line)
        assert found, (line, process.stderr.read() if process.stderr else b"")
        origin, path, token = (part.decode() for part in found.groups())
        yield UiServer(origin=origin, path=path, token=token, process=process)
        assert process.poll() is None, process.stderr and process.stderr.read()
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE)
    assert b"Traceback" not in errors, errors.decode()


@asynccontextmanager
async def opened(server: UiServer, path: str = "", *, width: int = 1440) -> AsyncIterator[Tab]:
    """Open a page of the server with its token in a new browser."""
    async with tab() as page:
        await page.call(
            "Network.emulateNetworkConditions",
            offline=False,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )
        await resize(page, width)
        first = path or server.path
        sign = "&" if "?" in first else "?"
        await go(page, f"{server.origin}{first}{sign}token={server.token}")
        yield page


async def resize(page: Tab, width: int, *, dark: bool = False) -> None:
    """Set the width of the page, and its colour scheme."""
    await page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=width < 600,
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    await page.call("Emulation.setEmulatedMedia", features=[scheme])


async def go(page: Tab, address: str) -> None:
    """Navigate, and wait until the page is loaded."""
    before = page.loaded
    await page.call("Page.navigate", url=address)
    await loaded(page, before)
    # The load may have been that of the blank page before.
    await until(page, "location.protocol === 'http:' && document.readyState === 'complete'")


async def loaded(page: Tab, before: int) -> None:
    """Wait for the load after `before`."""
    with anyio.fail_after(PATIENCE):
        while page.loaded == before:
            page._heard(await page.socket.receive_json(timeout=PATIENCE))


async def until(page: Tab, script: str) -> None:
    """Wait until an expression of the page is true; it may be between two pages."""
    with anyio.move_on_after(PATIENCE):
        while True:
            try:
                if await page.ask(script):
                    return
            except RuntimeError:  # the page is being replaced
                pass
            await anyio.sleep(0.05)
    text = await page.ask("location.href + '\\n' + document.body.innerText.slice(0, 2000)")
    raise TimeoutError(f"never true: {script}\non {text}")


async def press(page: Tab, key: str) -> None:
    """Press a key as a user does."""
    text = {"Enter": "\r", "Tab": ""}.get(key, key if len(key) == 1 else "")
    code = {"Enter": 13, "Tab": 9, "Escape": 27}.get(key, ord(key[0].upper()))
    for kind in ("keyDown", "keyUp"):
        more = {"text": text} if kind == "keyDown" and text else {}
        await page.call(
            "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more
        )


async def click(page: Tab, selector: str) -> None:
    """Click an element with the mouse, where a user sees it, once the page has settled."""
    await until(page, "document.readyState === 'complete'")
    folder = (
        f"(() => {{ const e = document.querySelector({selector!r});"
        " e.scrollIntoView({block: 'center'}); const r = e.getClientRects()[0];"
        " return [r.left + r.width / 2, r.top + r.height / 2]; })()"
    )
    before, at = None, await page.ask(folder)
    while at != before:
        await anyio.sleep(0.05)
        before, at = at, await page.ask(folder)
    for kind in ("mousePressed", "mouseReleased"):
        await page.call(
            "Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1
        )


async def violations(page: Tab) -> list[str]:
    """Return what axe-core finds wrong with the page, each with the first elements."""
    await page.ask(npm_agent("axe").read_text())
    await page.ask(
        "window.found = null; axe.run().then(r => { window.found = r.violations.map(v =>"
        " v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(' | ')); })"
    )
    await until(page, "window.found !== null")
    found = await page.ask("window.found")
    assert isinstance(found, list)
    return found
