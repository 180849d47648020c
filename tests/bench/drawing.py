"""A run of 500 steps in `stumble ui`: drawing, scrolling, and the server's memory with a 1 GB tape.

    python -m tests.bench.drawing [GIGABYTES]       default 1; needs Chromium

Drawn: from the start of the navigation to the end of `load` and the frame after it, by the page's
own clock, the request included. Frames: what Chromium's trace counts as presented while the list of
steps and then the page scroll for two seconds each. Memory: the peak of the server after it showed
the large tape's run, a step's request, answer, raw bytes and context, and the last page of a body.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from copy import replace
from pathlib import Path

import anyio
import httpx

from tests.bench.conversation import conversation
from tests.bench.target import target
from tests.support.headless_browser import Tab
from tests.support.ui_server import UiServer, go, opened, ui_server, until
from traces.model import Chunk, Exchange, RunEnding, Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

STEPS = 500
ROUNDS = 5
SCROLL_SECONDS = 2.0
SCROLL_SPEED = 4000
"""Pixels a second: a fast turn of the wheel."""
SCROLL = """
new Promise(done => {
  const box = SELECTOR, began = performance.now(), times = [];
  const step = now => {
    times.push(now);
    box.scrollTop = SPEED * (now - began) / 1000;
    if (now - began < DURATION) requestAnimationFrame(step);
    else { window.frames_ = times; done(); }
  };
  requestAnimationFrame(step);
})
"""


def main(words: list[str]) -> None:
    gigabytes = float(words[0]) if words else 1.0
    with tempfile.TemporaryDirectory(prefix="stumble-bench-") as folder:
        store = TraceStore(Path(folder) / ".stumble")
        _write_tape(store, "steps", conversation(STEPS))
        _write_tape(store, "large", _large(int(gigabytes * 1e9)))
        size = (store.tapes / "large.tape").stat().st_size / 1e9
        with ui_server(store.root) as server:
            anyio.run(_draw, server)
        with ui_server(store.root) as server:
            _walk(server)
            memory = _read_peak(server.process.pid)
    target(f"server with a tape of {size:.2f} GB open: memory", memory, "MB", most=300)


async def _draw(server: UiServer) -> None:
    async with opened(server, "/runs/steps") as page:
        drawn = [await _time_drawing(page, server) for _ in range(ROUNDS)]
        target(f"{STEPS} steps drawn", sorted(drawn)[ROUNDS // 2], "s", most=0.5)
        await until(page, "document.documentElement.classList.contains('laid-out')")
        await page.ask("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        for name, box in (("the steps", "document.getElementById('steps')"),
                          ("the page", "document.scrollingElement")):  # fmt: skip
            rate, worst = await _time_scrolling(page, box)
            target(f"{STEPS} steps: frames a second while {name} scroll", rate, "/s", least=58)
            target(f"{STEPS} steps: longest task while {name} scroll", worst, "ms", most=17)


async def _time_drawing(page: Tab, server: UiServer) -> float:
    """Return the seconds until the page is loaded and painted."""
    await go(page, f"{server.origin}/runs/steps?at=5")
    await page.ask("window.painted = 0; requestAnimationFrame(() => requestAnimationFrame(() =>"
                   " { window.painted = 1; }))")  # fmt: skip
    await until(page, "window.painted === 1")
    assert await page.ask("document.querySelectorAll('.step').length") >= STEPS
    return float(await page.ask(
        "Math.max(performance.getEntriesByType('navigation')[0].loadEventEnd,"
        " ...performance.getEntriesByType('paint').map(e => e.startTime)) / 1000"
    ))  # fmt: skip


async def _time_scrolling(page: Tab, box: str) -> tuple[float, float]:
    """Return frames a second, and the milliseconds of the longest task of the main thread."""
    await page.call("Tracing.start", categories="devtools.timeline,toplevel",
                    transferMode="ReturnAsStream")  # fmt: skip
    script = SCROLL.replace("SELECTOR", box).replace("DURATION", str(SCROLL_SECONDS * 1000))
    script = script.replace("SPEED", str(SCROLL_SPEED))
    await page.ask(f"window.frames_ = null; void {script}")
    await until(page, "window.frames_ !== null")
    times = await page.ask("window.frames_")
    tasks = await _end_trace(page)
    rate = (len(times) - 1) / (times[-1] - times[0]) * 1000
    return rate, max(tasks, default=0.0)


async def _end_trace(page: Tab) -> list[float]:
    """Return the milliseconds of the tasks of the trace that hold layout, script or paint."""
    await page.call("Tracing.end")
    stream = None
    while stream is None:
        heard = await page.socket.receive_json(timeout=30)
        if heard.get("method") == "Tracing.tracingComplete":
            stream = heard["params"]["stream"]
    parts = list[str]()
    while True:
        read = await page.call("IO.read", handle=stream)
        parts.append(read["data"])
        if read["eof"]:
            break
    events = json.loads("".join(parts))["traceEvents"]
    names = {"Layout", "UpdateLayoutTree", "Paint", "FireAnimationFrame", "PrePaint", "Layerize"}
    return [each["dur"] / 1000 for each in events if each.get("name") in names and "dur" in each]


def _walk(server: UiServer) -> None:
    """Look at all of the large tape's run, and at its bodies."""
    with httpx.Client(headers=server.cookie, timeout=600) as client:
        for at in ("3", "5"):
            for show in ("read", "request", "answer", "next", "context", "raw"):
                asked = {"at": at, "show": show, "part": "99"}
                answer = client.get(f"{server.origin}/runs/large", params=asked)
                assert answer.status_code == 200


def _large(size: int) -> Iterator[Exchange]:
    """Yield exchanges whose answers are together this large, and do not compress."""
    each = size // 64
    for exchange in conversation(64):
        yield exchange
        body = os.urandom(each)
        assert exchange.response is not None
        answer = replace(
            exchange.response,
            headers=(
                ("content-type", "application/octet-stream"),
                ("content-length", str(len(body))),
            ),
            chunks=(Chunk(at=exchange.started, data=body),),
        )
        request = replace(exchange.request, url="http://files/large", body=b"")
        yield replace(exchange, seq=exchange.seq + 1000, request=request, response=answer)


def _write_tape(store: TraceStore, id: str, exchanges: Iterator[Exchange]) -> None:
    path = store.tapes / f"{id}.tape"
    head = Trajectory(id=id, agent="bench", recorded_at=1.7e9)
    with TapeWriter(path, head, redact=False) as tape:
        for exchange in exchanges:
            tape.write_exchange(exchange)
        tape.write_ending(RunEnding(ended="final"))
    seal_tape(path)


def _read_peak(pid: int) -> float:
    """Return the peak resident memory in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1000


if __name__ == "__main__":
    main(sys.argv[1:])
