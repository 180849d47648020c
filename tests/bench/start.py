"""Start-up time of the command line, and the modules it must not import.

python -m tests.bench.start [ROUNDS]
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.installed import environment
from tests.bench.target import ROW, target

ROUNDS = 15
STUMBLE = str(Path(sys.executable).with_name("stumble"))
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


def milliseconds(command: list[str], folder: Path | None = None) -> float:
    """Return a command's processor time: its duration on an idle machine, and stable on a busy
    one.
    """
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _, code, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return (used.ru_utime + used.ru_stime) * 1e3


def record_nothing(number: int) -> float:
    """Return the processor time of recording a command without traffic, in a new folder."""
    with TemporaryDirectory() as folder:
        return milliseconds([STUMBLE, "record", "-o", "a.tape", "--", "true"], Path(folder))


def main(rounds: int) -> None:
    bare, ours = list[float](), list[float]()
    for _ in range(rounds):
        bare.append(milliseconds([sys.executable, "-c", "pass"]))
        ours.append(milliseconds([STUMBLE, "--help"]))
    python, stumble = statistics.median(bare), statistics.median(ours)
    print(f"python -c pass {python:.0f} ms, stumble --help {stumble:.0f} ms, of {rounds} rounds")
    target("`stumble --help`", stumble / python, "x python -c pass", most=2)
    cold = statistics.median([record_nothing(number) for number in range(max(3, rounds // 3))])
    print(f"{ROW}CPU of `stumble record -- true` | {cold:.3g} | no target | ms | |", flush=True)
    said = subprocess.run(
        [sys.executable, "-c", IMPORTED], check=True, capture_output=True, text=True
    )
    heavy = said.stdout.splitlines()[-1].split()
    print("imported by --help:", *(heavy or ["none of", *HEAVY]))
    target(f"{', '.join(HEAVY)} imported by `--help`", len(heavy), "modules", most=0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
