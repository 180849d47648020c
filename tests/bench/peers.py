"""Replaying beside others: `mitmdump -S` of the locked version, aimock from npm, and vcrpy.

    python -m tests.bench.peers [ROUNDS [LARGE]]

The same client asks all of them for the same recordings, 1,000 requests of 2 KB with answers of
1.5 KB, in turns within each round; each answer is looked at. Ratios are taken round by round, and
their median is shown. LARGE (100,000) is the recording whose latency must not grow and that is
to be there soon; mitmdump needs about a minute for it.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from recorder.loop import run
from tests.bench import recordings
from tests.bench.crowding import Asks, asks, crowd
from tests.bench.recordings import HOST
from tests.bench.replayers import CA, OURS, Replayer, asking_itself, replaying
from tests.bench.target import target

ROUNDS, COUNT, LARGE = 7, 1_000, 100_000
SERIAL = 300
STARTS = 7
type Figures = Mapping[str, Sequence[float]]


class Bench:
    """The recordings in all forms, and the replayers of one kind of traffic."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds
        self.ca = folder / "ca"
        self.ca.mkdir()

    def write(self, kind: str, count: int, scheme: str = "http") -> str:
        """The recordings in files, if they are not there yet; their name without a suffix."""
        name = f"{kind}-{scheme}-{count}"
        if not self.file(name, "ours").exists():
            recordings.tape(self.file(name, "ours"), recordings.exchanges(kind, count, scheme))
            recordings.flows(self.file(name, "mitmdump"), recordings.exchanges(kind, count, scheme))
            recordings.fixtures(self.file(name, "aimock"), count)
        return name

    def file(self, name: str, replayer: str) -> Path:
        """Where the recordings lie for one replayer."""
        suffix = {"mitmdump": "flows", "aimock": "json", "vcrpy": "yaml"}.get(replayer, "tape")
        return self.folder / f"{name}.{suffix}"

    def compared(
        self,
        name: str,
        replayers: Sequence[str],
        wanted: Sequence[Asks],
        connections: int,
        *,
        tls: bool = False,
        direct: Sequence[Asks] = (),
    ) -> tuple[Figures, Figures]:
        """Requests a second, and milliseconds of processor time for each, round by round."""
        rates = {each: list[float]() for each in replayers}
        cpu = {each: list[float]() for each in replayers}
        ca = self.ca / CA if tls else None
        with ExitStack() as stack:
            there = {
                each: stack.enter_context(replaying(each, self.file(name, each), self.ca))
                for each in replayers
            }
            for number in range(self.rounds + 1):
                for each, replayer in there.items():
                    asked = direct if each == "aimock" else wanted
                    rate, used = _round(replayer, asked, connections, ca)
                    if number:  # the first one warms all up
                        rates[each].append(rate)
                        cpu[each].append(used / len(asked) * 1e3)
        return rates, cpu


def _round(
    replayer: Replayer, wanted: Sequence[Asks], connections: int, ca: Path | None
) -> tuple[float, float]:
    before = list[float]()
    port = replayer.anew()
    took = run(
        crowd(port, wanted, connections, ca=ca, begin=lambda: before.append(replayer.used()))
    )
    return took.rate, replayer.used() - before[0]


def ratio(figures: Figures, one: str, other: str) -> float:
    """The median over the rounds of one divided by the other."""
    return median(a / b for a, b in zip(figures[one], figures[other], strict=True))


def show(what: str, rates: Figures, cpu: Figures) -> None:
    for name in rates:
        print(
            f"{what}, {name}: {median(rates[name]):,.0f} requests/s "
            f"({min(rates[name]):,.0f}-{max(rates[name]):,.0f}), {median(cpu[name]):.3f} ms of CPU"
        )
    sys.stdout.flush()


def beside_mitmdump(bench: Bench) -> None:
    """Fifty connections, tool calls and model requests, in the clear and over TLS."""
    for kind, said in (("calls", "tool calls"), ("chat", "model requests")):
        name = bench.write(kind, COUNT)
        wanted = asks(kind, range(COUNT), target=f"http://{HOST}")
        rates, cpu = bench.compared(name, ("mitmdump", *OURS), wanted, 50)
        show(f"HTTP, 50 connections, {said}", rates, cpu)
        unit = "x mitmdump -S"
        target(f"{said} matched, 50 connections", ratio(rates, "matching", "mitmdump"), unit,
               least=20)  # fmt: skip
        print(f"with a new tape: {ratio(rates, 'run', 'mitmdump'):.1f} {unit}")
    unit, name = "x mitmdump -S", bench.write("calls", COUNT, "https")
    rates, cpu = bench.compared(
        name, ("mitmdump", *OURS), asks("calls", range(COUNT), target=""), 50, tls=True
    )
    show("HTTPS, 50 connections, tool calls", rates, cpu)
    target("tool calls matched over HTTPS, 50 connections", ratio(rates, "matching", "mitmdump"),
           unit, least=8)  # fmt: skip


def beside_aimock(bench: Bench) -> None:
    """Model requests, at eight connections and at fifty."""
    name = bench.write("chat", COUNT)
    ways = [asks("chat", range(COUNT), target=way) for way in (f"http://{HOST}", "")]
    for connections in (8, 50):
        figure = None
        if shutil.which("npm") and shutil.which("node"):
            rates, cpu = bench.compared(
                name, ("aimock", *OURS), ways[0], connections, direct=ways[1]
            )
            show(f"HTTP, {connections} connections, model requests", rates, cpu)
            figure = ratio(rates, "matching", "aimock")
        target(f"model requests matched, {connections} connections", figure, "x aimock", least=2)


def beside_vcrpy(bench: Bench) -> None:
    """One after the other; recordings all over the tape, since vcrpy looks from its beginning."""
    name = bench.write("calls", COUNT)
    recordings.cassette(bench.file(name, "vcrpy"), recordings.exchanges("calls", COUNT))
    numbers = tuple(range(25, COUNT, 50))
    wanted = asks("calls", range(COUNT), target=f"http://{HOST}")
    with (
        asking_itself(bench.file(name, "vcrpy")) as ask,
        replaying("matching", bench.file(name, "ours"), bench.ca) as ours,
    ):
        theirs = [ask(number) for number in numbers]
        waits = run(crowd(ours.anew(), wanted, 1)).waits
    one, other = median(waits), median(theirs)
    print(f"one after the other: ours {one * 1e3:.3f} ms, vcrpy {other * 1e3:.1f} ms")
    target("one after the other, of 1,000 recordings", other / one, "x vcrpy", least=1000)


def much(bench: Bench, large: int) -> None:
    """How soon a large recording is there, and whether its size is felt."""
    small, name = bench.write("calls", COUNT), bench.write("calls", large)
    ready = list[float]()
    for _ in range(STARTS):
        with replaying("matching", bench.file(small, "ours"), bench.ca) as one:
            ready.append(one.ready)
    print(f"1,000 exchanges: ready in {', '.join(f'{each * 1e3:.0f}' for each in ready)} ms")
    target("a tape of 1,000 exchanges is ready", median(ready) * 1e3, "ms", most=200)
    numbers = range(0, large, large // COUNT)
    wanted = asks("calls", numbers, target=f"http://{HOST}")
    few = asks("calls", range(COUNT), target=f"http://{HOST}")
    with (
        replaying("matching", bench.file(small, "ours"), bench.ca) as one,
        replaying("matching", bench.file(name, "ours"), bench.ca) as many,
    ):
        took = [
            median(run(crowd(many.anew(), wanted, 1)).waits)
            / median(run(crowd(one.anew(), few, 1)).waits)
            for _ in range(bench.rounds)
        ]
        ours = many
    target(f"median latency with {large:,} recordings", median(took), f"x with {COUNT:,}",
           most=1.2)  # fmt: skip
    with replaying("mitmdump", bench.file(name, "mitmdump"), bench.ca) as theirs:
        print(
            f"{large:,} exchanges: ours ready in {ours.ready:.2f} s ({ours.cpu:.2f} of CPU), "
            f"mitmdump in {theirs.ready:.1f} s ({theirs.cpu:.1f} of CPU)"
        )
    target(f"{large:,} recordings are ready, CPU", ours.cpu / theirs.cpu, "x mitmdump -S",
           most=0.02)  # fmt: skip


def main(words: list[str]) -> None:
    rounds, large = int(words[0]) if words else ROUNDS, int(words[1]) if words[1:] else LARGE
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder), rounds)
        beside_mitmdump(bench)
        beside_aimock(bench)
        beside_vcrpy(bench)
        much(bench, large)


if __name__ == "__main__":
    main(sys.argv[1:])
