"""What can be reached from inside a sandbox past its relay: nothing, which is tried to be shown."""

import json
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from scenarios.sandbox.values import Sandbox

PUBLIC, METADATA = "1.1.1.1", "169.254.169.254"
TRY = """
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
class Tried:
    """One way out that was tried; `why` it failed, None where it did not."""

    name: str
    why: str | None


async def tried(sandbox: Sandbox, cwd: Path) -> tuple[Tried, ...]:
    """Try to get out of a sandbox by TCP, to a server of ours where there has to be one, and DNS.

    ChildProcessError where the sandbox has no python3, or does not say what came of it.
    """
    with socket.create_server(("", 0)) as server, tempfile.TemporaryFile() as said:
        port = server.getsockname()[1]
        ways: list[tuple[str, str, int]] = [
            ("this machine's loopback", "127.0.0.1", port),
            *((f"this machine at {address}", address, port) for address in _addresses()),
            ("a public address", PUBLIC, 443),
            ("the metadata service of clouds", METADATA, 80),
            ("a name server", "example.com", 80),
        ]
        command = ("python3", "-I", "-c", TRY, json.dumps(ways))
        ran = await sandbox.run(command, cwd=cwd, budget=60, stdout=said.fileno())
        said.seek(0)
        if ran.exit:
            raise ChildProcessError(f"its python3 ended with {ran.exit}; the image needs one")
        return tuple(Tried(name, why) for name, why in json.load(said))


def _addresses() -> tuple[str, ...]:
    """This machine's own IPv4 addresses besides loopback; the engine's bridge is among them."""
    lines = Path("/proc/net/fib_trie").read_text().splitlines()
    local = {lines[at - 1].split()[-1] for at, line in enumerate(lines) if "host LOCAL" in line}
    return tuple(sorted(each for each in local if not each.startswith("127.")))
