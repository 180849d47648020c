"""A Ray cluster of nodes with one processor each, for a test that controls it by lines.

python -m tests.support.ray_cluster 2     prints the address
kill                                      ends the last node hard, as a power cut would
join                                      adds a node
"""

import sys

import ray
from ray.cluster_utils import Cluster

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}


def main(count: int) -> None:
    """Serve lines until standard input ends."""
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    nodes = [cluster.add_node(**NODE) for _ in range(count - 1)]
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)
    for line in sys.stdin:
        match line.strip():
            case "kill":
                cluster.remove_node(nodes.pop(), allow_graceful=False)
            case "join":
                nodes.append(cluster.add_node(**NODE))
        print(line.strip(), flush=True)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]))
