"""A Ray cluster of a head here and a node in a network namespace, whose cable can be pulled.

    python -m tests.support.ray_namespaces     prints the address; needs root
    cut                                        the head and the node no longer reach each other
    mend                                       they do again

The namespace has two cables: one for Ray, and one to the model, at this machine's own address,
which stays. HOME and /tmp are the node's own.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.recording_daemon import free_port

NAMESPACE = "stumble-node"
CABLE = "stumble"  # a name of a device has at most 15 characters
CABLES = {"ray": "10.77.0", "model": "10.78.0"}
"""Cables by name, each with the network of its two ends, `.1` here and `.2` in the namespace."""
START = ("--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats", "--block")
SCRIPT = 'mount -t tmpfs none /tmp && mkdir -p "$HOME" && exec "$@"'


def main() -> None:
    """Serve lines until standard input ends."""
    address = f"{CABLES['ray']}.1:{free_port()}"
    with (
        TemporaryDirectory(prefix="ray-head-") as home,
        _open_namespace(),
        _start_ray(address, Path(home)),
    ):
        print(address, flush=True)
        for line in sys.stdin:
            match line.strip():
                case "cut":
                    _run("ip", "link", "set", f"{CABLE}-ray", "down")
                case "mend":
                    _run("ip", "link", "set", f"{CABLE}-ray", "up")
            print(line.strip(), flush=True)


def find_own_address() -> str:
    """Return the address of this machine that is not loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


@contextmanager
def _open_namespace() -> Iterator[None]:
    _run("ip", "netns", "add", NAMESPACE)
    try:
        inside = ("ip", "-n", NAMESPACE)
        _run(*inside, "link", "set", "lo", "up")
        for name, network in CABLES.items():
            here, there = f"{CABLE}-{name}", f"{name}0"
            _run("ip", "link", "add", here, "type", "veth", "peer", there, "netns", NAMESPACE)
            _run("ip", "addr", "add", f"{network}.1/24", "dev", here)
            _run("ip", "link", "set", here, "up")
            _run(*inside, "addr", "add", f"{network}.2/24", "dev", there)
            _run(*inside, "link", "set", there, "up")
        _run(*inside, "route", "add", find_own_address(), "via", f"{CABLES['model']}.1")
        yield
    finally:
        _run("ip", "netns", "delete", NAMESPACE)


@contextmanager
def _start_ray(address: str, home: Path) -> Iterator[None]:
    ray = (sys.executable, "-m", "ray.scripts.scripts", "start", *START)
    host, _, port = address.partition(":")
    head = (*ray, "--head", f"--node-ip-address={host}", f"--port={port}",
            "--include-dashboard=false", f"--temp-dir={home}")  # fmt: skip
    node = ("ip", "netns", "exec", NAMESPACE, "sh", "-ec", SCRIPT, "sh", *ray,
            f"--address={address}", f"--node-ip-address={CABLES['ray']}.2")  # fmt: skip
    processes = list[subprocess.Popen[bytes]]()
    try:
        for words, place in ((head, home), (node, Path("/tmp/node-home"))):
            env = {**os.environ, "HOME": str(place)}
            processes.append(
                subprocess.Popen(words, env=env, stdout=sys.stderr, start_new_session=True)
            )
            _await_nodes(address, len(processes))
        yield
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)


def _await_nodes(address: str, count: int) -> None:
    """Wait until the cluster has so many nodes. Raises CalledProcessError after five minutes."""
    program = (
        "import ray, sys, time\n"
        "for _ in range(300):\n"
        "    try:\n"
        "        ray.init(sys.argv[1], log_to_driver=False, logging_level='ERROR')\n"
        "    except ConnectionError:\n"
        "        time.sleep(1)\n"
        "        continue\n"
        "    alive = sum(node['Alive'] for node in ray.nodes())\n"
        "    ray.shutdown()\n"
        "    if alive >= int(sys.argv[2]):\n"
        "        sys.exit(0)\n"
        "    time.sleep(1)\n"
        "sys.exit(1)\n"
    )
    _run(sys.executable, "-c", program, address, str(count))


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
