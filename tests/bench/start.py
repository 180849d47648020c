"""Start-up time of the command line, and the modules it must not import.

python -m tests.bench.start [ROUNDS]
"""

import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.command_cost import STUMBLE, measure_command
from tests.bench.target import ROW, target

ROUNDS = 15
HEAVY = ("mitmproxy", "duckdb", "litellm")
IMPORTED = f"""
import sys
from stumble.cli.app import cli
try:
    cli(["--help"])
except SystemExit:
    pass
print(*(name for name in {HEAVY} if name in sys.modules))
"""


def record_nothing(number: int) -> float:
    """Return the processor time of recording a command without traffic, in a new folder."""
    with TemporaryDirectory() as folder:
        command = (STUMBLE, "record", "-o", "a.tape", "--", "true")
        return measure_command(command, Path(folder)).processor * 1e3


def main(rounds: int) -> None:
    bare, ours = list[float](), list[float]()
    for _ in range(rounds):
        bare.append(measure_command([sys.executable, "-c", "pass"]).processor * 1e3)
        ours.append(measure_command([STUMBLE, "--help"]).processor * 1e3)
    python, stumble = statistics.median(bare), statistics.median(ours)
    print(f"python -c pass {python:.0f} ms, stumble --help {stumble:.0f} ms, of {rounds} rounds")
    target("`stumble --help`", stumble / python, "x python -c pass", most=2)
    cold = statistics.median([record_nothing(number) for number in range(max(3, rounds // 3))])
    print(f"{ROW}CPU of `stumble record -- true` | {cold:.3g} | no target | ms | |", flush=True)
    result = subprocess.run(
        [sys.executable, "-c", IMPORTED], check=True, capture_output=True, text=True
    )
    heavy = result.stdout.splitlines()[-1].split()
    print("imported by --help:", *(heavy or ["none of", *HEAVY]))
    target(f"{', '.join(HEAVY)} imported by `--help`", len(heavy), "modules", most=0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
