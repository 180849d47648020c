"""Try to reach addresses from inside a sandbox, bypassing its proxy, to verify that none can be."""

import json
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sandbox.types import Sandbox

PUBLIC, METADATA = "1.1.1.1", "169.254.169.254"
ATTEMPT_SCRIPT = """
import json, socket, sys
def tried(host, port):
    try:
        socket.create_connection((host, port), 3).close()
    except OSError as error:
        return str(error)
found = [[name, tried(host, port)] for name, host, port in json.loads(sys.argv[1])]
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class EgressAttempt:
    """One route that was tried, and why it failed; `why` is None if it succeeded."""

    name: str
    why: str | None


async def try_egress_routes(sandbox: Sandbox, cwd: Path) -> tuple[EgressAttempt, ...]:
    """Try to connect out of a sandbox by TCP (to a local test server and public ones) and by DNS.

    Raises ChildProcessError if the sandbox has no python3 or the probe failed.
    """
    with socket.create_server(("", 0)) as server, tempfile.TemporaryFile() as output:
        port = server.getsockname()[1]
        routes: list[tuple[str, str, int]] = [
            ("this machine's loopback", "127.0.0.1", port),
            *((f"this machine at {address}", address, port) for address in _find_own_addresses()),
            ("a public address", PUBLIC, 443),
            ("the metadata service of clouds", METADATA, 80),
            ("a name server", "example.com", 80),
        ]
        command = ("python3", "-I", "-c", ATTEMPT_SCRIPT, json.dumps(routes))
        result = await sandbox.run(command, cwd=cwd, budget=60, stdout=output.fileno())
        output.seek(0)
        if result.exit:
            raise ChildProcessError(f"its python3 ended with {result.exit}; the image needs one")
        return tuple(EgressAttempt(name, why) for name, why in json.load(output))


def _find_own_addresses() -> tuple[str, ...]:
    """Return this machine's IPv4 addresses except loopback; the engine's bridge is among them."""
    lines = Path("/proc/net/fib_trie").read_text().splitlines()
    local = {lines[at - 1].split()[-1] for at, line in enumerate(lines) if "host LOCAL" in line}
    return tuple(sorted(each for each in local if not each.startswith("127.")))
