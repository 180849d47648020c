"""The ten rows of the gate's bench: a command of stumble, and its peer."""

import itertools
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench.asking import Client, Way
from tests.bench.command_cost import STUMBLE, CommandCost, measure_command
from tests.bench.growth import make_store
from tests.bench.ratios import BenchRow
from tests.bench.serving import ROOT, Serving, started
from tests.bench.whole import PracticeCommands, open_practice

TAPES = 30
SMALL_ANSWERS, LARGE_ANSWERS, CHATS = (400, 1_000), (5, 5_000_000), (40, 100_000)
"""Requests of one measurement, and their size in bytes."""
CONVERSATION = (150, 2_000)
"""Steps, and bytes of each tool result."""
ONE = "select 1"
DUCKDB = "import duckdb; duckdb.sql('select 1').fetchall()"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBench:
    """Recordings of `tests.bench.agent`, and the same agent with mitmdump and without a proxy."""

    folder: Path
    environment: dict[str, str]
    server: Serving
    mitmdump: Serving
    recorder: Serving
    numbers: Iterator[int]

    def run_agent(
        self, kind: str, count: int, size: int, proxy: Serving | None = None
    ) -> CommandCost:
        proxies = {"HTTP_PROXY": f"http://127.0.0.1:{proxy.ports[0]}"} if proxy else {}
        command = self._agent_command(kind, count, size)
        return measure_command(command, self.folder, self.environment | proxies)

    def record(self, kind: str, count: int, size: int) -> CommandCost:
        tape = self.folder.with_name(f"{next(self.numbers)}.tape")
        command = (STUMBLE, "record", "-o", str(tape), "--")
        agent = self._agent_command(kind, count, size)
        cost = measure_command((*command, *agent), self.folder, self.environment)
        tape.unlink()
        return cost

    def pass_each(self, proxy: Serving, kind: str, count: int, size: int) -> float:
        """Return the processor seconds of a proxy for each request, without its start."""
        before = proxy.used()
        self.run_agent(kind, count, size, proxy)
        return (proxy.used() - before) / count

    def _agent_command(self, kind: str, count: int, size: int) -> tuple[str, ...]:
        first = next(self.numbers) * count  # a proxy gets no body twice
        words = (kind, *map(str, (self.server.ports[0], first, count, size)))
        return (sys.executable, "-m", "tests.bench.agent", *words)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBench:
    """`stumble sql` on a store of tapes without an index, and on a store that has one."""

    unindexed: Path
    environment: dict[str, str]

    def select(self, store: Path) -> float:
        """Return the processor seconds of a query that needs no row."""
        variables = self.environment | {"STUMBLE_STORE": str(store)}
        return measure_command((STUMBLE, "sql", ONE), store.parent, variables).processor

    def select_first(self) -> float:
        """Return the processor seconds of a query that indexes the tapes."""
        store = self.unindexed.with_name("copy")
        shutil.copytree(self.unindexed, store)
        used = self.select(store)
        shutil.rmtree(store)
        return used


def run_python(code: str) -> float:
    return measure_command((sys.executable, "-c", code)).processor


@contextmanager
def open_rows(parent: Path) -> Iterator[list[BenchRow]]:
    """Start servers and write recordings; yield the rows, which need them."""
    with ExitStack() as stack:
        practice = stack.enter_context(open_practice(parent))
        environment = practice.environment | {"PYTHONPATH": str(ROOT)}
        record = stack.enter_context(open_record_bench(parent / "recorded", environment))
        query = make_query_bench(parent / "queried", environment)
        yield [*make_start_rows(practice, query), *make_record_rows(record),
               *make_replay_rows(practice)]  # fmt: skip


@contextmanager
def open_record_bench(parent: Path, environment: dict[str, str]) -> Iterator[RecordBench]:
    folder = parent / "here"
    folder.mkdir(parents=True)
    with (
        started("server", parent) as server,
        started("mitmdump", parent) as mitmdump,
        started("record", parent) as recorder,
    ):
        for proxy in (mitmdump, recorder):
            client = Client(Way(server=server.ports[0], port=proxy.ports[0]))
            client.send(client.way.request("/1000"))  # the first one loads what later ones need
            client.close()
        yield RecordBench(
            folder=folder,
            environment=environment,
            server=server,
            mitmdump=mitmdump,
            recorder=recorder,
            numbers=itertools.count(),
        )


def make_query_bench(folder: Path, environment: dict[str, str]) -> QueryBench:
    make_store(folder / "unindexed", TAPES)
    return QueryBench(unindexed=folder / "unindexed", environment=environment)


def make_start_rows(practice: PracticeCommands, query: QueryBench) -> list[BenchRow]:
    """Start-up, and queries."""
    python, duckdb = partial(run_python, "pass"), partial(run_python, DUCKDB)
    indexed = query.unindexed.with_name("indexed")
    indexed.mkdir()
    query.select(indexed)
    return [
        BenchRow(
            name="`stumble --help`",
            peer="python -c pass",
            measure=lambda: practice.run_stumble("--help").processor,
            measure_peer=python,
        ),
        BenchRow(
            name="`stumble show`",
            peer="python -c pass",
            measure=lambda: practice.run_stumble("show", "a.tape").processor,
            measure_peer=python,
        ),
        BenchRow(
            name=f'`stumble sql "{ONE}"`',
            peer="duckdb",
            measure=lambda: query.select(indexed),
            measure_peer=duckdb,
        ),
        BenchRow(
            name=f"first `sql` of {TAPES} tapes",
            peer="duckdb",
            measure=query.select_first,
            measure_peer=duckdb,
        ),
    ]


def make_record_rows(bench: RecordBench) -> list[BenchRow]:
    """Recordings of bodies that all differ.

    Of the recording proxy, since starting and sealing take most of a whole command: it hides a
    proxy that is four times as slow.
    """
    record, mitmdump = bench.recorder, bench.mitmdump
    return [
        BenchRow(
            name="recording proxy, answers of 1 KB that differ",
            peer="mitmdump",
            measure=lambda: bench.pass_each(record, "answers", *SMALL_ANSWERS),
            measure_peer=lambda: bench.pass_each(mitmdump, "answers", *SMALL_ANSWERS),
        ),
        BenchRow(
            name="recording proxy, answers of 5 MB that differ",
            peer="mitmdump",
            measure=lambda: bench.pass_each(record, "answers", *LARGE_ANSWERS),
            measure_peer=lambda: bench.pass_each(mitmdump, "answers", *LARGE_ANSWERS),
        ),
        BenchRow(
            name="recording proxy, unrelated chats of 100 KB",
            peer="mitmdump",
            measure=lambda: bench.pass_each(record, "chats", *CHATS),
            measure_peer=lambda: bench.pass_each(mitmdump, "chats", *CHATS),
        ),
        BenchRow(
            name=f"peak memory of `record`, {CONVERSATION[0]} steps of 2 KB",
            peer="the agent alone",
            measure=lambda: bench.record("conversation", *CONVERSATION).memory,
            measure_peer=lambda: bench.run_agent("conversation", *CONVERSATION).memory,
        ),
    ]


def make_replay_rows(practice: PracticeCommands) -> list[BenchRow]:
    """Replays and forks of an agent of 22 calls."""
    return [
        BenchRow(
            name="`replay` of 22 calls",
            peer="the agent alone",
            measure=lambda: practice.replay().processor,
            measure_peer=lambda: practice.run_agent().processor,
        ),
        BenchRow(
            name="`fork` with one fault and no twins",
            peer="the agent alone",
            measure=lambda: practice.fork().processor,
            measure_peer=lambda: practice.run_agent().processor,
        ),
    ]
