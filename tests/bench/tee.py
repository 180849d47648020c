"""Latency that the tee adds to a call of a stdio MCP server and to its start, in a recorded run.

    python -m tests.bench.tee

A client in this process requests a small server's text, once directly and once through the tee; the
run, in a separate process, writes a tape with redaction on. Rounds alternate.
"""

import asyncio
import itertools
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from recorder.ending_signals import SignalInterrupt
from recorder.event_loop import run_event_loop
from recorder.mcp.stdio import serve_tees
from tests.bench.target import target
from traces.conversation.tracker import ConversationTap
from traces.model import Trajectory
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, "-I", "-S", str(ROOT / "tests" / "support" / "servers" / "mcp_server.py")]
TEE = [sys.executable, "-I", "-S", str(ROOT / "recorder" / "mcp" / "tee.py")]
SIZES = (100, 1_000, 100_000)
CALLS, ROUNDS, STARTS = 300, 7, 15


def record(folder: Path) -> None:
    async def main() -> None:
        trajectory = Trajectory(id="bench", recorded_at=time.time())
        with TapeWriter(folder / "bench.tape", trajectory) as tape:
            taps = TapChain((ConversationTap(), tape))
            path = folder / "run"
            async with serve_tees(taps, path, began=time.monotonic(), seqs=itertools.count()):
                (folder / "ready").touch()
                await asyncio.sleep(600)

    with suppress(SignalInterrupt):  # the bench has ended
        run_event_loop(main())


class Client:
    def __init__(self, command: list[str]) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def call(self, text: str) -> float:
        params = {"name": "echo", "arguments": {"text": text}}
        said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        line = json.dumps(said).encode() + b"\n"
        assert self.process.stdin
        assert self.process.stdout
        began = time.perf_counter()
        self.process.stdin.write(line)
        self.process.stdin.flush()
        self.process.stdout.readline()
        return time.perf_counter() - began

    def close(self) -> None:
        self.process.communicate()


def started(command: list[str]) -> float:
    client = Client(command)
    client.call("first")
    took = time.perf_counter() - client.began
    client.close()
    return took


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="stumble-") as name:
        beside = multiprocessing.get_context("fork").Process(target=record, args=(Path(name),))
        beside.start()
        try:
            while not (Path(name) / "ready").exists():
                time.sleep(0.01)
            measure([*TEE, "--run", f"{name}/run", "--", *SERVER])
        finally:
            beside.terminate()
            beside.join()


def measure(teed: list[str]) -> None:
    for size in SIZES:
        direct, through = list[float](), list[float]()
        for _ in range(ROUNDS):
            for command, took in ((SERVER, direct), (teed, through)):
                client = Client(command)
                client.call("warm")
                took += [client.call("x" * size) for _ in range(CALLS)]
                client.close()
        one, two = (statistics.median(took) * 1e3 for took in (direct, through))
        worst = statistics.quantiles(through, n=20)[-1] * 1e3
        print(
            f"{size:>7} bytes: {one:.3f} ms direct, {two:.3f} ms through the tee, "
            f"+{two - one:.3f} ms (95 % of calls under {worst:.3f} ms)"
        )
        if size == 1_000:
            target("a call through the MCP stdio tee, later than direct", two - one, "ms", most=0.2)
    starts = [(started(SERVER), started(teed)) for _ in range(STARTS)]
    one, two = (statistics.median(took) * 1e3 for took in zip(*starts, strict=True))
    print(f"first answer: {one:.0f} ms direct, {two:.0f} ms through the tee, +{two - one:.0f} ms")


if __name__ == "__main__":
    main()
