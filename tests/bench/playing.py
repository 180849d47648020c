"""The process in which ours plays, or in which vcrpy asks itself.

    python -m tests.bench.playing matching|run|vcrpy FILE CONFDIR

It imports nothing that `stumble replay` would not, so that it is ready as soon.
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
    """Answer from the tape, each answer once; anew, on another port, for each line."""
    from replay.performer import Performer
    from replay.player import Player
    from traces.conversation import Watch
    from traces.model import Trajectory
    from traces.redact import Redactor
    from traces.tape import Writer, browse
    from traces.taps import Taps

    performer, lines = Performer(confdir=confdir), asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    recording, number = browse(file), 0
    line = await lines.readline()
    while line:
        async with AsyncExitStack() as stack:
            watch, redact, taps = Watch(), Redactor(KEYS).request, list[object]()
            if name == "run":
                number += 1
                path = file.with_name(f"run-{os.getpid()}-{number}.tape")
                trajectory = Trajectory(id="bench", recorded_at=time.time())
                tape = stack.enter_context(Writer(path, trajectory, secrets=KEYS))
                redact, taps = tape.redactor.request, [tape]
            chain = Taps([watch, Player(recording, watch, redact=redact), *taps])
            stage = performer.stage(chain, began=time.monotonic(), seqs=count(1))
            await stack.enter_async_context(stage)
            print(stage.port, flush=True)
            line = await lines.readline()


def vcrpy(file: Path) -> None:
    """Ask once for each line, which is the number of a recording; say how many seconds it took."""
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
            from recorder.loop import run

            run(ours(name, Path(file), Path(confdir)))
