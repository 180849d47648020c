"""Cost of recording, compared with mitmdump of the same version, the proxy without a tape, and no
proxy.

    python -m tests.bench.proxy [ROUNDS [small|many|large|streaming ...]]

All alternate within each round; the median of the per-round ratios is shown. CPU is the proxy's own
processor time, on a connection that has had its first exchange. A request has 1 KB. Rows of one
repeated body show what a tape saves; others have bodies that differ from request to request.
"""

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from recorder.event_loop import run_event_loop
from tests.bench.asking import CHAT_PATH, Client, Way, crowd
from tests.bench.conversation import conversation
from tests.bench.serving import PROXIES, STREAMING, started
from tests.bench.target import target
from tests.bench.traffic import make_chat_request, make_differing_body

ROUNDS = 11
TIMES = {1_000: 300, 100_000: 60, 5_000_000: 5}
CONNECTIONS, CROWD = 50, 1_500
STREAMS, EVENTS, GAP, FLOOD = 9, 500, 2, 2_000
HISTORY = range(52, 84)
"""Steps of a conversation whose requests have about 100 KB."""
ONE_BODY, MANY_BODIES = "one repeated body", "bodies that differ"
PAIR = ("mitmdump", "record")
CA = "mitmproxy-ca-cert.pem"
type Figures = Mapping[str, Sequence[float]]


class Bench:
    """All compared processes, started."""

    def __init__(self, folder: Path, stack: ExitStack, rounds: int) -> None:
        self.folder, self.rounds, self.numbers = folder, rounds, itertools.count()
        self.server = stack.enter_context(started("server", folder))
        names = (*PROXIES, STREAMING)
        self.proxies = {name: stack.enter_context(started(name, folder)) for name in names}

    def way(self, name: str, *, tls: bool) -> Way:
        """Return the way through this proxy, or `direct`."""
        server = self.server.ports[1 if tls else 0]
        if name == "direct":
            return Way(server=server, trusted=self.folder / "server.pem" if tls else None)
        trusted = self.folder / name / CA if tls else None
        return Way(server=server, port=self.proxies[name].ports[0], trusted=trusted)

    def repeated(self, size: int, names: Sequence[str], *, tls: bool = False) -> Figures:
        """Return the proxy's CPU milliseconds per exchange; all answers have the same body."""

        def cost(name: str) -> float:
            way = self.way(name, tls=tls)
            return self._cost(name, [way.request(f"/{size}")] * (TIMES[size] + 1), way)

        return self._rounds(names, cost)

    def differing(self, size: int, names: Sequence[str], *, tls: bool = False) -> Figures:
        """Return the proxy's CPU milliseconds per exchange; all bodies and paths differ."""

        def cost(name: str) -> float:
            way = self.way(name, tls=tls)
            numbers = itertools.islice(self.numbers, TIMES[size] + 1)
            requests = (
                way.request(f"/{number}/{size}", make_differing_body(number, 1_000))
                for number in numbers
            )
            return self._cost(name, requests, way)

        return self._rounds(names, cost)

    def chats(self, size: int, names: Sequence[str]) -> Figures:
        """Return the proxy's CPU milliseconds per chat request, unrelated to all before it."""

        def cost(name: str) -> float:
            way = self.way(name, tls=False)
            numbers = itertools.islice(self.numbers, TIMES[size] + 1)
            requests = (way.request(CHAT_PATH, make_chat_request(each, size)) for each in numbers)
            return self._cost(name, requests, way)

        return self._rounds(names, cost)

    def _cost(self, name: str, requests: Iterable[bytes], way: Way, warmup: int = 1) -> float:
        """Return CPU milliseconds for each request after those that warm up."""
        client, proxy, rest = Client(way), self.proxies[name], iter(requests)
        client.send_all(itertools.islice(rest, warmup))
        before = proxy.used()
        count = client.send_all(rest)
        client.close()
        return (proxy.used() - before) / count * 1e3

    def histories(self, names: Sequence[str]) -> Figures:
        """Return the proxy's CPU milliseconds for each request of a growing conversation."""
        return self._rounds(names, self._history_cost)

    def _history_cost(self, name: str) -> float:
        way, steps = self.way(name, tls=False), conversation(HISTORY.stop)
        requests = (way.request(CHAT_PATH, step.request.body) for step in steps)
        return self._cost(name, requests, way, warmup=HISTORY.start)

    def floods(self, names: Sequence[str]) -> Figures:
        """Return the proxy's CPU milliseconds for a stream of FLOOD events without gaps."""
        return self._rounds(names, self._flood_cost)

    def _flood_cost(self, name: str) -> float:
        client, proxy = Client(self.way(name, tls=False)), self.proxies[name]
        client.send(client.way.request("/1000"))
        before = proxy.used()
        client.events(FLOOD, 0)
        client.close()
        return (proxy.used() - before) * 1e3

    def crowds(self, names: Sequence[str]) -> Figures:
        """Return requests per second with many connections."""
        return self._rounds(
            names, lambda name: run_event_loop(crowd(self.way(name, tls=False), CONNECTIONS, CROWD))
        )

    def _rounds(self, names: Sequence[str], one: Callable[[str], float]) -> Figures:
        out = {name: list[float]() for name in names}
        for _ in range(self.rounds):
            for name in names:
                out[name].append(one(name))
        return out

    def streams(self, count: int, times: int, *, tls: bool) -> dict[str, list[float]]:
        """Return first-byte times and the latency of all events, direct and through a recording
        proxy.
        """
        out: dict[str, list[float]] = {}
        for _ in range(times):
            for name in ("direct", "record"):
                client = Client(self.way(name, tls=tls))
                client.send(client.way.request("/1000"))
                first, delays = client.events(count, GAP)
                client.close()
                out.setdefault(f"{name} first", []).append(first)
                out.setdefault(f"{name} delays", []).extend(delays)
        return out


def ratio(figures: Figures, one: str, other: str) -> float:
    """Return the median over the rounds of one divided by the other."""
    return median(a / b for a, b in zip(figures[one], figures[other], strict=True))


def show(what: str, figures: Figures, unit: str) -> None:
    said = ", ".join(f"{name} {median(each):.3f}" for name, each in figures.items())
    print(f"{what}: {said} {unit}", flush=True)


def small(bench: Bench) -> None:
    """1 KB, compared with mitmdump and with the proxy without a tape."""
    for scheme, most in (("HTTP", 0.15), ("HTTPS", 0.20)):
        tls = scheme == "HTTPS"
        repeated = bench.repeated(1_000, PROXIES, tls=tls)
        beside_mitmdump(f"{scheme}, 1 KB, {ONE_BODY}", repeated, most)
        differing = bench.differing(1_000, PAIR, tls=tls)
        beside_mitmdump(f"{scheme}, 1 KB, {MANY_BODIES}", differing, most)
        if not tls:
            print(f"our proxy without a tape: {ratio(repeated, 'ours', 'mitmdump'):.2f} x mitmdump")
            tape(f"1 KB, {ONE_BODY}", repeated, 1.10, 1.05)
    beside_mitmdump("unrelated model requests of 1 KB", bench.chats(1_000, PAIR), 0.2)


def beside_mitmdump(what: str, figures: Figures, most: float) -> None:
    show(what, figures, "ms of CPU")
    target(f"CPU of `record`, {what}", ratio(figures, "record", "mitmdump"), "x mitmdump",
           most=most)  # fmt: skip


def tape(size: str, figures: Figures, redacted: float, verbatim: float) -> None:
    unit = "x no tape"
    target(f"CPU of a tape, {size}", ratio(figures, "redact", "ours"), unit, most=redacted)
    said = f"CPU of a tape, {size}, `--no-redact`"
    target(said, ratio(figures, "verbatim", "ours"), unit, most=verbatim)


def large(bench: Bench) -> None:
    """Answers of 100 KB and of 5 MB."""
    for said, size, beside, redacted, verbatim in (
        ("100 KB", 100_000, 0.4, 1.35, 1.15),
        ("5 MB", 5_000_000, 0.6, 1.6, 1.3),
    ):
        repeated = bench.repeated(size, PROXIES)
        beside_mitmdump(f"answer of {said}, {ONE_BODY}", repeated, beside)
        tape(f"{said}, {ONE_BODY}", repeated, redacted, verbatim)
        differing = bench.differing(size, PROXIES)
        beside_mitmdump(f"answer of {said}, {MANY_BODIES}", differing, beside)
        tape(f"{said}, {MANY_BODIES}", differing, redacted, verbatim)
    beside_mitmdump("model request of 100 KB in one conversation", bench.histories(PAIR), 0.4)
    beside_mitmdump("unrelated model requests of 100 KB", bench.chats(100_000, PAIR), 0.4)


def many(bench: Bench) -> None:
    """Fifty connections at once."""
    figures = bench.crowds(("mitmdump", "ours", "record"))
    show(f"{CONNECTIONS} connections", figures, "requests/s")
    target(f"throughput of `record`, {CONNECTIONS} connections",
           ratio(figures, "record", "mitmdump"), "x mitmdump", least=1.4)  # fmt: skip


def streaming(bench: Bench) -> None:
    """The first byte, and how late each event is."""
    for scheme, most in (("HTTP", 2.0), ("HTTPS", 2.5)):
        tls = scheme == "HTTPS"
        first = bench.streams(1, bench.rounds * 4, tls=tls)
        long = bench.streams(EVENTS, STREAMS // 3, tls=tls)
        alone, ours = (median(first[f"{name} first"]) for name in ("direct", "record"))
        print(f"{scheme}, first byte: direct {alone:.2f} ms, through `record` {ours:.2f} ms")
        target(f"first byte of a stream, {scheme}, later than direct", ours - alone, "ms",
               most=most)  # fmt: skip
        late = {name: quantiles(long[f"{name} delays"], n=100)[98] for name in ("direct", "record")}
        print(f"{scheme}, {EVENTS} events at {GAP} ms, 99 % within: direct {late['direct']:.3f} ms")
        target(f"delay of an event, {scheme}, 99th percentile", late["record"] / late["direct"],
               "x direct", most=2)  # fmt: skip
    figures = bench.floods((STREAMING, "record"))
    show(f"{FLOOD:,} events without gaps", figures, "ms of CPU")
    target(f"CPU of `record`, {FLOOD:,} events without gaps",
           ratio(figures, "record", STREAMING), "x mitmdump streaming", most=0.5)  # fmt: skip


PARTS = {"small": small, "many": many, "large": large, "streaming": streaming}


def main(rounds: int, names: Sequence[str]) -> None:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        bench = Bench(Path(folder), stack, rounds)
        print(f"{rounds} rounds")
        for name in names or PARTS:
            PARTS[name](bench)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS, sys.argv[2:])
