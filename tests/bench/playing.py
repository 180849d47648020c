"""The process in which stumble replays, or in which vcrpy replays to itself.

    python -m tests.bench.playing matching|run|vcrpy FILE CONFDIR

It imports nothing that `stumble replay` does not, so that its start-up time is the same.
"""

import asyncio
import http.client
import os
import sys
import time
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

KEYS = ("sk-proj-Zx81kQp0aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcd", "hf_aBcDeFgHiJkLmNoPqRsTuVw")


async def ours(name: str, file: Path, confdir: Path) -> None:
    """Serve each answer of the tape once; restart on another port for each line on stdin."""
    from recorder.proxy.server import ProxyServer
    from replay.player import TapePlayer
    from traces.conversation.tracker import ConversationTap
    from traces.model import Trajectory
    from traces.redaction.redactor import Redactor
    from traces.tape.reader import read_tape_lazily
    from traces.tape.writer import TapeWriter
    from traces.taps import TapChain

    performer, lines = ProxyServer(confdir=confdir), asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    recording, number = read_tape_lazily(file), 0
    line = await lines.readline()
    while line:
        async with AsyncExitStack() as stack:
            watch, redact, taps = ConversationTap(), Redactor(KEYS).redact_request, list[object]()
            if name == "run":
                number += 1
                path = file.with_name(f"run-{os.getpid()}-{number}.tape")
                trajectory = Trajectory(id="bench", recorded_at=time.time())
                tape = stack.enter_context(TapeWriter(path, trajectory, secrets=KEYS))
                redact, taps = tape.redactor.redact_request, [tape]
            chain = TapChain([watch, TapePlayer(recording, watch, redact=redact), *taps])
            stage = performer.create_listener(chain, began=time.monotonic(), seqs=count(1))
            await stack.enter_async_context(stage)
            print(stage.port, flush=True)
            line = await lines.readline()


def vcrpy(file: Path) -> None:
    """Request the recording of each number on stdin; print the seconds it took."""
    import vcr

    from tests.bench.recordings import HEADERS, HOST, PATHS, answered, asked

    machine = vcr.VCR(
        serializer="json",
        record_mode="none",
        match_on=("method", "scheme", "host", "port", "path", "query", "body"),
    )
    with machine.use_cassette(str(file)):
        print("ready", flush=True)
        for line in sys.stdin:
            number, connection = int(line), http.client.HTTPConnection(HOST)
            began = time.perf_counter()
            connection.request("POST", PATHS["calls"], asked("calls", number), dict(HEADERS))
            said = connection.getresponse().read()
            print(time.perf_counter() - began, flush=True)
            assert said == answered("calls", number), said


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["vcrpy", file, _]:
            vcrpy(Path(file))
        case [name, file, confdir]:
            from recorder.event_loop import run_event_loop

            run_event_loop(ours(name, Path(file), Path(confdir)))
