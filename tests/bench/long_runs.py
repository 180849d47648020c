"""Peak memory and processor time of one long conversation, by its steps: whole commands.

    python -m tests.bench.long_runs [STEPS:BYTES ...]

Each step sends the whole history again, so the requests of 1,000 steps of 2 KB have 1.2 GB. The
agent (`tests.bench.agent`) is among the processes that are measured, and has 40 MB.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.command_cost import STUMBLE, CommandCost, measure_command
from tests.bench.serving import ROOT, started
from tests.bench.target import target

RUNS = ((200, 2_000), (1_000, 2_000), (5_000, 400))
MOST_MEMORY = {200: 150, 1_000: 150, 5_000: 250}
"""Megabytes, by steps."""


def measure_run(folder: Path, steps: int, size: int) -> Iterator[tuple[str, CommandCost]]:
    """Yield the name and the cost of each command on a run of so many steps."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "STUMBLE_STORE": str(folder / "store"),
    }
    here, tape = folder / "here", str(folder / "run.tape")
    here.mkdir()
    with started("server", folder) as server:
        words = ("conversation", str(server.ports[0]), "0", str(steps), str(size))
        agent = (sys.executable, "-m", "tests.bench.agent", *words)
        record = ("record", "--times", "1", "-o", tape, "--", *agent)
        yield "record", measure_command((STUMBLE, *record), here, environment)
    for command in (("replay", tape), ("show", tape), ("sql", "select count(*) from steps")):
        yield command[0], measure_command((STUMBLE, *command), here, environment)


def main(runs: tuple[tuple[int, int], ...]) -> None:
    for steps, size in runs:
        with TemporaryDirectory() as name:
            for command, cost in measure_run(Path(name), steps, size):
                what = f"`{command}`, {steps:,} steps of {size:,} bytes"
                print(f"{what}: {cost.processor:.1f} s of CPU", flush=True)
                most = MOST_MEMORY.get(steps, 250) if command != "sql" else 250
                target(f"peak memory of {what}", cost.memory / (1 << 20), "MB", most=most)


if __name__ == "__main__":
    given = [tuple(map(int, each.split(":"))) for each in sys.argv[1:]]
    main(tuple((steps, size) for steps, size in given) or RUNS)
