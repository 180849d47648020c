"""A Ray cluster of nodes with one processor each, for a test that controls it by lines.

python -m tests.support.ray_cluster 2     prints the address
kill                                      ends the last node hard, as a power cut would
join                                      adds a node
"""

import sys
from typing import Any

import ray
from ray.cluster_utils import Cluster

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
TRIES = 5
"""Ray gives a node 30 s to register, and has no setting for it; a busy machine may need more."""


def main(count: int) -> None:
    """Serve lines until standard input ends."""
    cluster = _start_head()
    nodes = [_start_node(cluster) for _ in range(count - 1)]
    cluster.wait_for_nodes(timeout=300)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        match line.strip():
            case "kill":
                cluster.remove_node(nodes.pop(), allow_graceful=False)
            case "join":
                nodes.append(_start_node(cluster))
        print(line.strip(), flush=True)
    ray.shutdown()
    cluster.shutdown()


def _start_head() -> Any:
    for number in range(1, TRIES + 1):
        cluster = Cluster()
        try:
            cluster.add_node(**NODE)
        except Exception as error:
            _report_timeout("head", number, error)
            cluster.shutdown()
        else:
            return cluster
    raise SystemExit(f"the head of Ray did not start in {TRIES} tries")


def _start_node(cluster: Any) -> Any:
    for number in range(1, TRIES + 1):
        try:
            return cluster.add_node(**NODE)
        except Exception as error:
            _report_timeout("node", number, error)
    raise SystemExit(f"a node of Ray did not start in {TRIES} tries")


def _report_timeout(kind: str, number: int, error: Exception) -> None:
    if "timed out during startup" not in str(error):
        raise error
    print(f"Ray's {kind} did not start within 30 s, try {number} of {TRIES}", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]))
