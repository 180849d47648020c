"""Sealed tapes of conversations whose provider or client drops text, compared with zstd of all.

    python -m tests.bench.histories

`resent`: each request has all earlier messages. `cleared`: tool results but the last ten are
replaced by a note, as clients do to save tokens. `server-side`: a request has the new messages
only, the provider keeps the rest. zstd has level 19 and a window of 128 MB over all raw bodies.
Results have 1 KB, or 5 to 50 KB, as those of an agent that reads files.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from copy import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from tests.bench.conversation import conversation
from tests.bench.target import target
from tests.bench.traffic import LIBRARY, SOURCES
from traces.model import Exchange, RunEnding, Trajectory
from traces.tape.reader import read_tape
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

KEPT_RESULTS, WINDOW_LOG = 10, 27
SIZES: tuple[tuple[str, int, range], ...] = (
    ("1 KB", 60, range(1000, 1001)),
    ("5 to 50 KB", 60, range(5_000, 50_000)),
    ("5 to 50 KB", 200, range(5_000, 50_000)),
)
"""How large results are, and the number of steps."""
CLEARED = "[old tool result cleared]"


def clear_results(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Replace the text of all tool results but the last ones."""
    for exchange in exchanges:
        sent = json.loads(exchange.request.body)
        results = [each for each in sent["messages"] if each["role"] == "tool"]
        for each in results[:-KEPT_RESULTS]:
            each["content"] = CLEARED
        yield with_body(exchange, sent)


def drop_history(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Keep the last messages only, and name the answer that they continue."""
    for exchange in exchanges:
        sent = json.loads(exchange.request.body)
        sent["messages"] = sent["messages"][-2:]
        yield with_body(exchange, sent | {"previous_response_id": f"resp_{exchange.seq:08d}"})


def with_body(exchange: Exchange, sent: object) -> Exchange:
    body = json.dumps(sent).encode()
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return replace(exchange, request=replace(exchange.request, body=body, headers=headers))


def compare(name: str, size: str, exchanges: list[Exchange], folder: Path) -> None:
    """Print the size of a sealed tape beside that of zstd over all of its raw bodies."""
    path = folder / f"{name}.tape"
    with TapeWriter(path, Trajectory(id=name, recorded_at=0.0)) as tape:
        for exchange in exchanges:
            tape.write_exchange(exchange)
        tape.write_ending(RunEnding(ended="final"))
    seal_tape(path)
    assert list(read_tape(path).exchanges) == exchanges, "the tape is not what was written"
    raw = b"".join(
        each.request.body + (each.response.body if each.response else b"") for each in exchanges
    )
    limits = zstandard.ZstdCompressionParameters.from_level(
        19, window_log=WINDOW_LOG, enable_ldm=True
    )
    packed = len(zstandard.ZstdCompressor(compression_params=limits).compress(raw))
    sealed = path.stat().st_size
    print(
        f"{name}, {len(exchanges)} steps, {size}: {len(raw):,} bytes raw, zstd {packed:,}, "
        f"tape {sealed:,} (1/{len(raw) / sealed:.0f})"
    )
    target(f"sealed tape, {name}, {len(exchanges)} steps, results of {size}", sealed / packed,
           "x zstd -19 --long=27", most=1.0)  # fmt: skip


SHAPES: dict[str, Callable[[Iterable[Exchange]], Iterator[Exchange]]] = {
    "resent": iter,
    "cleared": clear_results,
    "server-side": drop_history,
}


def main() -> None:
    for size, steps, results in SIZES:
        for shape, change in SHAPES.items():
            text = LIBRARY if len(results) > 1 else SOURCES
            exchanges = list(change(conversation(steps, text=text, results=results)))
            with TemporaryDirectory() as name:
                compare(shape, size, exchanges, Path(name))


if __name__ == "__main__":
    main()
