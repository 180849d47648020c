"""Tape size of long conversations, and how fast tapes become rows of the store.

python -m tests.bench.tape
"""

import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import zstandard

from stumble.prices import price
from tests.bench.conversation import conversation
from traces import index
from traces.model import Chunk, Ending, Exchange, Request, Response, Trajectory
from traces.relations import table
from traces.store import Store
from traces.tape import Writer, read

ROUNDS = 5


def size(steps: int, folder: Path) -> None:
    """Print raw and stored bytes of one conversation."""
    exchanges = list(conversation(steps))
    path = folder / f"{steps}.tape"
    began = time.perf_counter()
    with Writer(path, Trajectory(id=f"run-{steps}", recorded_at=0.0)) as tape:
        for exchange in exchanges:
            tape.exchange(exchange)
        tape.ending(Ending(ended="final"))
    took = time.perf_counter() - began
    assert list(read(path).exchanges) == exchanges, "the tape is not what was written"
    raw = sum(_bytes(exchange) for exchange in exchanges)
    stored = path.stat().st_size
    alone = sum(len(zstandard.compress(x.request.body, 3)) for x in exchanges)
    sys.stdout.write(
        f"{steps:4} steps: {raw:>12,} bytes raw, {stored:>9,} on tape, 1/{raw / stored:.0f}; "
        f"zstd-3 per request 1/{sum(len(x.request.body) for x in exchanges) / alone:.1f}; "
        f"written at {raw / took / 1e6:.0f} MB/s\n"
    )


def _bytes(exchange: Exchange) -> int:
    assert exchange.response is not None
    return len(exchange.request.body) + len(exchange.response.body)


def ingest(folder: Path, count: int = 20_000) -> None:
    """Print how many exchanges of 2 KB a second become rows with all columns."""
    path = folder / "many.tape"
    text = Path(index.__file__).read_bytes()
    with Writer(path, Trajectory(id="many", recorded_at=0.0)) as tape:
        for seq in range(count):
            at = seq % 4000
            answer = Response(
                status=200, chunks=(Chunk(at=seq, data=text[at : at + 1000]),), at=seq, ended=seq
            )
            request = Request(method="POST", url="http://shop/x", body=text[at + 9 : at + 1009])
            tape.exchange(Exchange(seq=seq, started=seq, request=request, response=answer))
        tape.ending(Ending(ended="final"))
    rates = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        rows = index.rows(read(path), None, price)
        tables = {name: table(name, found) for name, found in rows.items() if found}
        Store(folder / "store").write("many", tables)
        rates.append(count / (time.perf_counter() - began))
    sys.stdout.write(f"ingest: {median(rates):,.0f} exchanges of 2 KB a second, all columns\n")


def main() -> None:
    """Print all figures."""
    with TemporaryDirectory() as name:
        for steps in (60, 200):
            size(steps, Path(name))
        ingest(Path(name))


if __name__ == "__main__":
    main()
