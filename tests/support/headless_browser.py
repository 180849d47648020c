"""A real headless browser, controlled over its DevTools protocol."""

import base64
import itertools
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import anyio

PATIENCE = 60.0
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # CI runs as root, for which Chromium has no sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


@dataclass(slots=True, kw_only=True)
class Tab:
    """A tab, its console messages, and the network requests of its pages."""

    socket: aiohttp.ClientWebSocketResponse
    ids: "itertools.count[int]"
    complaints: list[str]
    asked: list[str]
    loaded: int = 0

    async def call(self, method: str, **params: object) -> Any:
        """Return the result of a protocol command."""
        id = next(self.ids)
        await self.socket.send_json({"id": id, "method": method, "params": params})
        while True:
            said = await self.socket.receive_json(timeout=PATIENCE)
            self._heard(said)
            if said.get("id") == id:
                if "error" in said:
                    raise RuntimeError(f"{method}: {said['error']['message']}")
                return said["result"]

    async def ask(self, script: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        done = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"]["exception"]["description"])
        return done["result"].get("value")

    async def show(self, path: Path, *, width: int, dark: bool = False) -> None:
        """Open a file at this width, with the network switched off."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        before = self.loaded
        await self.call("Page.navigate", url=path.resolve().as_uri())
        with anyio.fail_after(PATIENCE):
            while self.loaded == before:
                self._heard(await self.socket.receive_json(timeout=PATIENCE))

    async def picture(self, path: Path) -> None:
        """Save the full page as PNG."""
        size = await self.ask("[document.documentElement.clientWidth,"
                              "document.documentElement.scrollHeight]")  # fmt: skip
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        taken = await self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        await anyio.Path(path).write_bytes(base64.b64decode(taken["data"]))

    def _heard(self, said: dict[str, Any]) -> None:
        params = said.get("params", {})
        match said.get("method"):
            case "Page.loadEventFired":
                self.loaded += 1
            case "Network.requestWillBeSent":
                self.asked.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(params["entry"]["text"])


@asynccontextmanager
async def tab() -> AsyncIterator[Tab]:
    """Open a tab of a new Chromium without a network; both are closed at the end."""
    async with AsyncExitStack() as stack:
        profile = stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
        chromium = subprocess.Popen(
            ["chromium", *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        stack.callback(_end, chromium)
        port = await anyio.to_thread.run_sync(_port, chromium)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            [address] = [each["webSocketDebuggerUrl"] for each in await answer.json()
                         if each["type"] == "page"]  # fmt: skip
        socket = await stack.enter_async_context(
            session.ws_connect(address, max_msg_size=0, proxy=None)
        )
        opened = Tab(socket=socket, ids=itertools.count(1), complaints=[], asked=[])
        for domain in ("Page", "Runtime", "Log", "Network"):
            await opened.call(f"{domain}.enable")
        await opened.call(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        yield opened


def _port(chromium: "subprocess.Popen[bytes]") -> int:
    assert chromium.stderr is not None
    said = []
    for line in chromium.stderr:
        said.append(line.decode(errors="replace"))
        found = re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", said[-1])
        if found:
            return int(found[1])
    raise RuntimeError("chromium did not start:\n" + "".join(said))


def _end(chromium: "subprocess.Popen[bytes]") -> None:
    chromium.terminate()
    try:
        chromium.wait(15)
    except subprocess.TimeoutExpired:
        chromium.kill()
        chromium.wait()
    assert chromium.stderr is not None
    chromium.stderr.close()
