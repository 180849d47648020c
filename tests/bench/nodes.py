"""A campaign on two Ray nodes of one processor, and by two local workers, in turn.

    python -m tests.bench.nodes [REPS [PAIRS]]              as 96 3: 500 runs, three pairs
    python -m tests.bench.nodes 36 cut                      200 runs; needs root

Each pair is a campaign by two local workers, then the same on Ray; the last one on Ray loses a node
in the middle, which joins again 15 s later. With `cut` there is one pair, and the second node is in
a network namespace, whose cable to the first is pulled for 30 s in the middle. Prints for each the
seconds, the runs, the most results of one cell, and runs per second: of the whole command, and
between the first tenth and the last.
Ends with an error if runs, outcomes or rates differ.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from tests.agents import environment
from tests.support.campaign_folder import Bench
from tests.support.lookup_campaign import RATES, ROWS, write_campaign
from tests.support.ray_namespaces import find_own_address
from tests.support.servers.scripted_model import Script, serving

TAPES, CONTROLS = 5, 4
EVENTS = {"killed": ("kill", 15.0, "join"), "cut": ("cut", 30.0, "mend")}
"""What happens to a node in the middle of a campaign, and what so many seconds later."""
ROOT = Path(__file__).resolve().parents[2]

type Answer = tuple[list[str], object]
"""The rows of a campaign without the ids of its recordings, and its rates."""


@contextmanager
def open_nodes(folder: Path, kind: str) -> Iterator[tuple["subprocess.Popen[str]", dict[str, str]]]:
    """Start two nodes for a kind of campaign; yield what controls them, and their variables."""
    [packages] = environment("ray").parents[1].glob("lib/*/site-packages")
    home = folder / "node-home"
    home.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STUMBLE", "RAY", "XDG"))}
    env = {"PYTHONPATH": str(packages), "HOME": str(home), "SHOP_KEY": "of-the-node"}
    module = ("ray_namespaces",) if kind == "cut" else ("ray_cluster", "2")
    with subprocess.Popen(
        [sys.executable, "-m", f"tests.support.{module[0]}", *module[1:]], cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=kept | env | {"RAY_USAGE_STATS_ENABLED": "0"},
    ) as control:  # fmt: skip
        assert control.stdout is not None
        assert control.stdin is not None
        address = control.stdout.readline().strip()
        yield control, {"PYTHONPATH": str(packages), "RAY_ADDRESS": address}
        control.stdin.close()
        control.wait(60)


def order(control: "subprocess.Popen[str]", line: str) -> None:
    """Have something happen to a node, and wait until it is done."""
    assert control.stdin is not None
    assert control.stdout is not None
    control.stdin.write(f"{line}\n")
    control.stdin.flush()
    assert control.stdout.readline().strip() == line


def disturb(control: "subprocess.Popen[str]", kind: str) -> None:
    """Disturb a node as this kind of campaign has it."""
    first, seconds, second = EVENTS[kind]
    order(control, first)
    time.sleep(seconds)
    order(control, second)


def run_campaign(
    bench: Bench,
    after: int,
    variables: dict[str, str],
    event: Callable[[], None] | None,
    *words: str,
) -> float:
    """Run the campaign; the event, if there is one, comes `after` so many runs.

    Returns the seconds.
    """
    tapes = bench.folder / ".stumble" / "tapes"
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "stumble", "campaign", "nightly.toml", "--jobs", "2", *words],
        cwd=bench.folder, env=bench.environment() | {"SHOP_KEY": "x"} | variables,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        if event is not None:
            while process.poll() is None and len(list(tapes.glob("*.tape"))) < after:
                time.sleep(0.2)
            assert process.poll() is None, "the campaign ended before the event"
            event()
        process.wait()
    return time.monotonic() - began


def measure(folder: Path, model: str, reps: int, kind: str) -> Answer:
    """Run one campaign of a kind, and print its figures."""
    folder.mkdir()
    bench = Bench(folder)
    write_campaign(bench, model, "needs a key", count=TAPES, reps=reps)
    if kind == "local":
        seconds = run_campaign(bench, 0, {}, None)
    else:
        with open_nodes(folder, kind) as (control, variables):
            event = partial(disturb, control, kind) if kind in EVENTS else None
            after = TAPES * (CONTROLS + reps) * 2 // 5
            seconds = run_campaign(bench, after, variables, event, "--on", "ray")
    runs = [run for run in bench.runs() if run.campaign == "nightly"]
    most = max(Counter((run.parent, run.cell) for run in runs).values())
    paths = (folder / ".stumble" / "tapes").glob("*.tape")
    ends = sorted(path.stat().st_mtime for path in paths)[TAPES:]
    steady = ends[len(ends) // 10 :]
    pace = (len(steady) - 1) / (steady[-1] - steady[0])
    print(
        f"| {kind} | {seconds:.1f} | {len(runs)} | {most} | {len(runs) / seconds:.2f} "
        f"| {pace:.2f} |",
        flush=True,
    )
    rows = sorted(json.dumps(row[1:], default=str) for row in bench.ask(ROWS))
    return rows, bench.ask(RATES)


def main(reps: int, kinds: Sequence[str]) -> None:
    host = find_own_address() if "cut" in kinds else "127.0.0.1"
    with (
        TemporaryDirectory(prefix="stumble-bench-") as name,
        serving(Script(tool="get_order", arguments={"order_id": "7"}), host) as url,
    ):
        model = urlsplit(url).netloc
        answers = [
            measure(Path(name) / str(number), model, reps, kind)
            for number, kind in enumerate(kinds)
        ]
    assert len(answers[0][0]) == TAPES * (CONTROLS + reps)
    if any(answer != answers[0] for answer in answers):
        raise SystemExit("rows or rates differ")
    print("rows and rates are equal")


if __name__ == "__main__":
    reps, pairs = sys.argv[1:] + ["96", "3"][len(sys.argv) - 1 :]
    if pairs == "cut":
        main(int(reps), ["local", "cut"])
    else:
        main(int(reps), [*("local", "ray") * (int(pairs) - 1), "local", "killed"])
