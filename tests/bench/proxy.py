"""Cost of recording, compared with mitmdump of the same version, the proxy without a tape, and no
proxy.

    python -m tests.bench.proxy [ROUNDS [small|many|large|streaming ...]]

All alternate within each round; the median of the per-round ratios is shown. CPU is the proxy's own
processor time, on a connection that has had its first exchange. A request has 1 KB.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from recorder.event_loop import run_event_loop
from tests.bench.asking import Client, Way, crowd
from tests.bench.conversation import conversation
from tests.bench.serving import PROXIES, STREAMING, started
from tests.bench.target import target

ROUNDS = 11
TIMES = {1_000: 300, 100_000: 60, 5_000_000: 5}
CONNECTIONS, CROWD = 50, 1_500
STREAMS, EVENTS, GAP, FLOOD = 9, 500, 2, 2_000
HISTORY = range(52, 84)
"""Steps of a conversation whose requests have about 100 KB."""
CA = "mitmproxy-ca-cert.pem"
type Figures = Mapping[str, Sequence[float]]


class Bench:
    """All compared processes, started."""

    def __init__(self, folder: Path, stack: ExitStack, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds
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

    def cpu(self, size: int, path: str, names: Sequence[str], *, tls: bool = False) -> Figures:
        """Return the proxy's CPU milliseconds per exchange, round by round."""
        return self._rounds(names, lambda name: self._cost(name, size, path, tls=tls))

    def _cost(self, name: str, size: int, path: str, *, tls: bool) -> float:
        client = Client(self.way(name, tls=tls))
        client.ask(path, size, 1)
        proxy = self.proxies[name]
        before = proxy.used()
        client.ask(path, size, TIMES[size])
        used = proxy.used() - before
        client.close()
        return used / TIMES[size] * 1e3

    def histories(self, names: Sequence[str]) -> Figures:
        """Return the proxy's CPU milliseconds for each request of a growing conversation."""
        return self._rounds(names, self._history_cost)

    def _history_cost(self, name: str) -> float:
        bodies = [each.request.body for each in conversation(HISTORY.stop)]
        client, proxy = Client(self.way(name, tls=False)), self.proxies[name]
        path = "/v1/chat/completions/1000"
        client.ask(path, 1_000, HISTORY.start, bodies)
        before, rest = proxy.used(), bodies[HISTORY.start :]
        client.ask(path, 1_000, len(rest), rest)
        client.close()
        return (proxy.used() - before) / len(rest) * 1e3

    def floods(self, names: Sequence[str]) -> Figures:
        """Return the proxy's CPU milliseconds for a stream of FLOOD events without gaps."""
        return self._rounds(names, self._flood_cost)

    def _flood_cost(self, name: str) -> float:
        client, proxy = Client(self.way(name, tls=False)), self.proxies[name]
        client.ask("/1000", 1_000, 1)
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
                client.ask("/1000", 1_000, 1)
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
    plain = bench.cpu(1_000, "/1000", PROXIES)
    show("HTTP, 1 KB", plain, "ms of CPU")
    secure = bench.cpu(1_000, "/1000", PROXIES, tls=True)
    show("HTTPS, 1 KB", secure, "ms of CPU")
    target("CPU of `record`, 1 KB, HTTP", ratio(plain, "record", "mitmdump"), "x mitmdump",
           most=0.15)  # fmt: skip
    target("CPU of `record`, 1 KB, HTTPS", ratio(secure, "record", "mitmdump"), "x mitmdump",
           most=0.20)  # fmt: skip
    print(f"our proxy without a tape: {ratio(plain, 'ours', 'mitmdump'):.2f} x mitmdump")
    tape("1 KB", plain, 1.10, 1.05)
    model = bench.cpu(1_000, "/v1/chat/completions/1000", ("ours", "redact", "record"))
    show("HTTP, 1 KB, to a model's address", model, "ms of CPU")


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
        figures = bench.cpu(size, f"/{size}", PROXIES)
        show(f"HTTP, {said}", figures, "ms of CPU")
        target(f"CPU of `record`, answer of {said}", ratio(figures, "record", "mitmdump"),
               "x mitmdump", most=beside)  # fmt: skip
        tape(said, figures, redacted, verbatim)
    figures = bench.histories(("mitmdump", "record"))
    show("model requests of 100 KB", figures, "ms of CPU")
    target("CPU of `record`, model request of 100 KB", ratio(figures, "record", "mitmdump"),
           "x mitmdump", most=0.4)  # fmt: skip


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
