"""A standalone Spark cluster of this machine: a master and workers, as their own processes."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.recording_daemon import free_port

DEPLOY = "org.apache.spark.deploy"


@contextmanager
def spark_cluster(packages: Path, folder: Path, workers: int, memory: str = "1g") -> Iterator[str]:
    """Start a cluster with the pyspark of a folder of packages; yield its address."""
    address = f"spark://127.0.0.1:{free_port()}"
    host, _, port = address.removeprefix("spark://").partition(":")
    with ExitStack() as running:
        master = _start(packages, folder, "master.Master", "--host", host, "--port", port,
                        "--webui-port", "0")  # fmt: skip
        running.enter_context(_ended(master))
        _await_line(master, "I have been elected leader")
        for number in range(workers):
            words = ("--cores", "1", "--memory", memory, "--webui-port", "0", "--host", host)
            work = ("--work-dir", str(folder / f"work-{number}"), address)
            worker = _start(packages, folder, "worker.Worker", *words, *work)
            running.enter_context(_ended(worker))
            _await_line(worker, "Successfully registered")
        yield address


def _start(packages: Path, folder: Path, name: str, *words: str) -> "subprocess.Popen[str]":
    env = {**os.environ, "SPARK_HOME": str(packages / "pyspark"), "SPARK_DAEMON_MEMORY": "256m"}
    return subprocess.Popen(
        [packages / "pyspark" / "bin" / "spark-class", f"{DEPLOY}.{name}", *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder, env=env,
        start_new_session=True,
    )  # fmt: skip


@contextmanager
def _ended(process: "subprocess.Popen[str]") -> Iterator[None]:
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _await_line(process: "subprocess.Popen[str]", wanted: str) -> None:
    assert process.stderr is not None
    seen = list[str]()
    for line in process.stderr:
        seen.append(line)
        if re.search(wanted, line):
            return
    raise AssertionError("".join(seen))
