"""A campaign on two Ray nodes: stopped, killed, resumed, and one node killed hard in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.agents import environment
from tests.support.campaign_folder import Bench
from tests.support.lookup_campaign import RATES, ROWS, write_campaign
from tests.support.servers.scripted_model import Script, serving

ROOT = Path(__file__).resolve().parents[2]
TAPES, REPS = 2, 8
CELLS = TAPES * (3 + 1 + REPS)
"""Clean twins, a sham and faults of each tape's one call."""
pytestmark = [pytest.mark.thorough, pytest.mark.agents, pytest.mark.timeout(600)]


@dataclass(frozen=True, slots=True)
class RayNodes:
    """Two nodes of one processor, as processes of this machine."""

    control: "subprocess.Popen[str]"
    address: str
    packages: str

    def order(self, line: str) -> None:
        assert self.control.stdin is not None
        assert self.control.stdout is not None
        self.control.stdin.write(f"{line}\n")
        self.control.stdin.flush()
        assert self.control.stdout.readline().strip() == line


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[RayNodes]:
    [packages] = environment("ray").parents[1].glob("lib/*/site-packages")
    home = tmp_path / "node-home"
    home.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STUMBLE", "RAY", "XDG"))}
    env = kept | {"PYTHONPATH": str(packages), "HOME": str(home), "SHOP_KEY": "of-the-node"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.ray_cluster", "2"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env=env | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "120"},
    ) as control:  # fmt: skip
        assert control.stdout is not None
        address = control.stdout.readline().strip()
        yield RayNodes(control, address, str(packages))
        assert control.stdin is not None
        control.stdin.close()
        control.wait(60)


def start(bench: Bench, nodes: RayNodes, *words: str) -> "subprocess.Popen[str]":
    env = bench.environment() | {"PYTHONPATH": nodes.packages, "RAY_ADDRESS": nodes.address}
    return subprocess.Popen(
        [sys.executable, "-m", "stumble", "campaign", *words, "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=bench.folder, env=env,
        start_new_session=True,
    )  # fmt: skip


def await_runs(bench: Bench, process: "subprocess.Popen[str]", count: int) -> None:
    deadline = time.monotonic() + 200
    while len(list((bench.folder / ".stumble" / "tapes").glob("*.tape"))) < count:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_no_cell_is_lost_or_made_twice(nodes: RayNodes, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    (tmp_path / "one").mkdir()
    many, one = Bench(tmp_path / "many"), Bench(tmp_path / "one")
    with serving(Script(tool="get_order", arguments={"order_id": "7"})) as url:
        write_campaign(many, urlsplit(url).netloc, "needs a key", count=TAPES, reps=REPS)
        stopped = start(many, nodes, "nightly.toml", "--on", "ray")
        await_runs(many, stopped, 4)
        os.killpg(stopped.pid, signal.SIGINT)
        _, err = stopped.communicate(timeout=60)
        assert stopped.returncode == 130, err

        killed = start(many, nodes, "nightly", "--on", "ray")
        await_runs(many, killed, 8)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate(timeout=60)

        resumed = start(many, nodes, "nightly", "--on", "ray", "--jobs", "2")
        await_runs(many, resumed, 12)
        nodes.order("kill")
        out, err = resumed.communicate(timeout=240)
        assert resumed.returncode in (0, 5), err
        assert out.startswith("{"), out
        assert json.loads(out)["retried_now"] >= 1
        assert "[state-dump]" not in err, "Ray's log of the lost node"
        assert "[state-dump]" in (many.folder / ".stumble" / "logs" / "ray.log").read_text()

        pack = str(one.folder / "nightly.stumble")
        assert many.stumble("pack", "nightly.toml", "-o", pack).code == 0
        result = one.stumble("campaign", pack, "--trust", env={"SHOP_KEY": "of-the-author"})
        assert result.code in (0, 5), result.err
    runs = [run for run in many.runs() if run.campaign == "nightly"]
    assert max(Counter((run.parent, run.cell) for run in runs).values()) == 1
    assert len(runs) == CELLS
    assert many.ask(ROWS) == one.ask(ROWS)
    assert many.ask(RATES) == one.ask(RATES)
