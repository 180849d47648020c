"""The index of a store of many small tapes: the first query, the second, and `--rebuild`.

    python -m tests.bench.growth [TAPES]

Each tape has 21 exchanges of a conversation. Whole commands, each a process of its own; seconds of
processor time, and the most memory.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.conversation import conversation
from tests.bench.installed import environment
from tests.bench.target import ROW, target
from traces.model import RunEnding, Trajectory
from traces.tape import TapeWriter, seal_tape

TAPES, STEPS = 2_000, 21
STUMBLE = str(Path(sys.executable).with_name("stumble"))


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


def measure_query(folder: Path, *options: str) -> tuple[float, float, str]:
    """Return the processor seconds and the megabytes of `stumble sql`, and what it prints."""
    command = [STUMBLE, "sql", *options, "select count(*) as n from exchanges"]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, printed)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, printed


def main(count: int) -> None:
    with TemporaryDirectory() as name:
        make_store(Path(name) / ".stumble", count)
        rows = {}
        for said, options in (("first", ()), ("second", ()), ("rebuilt", ("--rebuild",))):
            rows[said] = measure_query(Path(name), *options)
            assert str(count * STEPS) in rows[said][2].replace(",", ""), rows[said][2]
            print(f"{said}: {rows[said][0]:.1f} s of CPU, {rows[said][1]:.0f} MB", flush=True)
    seconds, memory, _ = rows["first"]
    target(f"first `sql` of {count:,} tapes: CPU", seconds, "s", most=10)
    target(f"first `sql` of {count:,} tapes: memory", memory, "MB", most=400)
    print(
        f"{ROW}second `sql` of {count:,} tapes: CPU | {rows['second'][0]:.3g} | no target | s | |"
    )
    target(f"`sql --rebuild` of {count:,} tapes: CPU", rows["rebuilt"][0] / seconds,
           "x first", most=1.2)  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else TAPES)
