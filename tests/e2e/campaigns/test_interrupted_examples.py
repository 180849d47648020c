"""The examples for clusters, as they stand, lose no run when their scheduler interrupts them."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.support.campaign_folder import Bench
from tests.support.lookup_campaign import write_campaign
from tests.support.servers.scripted_model import Script, serving

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "cluster"
FINISHED = 3
"""Runs after which the scheduler interrupts."""
pytestmark = [pytest.mark.gate, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    above = tmp_path_factory.mktemp("farm")
    with serving(Script(tool="get_order", arguments={"order_id": "7"})) as url:
        write_campaign(Bench(above), urlsplit(url).netloc, count=4)
        packed = Bench(above).stumble("pack", "nightly.toml", "-o", "nightly.stumble")
        assert packed.code == 0, packed.err
        yield above / "nightly.stumble"


def start_example(
    words: Sequence[str], machine: Path, save_seconds: float
) -> subprocess.Popen[bytes]:
    program = machine / "bin" / "stumble"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m stumble "$@"\n')
    program.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STUMBLE", "SLURM", "XDG"))}
    variables = {
        "SLURM_ARRAY_TASK_ID": "1",
        "SLURM_ARRAY_TASK_COUNT": "1",
        "JOB_COMPLETION_INDEX": "0",
        "SAVE_SECONDS": str(save_seconds),
        "STUMBLE_STORE": str(machine / ".stumble"),
        "TMPDIR": str(machine),
        "HOME": str(machine),
        "PATH": f"{program.parent}:{kept['PATH']}",
    }
    return subprocess.Popen(words, cwd=machine, env=kept | variables, start_new_session=True)


def read_slurm_example(pack: Path, results: Path) -> tuple[str, ...]:
    return ("bash", str(EXAMPLES / "slurm-array.sh"), str(pack), str(results))


def read_kubernetes_example(pack: Path, results: Path) -> tuple[str, ...]:
    """The container's command as the first process of a PID namespace, as in a container."""
    manifest = yaml.safe_load((EXAMPLES / "kubernetes-job.yaml").read_text())
    [container] = manifest["spec"]["template"]["spec"]["containers"]
    [script] = container["args"]
    script = script.replace(f"auto/{manifest['spec']['completions']}", "auto/1")
    script = script.replace("/results", str(results)).replace("/input/nightly.stumble", str(pack))
    return ("unshare", "--pid", "--fork", "--mount-proc", *container["command"], script)


def count_tapes(folder: Path, pattern: str) -> int:
    return len([*folder.glob(f"{pattern}/tapes/*.tape")])


def wait_until_finished(folder: Path, pattern: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while count_tapes(folder, pattern) < FINISHED:
        assert process.poll() is None, "it ended before it was interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def find_first_process(process: subprocess.Popen[bytes]) -> int:
    """The PID, out here, of the only child."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return int(children.split()[0])


@pytest.mark.parametrize("scheduler", ["slurm", "kubernetes"])
def test_a_signal_to_the_shell_alone_loses_no_finished_run(
    pack: Path, tmp_path: Path, scheduler: str
) -> None:
    if scheduler == "kubernetes" and (os.geteuid() != 0 or shutil.which("unshare") is None):
        pytest.skip("a PID namespace needs root")
    machine, results = tmp_path / "machine", tmp_path / "results"
    results.mkdir()
    read = read_slurm_example if scheduler == "slurm" else read_kubernetes_example
    with start_example(read(pack, results), machine, save_seconds=600) as process:
        wait_until_finished(machine, "**/.stumble", process)
        finished = count_tapes(machine, "**/.stumble")
        if scheduler == "slurm":
            process.send_signal(signal.SIGINT)
        else:
            os.kill(find_first_process(process), signal.SIGTERM)
        process.wait(60)
    [shard] = results.glob("shard-*")
    assert count_tapes(results, "shard-*") >= finished

    bench = Bench(tmp_path / "merged")
    bench.folder.mkdir()
    merged = bench.stumble("campaign", "merge", str(shard), "--json")
    assert merged.json["added"] + merged.json["present"] >= FINISHED - 1, merged.err


def test_a_node_that_dies_keeps_what_was_copied_meanwhile(pack: Path, tmp_path: Path) -> None:
    machine, results = tmp_path / "machine", tmp_path / "results"
    results.mkdir()
    words = read_slurm_example(pack, results)
    with start_example(words, machine, save_seconds=0.1) as process:
        wait_until_finished(results, "shard-*", process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)
    assert count_tapes(results, "shard-*") >= FINISHED
