"""The index of a store of many small tapes: the first query, the second, and `--rebuild`.

    python -m tests.bench.growth [TAPES]

Each tape has 21 exchanges of a conversation. Whole commands, each a process of its own; seconds of
processor time, and the most memory.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.command_cost import STUMBLE, CommandCost, measure_command
from tests.bench.conversation import conversation
from tests.bench.target import ROW, target
from traces.model import RunEnding, Trajectory
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

TAPES, STEPS = 2_000, 21


def make_store(store: Path, count: int) -> None:
    """Write `count` sealed tapes of a store."""
    folder = store / "tapes"
    folder.mkdir(parents=True)
    for number in range(count):
        path = folder / f"run{number}.tape"
        with TapeWriter(path, Trajectory(id=path.stem, recorded_at=float(number))) as tape:
            for exchange in conversation(STEPS, seed=number):
                tape.write_exchange(exchange)
            tape.write_ending(RunEnding(ended="final"))
        seal_tape(path)


def measure_query(folder: Path, *options: str) -> CommandCost:
    """Return the cost of `stumble sql`, and what it prints."""
    query = "select count(*) as n from exchanges"
    return measure_command((STUMBLE, "sql", *options, query), folder)


def main(count: int) -> None:
    with TemporaryDirectory() as name:
        make_store(Path(name) / ".stumble", count)
        rows = {}
        for said, options in (("first", ()), ("second", ()), ("rebuilt", ("--rebuild",))):
            rows[said] = measure_query(Path(name), *options)
            cost = rows[said]
            assert str(count * STEPS) in cost.output.replace(",", ""), cost.output
            print(f"{said}: {cost.processor:.1f} s of CPU, {cost.memory >> 20} MB", flush=True)
    seconds, memory = rows["first"].processor, rows["first"].memory / (1 << 20)
    target(f"first `sql` of {count:,} tapes: CPU", seconds, "s", most=10)
    target(f"first `sql` of {count:,} tapes: memory", memory, "MB", most=400)
    second = rows["second"].processor
    print(f"{ROW}second `sql` of {count:,} tapes: CPU | {second:.3g} | no target | s | |")
    target(f"`sql --rebuild` of {count:,} tapes: CPU", rows["rebuilt"].processor / seconds,
           "x first", most=1.2)  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else TAPES)
