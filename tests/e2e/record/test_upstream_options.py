"""`stumble record` reaches servers whose certificates the user alone trusts, also with faults."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recorder.event_loop import run_event_loop
from tests.support.servers.raw_servers import says, server_ca, server_tls, serving

ONE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\none"
AGENT = "import sys, httpx; print(httpx.get(sys.argv[1]).text)"
NO_CALL = ("--fault", "http_status:code=503", "--where", "tool=nonesuch")


def record(folder: Path, port: int, *options: str) -> str:
    """Record an agent that requests one page; return what it printed."""
    agent = (sys.executable, "-c", AGENT, f"https://localhost:{port}/")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "stumble", "record", "-o", "a.tape", *options, "--", *agent],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


@pytest.mark.parametrize("fault", [(), NO_CALL], ids=["plain", "with a fault"])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_ca_of_servers_counts(tmp_path: Path, fault: tuple[str, ...], trusted: bool) -> None:
    options = ("--upstream-ca", str(server_ca())) if trusted else ()

    async def main() -> None:
        async with serving(says(ONE), tls=server_tls()) as server:
            printed = await asyncio.to_thread(record, tmp_path, server.port, *options, *fault)
        assert (printed == "one\n") is trusted

    run_event_loop(main())
