"""Run every benchmark and print all targets in one table at the end.

    python -m tests.bench [--write] [NAME ...]

Each benchmark is a separate program (`python -m tests.bench.NAME`) and runs in its own process.
`--write` puts the table into README.md, with the machine and the date.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.bench.target import ROW

HERE = Path(__file__).parent
README = HERE / "README.md"
BENCHES = (
    "start",
    "proxy",
    "redaction",
    "memory",
    "long_runs",
    "tape",
    "tee",
    "performer",
    "pace",
    "large",
    "ready",
    "whole",
    "histories",
    "growth",
    "queries",
    "listing",
    "drawing",
    "peers",
    "grading",
)
HEADINGS = ("| target | measured | limit | unit | |", "|-|-|-|-|-|")
BEGIN, END = "<!-- targets -->", "<!-- end of targets -->"


def main(words: list[str]) -> int:
    names = [word for word in words if word != "--write"]
    here = [name for name in BENCHES if (HERE / f"{name}.py").exists()]
    if unknown := [name for name in names if name not in here]:
        print(f"no bench {unknown[0]}; there are {', '.join(here)}", file=sys.stderr)
        return 2
    rows, failed = list[str](), list[str]()
    for name in names or here:
        print(f"\n== {name}", flush=True)
        lines, code = ran(name)
        rows += [line for line in lines if line.startswith(ROW)]
        failed += [name] if code else []
    table = [said_of_the_machine(), "", *HEADINGS, *rows]
    print("\n" + "\n".join(table))
    for name in failed:
        print(f"{name} failed: its targets are not in the table", file=sys.stderr)
    if "--write" in words and not failed:
        write(table)
    return 1 if failed else 0


def ran(name: str) -> tuple[list[str], int]:
    """Run a benchmark, echo its output; return its lines and its exit status."""
    command = [sys.executable, "-m", f"tests.bench.{name}"]
    with subprocess.Popen(
        command, cwd=HERE.parents[1], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            return list(shown(process)), process.wait()
        finally:
            process.terminate()


def shown(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        yield line.rstrip("\n")


def said_of_the_machine() -> str:
    """Return a description of the machine and the date."""
    busy = f"load {os.getloadavg()[0]:.1f} at the end"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.release()}, {platform.machine()}, Python {platform.python_version()}, "
        f"mitmproxy {version('mitmproxy')}, {busy}."
    )


def write(table: list[str]) -> None:
    """Replace the table in README.md."""
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text("\n".join([before + BEGIN, *table, END]) + after)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
