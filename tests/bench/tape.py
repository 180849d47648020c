"""Tapes: size, write speed compared with plain msgpack frames, and speed of conversion to rows.

python -m tests.bench.tape
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgpack
import zstandard

from stumble.llm.prices import compute_token_cost
from tests.bench.conversation import conversation
from tests.bench.target import target
from traces.model import Chunk, Exchange, Request, Response, RunEnding, Trajectory
from traces.store import rows as store_rows
from traces.store.schema import make_relation_table
from traces.store.trace_store import TraceStore
from traces.tape import frames
from traces.tape.append_file import AppendOnlyFile
from traces.tape.reader import read_tape
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

ROUNDS = 15
SMALLER = {60: 60, 200: 200}
"""Number of steps to the factor by which a sealed tape must be smaller than raw."""
RUN = Trajectory(id="many", recorded_at=0.0)


def size(steps: int, folder: Path) -> None:
    """Print raw and stored bytes of one conversation, and the cost of sealing."""
    exchanges = list(conversation(steps))
    took, read_in = list[float](), list[float]()
    for round in range(ROUNDS):
        path = folder / f"{steps}-{round}.tape"
        with TapeWriter(path, RUN) as tape:
            for exchange in exchanges:
                tape.write_exchange(exchange)
            tape.write_ending(RunEnding(ended="final"))
        open_size = path.stat().st_size
        took.append(timed(partial(seal_tape, path)))
        read_in.append(timed(partial(read_tape, path)))
    assert list(read_tape(path).exchanges) == exchanges, "the tape is not what was written"
    raw, sealed = sum(map(_bytes, exchanges)), path.stat().st_size
    alone = sum(len(zstandard.compress(x.request.body, 3)) for x in exchanges)
    print(
        f"{steps:4} steps: {raw:>12,} bytes raw; "
        f"unsealed {open_size:>9,}, 1/{raw / open_size:.0f}; "
        f"sealed {sealed:>8,}, 1/{raw / sealed:.0f}, in {median(took) * 1e3:.1f} ms "
        f"(best {min(took) * 1e3:.1f}); read in {median(read_in) * 1e3:.1f} ms; "
        f"zstd-3 per request 1/{sum(len(x.request.body) for x in exchanges) / alone:.1f}"
    )
    target(
        f"sealed tape of {steps} steps", raw / sealed, "x smaller than raw", least=SMALLER[steps]
    )


def _bytes(exchange: Exchange) -> int:
    assert exchange.response is not None
    return len(exchange.request.body) + len(exchange.response.body)


def timed(do: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def plain(exchange: Exchange) -> tuple[object, ...]:
    """Return the contents of an exchange as a tuple."""
    asked, answer = exchange.request, exchange.response
    assert answer is not None
    return (
        (exchange.seq, exchange.started, exchange.connection, exchange.stream, exchange.error),
        (exchange.transport, exchange.answered_by, exchange.redacted),
        (asked.method, asked.url, asked.headers, asked.body),
        (answer.status, answer.reason, answer.version, answer.headers, answer.at, answer.ended),
        [(chunk.at, chunk.data) for chunk in answer.chunks],
    )


def bare(path: Path, exchanges: Iterable[Exchange]) -> None:
    """Write the minimum that survives a kill: length, crc, msgpack, one write each, synced
    alike.
    """
    file = AppendOnlyFile(path)
    for exchange in exchanges:
        file.append(frames.encode_frame(1, msgpack.packb(plain(exchange))))
    file.close()


def taped(path: Path, exchanges: Iterable[Exchange], *, redact: bool) -> None:
    """Write a tape of these exchanges."""
    with TapeWriter(path, RUN, redact=redact) as tape:
        for exchange in exchanges:
            tape.write_exchange(exchange)


WRITERS: Mapping[str, Callable[[Path, Iterable[Exchange]], None]] = {
    "bare": bare,
    "redaction off": partial(taped, redact=False),
    "redaction on": partial(taped, redact=True),
}


def speed(name: str, exchanges: Sequence[Exchange], folder: Path) -> None:
    """Print the rate of plain frames and of tapes, interleaved, and their ratio."""
    wall = {kind: list[float]() for kind in WRITERS}
    cpu = {kind: list[float]() for kind in WRITERS}
    for round in range(ROUNDS):
        for kind, write in WRITERS.items():
            path = folder / f"{name}-{kind}-{round}"
            before = time.process_time()
            wall[kind].append(timed(partial(write, path, exchanges)))
            cpu[kind].append(time.process_time() - before)
            path.unlink()
    for kind in WRITERS:
        rate, spent = len(exchanges) / median(wall[kind]), median(cpu[kind]) / len(exchanges)
        by_wall, by_cpu = (
            median(other / ours for ours, other in zip(took[kind], took["bare"], strict=True))
            for took in (wall, cpu)
        )
        print(
            f"{name}, {kind}: {rate:,.0f} exchanges/s, {by_wall:.2f} of bare by the clock; "
            f"{spent * 1e6:.1f} us of CPU each, {by_cpu:.2f} of bare"
        )
        if kind == "redaction off":
            target(f"pace of writing a tape, {name}", by_cpu, "x bare msgpack frames", least=0.7)


def small(count: int) -> list[Exchange]:
    """Return exchanges of 2 KB with little in common."""
    text = Path(store_rows.__file__).read_bytes()
    out = []
    for seq in range(count):
        at = seq * 37 % 4000
        answer = Response(
            status=200, chunks=(Chunk(at=seq, data=text[at : at + 1000]),), at=seq, ended=seq
        )
        request = Request(method="POST", url="http://shop/x", body=text[at + 9 : at + 1009])
        out.append(Exchange(seq=seq, started=seq, request=request, response=answer))
    return out


def ingest(folder: Path, count: int = 20_000) -> None:
    """Print the rate at which exchanges of 2 KB become rows with all columns, per second."""
    path = folder / "many.tape"
    with TapeWriter(path, RUN) as tape:
        for exchange in small(count):
            tape.write_exchange(exchange)
        tape.write_ending(RunEnding(ended="final"))
    rates = []
    for _ in range(5):
        began = time.perf_counter()
        rows = store_rows.build_tape_rows(read_tape(path), None, compute_token_cost)
        tables = {name: make_relation_table(name, found) for name, found in rows.items() if found}
        TraceStore(folder / "store").write("many", tables)
        rates.append(count / (time.perf_counter() - began))
    target("ingest of 2 KB exchanges, all columns", median(rates), "exchanges/s", least=30_000)


def main() -> None:
    """Print all figures."""
    with TemporaryDirectory() as name:
        for steps in (60, 200):
            size(steps, Path(name))
        speed("60 steps", list(conversation(60)), Path(name))
        speed("2 KB each", small(2000), Path(name))
        ingest(Path(name))


if __name__ == "__main__":
    main()
