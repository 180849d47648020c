"""Time until a recording accepts requests, and the effect of its size.

    python -m tests.bench.ready [ROUNDS [LARGE]]

Recordings as in `peers`. `mitmdump -S` needs about a minute for LARGE (100,000) of them, writing
them all takes another two. A replayer is ready when it accepts a connection, measured from the
start of its process.
"""

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.crowding import alone, asks
from tests.bench.peers import COUNT, Bench
from tests.bench.recordings import HOST
from tests.bench.replayers import Replayer, replaying
from tests.bench.target import target

ROUNDS, LARGE = 7, 100_000


def small(bench: Bench) -> None:
    """A tape of a thousand exchanges, from the start of Python to the first connection."""
    file, took = bench.file(bench.write("calls", COUNT), "ours"), list[Replayer]()
    for number in range(bench.rounds + 1):
        with replaying("matching", file, bench.ca) as ours:
            took += [ours] if number else []  # the first one makes the authority
    cpu = median(each.cpu for each in took)
    print(f"{COUNT:,} exchanges: {cpu * 1e3:.0f} ms of processor time until they are ready")
    ready = median(each.ready for each in took)
    target("a tape of 1,000 exchanges is ready", ready * 1e3, "ms", most=200)


def latency(bench: Bench, large: int) -> Replayer:
    """Compare sequential requests to a small and to a large recording; return the large one's
    replayer.
    """
    few, many = bench.write("calls", COUNT), bench.write("calls", large)
    wanted = [
        asks("calls", numbers, target=f"http://{HOST}")
        for numbers in (range(COUNT), range(0, large, large // COUNT))
    ]
    took = list[tuple[float, float]]()
    for _ in range(bench.rounds):
        with (
            replaying("matching", bench.file(few, "ours"), bench.ca) as one,
            replaying("matching", bench.file(many, "ours"), bench.ca) as other,
        ):
            ports = (one.ports[0], other.ports[0])
            waits = [median(alone(port, asked)) for port, asked in zip(ports, wanted, strict=True)]
            took.append((waits[0], waits[1]))
    print(
        f"one after the other: {median(a for a, _ in took) * 1e3:.3f} ms of {COUNT:,}, "
        f"{median(b for _, b in took) * 1e3:.3f} ms of {large:,}"
    )
    figure = median(b / a for a, b in took)
    target(f"median latency with {large:,} recordings", figure, f"x with {COUNT:,}", most=1.2)
    return other


def main(rounds: int, large: int) -> None:
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder), rounds)
        small(bench)
        ours = latency(bench, large)
        flows = bench.file(bench.write("calls", large), "mitmdump")
        with replaying("mitmdump", flows, bench.ca) as theirs:
            print(
                f"{large:,} exchanges: ours ready in {ours.ready:.2f} s ({ours.cpu:.2f} of CPU), "
                f"mitmdump in {theirs.ready:.1f} s ({theirs.cpu:.1f} of CPU)"
            )
        target(f"{large:,} recordings are ready, CPU", ours.cpu / theirs.cpu, "x mitmdump -S",
               most=0.02)  # fmt: skip


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*(given + [ROUNDS, LARGE][len(given) :]))
