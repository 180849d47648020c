"""The ten rows of the gate: each is measured as a ratio to a peer in the same run.

    python -m tests.bench.gate [--write]

Fails if a ratio is more than twice that of gate.toml, twice in a row. `--write` replaces the ratios
of the file by those measured now. Processor seconds (of commands with
all of their descendants, or of a proxy for each request) or peak memory, never wall time; the least
of the rounds, as other work on the machine only adds.
"""

import os
import platform
import resource
import sys
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.gate_rows import open_rows
from tests.bench.ratios import (
    BenchRow,
    check_same_rows,
    find_rows_over,
    format_row,
    measure_again,
    measure_ratios,
)

RATIOS = Path(__file__).with_name("gate.toml")
ROUNDS = 2


def read_ratios(rows: Sequence[BenchRow]) -> dict[str, float]:
    try:
        ratios = tomllib.loads(RATIOS.read_text())
        check_same_rows([row.name for row in rows], ratios)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{error} ({RATIOS.name}; --write renews it)") from None
    return ratios


def write_ratios(measured: Mapping[str, float]) -> None:
    lines = [
        "# Ratios of `python -m tests.bench.gate [--write]`, which fails above twice of one.",
        f"# {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} processors, {platform.machine()}, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} at the end.",
        "",
        *(f"'{name}' = {ratio:.3f}" for name, ratio in measured.items()),
    ]
    RATIOS.write_text("\n".join(lines) + "\n")


def run_rows(rows: Sequence[BenchRow], *, is_written: bool) -> int:
    """Measure and print all rows; return the exit status."""
    if is_written:
        measured = ratios = measure_ratios(rows, ROUNDS)
        write_ratios(ratios)
    else:
        ratios = read_ratios(rows)
        measured = measure_again(rows, measure_ratios(rows, ROUNDS), ratios, ROUNDS)
    for row in rows:
        print(format_row(row.name, row.peer, measured[row.name], ratios[row.name]))
    over = find_rows_over(measured, ratios)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor, load = used.ru_utime + used.ru_stime, os.getloadavg()[0]
    print(
        f"processor time of the measured commands: {processor:.0f} s; load at the end: {load:.1f}"
    )
    print(f"bench: {len(rows)} rows, {len(over)} over")
    return 1 if over else 0


def main(words: Sequence[str]) -> int:
    if set(words) - {"--write"}:
        print(__doc__, file=sys.stderr)
        return 2
    with TemporaryDirectory(prefix="stumble-bench-") as folder, open_rows(Path(folder)) as rows:
        return run_rows(rows, is_written="--write" in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
