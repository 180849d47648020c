"""Replay compared with other tools: `mitmdump -S`, vcrpy and cassetter (PyPI), aimock (npm).

    python -m tests.bench.peers [ROUNDS]

The same client, in this process, requests the same recordings from each, 1,000 requests of 2 KB
with answers of 1.5 KB, alternating within each round. Each answer must have every byte of the
recorded one; only aimock generates its own bodies, of which the text is checked. The median of the
per-round ratios is shown: of requests per second, which on a busy machine include the client and
all others, and of the replayer's processor time.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from recorder.event_loop import run_event_loop
from tests.bench import recordings
from tests.bench.crowding import Asks, Took, alone, asks, crowd
from tests.bench.recordings import HOST
from tests.bench.replayers import CA, OURS, Replayer, cassetter, replaying, vcrpy
from tests.bench.target import target

ROUNDS, COUNT = 7, 1_000
PASSES = 5
"""Passes over all requests within a round, except for mitmdump, which takes as long for one."""


class Bench:
    """The recordings in all forms, and the replayers of one kind of traffic."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds
        self.ca = folder / "ca"
        self.ca.mkdir()

    def write(self, kind: str, count: int, scheme: str = "http") -> str:
        """Write the recordings unless they exist; return their name without suffix."""
        name = f"{kind}-{scheme}-{count}"
        if not self.file(name, "ours").exists():
            recordings.tape(self.file(name, "ours"), recordings.exchanges(kind, count, scheme))
            recordings.flows(self.file(name, "mitmdump"), recordings.exchanges(kind, count, scheme))
            recordings.fixtures(self.file(name, "aimock"), count)
        return name

    def file(self, name: str, replayer: str) -> Path:
        """Return the path of the recordings for one replayer."""
        suffixes = {"mitmdump": "flows", "aimock": "json", "vcrpy": "yaml", "cassetter": "pairs"}
        suffix = suffixes.get(replayer, "tape")
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
    ) -> Mapping[str, "Figures"]:
        """Measure the replayers round by round, alternating."""
        figures = {each: Figures() for each in replayers}
        ca = self.ca / CA if tls else None
        with ExitStack() as stack:
            there = {
                each: stack.enter_context(replaying(each, self.file(name, each), self.ca))
                for each in replayers
            }
            for number in range(self.rounds + 1):
                for each, replayer in there.items():
                    passes = 1 if each == "mitmdump" else PASSES
                    asked = direct if each == "aimock" else wanted
                    took = [
                        _pass(replayer, asked, connections, ca, exactly=each != "aimock")
                        for _ in range(passes)
                    ]
                    if number:  # the first one warms all up
                        figures[each].add(took)
        return figures


class Figures:
    """The measurements of one replayer, round by round."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        """Requests a second."""
        self.cpu: list[float] = []
        """Milliseconds of processor time of the replayer for each request."""
        self.asking: list[float] = []
        """The same of the client."""

    def add(self, took: Sequence[tuple[Took, float]]) -> None:
        """Add one round, of one or more passes; the seconds are the replayer's processor time."""
        answers = sum(each.answers for each, _ in took)
        self.rates.append(answers / sum(each.seconds for each, _ in took))
        self.cpu.append(sum(used for _, used in took) / answers * 1e3)
        self.asking.append(sum(each.asking for each, _ in took) / answers * 1e3)


def _pass(
    replayer: Replayer, wanted: Sequence[Asks], connections: int, ca: Path | None, *, exactly: bool
) -> tuple[Took, float]:
    before = list[float]()
    port = replayer.anew()

    def begin() -> None:
        before.append(replayer.used())

    took = run_event_loop(crowd(port, wanted, connections, ca=ca, exactly=exactly, begin=begin))
    return took, replayer.used() - before[0]


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the median over the rounds of one divided by the other."""
    return median(a / b for a, b in zip(one, other, strict=True))


def show(what: str, figures: Mapping[str, Figures]) -> None:
    for name, each in figures.items():
        print(
            f"{what}, {name}: {median(each.rates):,.0f} requests/s "
            f"({min(each.rates):,.0f}-{max(each.rates):,.0f}), CPU of each "
            f"{median(each.cpu) * 1e3:,.0f} us there and {median(each.asking) * 1e3:,.0f} us here"
        )
    sys.stdout.flush()


def targets(
    what: str, figures: Mapping[str, Figures], other: str, minimum: float, *, ours: str = "matching"
) -> None:
    """Print rate and processor time; the rate includes the client."""
    mine, theirs = figures[ours], figures[other]
    name = "mitmdump -S" if other == "mitmdump" else other
    target(f"{what}: requests/s", ratio(mine.rates, theirs.rates), f"x {name}", least=minimum)
    target(f"{what}: CPU of each", ratio(mine.cpu, theirs.cpu), f"x {name}", most=1 / minimum)


def beside_mitmdump(bench: Bench) -> None:
    """Fifty connections, tool calls and model requests, in the clear and over TLS."""
    ways = (
        ("calls", "http", "tool calls matched, 50 connections", 20),
        ("chat", "http", "model requests matched, 50 connections", 20),
        ("calls", "https", "tool calls matched over HTTPS, 50 connections", 8),
    )
    for kind, scheme, what, minimum in ways:
        name = bench.write(kind, COUNT, scheme)
        secure = scheme == "https"
        wanted = asks(kind, range(COUNT), target="" if secure else f"http://{HOST}")
        figures = bench.compared(name, ("mitmdump", *OURS), wanted, 50, tls=secure)
        show(what, figures)
        targets(what, figures, "mitmdump", minimum)
        if not secure:
            taped = what.replace("matched", "replayed with a new tape")
            targets(taped, figures, "mitmdump", 20, ours="run")


def beside_aimock(bench: Bench) -> None:
    """Model requests, at eight connections and at fifty."""
    name = bench.write("chat", COUNT)
    wanted, direct = (asks("chat", range(COUNT), target=way) for way in (f"http://{HOST}", ""))
    for connections in (8, 50):
        what = f"model requests matched, {connections} connections"
        if not (shutil.which("npm") and shutil.which("node")):
            target(f"{what}: requests/s", None, "x aimock", least=2)
            continue
        figures = bench.compared(name, ("aimock", *OURS), wanted, connections, direct=direct)
        show(what, figures)
        target(f"{what}: requests/s", ratio(figures["matching"].rates, figures["aimock"].rates),
               "x aimock", least=2)  # fmt: skip
        taped = what.replace("matched", "replayed with a new tape")
        target(f"{taped}: requests/s", ratio(figures["run"].rates, figures["aimock"].rates),
               "x aimock", least=2.5)  # fmt: skip


def beside_those_without_a_server(bench: Bench) -> None:
    """Sequential requests spread over the tape, since vcrpy searches from its beginning."""
    name = bench.write("calls", COUNT)
    recordings.cassette(bench.file(name, "vcrpy"), recordings.exchanges("calls", COUNT))
    recordings.pairs(bench.file(name, "cassetter"), recordings.exchanges("calls", COUNT))
    numbers = tuple(range(25, COUNT, 50))
    wanted = asks("calls", range(COUNT), target=f"http://{HOST}")
    with (
        vcrpy(bench.file(name, "vcrpy")) as ask,
        cassetter(bench.file(name, "cassetter"), bench.folder / "cassette.yaml") as ask_cassetter,
        replaying("matching", bench.file(name, "ours"), bench.ca) as ours,
    ):
        ones, twos, threes = list[float](), list[float](), list[tuple[float, bool]]()
        for at in range(0, COUNT, COUNT // len(numbers)):
            ones += alone(ours.anew(), wanted[at : at + 50])
            twos.append(ask(numbers[at // 50]))
            threes += [ask_cassetter(number) for number in range(at, at + 50)]
    one, two, three = median(ones), median(twos), median(each for each, _ in threes)
    exact = sum(exact for _, exact in threes)
    print(
        f"one after the other: ours {one * 1e3:.3f} ms through a socket; without one vcrpy "
        f"{two * 1e3:.1f} ms, cassetter {three * 1e3:.3f} ms ({exact:,} of {COUNT:,} byte for byte)"
    )
    target("one after the other, of 1,000 recordings", two / one, "x vcrpy", least=1000)
    target("one after the other, of 1,000 recordings", three / one, "x cassetter", least=1)


def main(words: list[str]) -> None:
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder), int(words[0]) if words else ROUNDS)
        beside_mitmdump(bench)
        beside_aimock(bench)
        beside_those_without_a_server(bench)


if __name__ == "__main__":
    main(sys.argv[1:])
